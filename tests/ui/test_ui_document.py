"""The Document page: whole text, matches, chunk borders, pages, neighbours; and how its rows are cut."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path

import pypdfium2
import pytest
from app_for_tests import all_text, bodies, document, run
from app_for_tests import document_body as body
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from workbench.ingest.readers.pdf import PICTURE, page_png
from workbench.records import Chunk, Span
from workbench.ui.views import document as document_view
from workbench.ui.views.document import LONGEST_ROW, ROWS_A_PAGE, Sheet, Target, join_spans, read_target

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
    """Whatever the chunks and matches are, the rows together are the text."""
    chunks = [chunk(i, c, c + 1) for i, c in enumerate(sorted(set(cuts)))]
    spans = join_spans([Span(a, min(a + n, len(text))) for a, n in found if a < len(text)])
    sheet = Sheet.of(text, "a.md", chunks)
    for current in (None, 0 if spans else None):
        shown = "".join(sheet.html(page, Target(), spans, current) for page in range(1, sheet.pages + 1))
        assert text_of(shown).replace("\n", "") == text.replace("\n", "")
        marked = "".join(re.findall(r"<mark[^>]*>(.*?)</mark>", shown))
        assert html.unescape(marked) == "".join(text[s.start : s.end] for s in spans).replace("\n", "")


@pytest.mark.parametrize("text", ["", "one", "one\n", "\n\n"])
def test_small_documents_have_their_lines(text: str) -> None:
    """As many lines as newlines, and one more."""
    sheet = Sheet.of(text)
    assert sheet.lines == text.count("\n") + 1
    assert sheet.html(1, Target()).count('id="line-') == sheet.lines


def test_a_long_document_is_shown_a_page_at_a_time() -> None:
    """Pages hold every line once, and a place opens its own page."""
    text = "\n".join(f"line {n}" for n in range(1, 1001))
    sheet = Sheet.of(text)
    assert (sheet.lines, sheet.pages) == (1000, 3)
    assert sheet.page_at(sheet.offset_of(Target(801, 805))) == 3
    shown = "".join(sheet.html(page, Target()) for page in (1, 2, 3))
    assert [int(n) for n in re.findall(r'id="line-(\d+)"', shown)] == list(range(1, 1001))
    assert sheet.html(2, Target()).count('class="wb-row') == ROWS_A_PAGE


def test_a_passage_at_the_border_of_two_pages_is_shown_whole() -> None:
    """A page shows some rows of its neighbours too, as far as there are any, and says where its own begin."""
    sheet = Sheet.of("\n".join(f"line {n}" for n in range(1, 1001)))
    lines = [re.findall(r'id="line-(\d+)"', sheet.html(page, Target(399, 403), beyond=10)) for page in (1, 2, 3)]
    assert [(own[0], own[-1]) for own in lines] == [("1", "410"), ("391", "810"), ("791", "1000")]
    first, second = sheet.html(1, Target(399, 403), beyond=10), sheet.html(2, Target(399, 403), beyond=10)
    assert first.count("wb-target") == second.count("wb-target") == 5
    assert "wb-turned" not in first
    assert re.findall(r'wb-turned" id="line-(\d+)"', second) == ["401"]


def test_two_megabytes_in_one_line_are_many_pages_and_one_is_small() -> None:
    """A page costs what its rows hold, not what the document holds; the line keeps its one number."""
    sheet = Sheet.of("word " * 400_000)
    assert sheet.pages == 3
    page = sheet.html(3, Target())
    assert len(page) < ROWS_A_PAGE * (LONGEST_ROW + 300)
    assert "wb-more" not in page
    assert 'id="line-1"' in sheet.html(1, Target())
    assert 'id="line-1"' not in page


def test_a_chunk_begins_a_row_with_its_number_tokens_section_and_citation() -> None:
    """Also in the middle of a line, which keeps its one number."""
    sheet = Sheet.of("first second third", "a.md", [chunk(0, 0, 6, "Top"), chunk(1, 6, 18, "Top > <Next>")])
    shown = sheet.html(1, Target())
    assert shown.count("wb-begins") == 2
    assert shown.count('id="line-1"') == 1
    assert "7 tokens · <bdi>Top</bdi>" in shown
    assert "7 tokens · <bdi>&lt;Next&gt;</bdi>" in shown
    assert shown.count('data-wb-copy="a.md:1-1"') == 2
    assert text_of(shown) == "first \nsecond third"


def test_a_passage_in_one_long_line_is_found_by_its_words() -> None:
    """The quote is marked, and only its row is the target, not the whole line."""
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


def test_a_target_beyond_the_end_is_the_last_line() -> None:
    """An old link to a document that became shorter still opens."""
    sheet = Sheet.of("one\ntwo")
    assert sheet.offset_of(Target(99, 99)) == 4
    assert "wb-target" not in sheet.html(1, Target(99, 99))


# --- the page -------------------------------------------------------------------------------------------------------------


def test_without_a_path_the_first_documents_are_listed(
    open_app: Open, small_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a link; where there are more than the list shows, it says so."""
    assert "These are the first" not in all_text(document(open_app, small_corpus))
    monkeypatch.setattr(document_view, "MOST_LISTED", 5)
    at = document(open_app, small_corpus)
    assert "These are the first 5" in all_text(at)
    (listed,) = (b for b in bodies(at) if 'class="wb-links"' in b)
    assert listed.count("<li>") == 5


