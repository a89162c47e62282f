"""Two result lists of one query, joined by lines: what was lost, fell, rose and came, with grades on it and why each moved.

Plain HTML and one SVG between the lists, whose rows are all of one height; below them the reasons, the losses first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

import streamlit as st

from workbench.charts.layout import BLUE, GREEN, GREY, VERMILION
from workbench.errors import counted
from workbench.evaluate.judged import Judged
from workbench.markup import attribute, plain, visible
from workbench.plan.plan import Plan
from workbench.records import Hit
from workbench.retrieve.compare import KINDS, Move, moved
from workbench.ui import marks
from workbench.ui.components import cards, controls, live, tables
from workbench.ui.components.cards import figures_html, grade_badge

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.evaluate.live import LiveMeasure

ROW = 44
"""Pixels of a row, as `.wb-pair-list li` has them."""
COLOURS = {"lost": VERMILION, "fell": VERMILION, "same": GREY, "rose": GREEN, "came": BLUE}


def draw_pair(
    corpus: Corpus, query_text: str, plan_a: Plan, plan_b: Plan, names: tuple[str, str], keywords: str | None = None
) -> None:
    """Search a query under two plans and draw both lists, with the grades of the active query set, or of the set `search`."""
    with controls.faults():
        first, second = (corpus.search(query_text, keywords, plan=plan) for plan in (plan_a, plan_b))
        asked = marks.asked_of(corpus, query_text, keywords)
        judged = [asked.of(result) for result in (first, second)]
        st.html(pair_html(moved(first, second), (first.hits, second.hits), judged, names, query_text))


def pair_html(
    moves: Sequence[Move],
    lists: tuple[Sequence[Hit], Sequence[Hit]],
    judged: Sequence[Judged | None],
    names: tuple[str, str],
    query: str,
) -> str:
    """Both lists, the lines between them and the reasons. `judged`: What the judgments say of each list; None where there are
    none.
    """
    grades = {chunk: grade for one in judged if one is not None for chunk, grade in one.grades.items()}
    shown = [[h for h in hits if h.rank] for hits in lists]
    rows = max(map(len, shown), default=0)
    known = any(one is not None for one in judged)
    left, right = (
        _list(hits, name, one, {getattr(m, side): m for m in moves if getattr(m, side)}, grades, query, known)
        for hits, name, one, side in zip(shown, names, judged, ("first", "second"), strict=True)
    )
    heads, lines = zip(left, right, strict=True)
    return (
        f'<div class="wb-pair-lists">{heads[0]}<span></span>{heads[1]}{lines[0]}{_lines(moves, rows)}{lines[1]}</div>'
        f"{_reasons(moves, grades, query, known)}"
    )


def _list(
    hits: Sequence[Hit],
    name: str,
    judged: Judged | None,
    moves: Mapping[int, Move],
    grades: Mapping[str, int],
    query: str,
    known: bool,
) -> tuple[str, str]:
    """The head of a list, and the list."""
    rows = []
    for hit in hits:
        move = moves.get(hit.rank)
        link = attribute(cards.document_link(hit, {"q": query}))
        title = visible(plain(hit.title or hit.path, 120))
        where = visible(plain(hit.citation, 200))
        tag = _tag(move) if move is not None else ""
        badge = grade_badge(grades.get(hit.chunk_id), "–") if known else ""
        rows.append(
            f'<li title="{attribute(plain(hit.text, 300))}"><span class="wb-rank">{hit.rank}</span><span class="wb-pair-what">'
            f'<a class="wb-title" href="{link}" target="_self"><bdi>{title}</bdi></a>'
            f'<span class="wb-pair-where"><bdi>{where}</bdi></span></span><span class="wb-pair-marks">{badge}{tag}</span></li>'
        )
    figures = figures_html(judged.words, judged.few) if judged is not None else '<p class="wb-figures">not judged</p>'
    none = "" if rows else '<p class="wb-msg">No result.</p>'
    label = attribute(f"Results of {plain(name, 120)}")
    head = f'<h4 title="{attribute(plain(name, 300))}"><bdi>{visible(plain(name, 120))}</bdi></h4>{figures}{none}'
    return (
        f'<div class="wb-pair-head">{head}</div>',
        f'<ol class="wb-pair-list" aria-label="{label}">{"".join(rows)}</ol>',
    )


def _tag(move: Move) -> str:
    words = {"lost": "lost", "came": "new", "same": "="}.get(move.kind) or (
        f"▲{move.first - move.second}" if move.kind == "rose" else f"▼{move.second - move.first}"
    )
    return f'<span class="wb-moved wb-moved-{move.kind}" title="{attribute(move.reason)}">{words}</span>'


def _lines(moves: Sequence[Move], rows: int) -> str:
    height = max(rows, 1) * ROW
    drawn = []
    for move in moves:
        colour, left, right = COLOURS[move.kind], (move.first - 0.5) * ROW, (move.second - 0.5) * ROW
        if move.first and move.second:
            path, dash = f"M0 {left} C50 {left} 50 {right} 100 {right}", ""
        else:
            path, dash = (f"M0 {left} H30" if move.first else f"M70 {right} H100"), " stroke-dasharray='4 3'"
        drawn.append(f"<path d='{path}' stroke='{colour}'{dash}/>")
    picture = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 100 {height}' preserveAspectRatio='none' fill='none' "
        f"stroke-width='2'><style>path{{vector-effect:non-scaling-stroke}}</style>{''.join(drawn)}</svg>"
    )
    # A picture: the page's sanitizer takes SVG elements out.
    return f'<img class="wb-pair-lines" alt="" src="data:image/svg+xml,{quote(picture)}" style="height:{height}px">'


def _reasons(moves: Sequence[Move], grades: Mapping[str, int], query: str, known: bool) -> str:
    """The moves with their reasons: losses first, of each kind the most relevant and the best placed first."""
    changed = [m for m in moves if m.kind != "same"]
    if not changed:
        return cards.note("Both lists are the same.")
    changed.sort(key=lambda m: (KINDS.index(m.kind), -grades.get(m.hit.chunk_id, -1), m.first or m.second))
    rows = []
    for move in changed:
        title = tables.link(cards.document_link(move.hit, {"q": query}), move.hit.title or move.hit.path, 80)
        badge = (tables.Html(grade_badge(grades.get(move.hit.chunk_id), "–")),) if known else ()
        ranks = f"{move.first or '–'} → {move.second or '–'}"
        rows.append((tables.Html(_tag(move)), ranks, *badge, title, move.reason))
    kinds = [sum(m.kind == kind for m in moves) for kind in KINDS]
    summary = ", ".join(f"{n} {'new' if kind == 'came' else kind}" for kind, n in zip(KINDS, kinds, strict=True) if n)
    heads = ("", "Rank", *(("Grade",) if known else ()), "Result", "Why")
    return (
        f'<p class="wb-msg">{counted(len(moves), "result")}: {summary}.</p>'
        f'<div class="wb-pair-why">{tables.table(heads, rows, (), "Why results moved")}</div>'
    )


# --- the queries that a plan moved ------------------------------------------------------------------------------------

MOST_QUERIES = 40
_KEY = controls.PREFIX + "moved."


@st.dialog("Queries that moved", width="large", on_dismiss=live.close)
def queries_dialog(corpus: Corpus, measured: LiveMeasure, plans: tuple[Plan, Plan], kind: str) -> None:
    """The judged queries that the second plan made worse, or better, than the first, the most moved first; each opens its two
    lists.
    """
    sign = -1.0 if kind == "worse" else 1.0
    rows = [r for r in measured.wins(plans[1]).iter_rows(named=True) if sign * r["difference"] > 1e-12]
    rows.sort(key=lambda r: -sign * r["difference"])
    st.html(
        f'<p class="wb-msg">{counted(len(rows), "query|queries")} {kind} than at the start, by {measured.measure}.</p>'
    )
    for n, row in enumerate(rows[:MOST_QUERIES]):
        words = f"{row['first']:.3f} → {row['second']:.3f}  {cards.in_markdown(row['query'] or row['query_id'], 90)}"
        with st.expander(words, expanded=not n, key=f"{_KEY}{row['query_id']}", on_change="rerun") as opened:
            if opened.open:
                topic = measured.judgments.topics[row["query_id"]]
                draw_pair(corpus, topic.text, *plans, names=("At the start", "Now"), keywords=topic.keywords)
    if len(rows) > MOST_QUERIES:
        st.caption(f"The first {MOST_QUERIES} of {len(rows):,}; the Compare page lists them all.")
