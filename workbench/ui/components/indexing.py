"""Runs that write the corpus, on the page: the form and the drop zone that begin one, the question before documents are doubled,
a dry run, how far a run is, and how the last one ended."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench import settings
from workbench.errors import UsageError, WorkbenchError, counted
from workbench.ingest.rules import FileRules, load_rules
from workbench.markup import plain
from workbench.records import Principal
from workbench.store.access.redaction import load_policy
from workbench.store.access.visibility import SeeAll, may_know
from workbench.ui import auth, jobs, resources, runs
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, tables
from workbench.ui.runs import DONE, FAILED, STOPPED, Request, Status
from workbench.ui.state import callback

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.indexing.preview import IndexPreview

_KEY = controls.PREFIX + "index."
_ASKED, _DRY, _BEGUN = "wb.index.asked", "wb.index.dry", "wb.index.begun"
LEVELS = ("normal", "public", "internal", "confidential", "restricted")
MOST_UPLOADED_MB = 200
STEPS = {
    "write files": "Writing the demo's files",
    "walk": "Looking for files",
    "compare": "Comparing with what is indexed",
    "read": "Reading and cutting",
    "embed": "Embedding",
    "tables": "Writing the tables",
    "text": "Writing the text for grep",
    "vectors": "Writing the vectors",
    "graph": "Building the approximate vector index",
    "words": "Building the word index",
    "publish": "Publishing",
}
_VERBS = {runs.INDEX: "Indexing", runs.MOVE: "Moving", runs.REMOVE: "Removing", runs.DEMO: "Building the demo from"}


def _own(run: Status, principal: Principal | None) -> bool:
    return not auth.on() or (principal is not None and run.request.tenant == principal.tenant)


# --- a run that goes on -------------------------------------------------------------------------------------------------


def going_on(corpus: Path) -> bool:
    """Whether a run of the corpus is going on; then how far it is is drawn here."""
    run = runs.status(corpus)
    if run is None or not run.alive:
        if st.session_state.pop(_BEGUN, False) and run is not None:
            app_state.message(_outcome(run))
        return False
    if _own(run, resources.local_principal()):
        _live(corpus)
    else:
        st.text("Another run is going on. Come back when it is done.")
    return True


def _live(corpus: Path) -> None:
    """How far it is; when it is over, the page is drawn again and finds the new generation."""
    jobs.follow("run", functools.partial(_report, corpus))
    stopping = runs.stopping(corpus)
    st.button(
        "Stopping…" if stopping else "Stop the run",
        key=_KEY + "stop",
        on_click=_stop,
        args=(corpus,),
        disabled=stopping,
        help="Stops at the next file or batch. The corpus stays as it was; vectors that were made are kept.",
    )
    st.caption("You can leave this page: the run goes on.")


def _report(corpus: Path) -> jobs.Report:
    run = runs.status(corpus)
    if run is None or not run.alive:
        return jobs.Report("", 1.0, False)
    name, counts = STEPS.get(run.step, "Starting"), f": {run.done:,} of {run.total:,}" if run.total else "…"
    return jobs.Report(f"{progress_text(run, time.time())}. {name}{counts}", jobs.share(run.done, run.total), True)


def _about(request: Request) -> str:
    paths = plain(", ".join(request.paths), 300) if len(request.paths) < 4 else counted(len(request.paths), "file")
    return f"{paths} to {request.collection}" if request.action == runs.MOVE else paths


def progress_text(run: Status, now: float) -> str:
    parts = [f"{_VERBS[run.request.action]} {_about(run.request)}", f"for {_duration(now - run.started)}"]
    if run.rate > 0 and run.total:
        parts.append(f"{run.rate:,.1f} a second")
    if run.seconds_left is not None and run.total:
        parts.append(f"about {_duration(run.seconds_left)} left in this step")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 90 else f"{whole // 60} min" if whole < 5400 else f"{whole / 3600:.1f} h"


def _stop(corpus: Path) -> None:
    run = runs.status(corpus)
    if auth.may_index() and run is not None and _own(run, resources.local_principal()):
        runs.stop(corpus)


@callback
def begin(corpus: Path, request: Request) -> None:
    st.session_state.pop(_ASKED, None)
    st.session_state.pop(_DRY, None)
    if auth.may_index():
        runs.start(corpus, request)
        st.session_state[_BEGUN] = True


# --- what is asked for --------------------------------------------------------------------------------------------------


def draw(path: Path, corpus: Corpus | None, principal: Principal | None, roots: Sequence[str] = ()) -> None:
    """The form, the drop zone, and how the last run ended; `corpus` is None where there is none yet."""
    run = runs.status(path)
    run = run if run is not None and _own(run, principal) else None
    last = run.request.paths if run is not None and run.request.action == runs.INDEX else roots
    _form(path, corpus, principal, "\n".join(last))
    _question(path)
    _dry_run(path, principal)
    _drop_zone(path, corpus, principal)
    if run is not None:
        _ended(run, path, principal)


def _form(path: Path, corpus: Corpus | None, principal: Principal | None, roots: str) -> None:
    with st.form(_KEY + "form", border=True):
        st.text_area(
            "Files and folders, one per line",
            key=_KEY + "paths",
            height=90,
            placeholder="/home/me/documents",
            value=roots or None,
            help="Paths of the machine that this app runs on. A folder is a source: what vanished in it is removed too. "
            "What did not change is not embedded again.",
        )
        one, two, three = st.columns(3)
        one.text_input("Collection", value="docs", key=_KEY + "collection", help="The named part of the corpus.")
        two.selectbox("Sensitivity", LEVELS, key=_KEY + "sensitivity", help="Who sees it is for the corpus's policy.")
        three.text_input(
            "Roles", key=_KEY + "roles", placeholder="everyone", help="Roles that may see them, separated by commas."
        )
        st.checkbox("Include hidden files", key=_KEY + "hidden")
        with st.container(horizontal=True):
            own: dict[str, Any] = {"on_click": _start, "args": (path, corpus, principal)}
            st.form_submit_button("Start indexing", key=_KEY + "start", type="primary", **own)
            help = "Says what would be added, changed and removed, and changes nothing."
            st.form_submit_button("Dry run", key=_KEY + "dry", on_click=_try, args=(path, principal), help=help)
    encoder = plain(str(settings.get("encoder")), 100)
    if corpus is None:
        st.caption(f"The new corpus is made with the encoder {encoder} (the setting encoder).")


def _asked(path: Path, principal: Principal | None) -> Request:
    """What the form asks for. Raises UsageError."""
    session, below = st.session_state, auth.indexing_roots()
    return runs.request_of(
        runs.check_paths(str(session[_KEY + "paths"] or ""), path, below),
        str(session[_KEY + "collection"] or ""),
        principal,
        roles=[r.strip() for r in str(session[_KEY + "roles"] or "").split(",") if r.strip()],
        sensitivity=str(session[_KEY + "sensitivity"]),
        hidden=bool(session[_KEY + "hidden"]),
        below=below,
    )


@callback
def _start(path: Path, corpus: Corpus | None, principal: Principal | None) -> None:
    from workbench.indexing.preview import doubles

    if not auth.may_index():
        return
    request, held = _asked(path, principal), {}
    if corpus is not None:
        records, viewer = corpus.engine.records, corpus.principal
        held = dict(doubles(request.paths, path, request.options, lambda f: records.may_know(f.access, f.path, viewer)))
    if held:
        st.session_state[_ASKED] = (request, held)
    else:
        begin(path, request)


def _question(path: Path) -> None:
    """Whether files that are in another collection already are to be moved, or added a second time."""
    if _ASKED not in st.session_state:
        return
    request, held = st.session_state[_ASKED]
    of = " and ".join(
        f"{counted(n, 'of these files is|of these files are')} in {name} already" for name, n in held.items()
    )
    with st.container(border=True, key=_KEY + "question"):
        st.markdown(f"**{cards.in_markdown(of, 300)}: move or add?**")
        st.caption("Added, they are in both, and every passage of them is found twice.")
        with st.container(horizontal=True):
            to = cards.in_markdown(request.collection)
            args: dict[str, Any] = {"on_click": begin, "args": (path, replace(request, move=True))}
            st.button(f"Move them to {to}", key=_KEY + "move", type="primary", **args)
            st.button(f"Add them to {to} too", key=_KEY + "add", on_click=begin, args=(path, request))
            st.button("Cancel", key=_KEY + "cancel", type="tertiary", on_click=st.session_state.pop, args=(_ASKED,))


# --- a dry run ----------------------------------------------------------------------------------------------------------


@callback
def _try(path: Path, principal: Principal | None) -> None:
    st.session_state.pop(_ASKED, None)
    if auth.may_index():
        st.session_state[_DRY] = jobs.Job(_looking(path, _asked(path, principal)))


def _looking(path: Path, request: Request) -> jobs.Work:
    def work(progress: Any, stop: Any) -> tuple[Request, IndexPreview]:
        from workbench.indexing import preview

        return request, preview(request.paths, path, request.options, progress=progress, abort=stop)

    return work


def _knowing(path: Path, request: Request, principal: Principal | None) -> Callable[[str], bool]:
    """Whether somebody may hear of a file, by its path below its root, that a run of theirs reads."""
    if principal is None:
        return lambda name: True
    rules, flags = load_rules(path), FileRules((request.collection,), request.tenant, request.roles)
    policy = load_policy(path) or SeeAll()
    return lambda name: may_know(rules.for_file(name, flags).access, principal, policy)


def _dry_run(path: Path, principal: Principal | None) -> None:
    found = jobs.watch(_DRY, _KEY + "dry.")
    if found is None:
        return
    request, preview = found
    knows = _knowing(path, request, principal)
    shown = replace(preview, files=tuple(file for file in preview.files if knows(file.path)))
    add, change, gone = (shown.count(action) for action in ("new", "changed", "removed"))
    would = f"add {counted(add, 'file')}, change {change:,} and remove {gone:,}"
    rest = f"{shown.count('unchanged'):,} stay as they are, {shown.count('skipped') + shown.count('failed'):,} are left out"
    size = tables.size(shown.read_bytes)
    st.html(cards.note(f"A run would {would}; {rest}. {size} would be read."))
    if shown.elsewhere and _ASKED not in st.session_state:
        st.session_state[_ASKED] = (request, dict(shown.elsewhere))
        _question(path)
    listed = [(f.action.value, f.path, f.reason, f.remedy) for f in shown.files if f.action != "unchanged"]
    with st.expander(f"The {counted(len(listed), 'file')}") if listed else st.container():
        if listed:
            st.html(tables.table(tables.REFUSED, listed[: tables.MOST_FILES], name="What would become of the files"))
            if len(listed) > tables.MOST_FILES:
                st.caption(f"The first {tables.MOST_FILES:,}; `workbench index PATH --dry-run --list` shows all.")


# --- files that are handed over -----------------------------------------------------------------------------------------


def _drop_zone(path: Path, corpus: Corpus | None, principal: Principal | None) -> None:
    own = auth.indexing_roots() is None
    with st.form(_KEY + "drop", clear_on_submit=True):
        files = st.file_uploader(
            "Or drop files here",
            accept_multiple_files=True,
            key=_KEY + "files",
            max_upload_size=MOST_UPLOADED_MB,
            help="They are copied to a folder of the machine that this app runs on, and indexed from there.",
        )
        one, two = st.columns(2)
        folder = one.text_input(
            "Keep them in",
            key=_KEY + "folder",
            placeholder="the corpus's own folder" if own else "a folder below those that you may index",
            help="A folder of this machine. Empty: the corpus keeps them itself." if own else None,
        )
        name = two.text_input("Collection", value="docs", key=_KEY + "uploaded-to")
        pressed = st.form_submit_button("Add the files", key=_KEY + "upload")
    if pressed:
        try:
            _keep([(file.name, file.getvalue()) for file in files or ()], folder or "", name or "", path, principal)
        except WorkbenchError as exc:
            st.html(cards.alert("Not added", exc.message, exc.remedy))
        else:
            st.rerun()


def _keep(
    files: Sequence[tuple[str, bytes]], folder: str, collection: str, path: Path, principal: Principal | None
) -> None:
    """Keep files and begin a run over them. Raises UsageError, CorpusLocked."""
    from workbench.indexing.uploads import keep_files

    below = auth.indexing_roots()
    if not auth.may_index() or not files:
        raise UsageError("There are no files", "Drop some on the box, or choose them")
    if below is not None and not (folder.strip() and runs.may_index(folder.strip(), below)):
        raise UsageError(
            f"{folder or 'The corpus itself'} is not below a folder that you may index", "Name one that is"
        )
    request = runs.request_of((), collection, principal, below=below)
    kept = keep_files(files, path, folder.strip() or None)
    begin(path, replace(request, paths=tuple(map(str, (one.absolute() for one in kept)))))


# --- how it ended -------------------------------------------------------------------------------------------------------


def _outcome(run: Status) -> str:
    """A run that is over, in a sentence or two."""
    about, verb = _about(run.request), _VERBS[run.request.action]
    if run.state == FAILED:
        return f"{verb} {about} failed: {run.reason}. {run.remedy}"
    if run.state == STOPPED:
        return f"{verb} {about} was stopped. The corpus is as it was; start again to go on."
    if run.request.action in (runs.MOVE, runs.REMOVE):
        changed = run.counts["removed"] + run.counts["indexed"]
        done = "moved" if run.request.action == runs.MOVE else "removed"
        where = (
            f" to {run.request.collection}"
            if done == "moved"
            else f" from {run.request.source}" * bool(run.request.source)
        )
        return f"{counted(changed, 'file')} {done}{where}. The corpus now has {counted(run.counts['documents'], 'document')}."
    c = run.counts
    return (
        f"{about}: {counted(c['found'], 'file')} found, {c['indexed']:,} indexed, {c['unchanged']:,} unchanged, "
        f"{c['skipped']:,} skipped, {c['failed']:,} failed; {c['removed']:,} removed. {c['embedded']:,} texts embedded and "
        f"{c['reused']:,} reused in {_duration(run.ended - run.started)}. The corpus now has {c['documents']:,} documents in "
        f"{c['chunks']:,} chunks."
    )


def _ended(run: Status, path: Path, principal: Principal | None) -> None:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.ended or run.started))
    st.html('<h3 class="wb-chart">The last run from this page</h3>')
    if run.state == FAILED:
        st.html(
            cards.alert(
                f"{when}: {_VERBS[run.request.action].lower()} {_about(run.request)} failed", run.reason, run.remedy
            )
        )
        return
    st.text(f"{when}: {_outcome(run)}")
    if run.state != DONE:
        return
    for warning in run.warnings:
        st.html(cards.alert("", warning, ""))
    st.page_link(app_state.page_of(""), label="Search it", icon=":material/search:")
    knows = _knowing(path, run.request, principal)
    if files := [file for file in run.files if knows(file[0])]:
        rows = [(status, name, reason, remedy) for name, status, reason, remedy in files]
        st.html(tables.table(tables.REFUSED, rows, name="Files that were not indexed"))
