"""Plans measured on the same queries, as pages draw them: a verdict in a coloured box, the table of plans, and the queries of two
plans, of which each opens in its place.

Wherever two plans are beside each other the baseline is A and the other is B, with one colour each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.charts import forest_figure
from workbench.charts.layout import FIRST, SECOND
from workbench.evaluate.evaluation import LOW_COVERAGE
from workbench.evaluate.leaderboard import Leaderboard
from workbench.evaluate.statistics import SIGNIFICANT, Difference, significant
from workbench.markup import csv_of, plain, visible
from workbench.plan.plan import Plan
from workbench.ui import state as app_state
from workbench.ui.components import controls, tables
from workbench.ui.components.live import FEW
from workbench.ui.components.pair import draw_pair
from workbench.ui.components.tables import Html

if TYPE_CHECKING:
    from workbench.corpus import Corpus

OPEN = "open"
"""The page's value in the address that names the open query."""
_LETTERS = {"A": FIRST, "B": SECOND}


def letter(name: str) -> str:
    """The mark of the baseline (A) or of the plan beside it (B)."""
    return f'<b class="wb-letter" style="background:{_LETTERS[name]}">{name}</b>'


def verdict(d: Difference, names: tuple[str, str], says: str = "") -> str:
    """Whether B (the second of the names) is better than A, in a box: both means, and the difference with its interval."""
    kind, word = "even", "No difference shown"
    if d.significant:
        kind, word = ("better", "B is better") if d.difference > 0 else ("worse", "B is worse")
    interval = "" if math.isnan(d.low) else f" (95 % interval {d.low:+.3f} to {d.high:+.3f})"
    means = "".join(
        f"<span>{letter(n)} {visible(plain(name, 80))} <b>{mean:.3f}</b></span>"
        for n, name, mean in zip("AB", names, (d.first_mean, d.second_mean), strict=True)
    )
    if d.p < SIGNIFICANT and not d.significant:
        says += " The interval holds 0, so the small p alone does not count."
    p = "p < 0.001" if d.p < 0.001 else f"p = {d.p:.3f}"
    counts = f"{d.wins} better, {d.losses} worse, {d.ties} equal of {d.queries} queries, {p}"
    more = f"<p>{visible(says.strip())}</p>" if says else ""
    return (
        f'<div class="wb-verdict wb-is-{kind}" role="status"><p><b>{word}</b> by {visible(d.measure)}: '
        f"{d.difference:+.3f}{interval}; {counts}.</p><p>{means}</p>{more}</div>"
    )


def board_html(board: Leaderboard, rows: Any, labels: Sequence[str], second: int | None = None) -> str:
    """The table of plans, the best first; `rows` are `board.frame()`, `labels` what the plans are called; `second` is B."""
    places = {name: n for n, name in enumerate(board.names)}
    made = []
    for row in rows.iter_rows(named=True):
        n = places[row["plan"]]
        mark = letter("A") if n == board.baseline else letter("B") if n == second else ""
        text = "" if labels[n] == row["plan"] else f'<br><span class="wb-dim">{visible(plain(row["plan"], 200))}</span>'
        cells: list[Any] = [Html(f"{mark} <b>{visible(plain(labels[n], 80))}</b>{text}")]
        for measure in board.measures:
            low, high = (row[f"{measure} {end}"] for end in ("low", "high"))
            ends = "" if low is None else f'<br><span class="wb-dim">{low:.3f}–{high:.3f}</span>'
            cells.append(Html(f"<b>{row[measure]:.3f}</b>{ends}"))
        if board.measures:
            cells.append(Html(_standing(row, n == board.baseline)))
            cells.append(Html(_judged(row["judged@10"])))
        made.append((*cells, "–" if row["p50_ms"] is None else f"{row['p50_ms']:.1f}"))
    judged = ("against A", "judged@10") if board.measures else ()
    heads = ("plan", *board.measures, *judged, "p50 ms")
    return tables.table(heads, made, range(1, len(heads)), "Plans and their measures")


def _judged(share: float | None) -> str:
    few = f' class="wb-little" title="{FEW}"' if share is not None and share < LOW_COVERAGE else ""
    return "–" if share is None else f"<span{few}>{share:.0%}</span>"


def _standing(row: dict[str, Any], base: bool) -> str:
    if base:
        return '<span class="wb-dim">baseline</span>'
    sure = significant(row["p"], row["difference_low"], row["difference_high"])
    kind = "wb-dim" if not sure else "wb-better" if row["difference"] > 0 else "wb-worse"
    word = "no difference shown" if not sure else "better" if row["difference"] > 0 else "worse"
    return f'<span class="{kind}" title="{escape(row["verdict"])}">{row["difference"]:+.3f} {word}</span>'


