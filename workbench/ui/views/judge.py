"""The Judge page: choose a query set and plans, then judge one passage after the other, by keyboard.

The passages are pooled from all chosen plans and shuffled; the page never says which plan found one, nor how others graded it. A
grade is on the disk before the next passage is drawn. Keys: 0 to 3 grade, U undoes the last grade, N skips a passage.
"""

from __future__ import annotations

import functools
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from workbench import settings
from workbench.errors import JudgmentError, UsageError, WorkbenchError, counted
from workbench.judgments import exchange
from workbench.judgments.agreement import agreement, with_people
from workbench.judgments.judging import graded_by
from workbench.judgments.known_items import make_known_item_set
from workbench.judgments.log import GRADE_NAMES, GRADES, MACHINE, Judgment
from workbench.judgments.pooling import Candidate, Pool, judge_by_machine, make_pool
from workbench.judgments.query_sets import Query
from workbench.locators import whole_number
from workbench.markup import attribute, excerpt, plain, visible
from workbench.plan.plan import Plan
from workbench.records import Chunk, Document, Hit, Progress, Span, cite
from workbench.ui import resources, state
from workbench.ui.components import cards, tables
from workbench.ui.components.cards import in_markdown
from workbench.ui.components.controls import PREFIX

if TYPE_CHECKING:
    from workbench.corpus import Corpus

