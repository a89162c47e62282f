"""Texts as people see them: a text that is a table is read as one, and rows of a table carry its header."""

from __future__ import annotations

from pathlib import Path

import pytest
from ingest_cases import count_words, cut_file, found
from reader_files import read, saved

from workbench.ingest import FileRules
from workbench.ingest.readers.text import is_table
from workbench.records import Chunk


def chunks(file: Path) -> list[Chunk]:
    items = cut_file(found(file), FileRules(), count_words, budget=80)
    return [chunk for item in items if isinstance(item, tuple) for chunk in item[1]]


def test_a_text_whose_lines_are_cut_by_tabs_is_a_table(tmp_path: Path) -> None:
    """As programs of measuring write it; a row is cited as one, and chunks of rows carry the header."""
    rows = ["Probe\tAmount"] + [f"p{n}\t{n}" for n in range(5)]
    (document,), _ = read(saved(tmp_path, "a.txt", "\n".join(rows)))
    assert document.type == "table"
    assert document.text.startswith("Probe | Amount\np0 | 0\n")
    assert document.places[2].locator == "row=3"


@pytest.mark.parametrize(
    "text",
    [
        "a\tb\nc\td\ne\tf",  # too few lines to tell
        "a\tb\nc\td\ne\tf\ng\th\ti",  # not the same number
        "\tindented\n\tlines\n\tof\n\tcode\nand one that is not",
        "no tabs\n" * 9,
    ],
)
def test_other_texts_with_tabs_are_texts(text: str) -> None:
    assert not is_table(text)


def test_rows_of_a_markdown_table_carry_its_header(tmp_path: Path) -> None:
    rows = "".join(f"| `New-{n}` | makes the thing of number {n} |\n" for n in range(30))
    text = f"# Verbs\n\n|   **Verb**   | What  it does |\n| ------------ | ------------- |\n{rows}\nAfter.\n"
    file = saved(tmp_path, "a.md", text)
    inside = [c for c in chunks(file) if c.text.startswith("| `New-") and c.text.endswith("|")]
    assert len(inside) > 2
    assert {c.context.split("\n")[-1] for c in inside} == {"Verb | What it does"}
    assert all("What it does" not in c.context for c in chunks(saved(tmp_path, "b.md", f"| | |\n|---|---|\n{rows}")))


def test_rows_of_a_simple_table_of_restructuredtext_carry_its_header(tmp_path: Path) -> None:
    border = "=========  ==================\n"
    rows = "".join(f"``new{n}``   makes thing number {n}\n" for n in range(30))
    text = f"Verbs\n=====\n\n{border}Verb       What it does\n{border}{rows}{border}\nAfter.\n"
    inside = [c for c in chunks(saved(tmp_path, "a.rst", text)) if c.text.startswith("``new")]
    assert len(inside) > 2
    assert {c.context.split("\n")[-1] for c in inside} == {"Verb | What it does"}
