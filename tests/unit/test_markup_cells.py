"""What is written for spreadsheets holds no formula, and reads back as it was."""

from __future__ import annotations

import csv
import io

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from workbench.markup import cell, cell_text, csv_of

TEXTS = st.text(st.sampled_from("'=+-@\t\r\n＝a1,\"") | st.characters(codec="utf-8"), max_size=8)


@given(TEXTS)
def test_a_cell_is_no_formula_and_reads_back(text: str) -> None:
    assert cell(text)[:1] not in tuple("=+-@\t\r\n＝＋－＠")
    assert cell_text(cell(text)) == text


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_table_as_csv_holds_cells(texts: list[str]) -> None:
    rows = list(csv.reader(io.StringIO(csv_of(pl.DataFrame({"=a": texts, "n": [-1.5] * len(texts)})), newline="")))
    assert rows == [["'=a", "n"], *([cell(text), "-1.5"] for text in texts)]
