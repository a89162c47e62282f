"""The Document page opens at a place: a row of a sheet, a slide, a part of a message, a file inside a file."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import file_makers as make
import pytest
from app_for_tests import all_text, column, document
from app_for_tests import document_body as body
from streamlit.testing.v1 import AppTest

from workbench.locators import Place
from workbench.records import Span
from workbench.ui.views.document import Sheet, Target, heading

Open = Callable[..., AppTest]


PLACED = [Place(0, "sheet=S&row=1"), Place(11, "sheet=S&row=4"), Place(17, "sheet=S&row=5")]
TABLE = "# S\n\na | b\nc | d\ne | f\n"


def test_a_places_number_stands_in_the_margin_and_its_citation_is_copied() -> None:
    """Rows of a sheet are numbered as the program numbers them; lines without a place of their own keep theirs."""
    sheet = Sheet.of(TABLE, "a.xlsx", (), PLACED)
    shown = sheet.html(1, Target(4, 5))
    assert re.findall(r'wb-at" title="([^"]*)">([^<]*)<', shown) == [
        ("sheet S, row 1", "row 1"), ("sheet S, row 4", "row 4"), ("sheet S, row 5", "row 5"),
    ]  # fmt: skip
    assert shown.count("wb-target") == 2
    said = heading("a.xlsx", "", sheet, Target(4, 5), 0)
    assert 'data-wb-copy="a.xlsx#sheet=S&amp;row=4-5"' in said
    assert "sheet S, row 4-5" in said


def test_a_target_outside_its_place_is_given_up_for_the_place() -> None:
    """Lines move when a document changes; sheets and rows tell where they are."""
    sheet = Sheet.of(TABLE, "a.xlsx", (), PLACED)
    assert sheet.narrowed(Target(5, 5), Span(11, 22)) == Target(5, 5)
    assert sheet.narrowed(Target(9, 9), Span(11, 16)) == Target(4, 4)
    assert sheet.narrowed(Target(), Span(0, 10)) == Target(1, 3)


@pytest.fixture(scope="module")
def placed_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook, slides and a message with a file attached."""
    import workbench as wb

    folder = tmp_path_factory.mktemp("placed")
    files = {
        "book.xlsx": make.xlsx({"Sales": [["what", "sum"], ["heron", 3], ["newt", 4]], "R&D": [["weir", "x"]]}),
        "deck.pptx": make.pptx([("First", "a heron", ""), ("Second", "a newt", "said of weirs")]),
        "page.html": b"<html>\n<head>\n</head>\n<h1>Otters</h1>\n\n<p>They\nswim</p>\n<p>and dive\n</html>",
        "mail.eml": make.mail("Birds", "the body", {"in.xlsx": make.xlsx({"I": [["curlew", "egret"]]})}),
    }
    (folder / "files").mkdir()
    for name, data in files.items():
        (folder / "files" / name).write_bytes(data)
    wb.index([folder / "files"], corpus=folder / "corpus", encoder="hashing", workers=0)
    return folder / "corpus"


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"path": "book.xlsx", "at": "sheet=Sales&row=2"}, "heron | 3"),
        ({"path": "book.xlsx", "at": "Sales!A3"}, "newt | 4"),
        ({"path": "book.xlsx#sheet=R%26D"}, "weir | x"),
        ({"path": "deck.pptx", "at": "slide=2&part=notes", "lines": "900-901"}, "said of weirs"),
        ({"path": "mail.eml!/in.xlsx#sheet=I&row=1"}, "curlew | egret"),
        ({"path": "page.html", "at": "line=6-7"}, "They swim"),
        ({"path": "page.html#line=8"}, "and dive"),
        ({"path": "page.html:4-5"}, "# Otters"),
        ({"path": "book.xlsx", "at": "sheet=Sales", "lines": "5-5"}, "newt | 4"),
    ],
)
def test_a_document_opens_at_its_place(open_app: Open, placed_corpus: Path, params: dict[str, str], words: str) -> None:
    """By locator, as people write it, as a citation; lines narrow it where they lie in it."""
    at = document(open_app, placed_corpus, **params)
    targets = re.findall(r'<div class="wb-row[^"]*wb-target".*?wb-src-line" dir="auto">(.*?)</span></div>', body(at))
    assert html.unescape(targets[-1]) == words


def test_the_editor_opens_a_page_at_its_own_line(
    open_app: Open, placed_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of its text are others: the heading is the first of those."""
    monkeypatch.setenv("WORKBENCH_EDITOR_LINK", "vscode://file/{path}:{line}")
    assert 'files/page.html:4"' in column(open_app(placed_corpus, q="otters", columns="keyword"), "keyword")


def test_a_place_that_is_gone_is_told_and_the_document_shown(open_app: Open, placed_corpus: Path) -> None:
    at = document(open_app, placed_corpus, path="book.xlsx", at="sheet=Costs&row=9")
    assert "It has sheet Sales, R&amp;D" in all_text(at)
    assert "heron" in body(at)


def test_a_results_link_opens_its_place(open_app: Open, placed_corpus: Path) -> None:
    """The link of a card names the place, and the page that it opens marks the passage."""
    import workbench as wb
    from workbench.ui.components import cards

    with wb.open_corpus(placed_corpus) as corpus:
        (hit,) = corpus.search("curlew", mode="keyword").hits
    link = dict(parse_qsl(urlsplit(cards.document_link(hit)).query))
    assert link["at"] == "sheet=I&row=1"
    at = document(open_app, placed_corpus, **link)
    assert "curlew" in body(at)
    assert "wb-target" in body(at)
