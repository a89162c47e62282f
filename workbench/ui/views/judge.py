"""The Judge page: choose a query set and plans, then judge one passage after the other, by keyboard.

The passages are pooled from all chosen plans and shuffled; the page never says which plan found one, nor what others said. A
grade is on the disk before the next passage is drawn. Keys: 0 to 3 grade, U takes the last grade back, N puts a passage off.
"""

from __future__ import annotations

import functools
import shlex
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from workbench import settings
from workbench.errors import JudgmentError, UsageError, WorkbenchError
from workbench.judgments import exchange
from workbench.judgments.agreement import agreement, with_people
from workbench.judgments.judging import graded_by
from workbench.judgments.known_items import make_known_item_set
from workbench.judgments.log import GRADE_NAMES, GRADES, MACHINE, Judgment
from workbench.judgments.pooling import Candidate, MachineReport, Pool, judge_by_machine, make_pool
from workbench.judgments.query_sets import Query
from workbench.locators import whole_number
from workbench.markup import attribute, excerpt, marked, plain, visible
from workbench.records import Chunk, Document, Progress, Span, cite
from workbench.ui import resources, state
from workbench.ui.components import cards, links
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
_SPLIT = "|"
PARAMS = ("set", "pool", "depth", "judge")


@dataclass(frozen=True, slots=True)
class Choice:
    """What a round is about.

    Attributes:
        name: The query set.
        judge: Who judges.
        plans: Texts of the plans to pool.
        depth: How many results of each.
    """

    name: str
    judge: str
    plans: tuple[str, ...] = tuple(PLANS)
    depth: int = DEPTH

    def to_params(self, person: str) -> dict[str, str]:
        """The address form; the judge only where it is not the person that the machine knows."""
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
    """The candidate that is to be judged, with what the page shows of it; nothing says who found it."""

    query: Query
    chunk: Chunk
    document: Document
    matches: tuple[Span, ...]