def test_a_document_opens_at_its_lines(open_app: Open, small_corpus: Path) -> None:
    """The whole text, numbered, with the lines of the citation marked and its citation to copy."""
    at = document(open_app, small_corpus, path="retries.md", lines="3-3")
    assert 'wb-row wb-target" id="line-3"' in body(at)
    assert 'id="line-1"' in body(at)
    assert "The backoff doubles" in body(at)
    assert "lines 3–3" in all_text(at)
    assert 'data-wb-copy="retries.md:3-3"' in all_text(at)


def test_the_query_is_marked_and_gone_through(open_app: Open, small_corpus: Path) -> None:
    """Next and previous go from match to match, name it in the address, and stop at both ends."""
    at = document(open_app, small_corpus, path="tea.md", q="boiling water")
    assert body(at).count("<mark>") == 4
    at.button(key="wb.w.document.next-match").click()
    run(at)
    assert at.query_params["match"] == "1"
    assert body(at).count('class="wb-now"') == 1
    assert "Match 1 of 4" in all_text(at)
    assert at.button(key="wb.w.document.previous-match").disabled
    at.query_params["match"] = "4"
    run(at)
    assert "Match 4 of 4" in all_text(at)
    assert at.button(key="wb.w.document.next-match").disabled
    at.button(key="wb.w.document.previous-match").click()
    run(at)
    assert at.query_params["match"] == "3"


def test_keywords_are_marked_as_grep_reads_them(open_app: Open, small_corpus: Path) -> None:
    """Letters inside words count for grep, and a phrase is one."""
    at = document(open_app, small_corpus, path="tea.md", keywords='"warm the pot"')
    assert "<mark>warm the pot</mark>" in body(at)


def test_chunks_are_gone_through(open_app: Open, small_corpus: Path) -> None:
    """A long document has many; the address names one and the page opens there."""
    at = document(open_app, small_corpus, path="long.txt")
    first = body(at)
    assert first.count("wb-begins") > 5
    at.button(key="wb.w.document.next-chunk").click()
    run(at)
    assert at.query_params["chunk"] == "2"
    assert at.button(key="wb.w.document.previous-chunk").disabled is False


def test_facts_and_neighbours_stand_beside_the_text(open_app: Open, small_corpus: Path) -> None:
    """What the corpus knows of the document, and links to the others of its folder that keep the query."""
    at = document(open_app, small_corpus, path="notes/note-03.md", q="retry")
    said = all_text(at)
    assert "<td>type</td><td><bdi>markdown</bdi></td>" in said
    assert '<a href="document?q=retry&amp;path=notes%2Fnote-02.md" target="_self" rel="prev">' in said
    assert '<a href="document?q=retry&amp;path=notes%2Fnote-04.md" target="_self" rel="next">' in said
    assert "tea.md" not in said


@pytest.mark.parametrize("path", ["nothing.md", "../../etc/passwd", "/etc/passwd", "<script>x</script>"])
def test_a_document_that_is_not_there_is_a_sentence(open_app: Open, small_corpus: Path, path: str) -> None:
    """Absent, outside and hostile paths are told, and nothing is read."""
    at = document(open_app, small_corpus, path=path)
    assert any('role="alert"' in b for b in bodies(at))
    assert "<script>x" not in "".join(b for b in bodies(at) if "wb-alert" in b)
    assert "root:" not in all_text(at)


def test_without_a_path_the_page_asks_for_one(open_app: Open, small_corpus: Path) -> None:
    """Typing one opens it and names it in the address; some of the corpus's own are listed."""
    at = document(open_app, small_corpus)
    assert "backoff.py" in all_text(at)
    at.text_input(key="wb.w.path").set_value("tea.md")
    run(at)
    assert "warm the pot" in body(at)
    assert at.query_params == {"path": "tea.md"}


