"""The guide: its pages, what is generated in them, what they link to, and that they know everything the code declares."""

import re
import tomllib
from pathlib import Path

import generated
import pytest

from workbench import guide, settings
from workbench.plan import fields as plan_fields
from workbench.plan.presets import PRESETS
from workbench.settings import read_yaml

ROOT = Path(__file__).parents[2]
WRITTEN = {name: guide.text(name) for name in guide.PAGES if name != "reference"}
GUIDE = "\n".join(WRITTEN.values())
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_reference_and_tables_are_what_the_code_says_now():
    assert {f.stem for f in guide.FOLDER.glob("*.md")} == set(guide.PAGES)
    assert guide.text("reference") == generated.reference(), "run: make guide"
    assert guide.text("sql") == generated.with_tables(guide.text("sql")), "run: make guide"


@pytest.mark.parametrize("page", WRITTEN)
def test_a_page_has_at_most_fifteen_hundred_words(page):
    assert sum(1 for word in WRITTEN[page].split() if re.search(r"\w", word)) <= 1500


def test_every_preset_and_app_page_is_in_the_guide():
    for preset in PRESETS:
        page = WRITTEN["default" if preset.name in ("rrf", "tmm") else preset.name]
        assert f"`{preset.name}`" in page or f"# Preset {preset.name}\n" in page
        assert "**For whom:**" in page
        assert "\n$ workbench " in page
        assert "## What differs" in page
    router = "".join(p.read_text("utf-8") for p in (ROOT / "workbench" / "ui").glob("*.py"))
    titles = re.findall(r'": \("([\w ]+)", "\w+", "', router)
    assert len(titles) > 8
    for title in titles:
        assert f"**{title}.**" in GUIDE, title


@pytest.mark.parametrize(
    "name", [*plan_fields.METHODS, *plan_fields.NORMALISATIONS, *plan_fields.METRICS, *plan_fields.MISSING]
)
def test_every_method_normalisation_metric_and_missing_score_is_explained(name):
    assert f"`{name}`" in WRITTEN["search"]


@pytest.mark.parametrize("page", [*guide.PAGES, "README"])
def test_every_link_leads_somewhere(page):
    folder, text = (ROOT, README) if page == "README" else (guide.FOLDER, guide.text(page))
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
        if "://" in target:
            continue
        path, _, part = target.partition("#")
        found = folder / path if path else guide.FOLDER / f"{page}.md"
        assert found.exists(), target
        assert not part or f'id="{part}"' in guide.html(found.stem), target


def test_pages_become_html_with_anchors_and_pictures():
    html = guide.html("reference")
    for field in plan_fields.FIELDS:
        assert f'<tr id="{guide.anchor(field.name)}">' in html
    for setting in settings.SETTINGS:
        assert f'<tr id="{guide.anchor(setting.name)}">' in html
    start = guide.html("start")
    assert 'src="data:image/png;base64,' in start
    assert 'href="guide?page=search"' in start
    assert 'id="a-first-hour"' in start
    assert "<script" not in start


@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_every_notebook_is_in_the_guide(notebook):
    assert f"| [{notebook.stem}](../../notebooks/{notebook.name}) | " in GUIDE


def test_the_compose_file_is_yaml_with_what_its_services_name():
    (block,) = re.findall(r"```yaml\n(services:.*?)```", guide.text("scale"), re.DOTALL)
    made = read_yaml(block)
    for service in made["services"].values():
        assert service["image"].count(":") == 1
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= made["volumes"].keys()
        assert set(service.get("depends_on", ())) <= made["services"].keys()


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_is_in_the_readme(extra):
    assert f"`[{extra}]`" in README
    named = re.findall(r"(?:workbench|\.)\[([\w,]+)\]", README + GUIDE)
    assert named
    assert {name for names in named for name in names.split(",")} <= set(EXTRAS)


def test_what_pages_for_developers_name_is_there():
    pages = (
        ROOT / "CONTRIBUTING.md",
        ROOT / "tests" / "acceptance" / "README.md",
        ROOT / "tests" / "bench" / "README.md",
    )
    named = {name for page in pages for name in re.findall(r"\b(test_\w+)\b(?!\.py)", page.read_text("utf-8"))}
    there = {
        name
        for file in (ROOT / "tests").rglob("*.py")
        for name in (file.stem, *re.findall(r"def (test_\w+)", file.read_text("utf-8")))
    }
    assert named
    assert named <= there, sorted(named - there)
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:workbench/)?[a-z_]+(?:/[\w.]*)+|[a-z_]+\.py)`(?: `([\w.]+)`)?", text)
    assert len(named) > 25
    for path, name in named:
        if path.startswith("test_"):
            continue  # the test above
        found = [base / path for base in (ROOT, ROOT / "workbench") if (base / path).exists()]
        assert found, path
        assert not name or not found[0].is_file() or name.rpartition(".")[2] in found[0].read_text("utf-8"), (
            path,
            name,
        )