class Round:
    """A round; make it with `begin`.

    Attributes:
        choice: What it is about.
        state: Of the corpus that was searched (`Engine.key`); another one needs another round.
        pool: The candidates.
        skipped: Candidates put off, as (query id, chunk id), in the order of putting off.
    """

    def __init__(self, choice: Choice, state: str, queries: tuple[Query, ...], pool: Pool) -> None:
        self.choice = choice
        self.state = state
        self.queries = queries
        self.pool = pool
        self.skipped: list[tuple[str, str]] = []
        self._order = {q.query_id: pool.order(q.query_id, choice.judge) for q in queries}
        self._graded: dict[str, Mapping[str, Judgment]] = {}
        self._given: list[tuple[str, str]] = []  # what was graded in this round, as (query id, chunk id)
        self._taken_back: set[tuple[str, str]] = set()

    @classmethod
    def begin(cls, corpus: Corpus, choice: Choice, progress: Callable[[Progress], None] | None = None) -> Round:
        """Pool the set's queries and find out what was graded before.

        Raises:
            JudgmentError: There is no such set, or it has no queries.
            PlanError, UsageError, SourceUnavailable: A plan cannot be run.
        """
        state, judging = corpus.engine.key, corpus.judging
        queries = judging.queries(choice.name)
        if not queries:
            raise JudgmentError(f"The set {choice.name!r} has no queries", "Add some, or choose another set")
        pool = make_pool(
            lambda query, plan, depth: corpus.search(query.text, query.keywords, plan=plan, limit=depth).hits,
            judging,
            queries,
            choice.plans,
            choice.depth,
            progress,
        )
        made = cls(choice, state, queries, pool)
        for query in queries:
            made._look(corpus, query)
        return made

    def _look(self, corpus: Corpus, query: Query) -> None:
        candidates = self._order[query.query_id]
        found = corpus.judging.grades(query, candidates, set=self.choice.name, judge=self.choice.judge)
        # What was taken back is asked again, also where it has a grade of its document or of a part of it.
        self._graded[query.query_id] = {
            chunk_id: given for chunk_id, given in found.items() if (query.query_id, chunk_id) not in self._taken_back
        }

    # --- where it is ---------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        return self.pool.size

    @property
    def done(self) -> int:
        return sum(map(len, self._graded.values()))

    def grades(self) -> dict[int, int]:
        """How many candidates have each grade, 0 to 3 first, then others that were imported."""
        counts = dict.fromkeys(GRADES, 0)
        for found in self._graded.values():
            for judgment in found.values():
                counts[judgment.grade] = counts.get(judgment.grade, 0) + 1
        return counts

    def position(self, query: Query) -> tuple[int, int, int]:
        """Number of a query from 1, and how many of its candidates are graded, of how many."""
        return (self.queries.index(query) + 1, len(self._graded[query.query_id]), len(self._order[query.query_id]))

    def next(self) -> tuple[Query, Candidate] | None:
        """What is to be judged now: the first candidate neither graded nor put off; None at the end."""
        off = set(self.skipped)
        for query in self.queries:
            graded = self._graded[query.query_id]
            for candidate in self._order[query.query_id]:
                if candidate.chunk_id not in graded and (query.query_id, candidate.chunk_id) not in off:
                    return query, candidate
        return None

    def show(self, corpus: Corpus) -> Shown | None:
        """What the page shows now; candidates that left the corpus are passed over. None at the end."""
        while (found := self.next()) is not None:
            query, candidate = found
            judging = corpus.judging
            number = judging.records.find_record(candidate.chunk_id, judging.scope)
            if number is not None:
                row = judging.records.rows([number])[0]
                document = judging.records.headers([row.document_number])[0]
                matches = corpus.engine.lexical.highlight(query.text, row.chunk.text)
                return Shown(query, row.chunk, document, matches)
            self.skipped.append((query.query_id, candidate.chunk_id))
        return None

    # --- what is done --------------------------------------------------------------------------------------------------

    def grade(self, corpus: Corpus, query_id: str, chunk_id: str, grade: int, note: str = "") -> None:
        """Grade a candidate; it is on the disk when this returns. Raises JudgmentError, CorpusError."""
        query = self._query(query_id)
        given = corpus.judging.grade(
            chunk_id, grade, query, set=self.choice.name, judge=self.choice.judge, note=note.strip()
        )
        self._graded[query_id] = {**self._graded[query_id], chunk_id: given}
        self._given.append((query_id, chunk_id))
        self._taken_back.discard((query_id, chunk_id))
        if (query_id, chunk_id) in self.skipped:
            self.skipped.remove((query_id, chunk_id))

    def undo(self, corpus: Corpus) -> str:
        """Take back this judge's last grade in the set, also one of another day. Returns what was done, in a sentence."""
        taken = corpus.judging.undo(self.choice.name, self.choice.judge)
        if taken is None:
            return "There is nothing to undo."
        query = next((q for q in self.queries if q.query_id == taken.query_id), None)
        if query is not None:
            if self._given and self._given[-1][0] == query.query_id:
                self._taken_back.add(self._given.pop())
            self._look(corpus, query)
        return f"Undid grade {taken.grade} of {taken.anchor.path}."

    def skip(self, query_id: str, chunk_id: str) -> None:
        if (query_id, chunk_id) not in self.skipped:
            self.skipped.append((query_id, chunk_id))

    def take_up(self) -> None:
        self.skipped.clear()

    def _query(self, query_id: str) -> Query:
        return next(q for q in self.queries if q.query_id == query_id)


PASSAGE = 6_000
CODE = frozenset({"code", "notebook"})
"""Types of documents whose text is read in columns: shown in letters of one width."""


def asked_html(shown: Shown, number: int, total: int, graded: int, candidates: int) -> str:
    keywords = (
        f' <span class="wb-dim">keywords: {visible(plain(shown.query.keywords, 200))}</span>'
        if shown.query.keywords
        else ""
    )
    return (
        f'<p class="wb-msg">Query {number} of {total}, passage {graded + 1} of {candidates}. How well does this passage '
        "answer it?</p>"
        f'<p class="wb-asked" role="heading" aria-level="2"><bdi>{visible(plain(shown.query.text, 600))}</bdi>{keywords}</p>'
    )


