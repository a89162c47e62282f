"""The filter language: what it reads, what it refuses and where, and what it finds."""

from __future__ import annotations

from datetime import datetime

import pytest

from workbench.errors import FilterError
from workbench.store.access.filters import Date, glob_pattern, parse, select


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("type='note'AND year>=2024", "type = 'note' and year >= 2024"),
        ('title = "it\'s"', "title = 'it''s'"),
        ("a <> 1", "a != 1"),
        ("a == 1", "a = 1"),
        ("a not in (1, 2)", "not a in (1, 2)"),
        ("modified >= 2024-05-01", "modified >= 2024-05-01"),
        ("(a = 1) and (b = 2 or c = 3)", "a = 1 and (b = 2 or c = 3)"),
        ("\"strange field\" contains 'x'", "\"strange field\" contains 'x'"),
        ("größe.μ-x = -1.5", "größe.μ-x = -1.5"),
        ("draft = TRUE", "draft = true"),
    ],
)
def test_the_text_form_is_canonical(text: str, canonical: str):
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text)


@pytest.mark.parametrize(
    ("text", "place", "remedy"),
    [
        ("", 1, "starts with a field"),
        ("a", 2, "After a field"),
        ("a = note", 5, "Put text in quotes: 'note'"),
        ("a = 'x", 5, "Write for example"),
        ("a = 2024-13-01", 5, "Write for example 2024-05-01"),
        ("(a = 1", 7, "')'"),
        ("a = 1 b = 2", 7, "Join conditions"),
        ("a ~ 1", 3, "Write for example"),
        ("and = 1", 1, "starts with a field"),
        ("a in ()", 7, "Write a value"),
        ("a = 1)", 6, "Join conditions"),
        ("(" * 70, 61, "levels"),
        ("a = 1e999", 5, "smaller"),
    ],
)
def test_a_filter_that_cannot_be_read_is_refused_at_its_place(text: str, place: int, remedy: str):
    with pytest.raises(FilterError) as error:
        parse(text)
    assert f"at character {place}" in error.value.message
    assert remedy in error.value.remedy


def test_a_filter_has_a_length():
    with pytest.raises(FilterError, match="10000"):
        parse("a = 1 or " * 5000 + "a = 1")


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2024-02", datetime(2024, 2, 1), datetime(2024, 3, 1)),
        ("2024-12", datetime(2024, 12, 1), datetime(2025, 1, 1)),
        ("2024-02-29", datetime(2024, 2, 29), datetime(2024, 3, 1)),
        ("2024-02-29T10:00", datetime(2024, 2, 29, 10), datetime(2024, 2, 29, 10, 1)),
        ("2024-02-29T10:00+02:00", datetime(2024, 2, 29, 8), datetime(2024, 2, 29, 8, 1)),
        ("2024-02-29T23:00:30-02:00", datetime(2024, 3, 1, 1, 0, 30), datetime(2024, 3, 1, 1, 0, 31)),
        ("9999-12-31", datetime(9999, 12, 31), datetime.max),
    ],
)
def test_a_date_is_a_stretch_of_time(text: str, start: datetime, end: datetime):
    date = Date(text)
    assert (date.start, date.end) == (start, end)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("docs/**", ["docs/a", "docs/a/b.md"], ["docs", "xdocs/a"]),
        ("**/a.md", ["a.md", "x/a.md", "x/y/a.md"], ["xa.md"]),
        ("docs/**/a.md", ["docs/a.md", "docs/x/y/a.md"], ["docsa.md"]),
        ("*.md", ["a.md"], ["x/a.md", "amd"]),
        ("a?[0-9].md", ["ab1.md"], ["a/1.md", "abx.md"]),
        ("[!a]b", ["xb"], ["ab", "/b"]),
        ("a[.md", ["a[.md"], ["a.md"]),
        ("a b(1)+é.md", ["a b(1)+é.md"], ["a b1é.md"]),
    ],
)
def test_globs_stay_within_folders_but_for_two_stars(glob: str, yes: list[str], no: list[str]):
    import duckdb

    def matches(path: str) -> bool:
        return bool(duckdb.execute("SELECT regexp_full_match(?, ?)", [path, glob_pattern(glob)]).fetchall()[0][0])

    assert [p for p in yes if not matches(p)] == []
    assert [p for p in no if matches(p)] == []


def test_an_unknown_field_is_refused_with_the_known_ones():
    with pytest.raises(FilterError) as error:
        select(parse("type = 'a' and auther = 'b'"), [], ["author"])
    assert "at character 16" in error.value.message
    assert "Did you mean author?" in error.value.remedy
    assert "sensitivity" in error.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "year contains 'x'", "year = 'x'", "modified = 'yesterday'", "modified like 'x'", "modified = 3", "title < 3",
        "title = true", "type > 2024-01-01",
    ],
)  # fmt: skip
def test_a_value_must_suit_its_field(text: str):
    with pytest.raises(FilterError, match="at character 1"):
        select(parse(text), [], [])
