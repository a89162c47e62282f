"""`workbench presets` and `workbench fields`."""

from __future__ import annotations

import click
from rich.table import Table

from workbench.cli import options, output
from workbench.plan import fields as plan_fields
from workbench.plan.plan import preset
from workbench.plan.presets import PRESETS


@click.command()
@options.json_option
def presets(as_json: bool) -> None:
    """List the presets with one line each."""
    if as_json:
        options.print_json(
            [
                {"name": p.name, "summary": p.summary, "fields": {n: plan_fields.plain(v) for n, v in preset(p.name)}}
                for p in PRESETS
            ]
        )
        return
    table = Table("preset", "what it is", "differs from the defaults in", header_style="bold")
    for entry in PRESETS:
        changed = " ".join(f"{n}={plan_fields.show(v)}" for n, v in preset(entry.name))
        table.add_row(entry.name, entry.summary, changed)
    output.console().print(table)


@click.command()
@options.json_option
def fields(as_json: bool) -> None:
    """List the plan's fields with default, bounds and help."""
    if as_json:
        options.print_json(
            [
                {"field": _name(f), "default": plan_fields.plain(f.default), "bounds": f.bounds, "help": f.help}
                for f in plan_fields.FIELDS
            ]
        )
        return
    table = Table("field", "default", "bounds", "help", header_style="bold")
    for field in plan_fields.FIELDS:
        table.add_row(_name(field), plan_fields.show(field.default), field.bounds, field.help)
    output.console().print(table)


def _name(field: plan_fields.Field) -> str:
    return field.name + (".<source>" if field.family else "")
