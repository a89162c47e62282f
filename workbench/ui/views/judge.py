"""The Judge page: choose a query set and plans, then judge one passage after the other, by keyboard.

The passages are pooled from all chosen plans and shuffled; the page never says which plan found one, nor how others graded it. A
grade is on the disk before the next passage is drawn. Keys: 0 to 3 grade, U undoes the last grade, N skips a passage, B goes back
to the one before, X grades the rest of the query 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench import settings
from workbench.errors import WorkbenchError, counted
from workbench.evaluate.leaderboard import Leaderboard
from workbench.judgments.agreement import with_people
from workbench.judgments.judging import graded_by
from workbench.judgments.log import GRADES, MACHINE, Judgment
from workbench.judgments.pooling import judge_by_machine
from workbench.judgments.query_sets import Query
from workbench.markup import attribute, cut, excerpt, plain, visible
from workbench.records import Progress, cite
from workbench.ui import jobs, resources, state
from workbench.ui.components import cards, controls, live, standings, tables
from workbench.ui.components.cards import in_markdown
from workbench.ui.components.controls import PREFIX
from workbench.ui.rounds import DEPTH, PLANS, Choice, Round, Shown, from_params, pooled
from workbench.ui.views import queries

if TYPE_CHECKING:
    from workbench.corpus import Corpus

PASSAGE = 6_000
CODE = frozenset({"code", "notebook"})
"""Types of documents whose text is read in columns: shown in letters of one width."""
PARAMS = ("set", "pool", "depth", "judge")
POOL_HELP = (
    "Passages are collected from the first results of every plan here, shuffled, and shown without saying which plan found "
    "them. The more different the plans, the fairer the judgments."
)
_KEY = PREFIX + "judge."
_NOTE = _KEY + "note"
_ROUND = "wb.judge.round"
_FIGURES, _FIGURES_OF = "wb.judge.figures", "wb.judge.figures-of"
FIGURES = ("nDCG@10", "P@10")
NEXT = {"tune": ("Tune", "tune"), "compare": ("Compare", "compare_arrows"), "queries": ("Query sets", "list_alt")}
MOST_LISTED = 150
"""Queries up to which they are listed beside the passage; more are in a box that is searched by typing."""


def draw(corpus: Corpus) -> None:
    person = resources.person()
    given = {n: state.page_value(n) for n in PARAMS}
    if "is_logged_in" in st.user:
        given["judge"] = ""  # whoever signed in judges as nobody else
    choice = from_params(given, person)
    if choice is not None and choice.name not in corpus.judging.sets.names():
        st.html(cards.alert("", f"There is no query set {choice.name!r} (any more)", "Choose another one below"))
        choice = None
    if choice is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            pool = f"the first {choice.depth} of {counted(len(choice.plans), 'plan')}"
            name, judge = in_markdown(choice.name, 80), in_markdown(choice.judge, 80)
            st.caption(f"Judging the set **{name}** as **{judge}**: {pool}, shuffled.")
            st.button(
                "Change", key=_KEY + "leave", on_click=_leave, type="tertiary", help="Another set, judge or pool."
            )
        _judge(corpus, choice)
        return
    if (choice := _chosen(corpus, person)) is not None:
        state.set_page_values(**choice.to_params(person))
        st.rerun()


def _leave() -> None:
    state.set_page_values(**dict.fromkeys(PARAMS, ""))
    st.session_state.pop(_ROUND, None)


# --- choosing a set ---------------------------------------------------------------------------------------------------


def _chosen(corpus: Corpus, person: str) -> Choice | None:
    names = {
        s.name: f"{plain(s.name, 60)} ({counted(s.queries, 'query|queries')}, {counted(s.judgments, 'judgment')})"
        for s in corpus.judging.overview()
        if s.queries
    }
    if not names:
        st.subheader("There is no query set to judge yet")
        live.no_set(
            "A query set holds questions that people ask. Type some, load files, or let the workbench make some."
        )
        return None
    plans = dict(PLANS)
    plans.setdefault(str(state.current().plan), "As set on the Search page")
    for saved, text in resources.saved_plans().items():
        plans.setdefault(text, f"Saved: {plain(saved, 60)}")
    active = live.chosen(corpus)[0]
    first = active if active in names else next(iter(names))
    left, right = st.columns([3, 2], gap="medium")
    left.page_link(state.page_of("queries"), label="Add queries, or make another set", icon=":material/list:")
    name = left.selectbox(
        "Query set", list(names), index=list(names).index(first), format_func=lambda n: names[n], key=_KEY + "set"
    )
    picked = left.multiselect(
        "Plans to pool",
        list(plans),
        default=list(PLANS),
        format_func=lambda p: plans[p],
        key=_KEY + "plans",
        help=POOL_HELP,
    )
    signed_in = "is_logged_in" in st.user
    judge = right.text_input("Judged by", value=person, max_chars=100, key=_KEY + "judge", disabled=signed_in)
    depth_help = "How many of each plan's first results are judged. 10 is enough for nDCG@10."
    depth = right.number_input("Results of each plan", 1, 100, DEPTH, key=_KEY + "depth", help=depth_help)
    ready = bool(picked and judge.strip())
    if not picked:
        st.caption("Choose at least one plan.")
    pressed = st.button("Start judging", type="primary", disabled=not ready, key=_KEY + "start")
    choice = Choice(name, " ".join(judge.split()), tuple(picked), int(depth))
    _agreement(corpus, name)
    _machine(corpus, choice)
    return choice if pressed and ready else None


def _agreement(corpus: Corpus, name: str) -> None:
    known = queries.report(corpus, name)
    if known.agreement is not None:
        judges = in_markdown(", ".join(known.agreement.judges), 200)
        st.caption(f"Judges of this set: {judges}. {in_markdown(known.agreement.words, 200)}.")


# --- a model that grades ----------------------------------------------------------------------------------------------


@contextmanager
def _progress(doing: str) -> Iterator[Callable[[Progress], None]]:
    bar = st.progress(0.0, "Collecting passages")

    def show(report: Progress) -> None:
        word = "Collecting passages: query" if report.step == "pool" else doing
        bar.progress(min(report.done / max(report.total, 1), 1.0), f"{word} {report.done} of {report.total}")

    try:
        yield show
    finally:
        bar.empty()


def _machine(corpus: Corpus, choice: Choice) -> None:
    """The closed section of a model that grades; what it needs is named where it is missing."""
    key = _KEY + "machine."
    with st.expander("Grade with an LLM", key=key + "section"):
        if not str(settings.get("endpoint_url")).strip():
            st.text(
                "Set endpoint_url (and endpoint_key) in the settings to an OpenAI-compatible endpoint first. Passages are "
                "sent there when you press the button, and never before."
            )
            return
        st.text(
            "Its grades are kept under the judge machine:MODEL and count only where that judge is named. Judge some of the "
            "same passages yourself, and see here how far it agrees with you."
        )
        with st.form(key + "form", border=False):
            model = st.text_input("Model", key=key + "model", max_chars=150)
            pressed = st.form_submit_button("Grade the pool", key=key + "start", disabled=not choice.plans)
        if pressed and model.strip():
            _grade_by_machine(corpus, choice, model.strip())
        items = graded_by(corpus.judging.located(choice.name))
        for judge in sorted({j for grades in items for j in grades if j.startswith(MACHINE)}):
            found = with_people(items, judge)
            none = f"{judge}: nobody has judged any of its passages too."
            st.text(plain(none if found is None else found.words, 300))


def _grade_by_machine(corpus: Corpus, choice: Choice, model: str) -> None:
    from workbench.assist.endpoint import Endpoint
    from workbench.assist.models import PREFIX as ENDPOINT

    judging = corpus.judging
    with controls.faults("The model did not grade"):
        with _progress("Graded or left out:") as show:
            queries = judging.queries(choice.name)
            pool = pooled(corpus, queries, choice, show)
            endpoint = Endpoint(model.removeprefix(ENDPOINT))
            report = judge_by_machine(judging, endpoint, choice.name, queries, pool, progress=show)
        st.html(cards.alert("", report.words, "") if report.failed else cards.note(report.words + "."))


# --- judging ----------------------------------------------------------------------------------------------------------


def _judge(corpus: Corpus, choice: Choice) -> None:
    above = controls.place()
    made = st.session_state.get(_ROUND)
    if not (isinstance(made, Round) and made.choice == choice and made.state == corpus.engine.key):
        st.session_state.pop(_ROUND, None)
        with above, controls.faults("These passages cannot be collected"), _progress("") as show:
            made = st.session_state[_ROUND] = Round(corpus, choice, show)
            for query_id, reason in list(made.pool.failures.items())[:5]:
                st.html(cards.alert("", f"Query {query_id} could not be run by every plan: {reason}", ""))
    if _ROUND in st.session_state:
        _panel(corpus)


@st.fragment
def _panel(corpus: Corpus) -> None:
    """What is judged now. A fragment: a grade draws this and nothing else."""
    with controls.faults():
        _passage(corpus, st.session_state[_ROUND])


def _passage(corpus: Corpus, made: Round) -> None:
    share = made.done / made.total if made.total else 1.0
    st.progress(min(share, 1.0), f"{made.done} of {made.total} passages judged")
    if made.done:
        state.remember_earlier("the last grade", functools.partial(made.undo, corpus))
    if (shown := made.show(corpus)) is None:
        _end(corpus, made)
        return
    target = (shown.query.query_id, shown.chunk.chunk_id)
    passage, beside = st.columns([7, 3], gap="medium")
    with beside:
        _query_list(made, shown.query)
    # Last but the buttons: a key that is pressed before they are those of this passage does nothing.
    with passage:
        st.html(_shown_html(shown, made))
    with st.container(key="wb-judge-bar"):
        with st.container(horizontal=True):
            for grade, text in enumerate(made.grade_texts):
                name, _, more = text.partition(":")
                key, given = f"{_KEY}grade.{grade}", made.given(*target) == grade
                help, args = more.strip() or None, (corpus, target[0], target[1:], grade)
                options: dict[str, Any] = {"help": help, "type": "primary" if given else "secondary"}
                label = in_markdown(name[:1].upper() + name[1:], 40)
                st.button(label, key=key, shortcut=str(grade), on_click=_grade, args=args, **options)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                "Note",
                key=_NOTE,
                placeholder="a note, if you like: type it, press Tab, then the grade",
                max_chars=1000,
                width="stretch",
                label_visibility="collapsed",
            )
            left = tuple(c.chunk_id for c in made.open_of(shown.query))
            rest: dict[str, Any] = {"on_click": _grade, "args": (corpus, target[0], left, 0), "disabled": not left}
            rest["help"] = (
                f"Grade what is open of this query ({counted(len(left), 'passage')}) 0. One undo takes it back."
            )
            st.button("Rest not relevant", key=_KEY + "rest", shortcut="X", **rest)
            st.button("Skip", key=_KEY + "skip", shortcut="N", on_click=_skip, args=target)
            st.button("Back", key=_KEY + "back", shortcut="B", on_click=made.back, help="The passage before this one.")


def _query_list(made: Round, now: Query) -> None:
    """The queries with how far each is judged; one is chosen to go to it."""
    number = {q.query_id: n for n, q in enumerate(made.queries, 1)}

    def line(query_id: str) -> str:
        query = made.queries[number[query_id] - 1]
        _, graded, candidates = made.position(query)
        mark = "✓" if graded == candidates else f"{graded}/{candidates}"
        return f"{number[query_id]} · {mark} · {in_markdown(query.text, 80)}"

    key, ids = _KEY + "query", list(number)
    st.session_state[key] = now.query_id
    done = sum(not made.open_of(q) for q in made.queries)
    label = f"Queries, {done} of {len(ids)} judged"
    options: dict[str, Any] = {"format_func": line, "key": key, "on_change": _jump}
    if len(ids) > MOST_LISTED:
        st.selectbox(label, ids, **options)
    else:
        with st.container(height=430, border=False, key="wb-judge-queries"):
            st.radio(label, ids, **options)


def _jump() -> None:
    st.session_state[_ROUND].jump(str(st.session_state[_KEY + "query"]))


def _shown_html(shown: Shown, made: Round) -> str:
    query, chunk, document = shown.query, shown.chunk, shown.document
    number, graded, candidates = made.position(query)
    words = visible(plain(query.keywords or "", 200))
    keywords = f' <span class="wb-dim">keywords: {words}</span>' if words else ""
    need = f'<p class="wb-need" dir="auto">{visible(cut(query.need, 2_000))}</p>' if query.need else ""
    grades = "".join(
        f"<li><b>{n}</b> {visible(plain(text, 300))}</li>" for n, text in enumerate(made.grade_texts) if ":" in text
    )
    meant = f'<ul class="wb-grade-texts" aria-label="What the grades mean">{grades}</ul>' if grades else ""
    given = made.given(query.query_id, chunk.chunk_id)
    before = "" if given is None else f" You graded it {given}."
    section = f'<p class="wb-msg"><bdi>{visible(plain(chunk.section, 200))}</bdi></p>' if chunk.section else ""
    kind = "wb-text wb-mono" if document.type in CODE else "wb-text"
    passage = cards.passage_html(excerpt(chunk.text, shown.matches, PASSAGE))
    place = visible(plain(cite(document.path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator), 300))
    link = attribute(cards.chunk_address(chunk, document.path, {"q": query.text}))
    return (
        f'<p class="wb-msg">Query {number} of {len(made.queries)}, passage {min(graded + 1, candidates)} of '
        f"{candidates}. How well does this passage answer it?{before}</p>"
        f'<p class="wb-asked" role="heading" aria-level="2"><bdi>{visible(plain(query.text, 600))}</bdi>{keywords}</p>'
        f"{need}{meant}"
        f'<article class="wb-judge" data-chunk="{attribute(chunk.chunk_id)}" aria-label="Passage to judge">'
        f'<div class="wb-title"><bdi>{visible(plain(document.title or document.path, 160))}</bdi></div>{section}'
        f'<div class="{kind}" dir="auto">{passage}</div>'
        f'<div class="wb-cite"><a href="{link}"><bdi>{place}</bdi></a></div></article>'
    )


def _grade(corpus: Corpus, query_id: str, chunk_ids: Sequence[str], grade: int) -> None:
    """Grade passages of a query, all of which one undo takes back. A note is of one passage."""
    made: Round = st.session_state[_ROUND]
    note = str(st.session_state.get(_NOTE) or "") if len(chunk_ids) == 1 else ""
    given: list[Judgment] = []
    try:
        given.extend(made.grade(corpus, query_id, chunk_id, grade, note) for chunk_id in chunk_ids)
    except WorkbenchError as exc:
        state.notice(f"Not saved: {exc}")
    if given:
        several = len(given) > 1
        what = f"{len(given)} grades of {grade}" if several else f"the grade {grade} of {given[0].anchor.path}"
        state.remember(what, functools.partial(_undo, corpus, made.choice, given))
    if len(given) == len(chunk_ids):
        st.session_state[_NOTE] = ""


def _undo(corpus: Corpus, choice: Choice, given: Sequence[Judgment]) -> None:
    """Take grades back, in the round that the page shows if it is theirs."""
    made = st.session_state.get(_ROUND)
    if isinstance(made, Round) and made.choice == choice:
        made.undo(corpus, given)
    else:
        for one in given:
            corpus.judging.log.undo(choice.name, choice.judge, one.number)


def _skip(query_id: str, chunk_id: str) -> None:
    st.session_state[_ROUND].skip(query_id, chunk_id)
    st.session_state[_NOTE] = ""


def _end(corpus: Corpus, made: Round) -> None:
    skipped = made.total - made.done
    if skipped > 0:
        st.subheader(f"{skipped} skipped {'passage is' if skipped == 1 else 'passages are'} left")
        again = made.skipped.clear
        st.button("Judge them now", key=_KEY + "take-up", on_click=again, type="primary", shortcut="N")
    else:
        st.subheader("All passages of this pool are judged")
    rows = [(f"{n} {text.partition(':')[0]}", made.grades().get(n, 0)) for n, text in enumerate(made.grade_texts)]
    rows += [(str(n), count) for n, count in made.grades().items() if n not in GRADES]
    st.html(f'<div class="wb-counts">{tables.table(("Grade", "Passages"), rows, (1,), "Grades")}</div>')
    _agreement(corpus, made.choice.name)
    _measured(corpus, made)
    st.subheader("What next")
    with st.container(horizontal=True):
        for page, (label, icon) in NEXT.items():
            if st.button(label, key=_KEY + page, icon=f":material/{icon}:"):
                live.choose(made.choice.name)
                st.switch_page(state.page_of(page))
    queries.download(corpus, made.choice.name, _KEY)


def _measured(corpus: Corpus, made: Round) -> None:
    """The figures of the pooled plans by what is judged now, in the whole and a query a row; measured beside the page."""
    name, plans = made.choice.name, made.choice.plans
    of = (made.choice, made.state, resources.judged_at(corpus))
    if st.session_state.get(_FIGURES_OF) != of:

        def work(progress: Any, stop: Any) -> Leaderboard:
            return corpus.leaderboard(corpus.judgments(name), plans, FIGURES, progress=progress, stop=stop)

        st.session_state[_FIGURES_OF], st.session_state[_FIGURES] = of, jobs.Job(work)
    st.subheader("Figures of the pooled plans")
    board = jobs.watch(_FIGURES, _KEY + "figures.")
    if not isinstance(board, Leaderboard):
        return
    labels = [PLANS.get(name, name) for name in board.names]
    st.html(standings.board_html(board, board.frame(), labels))
    each = {label: e.column(FIGURES[0]).round(4).tolist() for label, e in zip(labels, board.evaluations, strict=True)}
    texts = [board.base.judgments.topics[i].text for i in board.base.query_ids]
    st.caption(f"{FIGURES[0]} of each query; the table sorts, and downloads from its corner.")
    st.dataframe({"Query": texts, **each}, key=_KEY + "each", hide_index=True, width="stretch")
