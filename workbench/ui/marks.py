"""What judgments and notes say of the hits on a page: grades on cards, figures at the columns' heads, a person's notes.

Grades and figures are those of the active query set where it holds the page's query, else those of the set `search`, which takes
grades of any query. They are read again only when something was judged or other hits are shown, so that a slider costs no
statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from workbench.charts import Candidate
from workbench.errors import JudgmentError, WorkbenchError
from workbench.evaluate.judged import Judged, judge
from workbench.judgments.qrels import Judgments
from workbench.judgments.query_sets import GRADE_TEXTS, SEARCH, Query
from workbench.markup import attribute, plain, visible
from workbench.records import Hit
from workbench.ui import resources
from workbench.ui import state as app_state
from workbench.ui.components import cards, live
from workbench.ui.finder import Found
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.retrieve.result import SearchResult
    from workbench.saved.searches import Note

_WRITTEN, _SAID = "wb.marks.written", "wb.marks.said"


@dataclass(frozen=True, slots=True)
class Asked:
    """The judgments that a query has.

    Attributes:
        text: As it was asked.
        set: The set that its grades belong to.
        query: The query as the set has it; None where it does not have it yet.
        judgments: Of this query alone; None where nothing is judged.
        active: The active set, "" where there is none.
        texts: What the grades mean in the set.
        mine: Chunk id -> the person's own grade, None where there is none; of what was shown so far.
    """

    text: str
    set: str
    query: Query | None
    judgments: Judgments | None
    active: str
    texts: tuple[str, ...] = GRADE_TEXTS
    mine: dict[str, int | None] = field(default_factory=dict)

    def of(self, result: SearchResult) -> Judged | None:
        """What they say of a result of the query; None where it is not judged and in no set that somebody made."""
        if self.query is None or self.judgments is None:
            return Judged(top=min(10, len(result.order))) if self.query is not None and self.set != SEARCH else None
        return judge(result, self.judgments, self.query.query_id)


def judged_query(state: AppState) -> tuple[str, str | None]:
    return (state.query, state.keywords or None) if state.query else (state.keywords, None)


def asked_of(corpus: Corpus, text: str, keywords: str | None = None) -> Asked:
    """The judgments of a query: those of the active set where it holds it. Raises WorkbenchError as `Judging` does."""
    active = live.chosen(corpus)[0]
    active = "" if active == live.OFF else active

    def read() -> Asked:
        judging = corpus.judging
        for name in dict.fromkeys(filter(None, (active, SEARCH))):
            if (query := judging.query(name, text, keywords)) is not None:
                judgments = None
                with suppress(JudgmentError):  # nothing of it is judged, or not where it is now
                    judgments = judging.judgments(name, query=query)
                return Asked(text, name, query, judgments, active, judging.sets.grade_texts(name))
        return Asked(text, SEARCH, None, None, active)

    key = (corpus.engine.key, corpus.principal, text, keywords, active, resources.judged_at(corpus))
    return resources.once("asked", key, read)


def marks_of(corpus: Corpus, state: AppState, found: Sequence[Found]) -> tuple[cards.Marks, Asked | None]:
    """Grades, notes and editor links of the shown hits, and the query's judgments. What cannot be read is reported once and shown
    as absent.
    """
    hits = {h.chunk_id: h for f in found for h in f.hits}
    try:
        asked = asked_of(corpus, *judged_query(state))
        made = cards.Marks(
            grades=_mine(corpus, asked, tuple(hits.values())),
            texts=asked.texts,
            notes=_notes(hits),
            editor=resources.editor_links(corpus, hits),
            written=int(st.session_state.get(_WRITTEN, 0)),
            collections=len(resources.collections(corpus)) > 1,
            asked={k: v for k, v in state.to_params().items() if k in ("q", "keywords", "context", "filters")},
        )
    except WorkbenchError as exc:
        if st.session_state.get(_SAID) != str(exc):
            app_state.notice(str(exc))
            st.session_state[_SAID] = str(exc)
        return cards.Marks(), None
    return made, asked


def figured(marks: cards.Marks, asked: Asked, result: SearchResult) -> cards.Marks:
    """The marks of one column's cards: with what the set says of its hits, and its figures for the column's head."""
    judged = asked.of(result)
    if judged is None:
        return marks
    return replace(marks, judged=judged.grades, figures=judged.words, few=judged.few, unjudged=True)


def line_html(asked: Asked) -> str:
    """Which set the grades on this page are of, and go to; empty where no set is active."""
    if not asked.active:
        return ""
    name, active = (f"<b>{visible(plain(n, 60))}</b>" for n in (asked.set, asked.active))
    if asked.set == asked.active:
        return (
            f'<p class="wb-msg">Grades and figures are those of the query set {name}; a grade on a card goes there.</p>'
        )
    add = attribute("queries?" + urlencode({"set": asked.active, "add": asked.text}))
    return (
        f'<p class="wb-msg">This query is not in the query set {active}, so grades go to the set {name}. '
        f'<a href="{add}">Add it</a></p>'
    )


def marks_written() -> None:
    """A grade or a note was written: columns are drawn again, and notes read again, at the next run."""
    st.session_state[_WRITTEN] = st.session_state.get(_WRITTEN, 0) + 1


def grades_of(corpus: Corpus, state: AppState, shown: Sequence[Hit | Candidate]) -> dict[str, int]:
    """Chunk id -> grade that this judge gave for the query, of what is shown. Raises WorkbenchError as `Judging.grades` does."""
    return _mine(corpus, asked_of(corpus, *judged_query(state)), shown)


def _mine(corpus: Corpus, asked: Asked, shown: Sequence[Hit | Candidate]) -> dict[str, int]:
    """The same, of a query's judgments. A slider brings few new ones; only those are looked up."""
    if asked.query is None:
        return {}
    known = asked.mine
    new = [one for one in shown if one.chunk_id not in known]
    if new:
        found: Mapping[str, object] = corpus.judging.grades(asked.query, new, set=asked.set)
        known.update({one.chunk_id: getattr(found.get(one.chunk_id), "grade", None) for one in new})
    return {one.chunk_id: grade for one in shown if (grade := known[one.chunk_id]) is not None}


def _notes(hits: Mapping[str, Hit]) -> Mapping[str, str]:
    paths = tuple(sorted({h.path for h in hits.values()}))
    key = (paths, st.session_state.get(_WRITTEN, 0))
    notes: Sequence[Note] = resources.once("notes", key, lambda: resources.searches().notes(paths))
    by_path: dict[str, list[Note]] = {}
    for note in notes:
        by_path.setdefault(note.path, []).append(note)
    return {
        chunk_id: " · ".join(n.text for n in by_path[h.path] if n.is_on(h.path, h.text, h.document_id))
        for chunk_id, h in hits.items()
        if h.path in by_path
    }
