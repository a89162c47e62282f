"""A snapshot as the Snapshots page shows it: its searches in columns, as on the Search page, its charts, its leaderboards; and
the texts that two snapshots have differently.
"""

from __future__ import annotations

import streamlit as st

from workbench.charts import rank_figure, share_figure
from workbench.markup import plain, visible
from workbench.snapshot import Snapshot
from workbench.snapshot.boards import boards_of
from workbench.snapshot.diff import SnapshotDiff, word_diff
from workbench.ui import resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, standings

_KEY = controls.PREFIX + "snapshots."
_MOST_TEXTS = 20
_TAGS = {"same": "{}", "out": "<del>{}</del>", "in": "<ins>{}</ins>"}


def report(one: Snapshot) -> None:
    """Side by side, charts, measures; all of one snapshot."""
    _searches(one)
    for sweep in one.sweeps:
        st.html(f'<h3 class="wb-chart">Sweep of {visible(plain(", ".join(sweep.fields), 200))}</h3>')
        st.html(cards.note(sweep.verdict))
        st.html(cards.note(f"Best: {sweep.best}"))
    key = (one.id, resources.viewer())
    boards = resources.once("boards", key, lambda: [(board, board.frame()) for board in boards_of(one.content)])
    for n, (board, rows) in enumerate(boards):
        labels = board.names
        st.html(standings.board_html(board, rows, labels, 1))
        controls.chart(standings.forest(board, labels, board.measures[0]), f"{_KEY}forest.{n}")
    for saved in () if boards else one.evaluations:
        means = [{"measure": m.measure, "mean": m.mean, "low": m.low, "high": m.high} for m in saved.means]
        st.dataframe(means, hide_index=True)


def _searches(one: Snapshot) -> None:
    """Columns of a query's searches, four in a row; and of one of them, the hybrid if there is one, how its ranks came about."""
    titles = list(dict.fromkeys(search.title for search in one.searches))
    if not titles:
        return
    title = titles[0]
    if len(titles) > 1:
        title = st.selectbox("Query", titles, format_func=lambda t: plain(t, 100), key=f"{_KEY}search.{one.id}")
    numbers = [n for n, search in enumerate(one.searches) if search.title == title]
    most = app_state.MOST_COLUMNS
    for row in (numbers[n : n + most] for n in range(0, len(numbers), most)):
        for place, number in zip(st.columns(len(row), gap="small"), row, strict=True):
            place.html(_column(one, number))
    main = next((n for n in numbers if one.searches[n].mode == "hybrid"), numbers[0])
    hits, sources = one.hits(main), one.searches[main].sources
    if any(hit.rank for hit in hits) and len(sources) > 1:
        left, right = st.columns(2)
        with left:
            controls.chart(rank_figure(hits, sources), _KEY + "ranks.chart", "How ranks moved.", "How ranks moved")
        with right:
            controls.chart(share_figure(hits, sources), _KEY + "shares.chart", "Who contributed.", "Who contributed")


def _column(one: Snapshot, number: int) -> str:
    search = one.searches[number]
    heading = search.mode.capitalize()
    text = f'<p class="wb-msg"><bdi>{visible(plain(search.plan, 200))}</bdi></p>'
    return cards.column(
        heading,
        one.hits(number),
        ranks={},
        sources=search.sources,
        messages=text + cards.messages_html((), search.warnings, search.unavailable),
        numbered=search.mode == "grep",
        marks=cards.Marks(asked={"q": search.query, "keywords": search.keywords}, acts=False),
    )


def texts_html(found: SnapshotDiff, query: int) -> str:
    """The passages of a query whose texts differ from those of A, with what went and what came."""
    made = []
    rows = found.texts(query)
    for snapshot, citation, before, after in rows.head(_MOST_TEXTS).iter_rows():
        pieces = "".join(_TAGS[kind].format(visible(text)) for kind, text in word_diff(before, after))
        head = f"<b><bdi>{visible(plain(citation, 200))}</bdi></b> in {visible(snapshot)}"
        made.append(f'<div class="wb-changed"><p>{head}</p><div class="wb-text">{pieces}</div></div>')
    more = f'<p class="wb-msg">and {len(rows) - _MOST_TEXTS:,} more</p>' if len(rows) > _MOST_TEXTS else ""
    return f'<h3 class="wb-chart">Texts that changed</h3>{"".join(made)}{more}' if made else ""