def test_hostile_text_stays_text_in_the_document(open_app: Open, small_corpus: Path) -> None:
    """No element of the page comes from the document, also where the query marks it."""
    at = document(open_app, small_corpus, path="hostile.md", q="script pelican bold", match="1")
    assert "&lt;" in body(at)
    assert "<script" not in body(at)
    assert "<img" not in body(at)


# --- pages of a PDF ----------------------------------------------------------------------------------------------------


def write_pdf(path: Path, sizes: tuple[tuple[float, float], ...]) -> None:
    """A PDF with one line of text a page, made by hand: a reader of it needs no fonts of this machine."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for number, (width, height) in enumerate(sizes, 1):
        stream = f"BT /F1 18 Tf 40 {height - 60:.0f} Td (Needle on page {number}) Tj ET"
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents {len(objects) + 2} 0 R"
            " /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(sizes)} >>"
    out, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start, count = len(out), len(objects) + 1
    out += f"xref\n0 {count}\n0000000000 65535 f \n{table}trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    path.write_bytes(out.encode())


@pytest.fixture
def pdf_corpus(tmp_path: Path) -> tuple[Path, Path]:
    """A corpus with one PDF of two pages, and the file."""
    import workbench as wb

    file = tmp_path / "files" / "paper.pdf"
    file.parent.mkdir()
    write_pdf(file, ((300, 400), (300, 400)))
    wb.index([file.parent], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
    return tmp_path / "corpus", file


def shown_page(open_app: Open, corpus: Path, **params: str) -> AppTest:
    at = document(open_app, corpus, path="paper.pdf", **params)
    assert not at.image
    at.toggle(key="wb.w.document.image").set_value(True)
    return run(at)


def test_a_page_is_drawn_from_the_original(open_app: Open, pdf_corpus: tuple[Path, Path]) -> None:
    """On request, the page that the address stands on."""
    at = shown_page(open_app, pdf_corpus[0])
    assert len(at.image) == 1
    assert at.image[0].captions == ["Page 1 of 2"]


def test_a_changed_or_missing_file_is_not_drawn(open_app: Open, pdf_corpus: tuple[Path, Path]) -> None:
    """The text is of another day; the page says so instead of showing what was not indexed."""
    corpus, file = pdf_corpus
    write_pdf(file, ((300, 400),))
    assert "The file has changed since it was indexed" in all_text(shown_page(open_app, corpus))
    file.unlink()
    assert "The file is not there any more" in all_text(shown_page(open_app, corpus))


def test_a_file_outside_the_allowed_folders_is_not_drawn(
    open_app: Open, pdf_corpus: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The setting that bounds reading bounds drawing; a link that leads out of the folder is followed and refused."""
    corpus, file = pdf_corpus
    monkeypatch.setenv("WORKBENCH_ALLOWED_ROOTS", str(tmp_path / "elsewhere"))
    assert "outside the allowed folders" in all_text(shown_page(open_app, corpus))
    monkeypatch.delenv("WORKBENCH_ALLOWED_ROOTS")
    file.rename(tmp_path / "moved.pdf")
    file.symlink_to(tmp_path / "moved.pdf")
    assert "outside the allowed folders" in all_text(shown_page(open_app, corpus))


def test_a_page_that_says_it_is_huge_is_drawn_within_bounds(tmp_path: Path) -> None:
    """A page may claim any size; the picture's pixels are bounded."""
    write_pdf(tmp_path / "huge.pdf", ((14_000, 3), (3, 14_000)))
    for page in (1, 2):
        png = page_png((tmp_path / "huge.pdf").read_bytes(), page)
        width, height = (int.from_bytes(png[at : at + 4]) for at in (16, 20))
        assert 1 <= width <= PICTURE[0] + 1
        assert 1 <= height <= PICTURE[1] + 1


@pytest.mark.parametrize(("data", "page"), [(b"%PDF-1.4 nonsense", 1), (None, 9)])
def test_what_cannot_be_drawn_is_a_sentence(tmp_path: Path, data: bytes | None, page: int) -> None:
    """A damaged file, and a page that is not there."""
    from workbench.errors import UsageError

    write_pdf(tmp_path / "a.pdf", ((300, 400),))
    with pytest.raises(UsageError):
        page_png(data or (tmp_path / "a.pdf").read_bytes(), page)
    assert pypdfium2.PdfDocument((tmp_path / "a.pdf").read_bytes())
