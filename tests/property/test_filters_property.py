"""Laws of the filter language, over filters made at random."""

from functools import cache

import duckdb
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from workbench.errors import FilterError
from workbench.store.access.filters import (
    COMPARISONS,
    And,
    Condition,
    Date,
    Not,
    Or,
    conditions,
    glob_pattern,
    parse,
    select,
)

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
dates = st.datetimes().map(lambda d: Date(d.strftime("%Y-%m-%d").rjust(10, "0")))
values = st.one_of(
    texts, st.integers(-(10**12), 10**12), st.floats(-1e200, 1e200), st.booleans(), dates
)  # fmt: skip
names = st.one_of(st.sampled_from(["type", "year", "path", "in", "not", "a.b", "a-b"]), texts.filter(bool))


@st.composite
def condition(draw: st.DrawFn) -> Condition:
    if draw(st.booleans()):
        return Condition(draw(names), "in", tuple(draw(st.lists(values, min_size=1, max_size=3))))
    return Condition(draw(names), draw(st.sampled_from([*COMPARISONS, "contains", "like", "glob"])), (draw(values),))


nodes = st.recursive(
    condition(),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
    ),
    max_leaves=8,
)


@given(nodes)
def test_the_text_form_parses_back(node):
    assert parse(str(node)) == node
    assert str(parse(str(node))) == str(node)


_DOCUMENTS = """CREATE TABLE documents AS SELECT 0 AS number, '/r/x' AS root, 'a' AS path, 't' AS title, 'note' AS type,
 '' AS url, '' AS language, NULL::VARCHAR AS tenant, 'normal' AS sensitivity, NULL::TIMESTAMP AS modified, 1 AS size,
 NULL::INTEGER AS year, 3 AS characters, 1 AS lines"""
_FIELDS = """CREATE TABLE fields (document_number INTEGER, key VARCHAR, position INTEGER, text VARCHAR, number DOUBLE,
 time TIMESTAMP, listed BOOLEAN)"""


@cache
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(_DOCUMENTS)
    connection.execute(_FIELDS)
    return connection


@trials(40)
@given(nodes)
def test_whatever_compiles_runs_and_not_is_its_complement(node):
    keys = sorted({c.field.removeprefix("metadata.") for c in conditions(node)})
    try:
        statement, opposite = select(node, [], keys), select(Not(node), [], keys)
    except FilterError:
        return
    (answer,) = database().execute(*statement).fetchall()
    (reverse,) = database().execute(*opposite).fetchall()
    assert isinstance(answer[0], bool)
    assert reverse[0] is not answer[0]


@trials(40)
@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=15) | st.text("[]ab-!*?/", max_size=9))
def test_every_glob_is_a_pattern_that_the_engine_takes(glob):
    found = database().execute("SELECT regexp_full_match(?, ?)", [glob, glob_pattern(glob)]).fetchall()[0][0]
    if not set(glob) & set("*?["):
        assert found
