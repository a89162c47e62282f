"""The Document page: whole text, matches, chunk borders, pages, neighbours, how its rows are cut; and the places it opens at."""

import html
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import file_makers as make
import pytest
from app_for_tests import all_text, bodies, column, document, run
from app_for_tests import document_body as body
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.ingest.readers.pdf import PICTURE, page_png
from workbench.locators import Place
from workbench.records import Chunk, Span
from workbench.ui.components.sheet import LONGEST_ROW, ROWS_A_PAGE, Sheet, Target, heading, join_spans, read_target
from workbench.ui.views import document as document_view

Open = Callable[..., AppTest]


def chunk(index: int, start: int, end: int, section: str = "") -> Chunk:
    return Chunk(f"c{index}", "d", "docs", index, start, end, 1, 1, "", section=section, tokens=7)


def text_of(markup: str) -> str:
    """The text of the rows, as a reader sees it, without numbers and margins."""
    rows = re.findall(r'<span class="wb-src-line" dir="auto">(.*?)</span></div>', markup, re.DOTALL)
    return "\n".join(html.unescape(re.sub(r"<[^>]+>", "", row)) for row in rows)


# --- rows ---------------------------------------------------------------------------------------------------------------
TEXTS = st.text(alphabet="ab \n<é𝄞", max_size=300)


@given(
    TEXTS,
    st.lists(st.integers(0, 300), max_size=8),
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 20)), max_size=8),
)
def test_no_character_is_left_out_or_shown_twice(text: str, cuts: list[int], found: list[tuple[int, int]]) -> None:
    chunks = [chunk(i, c, c + 1) for i, c in enumerate(sorted(set(cuts)))]
    spans = join_spans([Span(a, min(a + n, len(text))) for a, n in found if a < len(text)])
    sheet = Sheet.of(text, "a.md", chunks)
    for current in (None, 0 if spans else None):
        shown = "".join(sheet.html(page, Target(), spans, current) for page in range(1, sheet.pages + 1))
        assert text_of(shown).replace("\n", "") == text.replace("\n", "")
        marked = "".join(re.findall(r"<mark[^>]*>(.*?)</mark>", shown))
        assert html.unescape(marked) == "".join(text[s.start : s.end] for s in spans).replace("\n", "")


def test_a_long_document_is_shown_a_page_at_a_time() -> None:
    text = "\n".join(f"line {n}" for n in range(1, 1001))
    sheet = Sheet.of(text)
    assert (sheet.lines, sheet.pages) == (1000, 3)
    assert sheet.page_at(sheet.offset_of(Target(801, 805))) == 3
    shown = "".join(sheet.html(page, Target()) for page in (1, 2, 3))
    assert [int(n) for n in re.findall(r'id="line-(\d+)"', shown)] == list(range(1, 1001))
    assert sheet.html(2, Target()).count('class="wb-row') == ROWS_A_PAGE
    sheet = Sheet.of("\n".join(f"line {n}" for n in range(1, 1001)))
    lines = [re.findall(r'id="line-(\d+)"', sheet.html(page, Target(399, 403), beyond=10)) for page in (1, 2, 3)]
    assert [(own[0], own[-1]) for own in lines] == [("1", "410"), ("391", "810"), ("791", "1000")]
    first, second = sheet.html(1, Target(399, 403), beyond=10), sheet.html(2, Target(399, 403), beyond=10)
    assert first.count("wb-target") == second.count("wb-target") == 5
    assert "wb-turned" not in first
    assert re.findall(r'wb-turned" id="line-(\d+)"', second) == ["401"]
    sheet = Sheet.of("word " * 400_000)
    assert sheet.pages == 3
    page = sheet.html(3, Target())
    assert len(page) < ROWS_A_PAGE * (LONGEST_ROW + 300)
    assert "wb-more" not in page
    assert 'id="line-1"' in sheet.html(1, Target())
    assert 'id="line-1"' not in page


def test_a_chunk_begins_a_row_with_its_number_tokens_section_and_citation() -> None:
    sheet = Sheet.of("first second third", "a.md", [chunk(0, 0, 6, "Top"), chunk(1, 6, 18, "Top > <Next>")])
    shown = sheet.html(1, Target())
    assert shown.count("wb-begins") == 2
    assert shown.count('id="line-1"') == 1
    assert "7 tokens · <bdi>Top</bdi>" in shown
    assert "7 tokens · <bdi>&lt;Next&gt;</bdi>" in shown
    assert shown.count('data-wb-copy="a.md:1-1"') == 2
    assert text_of(shown) == "first \nsecond third"
    sheet = Sheet.of("word " * 2000 + "the needle here " + "word " * 2000)
    target = Target(1, 1, "the needle")
    assert sheet.offset_of(target) == 10_000
    shown = sheet.html(sheet.page_at(10_000), target)
    assert "<mark>the needle</mark>" in shown
    assert shown.count("wb-target") == 1