PLANS: Mapping[str, str] = {
    "default": "Hybrid",
    "rrf": "Hybrid, rrf",
    "default sources=keyword": "Keyword",
    "default sources=vector": "Vector",
}
"""Plans to pool that need nothing to be set, with their labels."""
DEPTH = 10
PASSAGE = 6_000
KNOWN_ITEMS = 50
CODE = frozenset({"code", "notebook"})
"""Types of documents whose text is read in columns: shown in letters of one width."""
PARAMS = ("set", "pool", "depth", "judge")
POOL_HELP = (
    "Passages are collected from the first results of every plan here, shuffled, and shown without saying which plan found "
    "them. The more different the plans, the fairer the judgments."
)
_SPLIT = "|"
_KEY = PREFIX + "judge."
_NOTE = _KEY + "note"
_CHOSEN, _ROUND, _DONE = "wb.judge.chosen", "wb.judge.round", "wb.judge.done"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a round is about: the query set, who judges, the texts of the plans to pool, and how many results of each."""

    name: str
    judge: str
    plans: tuple[str, ...] = tuple(PLANS)
    depth: int = DEPTH

    def to_params(self, person: str) -> dict[str, str]:
        params = {"set": self.name, "pool": _SPLIT.join(self.plans), "depth": str(self.depth)}
        return params if self.judge == person else {**params, "judge": self.judge}


def from_params(params: Mapping[str, str], person: str) -> Choice | None:
    """The choice of an address; None where it names no set. What cannot be read has its default."""
    name = params.get("set", "").strip()
    if not name:
        return None
    plans = tuple(p for p in params.get("pool", "").split(_SPLIT) if p.strip()) or tuple(PLANS)
    depth = whole_number(params.get("depth", ""), DEPTH, 100) or DEPTH
    return Choice(name, params.get("judge", "").strip() or person, plans, depth)


@dataclass(frozen=True, slots=True)
class Shown:
    """The candidate that is to be judged, with what the page shows of it; nothing says which plan found it."""

    query: Query
    chunk: Chunk
    document: Document
    matches: tuple[Span, ...]


def pooled(corpus: Corpus, queries: Sequence[Query], choice: Choice, progress: Callable[[Progress], None]) -> Pool:
    """The candidates of some queries. Raises PlanError, UsageError, SourceUnavailable for a plan that cannot be run."""

    def hits(query: Query, plan: Plan, depth: int) -> Sequence[Hit]:
        return corpus.search(query.text, query.keywords, plan=plan, limit=depth).hits

    return make_pool(hits, corpus.judging, queries, choice.plans, choice.depth, progress)


class Round:
    """A round of judging: the set's queries are pooled and what was graded before is found. Raises JudgmentError for a set
    without queries.

    Attributes:
        choice: What it is about.
        state: Of the corpus that was searched (`Engine.key`); another one needs another round.
        pool: The candidates.
        skipped: Candidates put off, as (query id, chunk id).
    """

    def __init__(self, corpus: Corpus, choice: Choice, progress: Callable[[Progress], None] = lambda _: None) -> None:
        self.choice, self.state = choice, corpus.engine.key
        self.queries = corpus.judging.queries(choice.name)
        if not self.queries:
            raise JudgmentError(f"The set {choice.name!r} has no queries", "Add some, or choose another set")
        self.pool = pooled(corpus, self.queries, choice, progress)
        self.skipped: set[tuple[str, str]] = set()
        self._candidates = {q.query_id: self.pool.order(q.query_id, choice.judge) for q in self.queries}
        self._given: dict[int, tuple[str, str]] = {}  # number of a judgment of this round -> query id, chunk id
        self._undone: set[tuple[str, str]] = set()
        self._graded: dict[str, Mapping[str, Judgment]] = {}
        for query in self.queries:
            self._read(corpus, query)

    def _read(self, corpus: Corpus, query: Query) -> None:
        candidates = self._candidates[query.query_id]
        found = corpus.judging.grades(query, candidates, set=self.choice.name, judge=self.choice.judge)
        # An undone one is shown again, also where it has a grade of its document or of a part of it.
        self._graded[query.query_id] = {i: g for i, g in found.items() if (query.query_id, i) not in self._undone}

    @property
    def total(self) -> int:
        return self.pool.size

    @property
    def done(self) -> int:
        return sum(map(len, self._graded.values()))

    def grades(self) -> dict[int, int]:
        return {
            **dict.fromkeys(GRADES, 0),
            **Counter(j.grade for found in self._graded.values() for j in found.values()),
        }

    def position(self, query: Query) -> tuple[int, int, int]:
        graded, candidates = self._graded[query.query_id], self._candidates[query.query_id]
        return self.queries.index(query) + 1, len(graded), len(candidates)

    def next(self) -> tuple[Query, Candidate] | None:
        """What is to be judged now: the first candidate neither graded nor skipped; None at the end."""
        for query in self.queries:
            graded = self._graded[query.query_id]
            for candidate in self._candidates[query.query_id]:
                if candidate.chunk_id not in graded and (query.query_id, candidate.chunk_id) not in self.skipped:
                    return query, candidate
        return None

    def show(self, corpus: Corpus) -> Shown | None:
        """What the page shows now; candidates that left the corpus are passed over. None at the end."""
        judging = corpus.judging
        while (found := self.next()) is not None:
            query, candidate = found
            number = judging.records.find_record(candidate.chunk_id, judging.scope)
            if number is not None:
                (row,) = judging.records.rows([number])
                (document,) = judging.records.headers([row.document_number])
                return Shown(query, row.chunk, document, corpus.engine.lexical.highlight(query.text, row.chunk.text))
            self.skipped.add((query.query_id, candidate.chunk_id))
        return None

    def grade(self, corpus: Corpus, query_id: str, chunk_id: str, grade: int, note: str = "") -> None:
        """Grade a candidate; it is on the disk when this returns. Raises JudgmentError, CorpusError."""
        query, about = next(q for q in self.queries if q.query_id == query_id), (query_id, chunk_id)
        name, judge = self.choice.name, self.choice.judge
        given = corpus.judging.grade(chunk_id, grade, query, set=name, judge=judge, note=note.strip())
        self._graded[query_id] = {**self._graded[query_id], chunk_id: given}
        self._given[given.number] = about
        self._undone.discard(about)
        self.skipped.discard(about)

    def undo(self, corpus: Corpus) -> str:
        """Undo this judge's last grade in the set, also one of another day. Returns what was done, in a sentence."""
        undone = corpus.judging.undo(self.choice.name, self.choice.judge)
        if undone is None:
            return "There is nothing to undo."
        if undone.number in self._given:
            self._undone.add(self._given.pop(undone.number))
        for query in self.queries:
            if query.query_id == undone.query_id:
                self._read(corpus, query)
        return f"Undid grade {undone.grade} of {undone.anchor.path}."


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
            st.caption(f"Set **{in_markdown(choice.name, 80)}**, judged by {in_markdown(choice.judge, 80)}")
            st.button("Choose another set", key=_KEY + "leave", on_click=_leave, type="tertiary")
        _judge(corpus, choice)
        return
    choice = _sets(corpus, person)
    if choice is not None:
        state.set_page_values(**choice.to_params(person))
        st.rerun()


def _leave() -> None:
    state.set_page_values(**dict.fromkeys(PARAMS, ""))
    st.session_state.pop(_ROUND, None)


# --- choosing a set ---------------------------------------------------------------------------------------------------


