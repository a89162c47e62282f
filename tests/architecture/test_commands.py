"""Commands take who asks, and the plan, as one argument each: the options are declared and read in `cli/options.py` alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

COMMANDS = Path(__file__).parents[2] / "workbench" / "cli"
GATHERED = {"tenant", "roles", "plan_text", "preset", "plan_file", "plan_files", "changes"}
OTHERS = {"index.py:index": {"tenant", "roles"}}
"""Commands whose options of these names mean something else: the tenant and roles of the documents."""


def _commands(path: Path) -> list[ast.FunctionDef]:
    """Functions that click makes commands of."""
    functions = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)]
    return [f for f in functions if any(ast.unparse(d).split("(")[0].endswith("command") for d in f.decorator_list)]


@pytest.mark.parametrize("path", sorted(COMMANDS.glob("*.py")), ids=lambda p: p.name)
def test_no_command_spells_out_the_shared_options(path: Path) -> None:
    """Seven parameters that every command would hand on are two records: `asker` and `plan` (or `plans`)."""
    for command in _commands(path):
        arguments = {a.arg for a in (*command.args.args, *command.args.kwonlyargs)}
        spelled = (arguments & GATHERED) - OTHERS.get(f"{path.name}:{command.name}", set())
        assert not spelled, f"{path.name}: {command.name} takes {', '.join(sorted(spelled))}"


def test_there_are_commands_to_look_at() -> None:
    """The rule above is asked of the commands that there are."""
    assert {"search", "evaluate", "tune", "index"} <= {c.name for p in COMMANDS.glob("*.py") for c in _commands(p)}