def candidate_html(shown: Shown) -> str:
    """The passage with the query's words marked, its title and section, and a link to its document."""
    chunk, document = shown.chunk, shown.document
    piece = excerpt(chunk.text, shown.matches, PASSAGE)
    before = '<span class="wb-more">… </span>' if piece.before else ""
    after = f'<span class="wb-more"> … {piece.after:,} more characters</span>' if piece.after else ""
    section = f'<p class="wb-msg"><bdi>{visible(plain(chunk.section, 200))}</bdi></p>' if chunk.section else ""
    kind = "wb-text wb-mono" if document.type in CODE else "wb-text"
    place = visible(plain(cite(document.path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator), 300))
    return (
        f'<article class="wb-judge" data-chunk="{attribute(chunk.chunk_id)}" aria-label="Passage to judge">'
        f'<div class="wb-title"><bdi>{visible(plain(document.title or document.path, 160))}</bdi></div>{section}'
        f'<div class="{kind}" dir="auto">{before}{marked(piece.text, piece.matches).strip()}{after}</div>'
        f'<div class="wb-cite"><a href="{attribute(_link(shown))}" target="_blank"><bdi>{place}</bdi></a></div></article>'
    )


def _link(shown: Shown) -> str:
    return links.chunk(shown.chunk, shown.document.path, shown.document.document_id, {"q": shown.query.text})


def counts_html(grades: dict[int, int], names: tuple[str, ...]) -> str:
    rows = "".join(
        f'<tr><td>{grade} {names[grade] if 0 <= grade < len(names) else ""}</td><td class="wb-num">{count:,}</td></tr>'
        for grade, count in grades.items()
    )
    return f'<table class="wb-table wb-counts"><tr><th>Grade</th><th class="wb-num">Passages</th></tr>{rows}</table>'


_KEY = PREFIX + "judge.machine."


def draw_machine(corpus: Corpus, name: str, plans: tuple[str, ...], depth: int) -> None:
    """Draw the closed section; what it needs is said where it is not there."""
    with st.expander("Let a model grade", key=_KEY + "section"):
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
        with st.form(_KEY + "form", border=False):
            model = st.text_input("Model", key=_KEY + "model", max_chars=150)
            pressed = st.form_submit_button("Grade the pool", key=_KEY + "start", disabled=not (name and plans))
        if pressed and model.strip():
            _run(corpus, name, model.strip(), plans, depth)
        _agreement(corpus, name)


def _run(corpus: Corpus, name: str, model: str, plans: tuple[str, ...], depth: int) -> None:
    bar = st.progress(0.0, "Collecting passages")

    def show(report: Progress) -> None:
        word = "Collecting passages: query" if report.step == "pool" else "Graded or left out:"
        bar.progress(min(report.done / max(report.total, 1), 1.0), f"{word} {report.done} of {report.total}")

    try:
        report = _graded(corpus, name, model, plans, depth, show)
    except WorkbenchError as exc:
        st.html(cards.alert("The model did not grade", exc.message, exc.remedy))
        return
    finally:
        bar.empty()
    st.html(cards.alert("", report.words, "") if report.failed else cards.note(report.words + "."))


def _graded(
    corpus: Corpus, name: str, model: str, plans: tuple[str, ...], depth: int, show: Callable[[Progress], None]
) -> MachineReport:
    from workbench.assist.endpoint import PREFIX as ENDPOINT
    from workbench.assist.endpoint import Endpoint

    endpoint = Endpoint(model.removeprefix(ENDPOINT))
    judging = corpus.judging
    queries = judging.queries(name)
    pool = make_pool(
        lambda query, plan, wanted: corpus.search(query.text, query.keywords, plan=plan, limit=wanted).hits,
        judging,
        queries,
        plans,
        depth,
        show,
    )
    return judge_by_machine(judging, endpoint, name, queries, pool, progress=show)


