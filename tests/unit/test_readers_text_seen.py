"""Texts as people see them: a text that is a table is read as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from reader_files import read, saved

from workbench.ingest.readers.delimited import is_table


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
