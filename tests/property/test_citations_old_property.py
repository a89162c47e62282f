"""Citations in old Office files and Outlook messages: each chunk's words stand where it says, in what the file was made of.

No library that is kept writes these formats, so the tests make the files byte by byte, and what went in is the original.
Files that real programs made are read in `tests/regression/test_messy_files.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

import ole_files as make
from citation_cases import CHECK, NAMES, PARAGRAPHS, ROWS, SENTENCE, Original, check, chunks, read


@CHECK
@given(PARAGRAPHS, st.lists(st.lists(SENTENCE, min_size=2, max_size=3), max_size=6))
def test_old_word_files(tmp_path: Path, paragraphs: list[str], rows: list[list[str]]) -> None:
    """Word counts each cell, and each end of a row, as a paragraph; a row is cited by its end."""
    original: Original = [({"paragraph": n}, words) for n, words in enumerate(paragraphs, 1)]
    ends = len(paragraphs)
    for row in rows:
        ends += len(row) + 1
        original.append(({"paragraph": ends}, " ".join(row)))
    check(chunks(tmp_path, "a.doc", make.doc(paragraphs, rows)), original)


@CHECK
@given(st.dictionaries(NAMES, ROWS, min_size=1, max_size=3))
def test_old_workbooks(tmp_path: Path, sheets: dict[str, list[list[str | None]]]) -> None:
    whole = {name: [["start"], *rows] for name, rows in sheets.items()}
    original: Original = [
        ({"sheet": name, "row": n}, " ".join([name if n == 1 else "", *(cell or "" for cell in row)]))
        for name, rows in whole.items()
        for n, row in enumerate(rows, 1)
    ]
    made = chunks(tmp_path, "a.xls", make.xls(whole))
    check(made, original)
    assert not any("..sheet=" in chunk.locator for chunk in made)


@CHECK
@given(st.lists(st.tuples(SENTENCE, SENTENCE, st.one_of(st.just(""), SENTENCE)), min_size=1, max_size=5))
def test_old_slides(tmp_path: Path, slides: list[tuple[str, str, str]]) -> None:
    original: Original = []
    for n, (title, body, notes) in enumerate(slides, 1):
        original += [({"slide": n}, f"{title}\n{body}"), ({"slide": n, "part": "notes"}, notes)]
    made = chunks(tmp_path, "a.ppt", make.ppt(slides, before=[("gone", "away", "")]))
    check(made, original)
    assert all(re.fullmatch(r"slide=\d+(&part=notes)?", chunk.locator) for chunk in made)


@CHECK
@given(SENTENCE, PARAGRAPHS, PARAGRAPHS, PARAGRAPHS)
def test_outlook_messages(tmp_path: Path, subject: str, body: list[str], inner: list[str], attached: list[str]) -> None:
    """A message that is attached, and a file attached to that, are documents with places of their own."""
    note = "\n".join(attached)
    within = make.msg_streams("Inner", "\r\n".join(inner), {"note.txt": note.encode("utf-8")}, inside=True)
    made = {d.path: own for d, own in read(tmp_path, "a.msg", make.msg(subject, "\r\n".join(body), {"Inner": within}))}
    assert list(made) == ["a.msg", "a.msg!/Inner.msg", "a.msg!/Inner.msg!/note.txt"]
    head = "From Ada ada@example.org To Bob Date 2024 01 17 21 20 00 UTC"
    check(made["a.msg"], [({"part": 0}, f"{subject} {head}"), ({"part": 1}, "\n".join(body))])
    check(made["a.msg!/Inner.msg"], [({"part": 0}, f"Inner {head}"), ({"part": 1}, "\n".join(inner))])
    for chunk in made["a.msg!/Inner.msg!/note.txt"]:
        assert chunk.text.strip() in "\n".join(note.split("\n")[chunk.start_line - 1 : chunk.end_line])
