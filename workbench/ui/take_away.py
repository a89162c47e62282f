"""What can be taken from the page: the table of a column as CSV or JSON, and the link to the page."""

from __future__ import annotations

import json
from collections.abc import Callable

import streamlit as st

from workbench.errors import UsageError
from workbench.markup import csv_of
from workbench.ui import column_controls, resources
from workbench.ui.controls import PREFIX, lazy
from workbench.ui.results import slots
from workbench.ui.state import AppState

LINK = (
    '<div class="wb-planline"><span class="wb-msg">This page has a link: it restores query, columns, plan and filter.</span>'
    '<button type="button" class="wb-copy" data-wb-link="1" aria-label="Copy the link">Copy the link</button></div>'
)


def popover(state: AppState) -> None:
    """The box of downloads."""
    with lazy("Take away", "away", "Download the results, copy the link.") as opened:
        if not opened.open:
            return
        st.html(LINK)
        titles = column_controls.titles(state.columns, resources.plan_names())
        for n, (title, slot) in enumerate(zip(titles, slots(state), strict=True), 1):
            what, csv, js = st.columns([4, 2, 2], gap="small", vertical_alignment="center", width=420)
            what.text(title)
            for place, kind, mime in ((csv, "csv", "text/csv"), (js, "json", "application/json")):
                place.download_button(
                    kind.upper(), taken(slot, kind), f"results-{n}.{kind}", mime, key=f"{PREFIX}away.{n}.{kind}",
                    on_click="ignore",
                    help="Every fused candidate with its ranks, scores and contributions." if kind == "csv"
                    else "The results with everything that says why.",
                )  # fmt: skip


def taken(slot: str, kind: str) -> Callable[[], bytes]:
    """What a download holds, made when it is asked for.

    Args:
        slot: The column, as the finder keeps it.
        kind: `csv` or `json`.
    """
    finder = resources.finder()

    def made() -> bytes:
        result = finder.kept(slot)
        if result is None:
            raise UsageError("This column has no result", "Search first")
        if kind == "csv":
            return csv_of(result.frame()).encode()
        return json.dumps(result.to_dict(timings=True), ensure_ascii=False, indent=1).encode()

    return made
