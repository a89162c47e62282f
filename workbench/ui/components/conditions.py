"""The box that writes the filter: facets with their counts, and a condition put together from fields, operators and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import FilterError
from workbench.markup import plain
from workbench.store.access import filters
from workbench.ui import resources
from workbench.ui import state as app_state
from workbench.ui.components import facets
from workbench.ui.components.controls import PREFIX, lazy
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_MOST_VALUES = 200
_OPERATORS = ("=", "in", "!=", "contains", "like", "glob", "<", "<=", ">", ">=")
_NUMBERS = frozenset({"year", "size", "characters", "lines"})
_KEY = PREFIX + "condition."


def box(corpus: Corpus, state: AppState) -> None:
    help = "Narrow the search by type, collection, folder, year, language or any field: writes the filter for you."
    with lazy("Facets", "facets", help, icon=":material/filter_alt:") as opened:
        if not opened.open:
            return
        try:
            facets.draw(corpus, state.filters, tuple(facets.TITLES), _become)
            _condition(corpus, state)
        except FilterError as exc:
            st.caption(plain(f"The filter cannot be read: {exc}", 300))


def _become(where: str) -> None:
    app_state.update("the filter", filters=where)


def _condition(corpus: Corpus, state: AppState) -> None:
    """Any field, an operator, and values that the field has: a condition that is added to the filter."""
    st.html('<h4 class="wb-chart">Any other condition</h4>')
    fields = list(resources.filter_fields(corpus))
    field = st.selectbox("Field", fields, index=None, key=_KEY + "field", placeholder="a field of the documents")
    if field is None:
        return
    operator = str(st.selectbox("Operator", _OPERATORS, key=_KEY + "operator"))
    engine, many = corpus.engine, operator == "in"
    scope = resources.scope(corpus, state.filters)
    counts = resources.once(
        "values",
        (engine.key, scope.key, field),
        lambda: resources.catalogue(corpus).values(scope, field, engine.records),
    )
    st.multiselect(
        "Values" if many else "Value",
        list(counts)[:_MOST_VALUES],
        key=_KEY + "values",
        format_func=lambda value: f"{plain(value, 60)} ({counts[value]:,})" if value in counts else value,
        accept_new_options=True,
        max_selections=None if many else 1,
        placeholder="choose, or type a value" if counts else "type a value",
    )
    st.button("Add to the filter", key=_KEY + "add", on_click=_add, args=(field, operator))


@app_state.callback
def _add(field: str, operator: str) -> None:
    typed = [str(text) for text in st.session_state.get(_KEY + "values") or ()]
    if not typed:
        app_state.notice("Choose or type a value first.")
        return
    before = app_state.current().filters
    dated = field == "modified" and operator not in ("contains", "like", "glob")
    values = [filters.Date(text) if dated else _value(field, text) for text in typed]
    added = filters.parse(str(filters.Condition(field, operator, tuple(values))))
    _become(str(filters.And((filters.parse(before), added)) if before.strip() else added))


def _value(field: str, text: str) -> filters.Value:
    return int(text) if field in _NUMBERS and text.lstrip("-").isdigit() else text
