"""The Document and Guide pages, and moving between pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from app_for_tests import all_text, bodies, chunks, run
from streamlit.testing.v1 import AppTest

from workbench import plan_fields
from workbench.presets import PRESETS
from workbench.ui import controls, reference
from workbench.ui.document import LINES_A_PAGE, Opened, Target, read_target

Open = Callable[..., AppTest]


def document(open_app: Open, corpus: Path, **params: str) -> AppTest:
    at = open_app(corpus)
    at.query_params.update(params)
    at.switch_page("views/document.py")
    return run(at)


def test_a_document_opens_at_its_lines(open_app: Open, small_corpus: Path) -> None:
    """The whole text, numbered, with the lines of the citation marked."""
    at = document(open_app, small_corpus, path="retries.md", lines="3-3")
    (body,) = (b for b in bodies(at) if 'role="document"' in b)
    assert 'wb-line wb-target" id="line-3"' in body
    assert 'wb-line" id="line-1"' in body
    assert "The backoff doubles" in body
    assert "lines 3–3" in all_text(at)


@pytest.mark.parametrize("path", ["nothing.md", "../../etc/passwd", "/etc/passwd", "<script>x</script>"])
def test_a_document_that_is_not_there_is_a_sentence(open_app: Open, small_corpus: Path, path: str) -> None:
    """Absent, outside and hostile paths are told, and nothing is read."""
    at = document(open_app, small_corpus, path=path)
    assert any('role="alert"' in b for b in bodies(at))
    assert "<script>x" not in "".join(b for b in bodies(at) if "wb-alert" in b)
    assert "root:" not in all_text(at)


def test_without_a_path_the_page_asks_for_one(open_app: Open, small_corpus: Path) -> None:
    """Typing one opens it and names it in the address."""
    at = document(open_app, small_corpus)
    at.text_input(key="wb.w.path").set_value("tea.md")
    run(at)
    assert "warm the pot" in "".join(bodies(at))
    assert at.query_params == {"path": "tea.md"}


def test_hostile_text_stays_text_in_the_document(open_app: Open, small_corpus: Path) -> None:
    """No element of the page comes from the document."""
    at = document(open_app, small_corpus, path="hostile.md")
    (body,) = (b for b in bodies(at) if 'role="document"' in b)
    assert "&lt;script&gt;" in body
    assert "<script" not in body
    assert "<img" not in body


def test_a_page_switch_and_back_keeps_query_and_settings(open_app: Open, small_corpus: Path) -> None:
    """What was set is there again, in the controls, the columns and the address."""
    at = open_app(small_corpus, q="retry request")
    at.slider(key="wb.w.fusion.k").set_value(7.0)
    run(run(at))
    address, before = dict(at.query_params), chunks(at, "hybrid")
    at.query_params.clear()
    at.switch_page("views/guide.py")
    run(at)
    at.query_params.clear()
    at.switch_page("views/search.py")
    run(at)
    assert at.query_params == address
    assert at.slider(key="wb.w.fusion.k").value == 7.0
    assert chunks(at, "hybrid") == before


def test_the_guide_has_every_field_and_preset() -> None:
    """One declaration: what is declared is on the page, at the place that the help links to."""
    html = reference.html()
    for field in plan_fields.FIELDS:
        assert f'id="{controls.anchor(field.name)}"' in html
    for preset in PRESETS:
        assert f"<code>{preset.name}</code>" in html


def test_the_guides_filters_can_be_read() -> None:
    """An example that the language refuses would teach a fault."""
    from workbench.store.filters import parse
    from workbench.ui.sidebar import FILTER_HELP

    for example, _ in reference.FILTERS:
        parse(example)
    for example in FILTER_HELP.split("`")[1::2]:
        parse(example)


def test_a_long_document_is_shown_a_page_at_a_time() -> None:
    """Pages hold every line once, and a citation opens its own page."""
    text = "\n".join(f"line {n}" for n in range(1, 1001))
    opened = Opened.of(text)
    assert (opened.lines, opened.pages) == (1000, 3)
    assert opened.page_of(Target(801, 805)) == 3
    shown = "".join(opened.html(page, Target()) for page in (1, 2, 3))
    assert [f'id="line-{n}"' in shown for n in (1, LINES_A_PAGE, LINES_A_PAGE + 1, 1000)] == [True] * 4
    assert shown.count("wb-no") == 1000


def test_a_passage_in_one_long_line_is_found_by_its_words() -> None:
    """The quote is marked, and the line shown around it."""
    text = "word " * 2000 + "the needle here " + "word " * 2000
    shown = Opened.of(text).html(1, Target(1, 1, "the needle"))
    assert "<mark>the needle</mark>" in shown
    assert len(shown) < 4000


@pytest.mark.parametrize(
    ("lines", "target"),
    [("3-9", Target(3, 9)), ("4", Target(4, 4)), ("9-3", Target(9, 9)), ("x", Target()), ("", Target())],
)
def test_lines_of_an_address(lines: str, target: Target) -> None:
    """What cannot be read is no target, never an error."""
    assert read_target(lines) == target


@pytest.mark.parametrize("text", ["", "one", "one\n", "\n\n"])
def test_small_documents_have_their_lines(text: str) -> None:
    """As many lines as newlines, and one more."""
    opened = Opened.of(text)
    assert opened.lines == text.count("\n") + 1
    assert opened.html(1, Target()).count("wb-no") == opened.lines
