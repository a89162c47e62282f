"""The guide knows every command, preset, plan field, method, normalisation, setting and page, with today's defaults."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import workbench as wb
from workbench import settings
from workbench.cli.main import COMMANDS
from workbench.plan import fields as plan_fields
from workbench.plan.presets import PRESETS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "GUIDE.md").read_text(encoding="utf-8")
VIEWS = [v for v in sorted((ROOT / "workbench" / "ui" / "views").glob("*.py")) if v.stem != "__init__"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_guide(name: str) -> None:
    assert f"| `workbench {name}` | {COMMANDS[name][2]} |" in GUIDE


@pytest.mark.parametrize("field", plan_fields.FIELDS, ids=lambda f: f.name)
def test_every_plan_field_is_in_the_guide(field: plan_fields.Field) -> None:
    """With its default, bounds and line of help as they are declared."""
    name = field.name + (".<source>" if field.family else "")
    assert f"| `{name}` | {plan_fields.show(field.default)} | {field.bounds} | {field.help} |" in GUIDE


@pytest.mark.parametrize("preset", PRESETS, ids=lambda p: p.name)
def test_every_preset_is_in_the_guide(preset: object) -> None:
    assert f"| `{preset.name}` | {preset.summary} |" in GUIDE  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", [*plan_fields.METHODS, *plan_fields.NORMALISATIONS, *plan_fields.METRICS, *plan_fields.MISSING]
)
def test_every_method_normalisation_metric_and_missing_score_is_in_the_guide(name: str) -> None:
    assert f"`{name}`" in GUIDE


@pytest.mark.parametrize("setting", settings.SETTINGS, ids=lambda s: s.name)
def test_every_setting_is_in_the_guide(setting: settings.Setting) -> None:
    assert f"| `{setting.name}` | `{setting.variable}` | {setting.default} | {setting.help} |" in GUIDE


def test_every_page_is_in_the_guide() -> None:
    for view in VIEWS:
        assert f"**{view.stem.capitalize()}.**" in GUIDE, view.name


@pytest.mark.parametrize("text", [GUIDE, README], ids=["GUIDE", "README"])
def test_every_picture_and_file_that_is_linked_is_there(text: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target


def test_every_test_that_the_guide_names_is_there() -> None:
    """The table of what each preset promises points at tests that exist."""
    named = set(re.findall(r"\b(test_\w+)\b(?!\.py)", GUIDE))
    there = {
        name
        for file in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))
    }
    files = {file.stem for file in (ROOT / "tests").rglob("test_*.py")}
    assert named
    assert named <= there | files, sorted(named - there - files)


@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_every_notebook_is_in_the_guide_and_the_readme(notebook: Path) -> None:
    """By name in the guide's table, and as a link in README."""
    assert f"| [{notebook.stem}](notebooks/{notebook.name}) | " in GUIDE
    assert f"](notebooks/{notebook.name})" in README


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_is_in_the_readme_and_where_it_is_needed_in_the_guide(extra: str) -> None:
    """Nothing can be installed that no text speaks of, and no text tells to install what there is not."""
    assert f"`[{extra}]`" in README
    assert extra == "dev" or f"[{extra}]" in GUIDE
    named = re.findall(r"(?:workbench|\.)\[([\w,]+)\]", README + GUIDE)
    assert named
    assert {name for names in named for name in names.split(",")} <= set(EXTRAS)


@pytest.mark.parametrize("name", [n for n in wb.__all__ if not n.startswith("__")])
def test_every_public_name_is_in_the_guide(name: str) -> None:
    """What scripts may use is said where they look for it."""
    assert re.search(rf"`(?:wb\.)?{name}\b|wb\.{name}\b", GUIDE)