@pytest.mark.parametrize(
    ("lines", "target"),
    [("3-9", Target(3, 9)), ("4", Target(4, 4)), ("9-3", Target(9, 9)), ("x", Target()), ("", Target())],
)
def test_lines_of_an_address(lines: str, target: Target) -> None:
    """What cannot be read is no target, never an error."""
    assert read_target(lines) == target


# --- the page -------------------------------------------------------------------------------------------------------------


def test_chunks_have_their_rank_and_score_for_the_query(open_app: Open, small_corpus: Path):
    """They are those of the Search page's hybrid column; the strip links to them, and the way back is there."""
    at = document(open_app, small_corpus, path="tea.md", q="boiling water")
    with wb.open_corpus(small_corpus) as corpus:
        result = corpus.search("boiling water", limit=100)
        ((name, (rank, score)),) = result.ranked_chunks(result.hits[0].document_id).items()
    assert (name, rank, score) == (result.hits[0].chunk_id, 1, result.hits[0].score)
    assert f"<b>#1</b> {score:.3f}" in body(at)
    (strip,) = (b for b in bodies(at) if 'class="wb-strip"' in b)
    assert f'href="#line-1" title="Rank 1, score {score:.3f}: chunk 1"' in strip
    assert strip.count("<i ") == 4
    (back,) = at.get("page_link")
    assert back.proto.query_string == "q=boiling+water"
    assert 'class="wb-strip"' not in "".join(bodies(document(open_app, small_corpus, path="tea.md")))


def test_a_part_of_a_path_that_only_one_has_is_enough(open_app: Open, small_corpus: Path):
    assert "The office kettle" in body(document(open_app, small_corpus, path="ETTLE"))
    assert "notes/note-03.md" in all_text(document(open_app, small_corpus, path="note-"))


def test_the_query_is_marked_and_gone_through(open_app: Open, small_corpus: Path) -> None:
    at = document(open_app, small_corpus, path="tea.md", q="boiling water")
    assert body(at).count("<mark>") == 4
    at.button(key="wb.w.document.next-match").click()
    run(at)
    assert at.query_params["match"] == "1"
    assert body(at).count('class="wb-now"') == 1
    assert "Match 1 of 4" in all_text(at)
    assert at.button(key="wb.w.document.previous-match").disabled
    for _ in range(3):
        at.query_params["match"] = "1"  # what the browser shows may be some moves behind
        at.button(key="wb.w.document.next-match").click()
        run(at)
    assert at.query_params["match"] == "4"
    assert "Match 4 of 4" in all_text(at)
    assert at.button(key="wb.w.document.next-match").disabled
    at.button(key="wb.w.document.previous-match").click()
    run(at)
    assert at.query_params["match"] == "3"


def test_facts_and_neighbours_stand_beside_the_text(open_app: Open, small_corpus: Path) -> None:
    at = document(open_app, small_corpus, path="notes/note-03.md", q="retry")
    said = all_text(at)
    assert "<td><bdi>type</bdi></td><td><bdi>markdown</bdi></td>" in said
    assert '<a href="document?q=retry&amp;path=notes%2Fnote-02.md" target="_self" rel="prev">' in said
    assert '<a href="document?q=retry&amp;path=notes%2Fnote-04.md" target="_self" rel="next">' in said
    assert "tea.md" not in said
    for path in ("nothing.md", "../../etc/passwd", "/etc/passwd", "<script>x</script>"):
        at = document(open_app, small_corpus, path=path)
        assert any('role="alert"' in b for b in bodies(at))
        assert "<script>x" not in "".join(b for b in bodies(at) if "wb-alert" in b)
        assert "root:" not in all_text(at)


