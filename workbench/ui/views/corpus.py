"""The Corpus page: what is indexed and how it is cut, what could not be indexed and why, and a run started from here.

It works without a corpus too: then it is where the first one is made. Which part is shown is in the address (`part`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench import settings
from workbench.charts import token_figure
from workbench.errors import CorpusNotFound, WorkbenchError
from workbench.ingest.rules import FileRules, load_rules
from workbench.markup import plain, visible
from workbench.records import Chunk, Principal
from workbench.store.access.redaction import load_policy
from workbench.store.access.visibility import SeeAll, may_know
from workbench.store.catalogue import Catalogue
from workbench.ui import auth, resources, runs
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, tables
from workbench.ui.runs import DONE, FAILED, STOPPED, Status

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_KEY = controls.PREFIX + "index."
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
    "publish": "Publishing",
}


def draw_runs(corpus: Path, principal: Principal | None, roots: Sequence[str] = ()) -> None:
    run = runs.status(corpus)
    if run is not None and not _own(run, principal):
        if run.alive:
            st.text("Another run is going on. Come back when it is done.")
            return
        run = None
    if run is not None and run.alive:
        _live(str(corpus))
        return
    _form(corpus, principal, roots, run is not None)
    if run is not None:
        _ended(run, corpus, principal)


def _own(run: Status, principal: Principal | None) -> bool:
    return not auth.on() or (principal is not None and run.request.tenant == principal.tenant)


# --- the run that goes on -------------------------------------------------------------------------------------------------


@st.fragment(run_every=0.7)
def _live(corpus: str) -> None:
    """How far it is; when it is over, the page is drawn again and finds the new generation."""
    run = runs.status(Path(corpus))
    if run is None or not run.alive or not _own(run, resources.local_principal()):
        st.rerun()
    name = STEPS.get(run.step, "Starting")
    share = min(run.done / run.total, 1.0) if run.total else 0.0
    st.html(f'<p class="wb-note" role="status">{visible(progress_text(run, time.time()))}</p>')
    st.progress(share, text=f"{name}: {run.done:,} of {run.total:,}" if run.total else f"{name}…")
    stopping = runs.stopping(Path(corpus))
    st.button(
        "Stopping…" if stopping else "Stop",
        key=_KEY + "stop",
        on_click=_stop,
        args=(corpus,),
        disabled=stopping,
        help="Stops at the next file or batch. The corpus stays as it was; vectors that were made are kept.",
    )
    st.caption("You can leave this page: the run goes on.")


def progress_text(run: Status, now: float) -> str:
    parts = [f"Indexing {plain(', '.join(run.request.paths), 300)}", f"for {_duration(now - run.started)}"]
    if run.rate > 0 and run.total:
        parts.append(f"{run.rate:,.1f} a second")
    if run.seconds_left is not None and run.total:
        parts.append(f"about {_duration(run.seconds_left)} left in this step")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 90 else f"{whole // 60} min" if whole < 5400 else f"{whole / 3600:.1f} h"


def _stop(corpus: str) -> None:
    run = runs.status(Path(corpus))
    if auth.may_index() and run is not None and _own(run, resources.local_principal()):
        runs.stop(Path(corpus))


# --- the form -----------------------------------------------------------------------------------------------------------------


def _form(corpus: Path, principal: Principal | None, roots: Sequence[str], again: bool) -> None:
    with st.form(_KEY + "form", border=True):
        st.text_area(
            "Files and folders, one per line",
            key=_KEY + "paths",
            height=90,
            placeholder="/home/me/documents",
            value="\n".join(roots) if roots and not again else None,
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
        st.form_submit_button(
            "Start indexing", key=_KEY + "start", type="primary", on_click=_start, args=(str(corpus), principal)
        )
    st.caption(
        f"A new corpus is made with the encoder {plain(str(settings.get('encoder')), 100)} (the setting encoder); one that is "
        "there keeps its own."
    )


def _start(corpus: str, principal: Principal | None) -> None:
    session = st.session_state
    try:
        if not auth.may_index():
            return
        below = auth.indexing_roots()
        paths = runs.check_paths(str(session[_KEY + "paths"] or ""), Path(corpus), below)
        request = runs.request_of(
            paths,
            str(session[_KEY + "collection"] or ""),
            principal,
            roles=[r.strip() for r in str(session[_KEY + "roles"] or "").split(",") if r.strip()],
            sensitivity=str(session[_KEY + "sensitivity"]),
            hidden=bool(session[_KEY + "hidden"]),
            below=below,
        )
        runs.start(Path(corpus), request)
    except WorkbenchError as exc:
        app_state.notice(str(exc))


def _ended(run: Status, corpus: Path, principal: Principal | None) -> None:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.ended or run.started))
    paths = plain(", ".join(run.request.paths), 300)
    st.html('<h4 class="wb-chart">The last run from this page</h4>')
    if run.state == FAILED:
        st.html(cards.alert(f"{when}: indexing {paths} failed", run.reason, run.remedy))
        return
    if run.state == STOPPED:
        st.text(f"{when}: indexing {paths} was stopped. The corpus is as it was; start again to go on.")
        return
    if run.state != DONE:
        return
    c = run.counts
    took = _duration(run.ended - run.started)
    st.text(
        f"{when}: {paths}. {c['found']:,} files found: {c['indexed']:,} indexed, {c['unchanged']:,} unchanged, "
        f"{c['skipped']:,} skipped, {c['failed']:,} failed; {c['removed']:,} removed. {c['embedded']:,} texts embedded and "
        f"{c['reused']:,} reused in {took}. The corpus now has {c['documents']:,} documents in {c['chunks']:,} chunks."
    )
    for warning in run.warnings:
        st.html(cards.alert("", warning, ""))
    st.html('<p><a class="wb-button" href="./" target="_self">Search it</a></p>')
    files = run.files
    if auth.on():
        rules, flags = load_rules(corpus), FileRules((run.request.collection,), run.request.tenant, run.request.roles)
        policy = load_policy(corpus) or SeeAll()
        files = tuple(f for f in files if may_know(rules.for_file(f[0], flags).access, principal, policy))
    if files:
        rows = [(status, path, reason, remedy) for path, status, reason, remedy in files]
        st.html(tables.table(tables.REFUSED, rows, name="Files that were not indexed"))


PARTS = {
    "overview": "Overview",
    "chunks": "Chunks",
    "refused": "Not indexed",
    "runs": "Runs and generations",
    "index": "Index",
}
"""Each part by its name in the address, with its title."""
ROWS = 50
_CORPUS_KEY = controls.PREFIX + "corpus."


def draw() -> None:
    path = resources.corpus_path()
    try:
        corpus = resources.corpus()
    except CorpusNotFound:
        if auth.may_index():
            st.subheader("There is no corpus yet")
            st.text("A corpus holds what you have indexed. Make one here: name the folder with your documents.")
            draw_runs(path, resources.local_principal())
        else:
            resources.corpus_or_help()
        return
    _DRAW[_part()](corpus)


def _part() -> str:
    value = app_state.page_value("part")
    value = value if value in PARTS else next(iter(PARTS))
    st.segmented_control(
        "Part",
        list(PARTS),
        required=True,
        default=value,
        format_func=lambda p: PARTS[p],
        label_visibility="collapsed",
        **controls.bound("corpus.part", value, lambda part: app_state.set_page_values(part=part)),
    )
    return value


# --- parts ------------------------------------------------------------------------------------------------------------


def _overview(corpus: Corpus) -> None:
    info = resources.info(corpus)
    if not info["documents"]:
        st.subheader("There is nothing in this corpus that you may see")
        st.text("Index a folder, or look with other roles.")
        return
    engine = corpus.engine
    scope = engine.records.scope(corpus.principal, None, ())
    catalogue = Catalogue(engine.opened)
    encoders = []
    for e in info["encoders"]:
        name = "Encoder" if e["name"] == info["encoder"] else f"Encoder of vector:{e['name']}"
        encoders.append((name, f"{e['name']}, {e['dim']} dimensions, {e['runtime']}"))
    copies = f", and {info['copies']:,} {'copy' if info['copies'] == 1 else 'copies'} of them" if info["copies"] else ""
    facts = [
        ("Documents", f"{info['documents']:,}{copies}"),
        ("Chunks and whole-document records", f"{info['records']:,}"),
        ("Size of the originals", tables.size(info["bytes"])),
        ("Generation", str(info["generation"])),
        ("Digest", str(info["digest"])),
        *(encoders or [("Encoder", "none")]),
    ]
    st.html(tables.table(("This corpus", ""), facts, name="Facts"))
    columns = st.columns(4, gap="medium")
    counts = (
        ("Type", info["types"], "documents"),
        ("Language", info["languages"], "documents"),
        ("Collection", info["collections"], "chunks"),
        ("Sensitivity", catalogue.counts(scope, "sensitivity"), "documents"),
    )
    for column, (title, counted, what) in zip(columns, counts, strict=True):
        column.html(tables.counts_html(title, counted, what))
    st.html('<h4 class="wb-chart">Where it comes from</h4>')
    rows = []
    for s in engine.records.sources(scope):
        newest = s.modified.strftime("%Y-%m-%d") if s.modified else ""
        rows.append((s.path, s.kind, s.documents, s.chunks, tables.size(s.bytes), newest))
    heads = ("Source", "Kind", "Documents", "Chunks", "Size", "Newest file")
    st.html(tables.table(heads, rows, (2, 3, 4), name="Sources"))
    _tokens(catalogue, corpus)


@st.fragment
def _tokens(catalogue: Catalogue, corpus: Corpus) -> None:
    tokens = catalogue.tokens(corpus.engine.records.scope(corpus.principal, None, ()))
    if not len(tokens):
        return
    figure = token_figure(tokens, int(settings.get("chunk_tokens")))
    controls.chart(figure, _CORPUS_KEY + "tokens", "Number of chunks by their tokens.", "How long the chunks are")
    median = int(sorted(tokens.tolist())[len(tokens) // 2])
    st.caption(
        f"Half of the {len(tokens):,} chunks have at most {median:,} tokens, the longest has {int(tokens.max()):,}. The dashed "
        "line is the setting chunk_tokens, to which texts are cut when they are indexed."
    )


def _chunks(corpus: Corpus) -> None:
    words, condition = st.columns([3, 2], gap="small")
    help = "Chunks that hold these letters anywhere, whatever the case. To search by words or meaning, use the Search page."
    options: dict[str, Any] = {"key": _CORPUS_KEY + "words", "placeholder": "any letters", "max_chars": 500}
    part = words.text_input("Text, section or path", **options, help=help)
    help = "A condition on documents, as on the Search page. [Guide](guide?page=search#filters)"
    options = {
        "key": _CORPUS_KEY + "filter",
        "placeholder": "collection = 'docs' and type = 'markdown'",
        "max_chars": 2_000,
    }
    where = condition.text_input("Filter", **options, help=help)
    engine = corpus.engine
    try:
        scope = engine.records.scope(corpus.principal, where or None, ())
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return
    numbers = Catalogue(engine.opened).holding(scope, (part or "").strip(), engine.records)
    if not len(numbers):
        st.text("No chunk holds this: use fewer letters, or loosen the filter.")
        return
    pages = -(-len(numbers) // ROWS)
    page = st.pagination(pages, key=f"{_CORPUS_KEY}page-{len(numbers)}") if pages > 1 else 1
    shown = numbers[(page - 1) * ROWS : page * ROWS]
    st.caption(f"{len(numbers):,} chunks, {(page - 1) * ROWS + 1:,} to {(page - 1) * ROWS + len(shown):,} shown")
    paths = engine.records.columns(shown).paths
    rows: list[tuple[str, Chunk]] = [
        (path, row.chunk) for path, row in zip(paths, engine.records.rows(shown.tolist()), strict=True)
    ]
    st.html(tables.chunks_html(rows, app_state.current().to_params()))


def _refused(corpus: Corpus) -> None:
    counts, listed = Catalogue(corpus.engine.opened).refused(corpus.principal, tables.MOST_FILES)
    st.html(tables.refused_html(counts, listed))


def _runs(corpus: Corpus) -> None:
    jobs = corpus.jobs()
    st.html('<h4 class="wb-chart">Runs</h4>')
    if jobs.is_empty():
        st.text("No run was written down yet.")
    else:
        st.dataframe(jobs, key=_CORPUS_KEY + "jobs", hide_index=True)
    st.html('<h4 class="wb-chart">Generations</h4>')
    if corpus.engine.records.scope(corpus.principal, None, ()).visible_documents is not None:
        st.text(f"This page has {corpus.engine.generation} open; the others are for who sees the whole corpus.")
        return
    st.html(tables.generations_html(corpus.path, corpus.engine.generation))
    st.caption(
        "A generation is one immutable build. A run makes a new one beside the others and swaps; an old one goes when nobody "
        "has it open. This page follows the one that answers."
    )


def _index(corpus: Corpus) -> None:
    if not auth.may_index():
        st.text(
            "Runs are started by the local owner of this machine, or by who holds the role of the setting app_indexing_role."
        )
        st.code("workbench index PATH", language=None)
        return
    engine = corpus.engine
    draw_runs(corpus.path, corpus.principal, engine.records.roots(engine.records.scope(corpus.principal, None, ())))


_DRAW = {"overview": _overview, "chunks": _chunks, "refused": _refused, "runs": _runs, "index": _index}