def _sets(corpus: Corpus, person: str) -> Choice | None:
    sets, chosen = corpus.judging.overview(), None
    if sets:
        st.subheader("Judge passages")
        st.text("Say how well passages answer queries, so that plans can be measured and tuned.")
        names = {
            s.name: f"{plain(s.name, 60)} ({counted(s.queries, 'query|queries')}, {counted(s.judgments, 'judgment')})"
            for s in sets
        }
        chosen = _start(corpus, names, person)
    else:
        st.subheader("There is no query set yet")
        st.text("A query set holds questions that people ask. Type some, load a file, or let the workbench make some.")
    _make(corpus, expanded=not sets)
    return chosen


def _start(corpus: Corpus, names: dict[str, str], person: str) -> Choice | None:
    plans = dict(PLANS)
    plans.setdefault(str(state.current().plan), "As set on the Search page")
    for saved, text in resources.saved_plans().items():
        plans.setdefault(text, f"Saved: {plain(saved, 60)}")
    made = st.session_state.pop(_CHOSEN, None)
    if made in names:
        st.session_state[_KEY + "set"] = made
    left, right = st.columns([3, 2], gap="medium")
    name = left.selectbox("Query set", list(names), format_func=lambda n: names[n], key=_KEY + "set")
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
    ready = bool(name and picked and judge.strip())
    if not picked:
        st.caption("Choose at least one plan.")
    pressed = st.button("Start judging", type="primary", disabled=not ready, key=_KEY + "start")
    if not name:
        return None
    choice = Choice(name, " ".join(judge.split()), tuple(picked), int(depth))
    _agreement(corpus, name)
    _machine(corpus, choice)
    _change(corpus, name, names[name])
    return choice if pressed and ready else None


def _agreement(corpus: Corpus, name: str) -> None:
    items = graded_by(corpus.judging.located(name))
    judges = sorted({j for grades in items for j in grades})
    if len(judges) > 1:
        words = in_markdown(agreement(items).words, 80)
        st.caption(f"Judges of this set: {in_markdown(', '.join(judges), 80)}. {words}.")


@contextmanager
def _doing() -> Iterator[None]:
    """Do what a form requested and draw the page again, which sees what changed; or show the error."""
    try:
        with st.spinner("One moment"):
            yield
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
    else:
        st.rerun()