def forest(board: Leaderboard, labels: Sequence[str], measure: str) -> Any:
    """The plans' differences to the baseline, as a figure."""
    differences = board.differences(measure)
    drawn = [(labels[n], d) for n in board.order if (d := differences[n]) is not None]
    return forest_figure(drawn, measure, labels[board.baseline])


# --- the queries of two plans ---------------------------------------------------------------------------------------------


@st.fragment
def queries(corpus: Corpus, board: Leaderboard, second: int, measure: str, names: tuple[str, str], key: str) -> None:
    """The table of queries under A and B (called by the names): filtered, sorted, downloaded; a chosen row opens its query below,
    with both lists.
    """
    frame = board.per_query(second, measure or None)
    kinds = _kinds(frame)
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    some = [name for name, rows in kinds.items() if len(rows) or name == "all"]
    shown_as = {name: f"{name} ({len(kinds[name]):,})" for name in some}
    # What is chosen below is chosen for these two plans on these queries.
    of = f"{measure}.{board.baseline}.{second}.{board.base.judgments.digest[:8]}"
    kind = left.segmented_control(
        "Queries", some, default="all", format_func=shown_as.__getitem__, key=f"{key}kind.{of}"
    )
    words = right.text_input("Filter", key=key + "filter", placeholder="words of the query").casefold().split()
    rows = kinds[kind or "all"]
    if words:
        rows = rows.filter([all(w in (q or "").casefold() for w in words) for q in rows["query"]])
    counted = rows.with_columns(rows["lost"].list.len(), rows["won"].list.len())
    columns = {
        "query": st.column_config.TextColumn("Query", width="large"),
        **{n: st.column_config.NumberColumn(n, format="%.3f") for n in ("A", "B")},
        "difference": st.column_config.NumberColumn("Difference", format="%+.3f", help="B minus A"),
        "rbo": st.column_config.NumberColumn(
            "RBO", format="%.2f", help="How alike the first ten are; 1 is the same list"
        ),
        "lost": st.column_config.NumberColumn("Lost", help=_LOST.format("A", "B")),
        "won": st.column_config.NumberColumn("Won", help=_LOST.format("B", "A")),
    }
    event = st.dataframe(
        counted.drop("query_id"),
        height=min(38 + 35 * max(len(rows), 1), 388),
        hide_index=True,
        column_config=columns,
        key=f"{key}table.{kind}.{' '.join(words)}.{of}",
        on_select="rerun",
        selection_mode="single-row",
    )
    chosen = event.selection.rows
    if chosen:
        app_state.set_page_values(**{OPEN: rows["query_id"][chosen[0]]})
    csv = rows.with_columns(rows["lost"].list.join("; "), rows["won"].list.join("; "))
    controls.download("Download these queries as CSV", csv_of(csv), "queries.csv", key + "csv")
    found = frame.filter(query_id=app_state.page_value(OPEN))
    if not len(found):
        st.caption("Choose a row to open its query under both plans.")
        return
    row, topics = found.row(0, named=True), board.base.judgments.topics
    query, topic = row["query"] or row["query_id"], topics.get(row["query_id"])
    first, last = (Plan.parse(board.names[n]) for n in (board.baseline, second))
    st.html(f'<p class="wb-asked"><bdi>{visible(plain(query, 300))}</bdi></p>')
    if st.button("Open on the Search page", key=key + "both"):
        show_both(first, last, query)
    heads = (f"A: {names[0]}", f"B: {names[1]}")
    draw_pair(corpus, query, first, last, names=heads, keywords=topic.keywords if topic is not None else None)


def show_both(first: Plan, second: Plan, query: str | None = None) -> None:
    """Go to the Search page with a column for each plan, of which the sliders move the second; undo brings back what was."""
    columns = tuple(app_state.Column(plan=plan) for plan in (first, second))
    asked = {} if query is None else {"query": query}
    app_state.update("two plans beside each other", columns=columns, moves=2, plan=second, **asked)
    st.switch_page(app_state.page_of(""))


_LOST = "Documents among the first ten of {} that {} lacks there; of a judged query the relevant ones"


def _kinds(frame: Any) -> dict[str, Any]:
    """The rows by what became of their queries."""
    made = {"all": frame}
    if "difference" in frame.columns:
        moved = frame["difference"]
        made |= {"B better": frame.filter(moved > 1e-12), "B worse": frame.filter(moved < -1e-12)}
    return made | {"other lists": frame.filter(frame["rbo"] < 1 - 1e-9)}
