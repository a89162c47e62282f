"""The first half of the Judge page: query sets to choose, make or change, the plans to pool, and how far judges agree."""

from __future__ import annotations

import functools
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import UsageError, WorkbenchError
from workbench.judgments import exchange
from workbench.judgments.agreement import agreement
from workbench.judgments.judging import graded_by
from workbench.judgments.known_items import make_known_item_set
from workbench.ui import cards, judge_machine, resources, state
from workbench.ui.controls import PREFIX
from workbench.ui.judge_round import DEPTH, PLANS, Choice
from workbench.ui.text import plain

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_KEY = PREFIX + "judge."
_CHOSEN = "wb.judge.chosen"
KNOWN_ITEMS = 50
POOL_HELP = (
    "Passages are collected from the first results of every plan here, shuffled, and shown without saying which plan found "
    "them. The more different the plans, the fairer the judgments."
)


def label(text: str) -> str:
    """Foreign text in Markdown, every sign taken literally."""
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|~$:<>" else c for c in plain(text, 80))


def shell(word: str) -> str:
    """A word as a shell takes it."""
    return shlex.quote(word)


def where(corpus: Corpus) -> str:
    """The options that open this corpus for this person in a terminal."""
    words = ["--corpus", plain(str(corpus.path), 300)]
    if corpus.principal is not None:
        words += ["--tenant", corpus.principal.tenant] if corpus.principal.tenant else []
        words += [word for role in corpus.principal.roles for word in ("--role", role)]
    return shlex.join(words)


def draw(corpus: Corpus, person: str) -> Choice | None:
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
        st.session_state[_KEY + "set"] = made
    left, right = st.columns([3, 2], gap="medium")
    with left:
        name = st.selectbox("Query set", list(names), format_func=lambda n: names[n], key=_KEY + "set")
        picked = st.multiselect(
            "Plans to pool", list(plans), default=[p for p in PLANS if p in plans], format_func=lambda p: plans[p],
            key=_KEY + "plans", help=POOL_HELP,
        )  # fmt: skip
    with right:
        judge = st.text_input(
            "Judged by", value=person, max_chars=100, key=_KEY + "judge", disabled="is_logged_in" in st.user
        )  # fmt: skip
        depth = st.number_input(
            "Results of each plan", 1, 100, DEPTH, key=_KEY + "depth",
            help="How many of each plan's first results are judged. 10 is enough for nDCG@10.",
        )  # fmt: skip
    ready = bool(name and picked and judge.strip())
    if not picked:
        st.caption("Choose at least one plan.")
    pressed = st.button("Start judging", type="primary", disabled=not ready, key=_KEY + "start")
    if name:
        agreement_of(corpus, name)
        judge_machine.draw(corpus, name, tuple(picked), int(depth))
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
    with st.expander("Change this set", key=_KEY + "change"):
        added, renamed, downloaded, deleted = st.tabs(["Add queries", "Rename", "Download", "Delete"])
        with added, st.form(_KEY + "add", border=False, clear_on_submit=True):
            lines = st.text_area("Queries, one per line", key=_KEY + "add.lines", height=120)
            if st.form_submit_button("Add", key=_KEY + "add.add"):
                _done(lambda: _added(corpus, name, lines))
        with renamed, st.form(_KEY + "rename", border=False, clear_on_submit=True):
            new = st.text_input("New name", key=_KEY + "rename.name", max_chars=100)
            if st.form_submit_button("Rename", key=_KEY + "rename.rename"):
                _done(lambda: _renamed(corpus, name, new))
        with downloaded:
            st.text("The queries and judgments, with passages, judges and notes; Load a file reads both forms.")
            for form in ("jsonl", "csv"):
                st.download_button(
                    f"Download {form.upper()}", functools.partial(_exported, corpus, name, form), f"{name}.{form}",
                    key=f"{_KEY}download.{form}", on_click="ignore",
                )  # fmt: skip
        with deleted:
            st.text(f"Deletes {shown}. What is in the notes and saved searches stays.")
            sure = st.checkbox("Delete the queries and their judgments", key=f"{_KEY}delete.sure.{name}")
            if st.button("Delete the set", key=_KEY + "delete.delete", disabled=not sure):
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
    with st.expander("Make a query set", expanded=expanded, key=_KEY + "make"):
        typed, loaded, made = st.tabs(["Type queries", "Load a file", "From my documents"])
        with typed, st.form(_KEY + "typed", border=False):
            name = st.text_input("Name", key=_KEY + "typed.name", max_chars=100)
            lines = st.text_area("Queries, one per line", key=_KEY + "typed.lines", height=160)
            if st.form_submit_button("Make the set", key=_KEY + "typed.make"):
                _done(lambda: _typed(corpus, name, lines))
        with loaded, st.form(_KEY + "loaded", border=False):
            name = st.text_input("Name", key=_KEY + "loaded.name", max_chars=100)
            file = st.file_uploader(
                "Queries (a line each), or judgments as CSV or JSONL",
                type=["txt", "csv", "jsonl"],
                key=_KEY + "loaded.file",
            )
            if st.form_submit_button("Load", key=_KEY + "loaded.load"):
                if file is None:
                    st.html(cards.alert("", "No file is chosen", "Choose one, then press Load"))
                else:
                    _done(lambda: _loaded(corpus, name or Path(file.name).stem, file.name, file.getvalue()))
        with made, st.form(_KEY + "made", border=False):
            st.text(
                "Titles, headings, rare phrases and questions of your documents become queries, and what they were made of is "
                "the answer. They are easier than people's questions: a start, not a verdict."
            )
            name = st.text_input("Name", value="known-items", key=_KEY + "made.name", max_chars=100)
            count = st.number_input("Queries", 1, 1000, KNOWN_ITEMS, key=_KEY + "made.count")
            if st.form_submit_button("Make them", key=_KEY + "made.make"):
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
