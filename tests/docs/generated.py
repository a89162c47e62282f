"""What the guide shows of the code's own tables: `make guide` writes it, and `test_guide.py` holds it equal.

python tests/docs/generated.py     write reference.md and the tables of sql.md
"""

import inspect
import re
import tempfile
from pathlib import Path
from typing import Any

import click

import workbench as wb
from workbench import guide, settings
from workbench.cli.main import COMMANDS, main
from workbench.plan import fields as plan_fields
from workbench.plan.presets import PRESETS

ABOUT = {
    "documents": "a document",
    "records": "a chunk, or a whole document in a collection of documents",
    "fields": "a value of front matter",
    "postings": "a word and its stem (`term`): the chunks that have it, how often each, and where",
    "lengths": "a chunk's length in words",
    "words_made_with": "what decides which words a text has",
    "files": "a file that was seen, indexed or not, with reason and remedy",
    "copies": "a file with the same bytes as an indexed one",
    "former": "a path that a document had before",
    "places": "where a text is in its original (sheet, slide, cell)",
    "access": "a combination of tenant, roles and sensitivity",
    "collections": "a collection",
    "roots": "an indexed folder",
}
"""Table of corpus.duckdb -> what one row is; a table without a line here is refused."""


def cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell(c) for c in line) + " |\n" for line in lines)


def commands() -> str:
    parts = [table(("Command", "What it does"), [(f"`workbench {n}`", COMMANDS[n][2]) for n in COMMANDS])]
    with click.Context(main, info_name="workbench") as context:
        for name in COMMANDS:
            found = main.get_command(context, name)
            parts.append(_command(found, f"workbench {name}", context))
    return "\n".join(parts)


def _command(command: click.Command, name: str, parent: click.Context) -> str:
    with click.Context(command, info_name=name, parent=parent) as context:
        if isinstance(command, click.Group):
            below = [_command(command.commands[n], f"{name} {n}", context) for n in command.list_commands(context)]
            return "\n".join(below)
        usage = " ".join(command.collect_usage_pieces(context))
        options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
        rows = [(f"`{option_name(p)}`", p.help or "") for p in options]
        about = inspect.cleandoc(command.help or "").partition("\n\n")[0]
        text = f"### {name}\n\n`{name} {usage}`\n\n{' '.join(about.split())}\n"
        return text + (f"\n{table(('Option', 'What it does'), rows)}" if rows else "")


def option_name(option: click.Option) -> str:
    names = ", ".join((*option.opts, *option.secondary_opts))
    return names if option.is_flag or option.count else f"{names} {_metavar(option)}"


def _metavar(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "[" + "|".join(map(str, option.type.choices)) + "]"
    return option.metavar or option.type.name.upper().partition(" ")[0]


def names() -> str:
    """Every public Python name with the first sentence of its docstring."""
    rows: list[tuple[object, ...]] = []
    for name in sorted(wb.__all__, key=str.lower):
        value: Any = getattr(wb, name)
        if not name.startswith("__"):
            rows.append((f"`wb.{name}`", first_sentence(value.__doc__ or "")))
    return table(("Name", "What it is"), rows)


def first_sentence(docstring: str) -> str:
    text = " ".join(inspect.cleandoc(docstring).partition("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", text)[0]


def reference() -> str:
    fields = [
        (f"`{f.name}{'.<source>' if f.family else ''}`", f"`{plan_fields.show(f.default)}`", f.bounds, f.help)
        for f in plan_fields.FIELDS
    ]
    kept = [
        (f"`{s.name}`", f"`{s.variable}`", "" if s.default == "" else f"`{s.default}`", s.help)
        for s in settings.SETTINGS
    ]
    return "\n".join(
        (
            "# Reference\n\nGenerated from the code's own tables by `make guide`.\n",
            "## Plan fields\n\nThe defaults are the fields' own; a preset says what differs.\n",
            table(("Field", "Default", "Values", "What it does"), fields),
            "## Presets\n",
            table(("Preset", "What it is"), [(f"`{p.name}`", p.summary) for p in PRESETS]),
            "## Settings\n\nFrom the environment, else from `settings.yaml` in the user's configuration folder "
            "(`~/.config/workbench`, or the file that `WORKBENCH_SETTINGS` names), else the default. In paths a leading "
            "`~` is your home folder. `workbench doctor` shows which are set.\n",
            table(("Setting", "Variable", "Default", "What it does"), kept),
            "## Python names\n",
            names(),
            "## Commands\n",
            commands(),
        )
    )


def tables() -> str:
    """The tables of corpus.duckdb with their columns, from a corpus made now."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "files"
        source.mkdir()
        (source / "a.md").write_text("apples", encoding="utf-8")
        wb.index([source], corpus=Path(folder) / "corpus", encoder="hashing", workers=0)
        with wb.open_corpus(Path(folder) / "corpus") as corpus:
            columns = corpus.sql(
                "SELECT table_name, string_agg('`' || column_name || '`', ', ' ORDER BY column_index) "
                "FROM duckdb_columns() WHERE NOT internal GROUP BY table_name"
            )
    rows = dict(columns.iter_rows())
    ordered = [t for t in ABOUT if t in rows] + sorted(set(rows) - set(ABOUT))
    return table(("Table", "One row", "Columns"), [(f"`{t}`", ABOUT[t], rows[t]) for t in ordered])


def with_tables(page: str) -> str:
    before, _, rest = page.partition("## Tables\n")
    _, _, after = rest.partition("## Examples\n")
    return f"{before}## Tables\n\n{tables()}\n## Examples\n{after}"


if __name__ == "__main__":
    (guide.FOLDER / "reference.md").write_text(reference(), encoding="utf-8")
    (guide.FOLDER / "sql.md").write_text(with_tables(guide.text("sql")), encoding="utf-8")
