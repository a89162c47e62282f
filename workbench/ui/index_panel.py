"""Start an indexing run from the page, watch it, stop it, and read what came of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from workbench import settings
from workbench.errors import WorkbenchError
from workbench.ingest.rules import FileRules, load_rules
from workbench.records import Principal
from workbench.store.access.mask import load_policy
from workbench.store.access.visibility import SeeAll, may_know
from workbench.ui import cards, controls, corpus_parts, index_runs, resources, sign_in
from workbench.ui.index_runs import DONE, FAILED, STOPPED, Status
from workbench.ui.text import plain, visible

_KEY = controls.PREFIX + "index."
_SENTENCE = "wb.index.said"
LEVELS = ("normal", "public", "internal", "confidential", "restricted")
STEPS = {
    "walk": "Looking for files",
    "compare": "Comparing with what is indexed",
    "read": "Reading and cutting",
    "embed": "Embedding",
    "tables": "Writing the tables",
    "text": "Writing the text for grep",
    "vectors": "Writing the vectors",
    "graph": "Building the approximate vector index",
    "words": "Building the word index",
    "dictionary": "Building the dictionary for grep",
    "publish": "Publishing",
}


def draw(corpus: Path, principal: Principal | None, roots: Sequence[str] = ()) -> None:
    """Draw the run that goes on, or else the form to start one and what came of the last."""
    said = index_runs.status(corpus)
    if said is not None and not _own(said, principal):
        if said.alive:
            st.text("Another run is going on. Come back when it is done.")
            return
        said = None
    if said is not None and said.alive:
        _live(str(corpus))
        return
    _form(corpus, principal, roots, said is not None)
    for sentence in st.session_state.pop(_SENTENCE, ()):
        st.html(cards.alert("", *sentence))
    if said is not None:
        _ended(said, corpus, principal)


def _own(said: Status, principal: Principal | None) -> bool:
    """Whether a run is of who looks: where people sign in, of their tenant."""
    return not sign_in.on() or (principal is not None and said.asked.tenant == principal.tenant)


# --- the run that goes on -------------------------------------------------------------------------------------------------


@st.fragment(run_every=0.7)
def _live(corpus: str) -> None:
    """How far it is; when it is over, the page is drawn anew and finds the new generation."""
    said = index_runs.status(Path(corpus))
    if said is None or not said.alive or not _own(said, resources.local_principal()):
        st.rerun()
    name = STEPS.get(said.step, "Starting")
    share = min(said.done / said.total, 1.0) if said.total else 0.0
    st.html(f'<p class="wb-note" role="status">{visible(progress_text(said, time.time()))}</p>')
    st.progress(share, text=f"{name}: {said.done:,} of {said.total:,}" if said.total else f"{name}…")
    asked = index_runs.stopping(Path(corpus))
    st.button(
        "Stopping…" if asked else "Stop", key=_KEY + "stop", on_click=_stop, args=(corpus,), disabled=asked,
        help="Stops at the next file or batch. The corpus stays as it was; vectors that were made are kept.",
    )  # fmt: skip
    st.caption("You can leave this page: the run goes on.")


def progress_text(said: Status, now: float) -> str:
    """What is being done, since when, how fast, and how long it will take."""
    parts = [f"Indexing {plain(', '.join(said.asked.paths), 300)}", f"for {_duration(now - said.started)}"]
    if said.rate > 0 and said.total:
        parts.append(f"{said.rate:,.1f} a second")
    if said.seconds_left is not None and said.total:
        parts.append(f"about {_duration(said.seconds_left)} left in this step")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 90 else f"{whole // 60} min" if whole < 5400 else f"{whole / 3600:.1f} h"


def _stop(corpus: str) -> None:
    said = index_runs.status(Path(corpus))
    if sign_in.may_index() and said is not None and _own(said, resources.local_principal()):
        index_runs.stop(Path(corpus))


# --- the form -----------------------------------------------------------------------------------------------------------------


def _form(corpus: Path, principal: Principal | None, roots: Sequence[str], again: bool) -> None:
    with st.form(_KEY + "form", border=True):
        st.text_area(
            "Files and folders, one a line", key=_KEY + "paths", height=90, placeholder="/home/me/documents",
            value="\n".join(roots) if roots and not again else None,
            help="Paths of the machine that this app runs on. A folder is a source: what vanished in it is removed too. "
            "What did not change is not embedded again.",
        )  # fmt: skip
        one, two, three = st.columns(3)
        one.text_input("Collection", value="docs", key=_KEY + "collection", help="The named part of the corpus.")
        two.selectbox("Sensitivity", LEVELS, key=_KEY + "sensitivity", help="Who sees it is for the corpus's policy.")
        three.text_input(
            "Roles", key=_KEY + "roles", placeholder="everyone", help="Roles that may see them, separated by commas."
        )
        st.checkbox("Hidden files too", key=_KEY + "hidden")
        st.form_submit_button(
            "Start indexing", key=_KEY + "start", type="primary", on_click=_start, args=(str(corpus), principal)
        )
    st.caption(
        f"A new corpus is made with the encoder {plain(str(settings.get('encoder')), 100)} (the setting encoder); one that is "
        "there keeps its own."
    )


def _start(corpus: str, principal: Principal | None) -> None:
    """Check what was typed and start; what cannot be is said in the place of the last run."""
    session = st.session_state
    try:
        if not sign_in.may_index():
            return
        below = sign_in.indexing_roots()
        paths = index_runs.check_paths(str(session[_KEY + "paths"] or ""), Path(corpus), below)
        asked = index_runs.asked_of(
            paths,
            str(session[_KEY + "collection"] or ""),
            principal,
            roles=[r.strip() for r in str(session[_KEY + "roles"] or "").split(",") if r.strip()],
            sensitivity=str(session[_KEY + "sensitivity"]),
            hidden=bool(session[_KEY + "hidden"]),
            below=below,
        )
        index_runs.start(Path(corpus), asked)
    except WorkbenchError as exc:
        session[_SENTENCE] = [(exc.message, exc.remedy)]


def _ended(said: Status, corpus: Path, principal: Principal | None) -> None:
    """What came of the last run that was started here."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(said.ended or said.started))
    paths = plain(", ".join(said.asked.paths), 300)
    st.html('<h4 class="wb-chart">The last run from this page</h4>')
    if said.state == FAILED:
        st.html(cards.alert(f"{when}: indexing {paths} failed", said.reason, said.remedy))
        return
    if said.state == STOPPED:
        st.text(f"{when}: indexing {paths} was stopped. The corpus is as it was; start again to go on.")
        return
    if said.state != DONE:
        return
    c = said.counts
    took = _duration(said.ended - said.started)
    st.text(
        f"{when}: {paths}. {c['found']:,} files found: {c['indexed']:,} indexed, {c['unchanged']:,} unchanged, "
        f"{c['skipped']:,} skipped, {c['failed']:,} failed; {c['removed']:,} removed. {c['embedded']:,} texts embedded and "
        f"{c['reused']:,} reused in {took}. The corpus now has {c['documents']:,} documents in {c['chunks']:,} chunks."
    )
    for warning in said.warnings:
        st.html(cards.alert("", warning, ""))
    st.html('<p><a class="wb-button" href="./" target="_self">Search it</a></p>')
    files = said.files
    if sign_in.on():
        rules, flags = load_rules(corpus), FileRules((said.asked.collection,), said.asked.tenant, said.asked.roles)
        policy = load_policy(corpus) or SeeAll()
        files = tuple(f for f in files if may_know(rules.for_file(f[0], flags).access, principal, policy))
    if files:
        rows = [(status, path, reason, remedy) for path, status, reason, remedy in files]
        st.html(corpus_parts.table(("", "File", "Reason", "What to do"), rows, name="Files that were not indexed"))