def _agreement(corpus: Corpus, name: str) -> None:
    items = graded_by(corpus.judging.located(name)) if name else []
    for judge in sorted({j for grades in items for j in grades if j.startswith(MACHINE)}):
        told = with_people(items, judge)
        st.text(
            plain(f"{judge}: nobody has judged any of its passages too.", 300)
            if told is None
            else plain(told.words, 300)
        )


_SETS_KEY = PREFIX + "judge."
_CHOSEN = "wb.judge.chosen"
KNOWN_ITEMS = 50
POOL_HELP = (
    "Passages are collected from the first results of every plan here, shuffled, and shown without saying which plan found "
    "them. The more different the plans, the fairer the judgments."
)


def label(text: str) -> str:
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|~$:<>" else c for c in plain(text, 80))


def shell(word: str) -> str:
    return shlex.quote(word)


def where(corpus: Corpus) -> str:
    """The options that open this corpus for this person in a terminal."""
    words = ["--corpus", plain(str(corpus.path), 300)]
    if corpus.principal is not None:
        words += ["--tenant", corpus.principal.tenant] if corpus.principal.tenant else []
        words += [word for role in corpus.principal.roles for word in ("--role", role)]
    return shlex.join(words)


def draw_sets(corpus: Corpus, person: str) -> Choice | None:
    """Draw the forms; the choice when somebody starts."""
    sets = corpus.judging.overview()
    chosen = None
    if sets:
        st.subheader("Judge passages")
        st.text("Say how well passages answer queries, so that plans can be measured and tuned.")
        chosen = _start(
            corpus,
            {s.name: f"{plain(s.name, 60)} ({s.queries} queries, {s.judgments} judgments)" for s in sets},
            person,
        )
    else:
        st.subheader("There is no query set yet")
        st.text("A query set holds questions that people ask. Type some, load a file, or let the workbench make some.")
    _make(corpus, expanded=not sets)
    return chosen


def _start(corpus: Corpus, names: dict[str, str], person: str) -> Choice | None:
    plans = _plans()
    made = st.session_state.pop(_CHOSEN, None)
    if made in names:
        st.session_state[_SETS_KEY + "set"] = made
    left, right = st.columns([3, 2], gap="medium")
    with left:
        name = st.selectbox("Query set", list(names), format_func=lambda n: names[n], key=_SETS_KEY + "set")
        picked = st.multiselect(
            "Plans to pool",
            list(plans),
            default=[p for p in PLANS if p in plans],
            format_func=lambda p: plans[p],
            key=_SETS_KEY + "plans",
            help=POOL_HELP,
        )
    with right:
        judge = st.text_input(
            "Judged by", value=person, max_chars=100, key=_SETS_KEY + "judge", disabled="is_logged_in" in st.user
        )
        depth = st.number_input(
            "Results of each plan",
            1,
            100,
            DEPTH,
            key=_SETS_KEY + "depth",
            help="How many of each plan's first results are judged. 10 is enough for nDCG@10.",
        )
    ready = bool(name and picked and judge.strip())
    if not picked:
        st.caption("Choose at least one plan.")
    pressed = st.button("Start judging", type="primary", disabled=not ready, key=_SETS_KEY + "start")
    if name:
        agreement_of(corpus, name)
        draw_machine(corpus, name, tuple(picked), int(depth))
        _change(corpus, name, names[name])
    if not (pressed and name and ready):
        return None
    return Choice(name, " ".join(judge.split()), tuple(picked), int(depth))


def _plans() -> dict[str, str]:
    """Text -> label: the plain ones, the one that is set on the Search page, and the saved ones."""
    plans = dict(PLANS)
    plans.setdefault(str(state.current().plan), "As set on the Search page")
    for name, text in resources.saved_plans().items():
        plans.setdefault(text, f"Saved: {plain(name, 60)}")
    return plans


def agreement_of(corpus: Corpus, name: str) -> None:
    """How far the judges of a set agree, where there are two at least."""
    items = graded_by(corpus.judging.located(name))
    judges = sorted({j for grades in items for j in grades})
    if len(judges) < 2:
        return
    st.caption(f"Judges of this set: {label(', '.join(judges))}. {label(agreement(items).words)}.")