def _change(corpus: Corpus, name: str, shown: str) -> None:
    sets = corpus.judging.sets
    with st.expander("Change this set", key=_KEY + "change"):
        added, renamed, downloaded, deleted = st.tabs(["Add queries", "Rename", "Download", "Delete"])
        with added, st.form(_KEY + "add", border=False, clear_on_submit=True):
            queries = _lines(st.text_area("Queries, one per line", key=_KEY + "add.lines", height=120))
            if st.form_submit_button("Add", key=_KEY + "add.add"):
                with _doing():
                    if not queries:
                        raise UsageError("There is no query to add", "Type at least one")
                    new = sets.add(name, queries)
                    state.message(f"{new} of {len(queries)} queries are new in the set {name}.")
        with renamed, st.form(_KEY + "rename", border=False, clear_on_submit=True):
            typed = st.text_input("New name", key=_KEY + "rename.name", max_chars=100)
            if st.form_submit_button("Rename", key=_KEY + "rename.rename"):
                with _doing():
                    st.session_state[_CHOSEN] = new_name = sets.rename(name, typed)
                    state.message(f"The set {name} is called {new_name} now.")
        with downloaded:
            st.text("The queries and judgments, with passages, judges and notes; Load a file reads both forms.")
            for form in ("jsonl", "csv"):
                data, key = functools.partial(_exported, corpus, name, form), f"{_KEY}download.{form}"
                st.download_button(f"Download {form.upper()}", data, f"{name}.{form}", key=key, on_click="ignore")
        with deleted:
            st.text(f"Deletes {shown}. What is in the notes and saved searches stays.")
            sure = st.checkbox("Delete the queries and their judgments", key=f"{_KEY}delete.sure.{name}")
            if st.button("Delete the set", key=_KEY + "delete.delete", disabled=not sure):
                with _doing():
                    sets.remove(name)
                    state.message(f"The set {name} is deleted.")


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _exported(corpus: Corpus, name: str, form: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"set.{form}"
        exchange.export_judgments(corpus.judging, name, path, form)
        return path.read_bytes()


def _make(corpus: Corpus, expanded: bool) -> None:
    judging = corpus.judging
    with st.expander("New query set", expanded=expanded, key=_KEY + "make"):
        typed, loaded, known = st.tabs(["Type queries", "Load a file", "From my documents"])
        with typed, st.form(_KEY + "typed", border=False):
            name = st.text_input("Name", key=_KEY + "typed.name", max_chars=100)
            lines = _lines(st.text_area("Queries, one per line", key=_KEY + "typed.lines", height=160))
            if st.form_submit_button("Create", key=_KEY + "typed.make"):
                with _doing():
                    made = judging.sets.create(name, lines, "Typed on the Judge page", resources.person())
                    st.session_state[_CHOSEN] = made
                    state.message(f"The set {made} has {len(judging.queries(made))} queries.")
        with loaded, st.form(_KEY + "loaded", border=False):
            name = st.text_input("Name", key=_KEY + "loaded.name", max_chars=100)
            what = "Queries (a line each), or judgments as CSV or JSONL"
            file = st.file_uploader(what, type=["txt", "csv", "jsonl"], key=_KEY + "loaded.file")
            if st.form_submit_button("Load", key=_KEY + "loaded.load"):
                with _doing():
                    if file is None:
                        raise UsageError("No file is chosen", "Choose one, then press Load")
                    state.message(_load(corpus, name or Path(file.name).stem, file.name, file.getvalue()))
        with known, st.form(_KEY + "made", border=False):
            st.text(
                "Titles, headings, rare phrases and questions of your documents become queries, and what they were made of is "
                "the answer. They are easier than people's questions: a start, not a verdict."
            )
            name = st.text_input("Name", value="known-items", key=_KEY + "made.name", max_chars=100)
            count = st.number_input("Queries", 1, 1000, KNOWN_ITEMS, key=_KEY + "made.count")
            if st.form_submit_button("Make them", key=_KEY + "made.make"):
                with _doing():
                    total = make_known_item_set(judging, corpus.engine, name, int(count))
                    st.session_state[_CHOSEN] = name
                    command = f"workbench eval {shlex.quote(name)} {_options(corpus)}"
                    state.message(f"{name}: {total} queries with their answers. Measure with it at once: {command}")


def _load(corpus: Corpus, name: str, file_name: str, data: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        stem = "".join(c for c in Path(file_name).stem if c.isalnum() or c in " ._-")[:100]  # messages name the file
        path = Path(folder) / ((stem.strip(". ") or "upload") + Path(file_name).suffix.lower())
        path.write_bytes(data)
        if exchange.holds_judgments(path):
            report = exchange.import_judgments(corpus.judging, path, name)
            st.session_state[_CHOSEN] = report.name
            return f"{report.name}: {report.judgments} judgments, {report.new} of them new."
        total, new = exchange.import_queries(corpus.judging, path, name)
        st.session_state[_CHOSEN] = name
    return f"{name}: {total} queries, {new} of them new."


def _options(corpus: Corpus) -> str:
    words = ["--corpus", plain(str(corpus.path), 300)]
    if corpus.principal is not None:
        words += ["--tenant", corpus.principal.tenant] if corpus.principal.tenant else []
        words += [word for role in corpus.principal.roles for word in ("--role", role)]
    return shlex.join(words)


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
    from workbench.assist.endpoint import PREFIX as ENDPOINT
    from workbench.assist.endpoint import Endpoint

    judging = corpus.judging
    try:
        with _progress("Graded or left out:") as show:
            queries = judging.queries(choice.name)
            pool = pooled(corpus, queries, choice, show)
            endpoint = Endpoint(model.removeprefix(ENDPOINT))
            report = judge_by_machine(judging, endpoint, choice.name, queries, pool, progress=show)
    except WorkbenchError as exc:
        st.html(cards.alert("The model did not grade", exc.message, exc.remedy))
        return
    st.html(cards.alert("", report.words, "") if report.failed else cards.note(report.words + "."))


# --- judging ----------------------------------------------------------------------------------------------------------


def _judge(corpus: Corpus, choice: Choice) -> None:
    made = st.session_state.get(_ROUND)
    if not (isinstance(made, Round) and made.choice == choice and made.state == corpus.engine.key):
        try:
            with _progress("") as show:
                made = st.session_state[_ROUND] = Round(corpus, choice, show)
        except WorkbenchError as exc:
            st.html(cards.alert("These passages cannot be collected", exc.message, exc.remedy))
            return
        for query_id, reason in list(made.pool.failures.items())[:5]:
            st.html(cards.alert("", f"Query {query_id} could not be run by every plan: {reason}", ""))
    _panel(corpus)


@st.fragment
def _panel(corpus: Corpus) -> None:
    """What is judged now. A fragment: a grade draws this and nothing else."""
    made: Round = st.session_state[_ROUND]
    share = made.done / made.total if made.total else 1.0
    st.progress(min(share, 1.0), f"{made.done} of {made.total} passages judged")
    if (done := st.session_state.pop(_DONE, None)) is not None:
        st.html(done)
    try:
        shown = made.show(corpus)
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return
    if shown is None:
        _end(corpus, made)
        return
    st.html(_shown_html(shown, made))
    target = (shown.query.query_id, shown.chunk.chunk_id)
    with st.container(horizontal=True):
        for grade in GRADES:
            name, key = GRADE_NAMES[grade].capitalize(), f"{_KEY}grade.{grade}"
            st.button(name, key=key, shortcut=str(grade), on_click=_grade, args=(corpus, *target, grade))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Note",
            key=_NOTE,
            placeholder="why, if you like; kept with the grade",
            max_chars=1000,
            width="stretch",
            help="Type it, press Tab, then the grade.",
        )
        st.button("Skip", key=_KEY + "skip", shortcut="N", on_click=_skip, args=target)
        _undo_button(corpus)


def _undo_button(corpus: Corpus) -> None:
    st.button("Undo", key=_KEY + "undo", shortcut="U", on_click=_undo, args=(corpus,))


def _shown_html(shown: Shown, made: Round) -> str:
    query, chunk, document = shown.query, shown.chunk, shown.document
    number, graded, candidates = made.position(query)
    words = visible(plain(query.keywords or "", 200))
    keywords = f' <span class="wb-dim">keywords: {words}</span>' if words else ""
    section = f'<p class="wb-msg"><bdi>{visible(plain(chunk.section, 200))}</bdi></p>' if chunk.section else ""
    kind = "wb-text wb-mono" if document.type in CODE else "wb-text"
    passage = cards.passage_html(excerpt(chunk.text, shown.matches, PASSAGE))
    place = visible(plain(cite(document.path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator), 300))
    link = attribute(cards.chunk_address(chunk, document.path, document.document_id, {"q": query.text}))
    return (
        f'<p class="wb-msg">Query {number} of {len(made.queries)}, passage {graded + 1} of {candidates}. How well does this '
        "passage answer it?</p>"
        f'<p class="wb-asked" role="heading" aria-level="2"><bdi>{visible(plain(query.text, 600))}</bdi>{keywords}</p>'
        f'<article class="wb-judge" data-chunk="{attribute(chunk.chunk_id)}" aria-label="Passage to judge">'
        f'<div class="wb-title"><bdi>{visible(plain(document.title or document.path, 160))}</bdi></div>{section}'
        f'<div class="{kind}" dir="auto">{passage}</div>'
        f'<div class="wb-cite"><a href="{link}"><bdi>{place}</bdi></a></div></article>'
    )


def _grade(corpus: Corpus, query_id: str, chunk_id: str, grade: int) -> None:
    try:
        st.session_state[_ROUND].grade(corpus, query_id, chunk_id, grade, str(st.session_state.get(_NOTE) or ""))
    except WorkbenchError as exc:
        st.session_state[_DONE] = cards.alert("The grade was not saved", exc.message, exc.remedy)
        return
    st.session_state[_NOTE] = ""


def _skip(query_id: str, chunk_id: str) -> None:
    st.session_state[_ROUND].skipped.add((query_id, chunk_id))
    st.session_state[_NOTE] = ""


def _undo(corpus: Corpus) -> None:
    try:
        st.session_state[_DONE] = cards.note(st.session_state[_ROUND].undo(corpus))
    except WorkbenchError as exc:
        st.session_state[_DONE] = cards.alert("The grade was not undone", exc.message, exc.remedy)


def _end(corpus: Corpus, made: Round) -> None:
    skipped = made.total - made.done
    if skipped > 0:
        st.subheader(f"{skipped} skipped {'passage is' if skipped == 1 else 'passages are'} left")
        again = made.skipped.clear
        st.button("Judge them now", key=_KEY + "take-up", on_click=again, type="primary", shortcut="N")
    else:
        st.subheader("All passages of this pool are judged")
    names = dict(enumerate(GRADE_NAMES))
    rows = [(f"{grade} {names.get(grade, '')}", count) for grade, count in made.grades().items()]
    st.html(f'<div class="wb-counts">{tables.table(("Grade", "Passages"), rows, (1,), "Grades")}</div>')
    _agreement(corpus, made.choice.name)
    st.markdown("What to do next: measure plans with these judgments on the [Tune](tune) page, or in a terminal:")
    name, options = shlex.quote(made.choice.name), _options(corpus)
    st.code(
        f"workbench eval {name} --plan default --plan rrf {options}\nworkbench judge export {name} judgments.jsonl {options}",
        language=None,
        wrap_lines=True,
    )
    _undo_button(corpus)
