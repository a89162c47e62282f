"""Bars that count documents by the values of a field: each is a button that puts its value into the filter, or takes it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import streamlit as st

from workbench.store.access.filters import show_value, toggled, values_of
from workbench.ui import resources
from workbench.ui.components import cards, controls

if TYPE_CHECKING:
    from workbench.corpus import Corpus

MOST = 8
TITLES = {"type": "Type", "collection": "Collection", "path": "Folder", "year": "Year", "language": "Language"}


@resources.kept(256)
def counts(corpus: Corpus, where: str, field: str) -> Mapping[str, int]:
    """How many of the documents that the rest of a filter leaves have each value of a field. Raises FilterError.

    Of paths the folders: below the one that the filter names, and that itself.
    """
    chosen, scope = values_of(where, field), resources.scope(corpus, toggled(where, field, None))
    folder = str(chosen[-1]) if field == "path" and chosen and str(chosen[-1]).endswith("/") else ""
    catalogue = resources.catalogue(corpus)
    found = catalogue.counts(scope, field, folder)
    if folder:
        above = folder[: folder[:-1].rfind("/") + 1]
        found = {folder: catalogue.counts(scope, field, above).get(folder, 0), **found}
    return found


def example(corpus: Corpus) -> str:
    """A filter that many documents of the corpus pass, for a box's placeholder."""
    return f"type = {show_value(next(iter(counts(corpus, '', 'type')), 'markdown'))}"


def draw(corpus: Corpus, where: str, fields: tuple[str, ...], change: Callable[[str], object]) -> None:
    """Draw the bars of some fields; `change` gets the filter that a press makes. One that divides nothing is left out. Raises
    FilterError where the filter cannot be read.
    """
    shares = []
    for field in fields:
        found, chosen = counts(corpus, where, field), [str(value) for value in values_of(where, field)]
        if len(found) < 2 and not chosen:
            continue
        st.html(f'<h3 class="wb-chart">{TITLES[field]}</h3>')
        top = max(found.values(), default=1)
        first = dict.fromkeys([*chosen, *found])
        with st.container(key=f"wb-facet-{field}", gap=None):
            for at, value in enumerate(list(first)[: MOST + len(chosen)]):
                number = found.get(value, 0)
                key = f"{controls.PREFIX}facet.{field}.{at}"
                shares.append(f".st-key-{key.replace('.', '-')}{{--share:{100 * number / top:.0f}%}}")
                st.button(
                    f"{cards.in_markdown(value, 60)} :small[{number:,}]",
                    key=key,
                    type="primary" if value in chosen else "tertiary",
                    on_click=_press,
                    args=(where, field, value, change),
                    help=f"{field} = {show_value(value)}" if field != "year" else None,
                    width="stretch",
                )
        if len(first) > MOST + len(chosen):
            st.caption(f"and {len(first) - MOST - len(chosen):,} more")
    st.html(f"<style>{''.join(shares)}</style>")


def _press(where: str, field: str, value: str, change: Callable[[str], object]) -> None:
    if field == "path" and value not in map(str, values_of(where, field)):  # folders are walked into, not gathered
        where = toggled(where, field, None)
    change(toggled(where, field, int(value) if field == "year" else value))