# --- a set that is there ----------------------------------------------------------------------------------------------------


def _change(corpus: Corpus, name: str, shown: str) -> None:
    """Add queries to the chosen set, rename, download or delete it."""
    with st.expander("Change this set", key=_SETS_KEY + "change"):
        added, renamed, downloaded, deleted = st.tabs(["Add queries", "Rename", "Download", "Delete"])
        with added, st.form(_SETS_KEY + "add", border=False, clear_on_submit=True):
            lines = st.text_area("Queries, one per line", key=_SETS_KEY + "add.lines", height=120)
            if st.form_submit_button("Add", key=_SETS_KEY + "add.add"):
                _done(lambda: _added(corpus, name, lines))
        with renamed, st.form(_SETS_KEY + "rename", border=False, clear_on_submit=True):
            new = st.text_input("New name", key=_SETS_KEY + "rename.name", max_chars=100)
            if st.form_submit_button("Rename", key=_SETS_KEY + "rename.rename"):
                _done(lambda: _renamed(corpus, name, new))
        with downloaded:
            st.text("The queries and judgments, with passages, judges and notes; Load a file reads both forms.")
            for form in ("jsonl", "csv"):
                st.download_button(
                    f"Download {form.upper()}",
                    functools.partial(_exported, corpus, name, form),
                    f"{name}.{form}",
                    key=f"{_SETS_KEY}download.{form}",
                    on_click="ignore",
                )
        with deleted:
            st.text(f"Deletes {shown}. What is in the notes and saved searches stays.")
            sure = st.checkbox("Delete the queries and their judgments", key=f"{_SETS_KEY}delete.sure.{name}")
            if st.button("Delete the set", key=_SETS_KEY + "delete.delete", disabled=not sure):
                _done(lambda: _deleted(corpus, name))


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _added(corpus: Corpus, name: str, lines: str) -> str:
    queries = _lines(lines)
    if not queries:
        raise UsageError("There is no query to add", "Type at least one")
    new = corpus.judging.sets.add(name, queries)
    return f"{new} of {len(queries)} queries are new in the set {name}."


def _renamed(corpus: Corpus, name: str, new: str) -> str:
    st.session_state[_CHOSEN] = kept = corpus.judging.sets.rename(name, new)
    return f"The set {name} is called {kept} now."


