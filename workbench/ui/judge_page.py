"""The Judge page: choose a query set and plans, then judge one passage after the other, by keyboard.

The passages are pooled from all chosen plans and shuffled; the page never says which plan found one, nor what others said. A
grade is on the disk before the next passage is drawn. Keys: 0 to 3 grade, U takes the last grade back, N puts a passage off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.judgments.log import GRADE_NAMES, GRADES
from workbench.records import Progress
from workbench.ui import cards, judge_cards, judge_sets, resources, state
from workbench.ui.controls import PREFIX
from workbench.ui.judge_round import PARAMS, Choice, Round, Shown, from_params

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_ROUND, _SAID = "wb.judge.round", "wb.judge.said"
_NOTE = PREFIX + "judge.note"


def draw(corpus: Corpus) -> None:
    """Draw the page."""
    st.html(f"<style>{judge_cards.CSS}</style>")
    person = resources.person()
    given = {n: state.address_value(n) for n in PARAMS}
    if "is_logged_in" in st.user:
        given["judge"] = ""  # whoever signed in judges as nobody else
    choice = from_params(given, person)
    names = corpus.judging.sets.names()
    if choice is not None and choice.name not in names:
        st.html(cards.alert("", f"There is no query set {choice.name!r} (any more)", "Choose another one below"))
        choice = None
    if choice is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Set **{judge_sets.label(choice.name)}**, judged by {judge_sets.label(choice.judge)}")
            st.button("Choose another set", key=PREFIX + "judge.leave", on_click=_leave, type="tertiary")
        _judge(corpus, choice)
        return
    chosen = judge_sets.draw(corpus, person)
    if chosen is not None:
        _write(chosen, person)
        st.rerun()


def _write(choice: Choice, person: str) -> None:
    for name, value in choice.to_params(person).items():
        st.query_params[name] = value


def _leave() -> None:
    for name in PARAMS:
        if name in st.query_params:
            del st.query_params[name]
    st.session_state.pop(_ROUND, None)


def _judge(corpus: Corpus, choice: Choice) -> None:
    made = st.session_state.get(_ROUND)
    current = isinstance(made, Round) and made.choice == choice and made.state == corpus.engine.key
    if not current:
        try:
            made = _begin(corpus, choice)
        except WorkbenchError as exc:
            st.html(cards.alert("These passages cannot be collected", exc.message, exc.remedy))
            return
        st.session_state[_ROUND] = made
        for query_id, reason in list(made.pool.failures.items())[:5]:
            st.html(cards.alert("", f"Query {query_id} could not be run by every plan: {reason}", ""))
    _panel(corpus)


def _begin(corpus: Corpus, choice: Choice) -> Round:
    bar = st.progress(0.0, "Collecting passages")

    def show(report: Progress) -> None:
        bar.progress(report.done / max(report.total, 1), f"Collecting passages: query {report.done} of {report.total}")

    try:
        return Round.begin(corpus, choice, show)
    finally:
        bar.empty()


@st.fragment
def _panel(corpus: Corpus) -> None:
    """What is judged now. A fragment: a grade draws this and nothing else."""
    made: Round = st.session_state[_ROUND]
    share = made.done / made.total if made.total else 1.0
    st.progress(min(share, 1.0), f"{made.done} of {made.total} passages judged")
    said = st.session_state.pop(_SAID, None)
    if said is not None:
        st.html(said)
    try:
        shown = made.show(corpus)
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return
    if shown is None:
        _end(corpus, made)
        return
    number, graded, candidates = made.position(shown.query)
    st.html(judge_cards.asked(shown, number, len(made.queries), graded, candidates))
    st.html(judge_cards.candidate(shown))
    _buttons(corpus, shown)


def _buttons(corpus: Corpus, shown: Shown) -> None:
    target = (shown.query.query_id, shown.chunk.chunk_id)
    with st.container(horizontal=True):
        for grade in GRADES:
            st.button(
                GRADE_NAMES[grade].capitalize(), key=f"{PREFIX}judge.grade.{grade}", shortcut=str(grade),
                on_click=_grade, args=(corpus, *target, grade),
            )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Note", key=_NOTE, placeholder="why, if you like; kept with the grade", max_chars=1000, width="stretch",
            help="Type it, press Tab, then the grade.",
        )  # fmt: skip
        st.button("Skip", key=PREFIX + "judge.skip", shortcut="N", on_click=_skip, args=target)
        st.button("Undo", key=PREFIX + "judge.undo", shortcut="U", on_click=_undo, args=(corpus,))


def _grade(corpus: Corpus, query_id: str, chunk_id: str, grade: int) -> None:
    made: Round = st.session_state[_ROUND]
    try:
        made.grade(corpus, query_id, chunk_id, grade, str(st.session_state.get(_NOTE) or ""))
    except WorkbenchError as exc:
        st.session_state[_SAID] = cards.alert("The grade was not saved", exc.message, exc.remedy)
        return
    st.session_state[_NOTE] = ""


def _skip(query_id: str, chunk_id: str) -> None:
    st.session_state[_ROUND].skip(query_id, chunk_id)
    st.session_state[_NOTE] = ""


def _undo(corpus: Corpus) -> None:
    try:
        st.session_state[_SAID] = cards.note(st.session_state[_ROUND].undo(corpus))
    except WorkbenchError as exc:
        st.session_state[_SAID] = cards.alert("The grade was not taken back", exc.message, exc.remedy)


def _take_up() -> None:
    st.session_state[_ROUND].take_up()


def _end(corpus: Corpus, made: Round) -> None:
    """What was judged, and what to do with it."""
    off = made.total - made.done
    if off > 0:
        st.subheader(f"{off} skipped {'passage is' if off == 1 else 'passages are'} left")
        st.button("Judge them now", key=PREFIX + "judge.take-up", on_click=_take_up, type="primary", shortcut="N")
    else:
        st.subheader("All passages of this pool are judged")
    st.html(judge_cards.counts(made.grades(), GRADE_NAMES))
    judge_sets.agreement_of(corpus, made.choice.name)
    st.markdown("What to do next: measure plans with these judgments on the [Tune](tune) page, or in a terminal:")
    name, where = judge_sets.shell(made.choice.name), judge_sets.where(corpus)
    st.code(
        f"workbench eval {name} --plan default --plan rrf {where}\nworkbench judge export {name} judgments.jsonl {where}",
        language=None, wrap_lines=True,
    )  # fmt: skip
    st.button("Undo", key=PREFIX + "judge.undo", shortcut="U", on_click=_undo, args=(corpus,))