def test_without_a_path_documents_are_listed_and_one_can_be_typed(
    open_app: Open, small_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = document(open_app, small_corpus)
    assert "backoff.py" in all_text(at)
    at.text_input(key="wb.w.path").set_value("tea.md")
    run(at)
    assert "warm the pot" in body(at)
    assert at.query_params == {"path": "tea.md"}
    assert "These are the first" not in all_text(document(open_app, small_corpus))
    monkeypatch.setattr(document_view, "MOST_LISTED", 5)
    at = document(open_app, small_corpus)
    assert "These are the first 5" in all_text(at)
    (listed,) = (b for b in bodies(at) if 'class="wb-links"' in b)
    assert listed.count("<li>") == 5


# --- pages of a PDF ----------------------------------------------------------------------------------------------------
SMALL = (300, 400)


@pytest.fixture
def pdf_corpus(tmp_path: Path) -> tuple[Path, Path]:
    """A corpus with one PDF of two pages, and the file."""
    import workbench as wb

    file = tmp_path / "files" / "paper.pdf"
    file.parent.mkdir()
    file.write_bytes(make.pdf(["Needle on page 1", "Needle on page 2"], size=SMALL))
    wb.index([file.parent], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
    return tmp_path / "corpus", file


def shown_page(open_app: Open, corpus: Path, **params: str) -> AppTest:
    return document(open_app, corpus, path="paper.pdf", **params)


def test_a_page_is_drawn_from_the_original_while_it_is_the_same_and_allowed(
    open_app: Open, pdf_corpus: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus, file = pdf_corpus
    assert shown_page(open_app, corpus).image[0].captions == ["Page 1 of 2"]
    at = shown_page(open_app, corpus, q="needle")
    for caption in ("Page 1 of 2", "Page 2 of 2"):
        at.button(key="wb.w.document.next-match").click()
        assert run(at).image[0].captions == [caption]
    monkeypatch.setenv("WORKBENCH_ALLOWED_ROOTS", str(tmp_path / "elsewhere"))
    assert "outside the allowed folders" in all_text(shown_page(open_app, corpus))
    monkeypatch.delenv("WORKBENCH_ALLOWED_ROOTS")
    file.rename(tmp_path / "moved.pdf")
    file.symlink_to(tmp_path / "moved.pdf")
    assert "outside the allowed folders" in all_text(shown_page(open_app, corpus))
    file.unlink()
    file.write_bytes(make.pdf(["Needle on page 1"], size=SMALL))
    assert "The file has changed since it was indexed" in all_text(shown_page(open_app, corpus))
    file.unlink()
    assert "The file is not there any more" in all_text(shown_page(open_app, corpus))


def test_a_page_that_says_it_is_huge_is_drawn_within_bounds() -> None:
    for size in ((14_000, 3), (3, 14_000)):
        png = page_png(make.pdf(["wide or high"], size=size), 1)
        width, height = (int.from_bytes(png[at : at + 4]) for at in (16, 20))
        assert 1 <= width <= PICTURE[0] + 1
        assert 1 <= height <= PICTURE[1] + 1


@pytest.mark.parametrize(("data", "page"), [(b"%PDF-1.4 nonsense", 1), (make.pdf(["one page"]), 9)])
def test_what_cannot_be_drawn_is_a_sentence(data: bytes, page: int) -> None:
    from workbench.errors import UsageError

    with pytest.raises(UsageError):
        page_png(data, page)


PLACED = [Place(0, "sheet=S&row=1"), Place(11, "sheet=S&row=4"), Place(17, "sheet=S&row=5")]


TABLE = "# S\n\na | b\nc | d\ne | f\n"


def test_a_places_number_stands_in_the_margin_and_a_target_outside_is_given_up() -> None:
    sheet = Sheet.of(TABLE, "a.xlsx", (), PLACED)
    shown = sheet.html(1, Target(4, 5))
    assert re.findall(r'wb-at" title="([^"]*)">([^<]*)<', shown) == [
        ("sheet S, row 1", "row 1"), ("sheet S, row 4", "row 4"), ("sheet S, row 5", "row 5"),
    ]  # fmt: skip
    assert shown.count("wb-target") == 2
    said = heading("a.xlsx", "", sheet, Target(4, 5), 0)
    assert 'data-wb-copy="a.xlsx#sheet=S&amp;row=4-5"' in said
    assert "sheet S, row 4-5" in said
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


def test_a_document_opens_at_its_place_or_says_that_it_is_gone(
    open_app: Open, placed_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import workbench as wb
    from workbench.ui.components import cards

    with wb.open_corpus(placed_corpus) as corpus:
        (hit,) = corpus.search("curlew", mode="keyword").hits
    link = dict(parse_qsl(urlsplit(cards.document_link(hit)).query))
    assert link["at"] == "sheet=I&row=1"
    at = document(open_app, placed_corpus, **link)
    assert "curlew" in body(at)
    assert "wb-target" in body(at)
    for params, words in (
        ({"path": "book.xlsx", "at": "sheet=Sales&row=2"}, "heron | 3"),
        ({"path": "book.xlsx", "at": "Sales!A3"}, "newt | 4"),
        ({"path": "book.xlsx#sheet=R%26D"}, "weir | x"),
        ({"path": "deck.pptx", "at": "slide=2&part=notes", "lines": "900-901"}, "said of weirs"),
        ({"path": "mail.eml!/in.xlsx#sheet=I&row=1"}, "curlew | egret"),
        ({"path": "page.html", "at": "line=6-7"}, "They swim"),
        ({"path": "page.html#line=8"}, "and dive"),
        ({"path": "page.html:4-5"}, "# Otters"),
        ({"path": "book.xlsx", "at": "sheet=Sales", "lines": "5-5"}, "newt | 4"),
    ):
        at = document(open_app, placed_corpus, **params)
        targets = re.findall(
            r'<div class="wb-row[^"]*wb-target".*?wb-src-line" dir="auto">(.*?)</span></div>', body(at)
        )
        assert html.unescape(targets[-1]) == words
    at = document(open_app, placed_corpus, path="book.xlsx", at="sheet=Costs&row=9")
    assert "It has sheet Sales, R&amp;D" in all_text(at)
    assert "heron" in body(at)
    monkeypatch.setenv("WORKBENCH_EDITOR_LINK", "vscode://file/{path}:{line}")
    assert 'files/page.html:4"' in column(open_app(placed_corpus, q="otters", columns="keyword"), "keyword")
