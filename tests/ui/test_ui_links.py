"""Addresses of the Document page: one function makes them all."""

from __future__ import annotations

import ast
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import workbench.ui
from workbench.ui.components import links


def parts(link: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(link).query))


def test_a_link_names_document_place_and_search() -> None:
    """Only what is given stands in it, and every sign of a path survives the way."""
    assert links.document("a.md") == "document?path=a.md"
    full = links.document(
        "a & b/ü#1.xlsx", document_id="d1", lines=(4, 9), locator="sheet=S&row=4", asked={"q": "rain = snow"}
    )
    assert parts(full) == {
        "q": "rain = snow", "id": "d1", "path": "a & b/ü#1.xlsx", "at": "sheet=S&row=4", "lines": "4-9",
    }  # fmt: skip


def test_a_passage_inside_a_long_line_brings_its_first_words() -> None:
    """A line number alone does not find it there; in several lines, or in a short one, it does."""
    long = "word " * 200
    assert parts(links.document("a", lines=(3, 3), text=long))["quote"].startswith("word word")
    assert "quote" not in parts(links.document("a", lines=(3, 4), text=long))
    assert "quote" not in parts(links.document("a", lines=(3, 3), text="word"))


def test_no_page_makes_such_an_address_by_hand() -> None:
    """Outside `links` no text of the pages begins one."""
    for file in Path(workbench.ui.__file__).parent.glob("*.py"):
        if file.name == "links.py":
            continue
        texts = [n.value for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, ast.Constant)]
        assert not [t for t in texts if isinstance(t, str) and t.startswith("document?")], file.name
