"""Options that several commands share, declared once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from workbench import settings
from workbench.errors import PlanError
from workbench.plan import Plan
from workbench.records import Principal

F = TypeVar("F", bound=Callable[..., Any])


def corpus_option(function: F) -> F:
    """`--corpus`."""
    return click.option(
        "--corpus", "-c", type=click.Path(path_type=Path), help="The corpus folder (default ./.workbench)."
    )(function)


def json_option(function: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def principal_options(function: F) -> F:
    """`--tenant` and `--role`."""
    function = click.option("--role", "roles", multiple=True, help="A role of who asks; may be repeated.")(function)
    return click.option("--tenant", help="The tenant of who asks.")(function)


def plan_options(function: F) -> F:
    """`--plan`, `--preset`, `--plan-file` and `--set`."""
    function = click.option(
        "--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a plan field; may be repeated."
    )(function)
    function = click.option(
        "--plan-file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="A plan as YAML."
    )(function)
    function = click.option("--preset", help="A preset's name; `workbench presets` lists them.")(function)
    return click.option("--plan", "plan_text", help="A plan's text form, such as 'default fusion.k=20'.")(function)


def read_plan(plan_text: str | None, preset: str | None, plan_file: Path | None, changes: tuple[str, ...]) -> Plan:
    """The plan that the options ask for. Raises PlanError."""
    given = [x for x in (plan_text, preset, plan_file) if x]
    if len(given) > 1:
        raise PlanError(
            "More than one of --plan, --preset and --plan-file is given", "Give one, and change it with --set"
        )
    if plan_file is not None:
        plan = Plan.from_yaml(plan_file.read_text(encoding="utf-8"))
    else:
        plan = Plan.parse(plan_text or preset or "default")
    values = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise PlanError(f"--set {change} is not FIELD=VALUE", "Write for example --set fusion.k=20")
        values[name.strip()] = value.strip()
    return plan.replace(values)


def many_plans_options(function: F) -> F:
    """`--plan` (or `--preset`), `--plan-file` and `--set`, where several plans are run beside each other."""
    function = click.option(
        "--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a field of every plan; may be repeated."
    )(function)
    function = click.option(
        "--plan-file",
        "plan_files",
        multiple=True,
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="A plan as YAML, after those of --plan; may be repeated.",
    )(function)
    return click.option(
        "--plan",
        "--preset",
        "plans",
        multiple=True,
        help="A plan's text form or a preset's name; repeat it to compare.",
    )(function)


def read_plans(plans: tuple[str, ...], plan_files: tuple[Path, ...], changes: tuple[str, ...]) -> tuple[Plan, ...]:
    """The plans that the options ask for, in order; `default` where there are none. Raises PlanError."""
    texts = plans or (() if plan_files else ("default",))
    return (
        *(read_plan(text, None, None, changes) for text in texts),
        *(read_plan(None, None, file, changes) for file in plan_files),
    )


def read_principal(tenant: str | None, roles: tuple[str, ...]) -> Principal | None:
    """Who asks: the options, else the settings, else the local owner (None)."""
    tenant = tenant or str(settings.get("tenant")) or None
    roles = roles or tuple(r.strip() for r in str(settings.get("roles")).split(",") if r.strip())
    return Principal(tenant, roles) if tenant or roles else None


def print_json(data: Any) -> None:
    """JSON with sorted-as-given keys, readable, in UTF-8."""
    click.echo(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False))