def _exported(corpus: Corpus, name: str, form: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"set.{form}"
        exchange.export_judgments(corpus.judging, name, path, form)
        return path.read_bytes()


def _deleted(corpus: Corpus, name: str) -> str:
    corpus.judging.sets.remove(name)
    return f"The set {name} is deleted."


# --- new sets --------------------------------------------------------------------------------------------------------------


def _make(corpus: Corpus, expanded: bool) -> None:
    with st.expander("Make a query set", expanded=expanded, key=_SETS_KEY + "make"):
        typed, loaded, made = st.tabs(["Type queries", "Load a file", "From my documents"])
        with typed, st.form(_SETS_KEY + "typed", border=False):
            name = st.text_input("Name", key=_SETS_KEY + "typed.name", max_chars=100)
            lines = st.text_area("Queries, one per line", key=_SETS_KEY + "typed.lines", height=160)
            if st.form_submit_button("Make the set", key=_SETS_KEY + "typed.make"):
                _done(lambda: _typed(corpus, name, lines))
        with loaded, st.form(_SETS_KEY + "loaded", border=False):
            name = st.text_input("Name", key=_SETS_KEY + "loaded.name", max_chars=100)
            file = st.file_uploader(
                "Queries (a line each), or judgments as CSV or JSONL",
                type=["txt", "csv", "jsonl"],
                key=_SETS_KEY + "loaded.file",
            )
            if st.form_submit_button("Load", key=_SETS_KEY + "loaded.load"):
                if file is None:
                    st.html(cards.alert("", "No file is chosen", "Choose one, then press Load"))
                else:
                    _done(lambda: _loaded(corpus, name or Path(file.name).stem, file.name, file.getvalue()))
        with made, st.form(_SETS_KEY + "made", border=False):
            st.text(
                "Titles, headings, rare phrases and questions of your documents become queries, and what they were made of is "
                "the answer. They are easier than people's questions: a start, not a verdict."
            )
            name = st.text_input("Name", value="known-items", key=_SETS_KEY + "made.name", max_chars=100)
            count = st.number_input("Queries", 1, 1000, KNOWN_ITEMS, key=_SETS_KEY + "made.count")
            if st.form_submit_button("Make them", key=_SETS_KEY + "made.make"):
                _done(lambda: _known(corpus, name, int(count)))


def _done(action: Callable[[], str]) -> None:
    """Run an action that gives a sentence; say it after the page has seen what changed, or say the error."""
    try:
        with st.spinner("One moment"):
            said = action()
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return
    state.tell(said)
    st.rerun()


def _typed(corpus: Corpus, name: str, lines: str) -> str:
    made = corpus.judging.sets.create(name, _lines(lines), "Typed on the Judge page", resources.person())
    st.session_state[_CHOSEN] = made
    return f"The set {made} has {len(corpus.judging.queries(made))} queries."


def _loaded(corpus: Corpus, name: str, file_name: str, data: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("upload" + Path(file_name).suffix.lower())
        path.write_bytes(data)
        if exchange.holds_judgments(path):
            report = exchange.import_judgments(corpus.judging, path, name)
            st.session_state[_CHOSEN] = report.name
            return f"{report.name}: {report.judgments} judgments, {report.new} of them new."
        total, new = exchange.import_queries(corpus.judging, path, name)
        st.session_state[_CHOSEN] = name
    return f"{name}: {total} queries, {new} of them new."


def _known(corpus: Corpus, name: str, count: int) -> str:
    total = make_known_item_set(corpus.judging, corpus.engine, name, count)
    st.session_state[_CHOSEN] = name
    return f"{name}: {total} queries with their answers. Measure with it at once: `workbench eval {shell(name)} {where(corpus)}`"


_ROUND, _SAID = "wb.judge.round", "wb.judge.said"
_NOTE = PREFIX + "judge.note"


def draw(corpus: Corpus) -> None:
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
            st.caption(f"Set **{label(choice.name)}**, judged by {label(choice.judge)}")
            st.button("Choose another set", key=PREFIX + "judge.leave", on_click=_leave, type="tertiary")
        _judge(corpus, choice)
        return
    chosen = draw_sets(corpus, person)
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
    st.html(asked_html(shown, number, len(made.queries), graded, candidates))
    st.html(candidate_html(shown))
    _buttons(corpus, shown)


def _buttons(corpus: Corpus, shown: Shown) -> None:
    target = (shown.query.query_id, shown.chunk.chunk_id)
    with st.container(horizontal=True):
        for grade in GRADES:
            st.button(
                GRADE_NAMES[grade].capitalize(),
                key=f"{PREFIX}judge.grade.{grade}",
                shortcut=str(grade),
                on_click=_grade,
                args=(corpus, *target, grade),
            )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Note",
            key=_NOTE,
            placeholder="why, if you like; kept with the grade",
            max_chars=1000,
            width="stretch",
            help="Type it, press Tab, then the grade.",
        )
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
    off = made.total - made.done
    if off > 0:
        st.subheader(f"{off} skipped {'passage is' if off == 1 else 'passages are'} left")
        st.button("Judge them now", key=PREFIX + "judge.take-up", on_click=_take_up, type="primary", shortcut="N")
    else:
        st.subheader("All passages of this pool are judged")
    st.html(counts_html(made.grades(), GRADE_NAMES))
    agreement_of(corpus, made.choice.name)
    st.markdown("What to do next: measure plans with these judgments on the [Tune](tune) page, or in a terminal:")
    name, place = shell(made.choice.name), where(corpus)
    st.code(
        f"workbench eval {name} --plan default --plan rrf {place}\nworkbench judge export {name} judgments.jsonl {place}",
        language=None,
        wrap_lines=True,
    )
    st.button("Undo", key=PREFIX + "judge.undo", shortcut="U", on_click=_undo, args=(corpus,))
