"""Saved pages as a browser shows them: tables inside tables, heads beside rows, addresses and titles that mean something."""

from __future__ import annotations

from pathlib import Path

from reader_files import read, saved

from workbench.ingest.readers.html import html_text


def test_a_table_inside_a_cell_keeps_its_rows() -> None:
    inner = "<table><tr><th>Name</th><th>Town</th></tr><tr><td>Ada</td><td>London</td></tr></table>"
    text, outline = html_text(f"<table><tr><td>People</td><td>{inner}</td></tr></table>")
    assert text.split("\n") == ["People", "", "Name | Town", "Ada | London"]
    assert [table.header for table in outline.tables] == ["Name | Town"]


def test_heads_beside_the_rows_are_no_header_over_the_columns() -> None:
    _, outline = html_text(
        "<table><tr><th>Kind</th><td>public</td></tr><tr><th>Founded</th><td>in spring</td></tr></table>"
    )
    assert not outline.tables


def test_the_fullest_of_several_rows_of_heads_is_the_header() -> None:
    rows = "<tr><td></td><th>North</th></tr><tr><th>Year</th><th>Corn</th></tr><tr><th>2023</th><td>7</td></tr>"
    text, outline = html_text(f"<table><caption>Harvest</caption>{rows}</table>")
    assert text == "Harvest\n | North\nYear | Corn\n2023 | 7"
    assert [(table.header, text[table.body :]) for table in outline.tables] == [("Year | Corn", "2023 | 7")]


def test_an_address_without_a_host_is_none(tmp_path: Path) -> None:
    head = '<title>Untitled Document</title><link rel="canonical" href="/a/b">{}'
    page = f"<html><head>{head}</head><body><h1>Ports</h1></body></html>"
    (document,), _ = read(saved(tmp_path, "a.html", page.format("")))
    assert (document.url, document.title) == ("", "Ports")
    shared = '<meta property="og:url" content="https://example.org/a/b">'
    (document,), _ = read(saved(tmp_path, "b.html", page.format(shared)))
    assert document.url == "https://example.org/a/b"


def test_hard_spaces_alone_are_no_lines_and_rows_end_with_their_last_words() -> None:
    page = "<p>One</p><p>&nbsp;</p><p>a&nbsp;b</p><table><tr><td>x</td><td>y</td><td>&nbsp;</td></tr></table>"
    assert html_text(page)[0] == "One\n\na\xa0b\n\nx | y"


def test_without_marks_a_header_is_told_by_bold_words_or_by_the_numbers_below_it() -> None:
    """A list of places set as a table has none: its first place would stand above all the others."""

    def header(*rows: tuple[str, str]) -> list[str]:
        body = "".join(f"<tr><td>{a}</td><td>{b}</td></tr>" for a, b in rows)
        return [table.header for table in html_text(f"<table>{body}</table>")[1].tables]

    assert header(("The lake", "Frontispiece"), ("The rink", "at the end"), ("The hut", "at the end")) == []
    assert header(("Crop", "Tons"), ("Corn", "1,200"), ("Rye", "80")) == ["Crop | Tons"]
    assert header(("<b>Plate</b>", "<b>Place</b>"), ("The rink", "at the end")) == ["Plate | Place"]
