"""PDF: text by page, bookmarks as sections, and a name for each way in which one gives nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ingest_cases import check_chunks, count_words, cut_file, documents, found, pdf, write

from workbench.ingest import FileRules, Problem, ReadError

PAGES = ["First page of four words\nGoals\nwe want this", "", "Third page\nhas two lines"]


def test_pages_keep_their_number(tmp_path: Path) -> None:
    file = write(tmp_path, {"a.pdf": pdf(PAGES)}) / "a.pdf"
    ((document, chunks),) = cut_file(found(file), FileRules(), count_words)  # type: ignore[misc]
    assert document.type == "pdf"
    assert len(document.page_starts) == 3
    assert [document.text[start:].split("\n")[0] for start in document.page_starts[::2]] == [
        "First page of four words",
        "Third page",
    ]
    check_chunks(document, chunks)
    assert [(c.page, c.text.split("\n")[0]) for c in chunks] == [(1, "First page of four words"), (3, "Third page")]


def test_bookmarks_are_sections_where_their_title_stands(tmp_path: Path) -> None:
    file = write(tmp_path, {"a.pdf": pdf(PAGES, [("Goals", 0), ("Absent", 2)])}) / "a.pdf"
    ((_, chunks),) = cut_file(found(file), FileRules(), count_words, budget=16)  # type: ignore[misc]
    assert [(c.section, c.text.split("\n")[0]) for c in chunks] == [
        ("", "First page of four words"), ("Goals", "Goals"), ("Absent", "Third page"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "words"),
    [(pdf(["", ""]), "no text on any page"), (pdf(["x"], encrypt=True), "password"), (pdf(["x"])[:60], "broken")],
)
def test_a_pdf_that_gives_nothing_is_named_as_what_it_is(tmp_path: Path, data: bytes, words: str) -> None:
    file = write(tmp_path, {"a.pdf": data}) / "a.pdf"
    with pytest.raises(ReadError, match=words) as caught:
        documents(file)
    assert caught.value.remedy


def test_a_pdf_is_known_by_its_content(tmp_path: Path) -> None:
    file = write(tmp_path, {"a.txt": pdf(["hello there"])}) / "a.txt"
    assert documents(file)[0].text == "hello there"


def test_threads_may_read_pdfs_at_once(tmp_path: Path) -> None:
    files = [write(tmp_path, {f"{n}.pdf": pdf([f"page {n}"] * 5)}) / f"{n}.pdf" for n in range(12)]

    def read(file: Path) -> list[str]:
        items = cut_file(found(file), FileRules(), count_words)
        return [item[0].text for item in items if not isinstance(item, Problem)]

    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(read, files))
    assert texts == [["\n\n".join([f"page {n}"] * 5)] for n in range(12)]
