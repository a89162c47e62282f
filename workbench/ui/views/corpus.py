"""The Corpus page: the documents as a table, the chunks, what could not be indexed and why, and the runs that change it all.

It works without a corpus too: then it is where the first one is made. Part, filter, order and page are in the address.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from workbench import settings
from workbench.charts import token_figure
from workbench.errors import CorpusNotFound, WorkbenchError, counted
from workbench.records import Chunk
from workbench.store.catalogue import SORTS, Refused, Row, rows_frame
from workbench.ui import auth, resources, runs
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, facets, indexing, tables, welcome
from workbench.ui.runs import Request
from workbench.ui.state import page_value, set_page_values

if TYPE_CHECKING:
    from workbench.corpus import Corpus

PARTS = {
    "overview": "Documents",
    "chunks": "Chunks",
    "refused": "Not indexed",
    "runs": "Runs and generations",
    "index": "Index",
}
"""Each part by its name in the address, with its title."""
ROWS = 50
DOCUMENTS = 100
FIELDS = ("type", "collection", "path", "year", "language")
_KEY = controls.PREFIX + "corpus."


def draw() -> None:
    path = resources.corpus_path()
    try:
        corpus = resources.corpus()
    except CorpusNotFound:
        welcome.draw()
        return
    part = _part()
    going_on = indexing.going_on(path)
    if part == "index" and going_on:
        return
    _DRAW[part](corpus)


def _part() -> str:
    value = page_value("part")
    value = value if value in PARTS else next(iter(PARTS))
    st.segmented_control(
        "Part",
        list(PARTS),
        required=True,
        default=value,
        format_func=lambda p: PARTS[p],
        label_visibility="collapsed",
        **controls.bound("corpus.part", value, lambda part: set_page_values(part=part)),
    )
    return value


def _narrowing(corpus: Corpus, letters: str, help: str) -> tuple[str, str]:
    """The boxes for letters and for a filter, which the documents and the chunks share: what is in them."""
    one, two = st.columns([2, 3], gap="small")
    text, where = page_value("text"), page_value("filter")
    bound = controls.bound("corpus.text", text, lambda value: set_page_values(text=value.strip(), row=""))
    one.text_input(letters, text, placeholder="any letters", max_chars=500, help=help, **bound)
    bound = controls.bound("corpus.filter", where, lambda value: set_page_values(filter=value.strip(), row=""))
    help = "A condition on documents, as on the Search page. [Guide](guide?page=search#filters)"
    options: dict[str, Any] = {"placeholder": facets.example(corpus), "max_chars": 2_000}
    two.text_input("Filter", where, help=help, **options, **bound)
    return text, where


def _paged(total: int, most: int) -> slice:
    pages = max(1, -(-total // most))
    value = page_value("row")
    page = min(int(value), pages) if value.isdecimal() and int(value) else 1
    if pages > 1:
        bound = controls.bound(f"corpus.row.{pages}", page, lambda chosen: set_page_values(row=str(chosen)))
        # Without a width it hides the second of two pages beside other controls.
        st.pagination(pages, default=page, width=min(44 * (pages + 2), 400), **bound)
    return slice((page - 1) * most, min(page * most, total))


# --- documents --------------------------------------------------------------------------------------------------------


def _documents(corpus: Corpus) -> None:
    info = resources.info(corpus)
    if not info["documents"]:
        st.subheader("There is nothing in this corpus that you may see")
        st.text("Index a folder, or look with other roles.")
        return
    _tiles(corpus, info)
    table, bars = st.columns([7, 2], gap="medium")
    try:
        with table:
            where = _table(corpus)
        with bars:
            facets.draw(corpus, where, FIELDS, lambda made: set_page_values(filter=made, row=""))
    except WorkbenchError as exc:
        table.html(cards.alert("", exc.message, exc.remedy))
    _sources(corpus)
    with controls.section("How long the chunks are", "corpus.tokens") as opened:
        if opened.open:
            _tokens(corpus)
    with controls.section("Encoders, generation and digest", "corpus.identity") as opened:
        if opened.open:
            _identity(info)


def _tiles(corpus: Corpus, info: Any) -> None:
    refused = sum(_left_out(corpus)[0].values())
    copies = f"{counted(info['copies'], 'copy|copies')} of others among them" if info["copies"] else None
    help = "Chunks, and whole documents where a collection holds those."
    with st.container(horizontal=True, key="wb-tiles"):
        st.metric("Documents", f"{info['documents']:,}", help=copies, border=True)
        st.metric("Chunks", f"{info['records']:,}", help=help, border=True)
        st.metric("Collections", f"{len(info['collections']):,}", border=True)
        st.metric("Originals", tables.size(info["bytes"]), border=True)
        st.metric("Not indexed", f"{refused:,}", help="Files that were skipped or failed.", border=True)


@resources.kept()
def _left_out(corpus: Corpus) -> tuple[dict[tuple[str, str], int], list[Refused]]:
    return resources.catalogue(corpus).refused(corpus.principal, tables.MOST_FILES)


@resources.kept(32)
def _found(corpus: Corpus, text: str, where: str, sort: str, down: bool) -> NDArray[np.int64]:
    scope = resources.scope(corpus, where)
    return resources.catalogue(corpus).documents(scope, corpus.engine.records, text, sort, down=down)


@resources.kept(32)
def _held(corpus: Corpus, text: str, where: str) -> NDArray[np.int64]:
    return resources.catalogue(corpus).holding(resources.scope(corpus, where), text, corpus.engine.records)


def _table(corpus: Corpus) -> str:
    """The table of documents; returns its filter. Raises FilterError."""
    text, where = _narrowing(corpus, "Path or title", "Documents whose path or title holds these letters.")
    sort, down = page_value("sort"), bool(page_value("down"))
    sort = sort if sort in SORTS else "path"
    numbers = _found(corpus, text, where, sort, down)
    with st.container(horizontal=True, vertical_alignment="bottom", key=_KEY + "order"):
        bound = controls.bound("corpus.sort", sort, lambda value: set_page_values(sort=value, row=""))
        st.selectbox("Sort by", list(SORTS), index=list(SORTS).index(sort), width=150, **bound)
        bound = controls.bound("corpus.down", down, lambda value: set_page_values(down="yes" if value else "", row=""))
        st.toggle("Descending", down, **bound)
        shown = _paged(len(numbers), DOCUMENTS)
    if not len(numbers):
        st.text("No document passes: use fewer letters, or loosen the filter.")
        return where
    page = numbers[shown].tolist()
    actions = st.container(horizontal=True, vertical_alignment="center", key=_KEY + "actions")
    rows = resources.catalogue(corpus).rows(page, corpus.engine.records)
    frame = rows_frame(rows).drop("place")
    event: Any = st.dataframe(
        frame,
        key=f"{_KEY}table-{corpus.engine.key}-{hash((*page,))}",
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        height=min(35 * (len(rows) + 1) + 3, 580),
        column_config={
            "path": st.column_config.TextColumn("Path", width=None),
            "title": st.column_config.TextColumn("Title", width="medium"),
            "type": st.column_config.TextColumn("Type", width="small"),
            "collections": st.column_config.ListColumn("Collections", width="small"),
            "chunks": st.column_config.NumberColumn("Chunks", format="localized", width="small"),
            "characters": st.column_config.NumberColumn("Characters", format="localized", width="small"),
            "modified": st.column_config.DatetimeColumn("Date", format="YYYY-MM-DD", width="small"),
        },
        alt="Documents",
    )
    with actions:
        _actions(corpus, [rows[at] for at in event.selection.rows if at < len(rows)])
        st.caption(f"{counted(len(numbers), 'document')}, {shown.start + 1:,} to {shown.stop:,} shown")
    return where


def _actions(corpus: Corpus, chosen: Sequence[Row]) -> None:
    """What can be done with the selected rows."""
    below = auth.indexing_roots() if auth.may_index() else ()
    may = auth.may_index() and all(runs.may_index(row.place, below) for row in chosen)
    busy = (run := runs.status(corpus.path)) is not None and run.alive
    if st.button("Open", key=_KEY + "open", disabled=len(chosen) != 1, icon=":material/description:"):
        _open(chosen[0])
    if auth.may_index():
        off = not chosen or not may or busy
        if st.button("Move…", key=_KEY + "move", disabled=off, icon=":material/drive_file_move:"):
            _move_dialog(corpus, chosen)
        if st.button("Remove…", key=_KEY + "remove", disabled=off, icon=":material/delete:"):
            _remove_dialog(corpus, chosen)
        if chosen and not may:
            st.caption("These are not below a folder that you may index.")
    st.caption(f"{counted(len(chosen), 'document')} selected" if chosen else "Tick rows to open or change them.")


def _open(row: Row) -> None:
    st.switch_page(app_state.page_of("document"), query_params={"path": row.path, **app_state.current().to_params()})


def _files(chosen: Sequence[Row]) -> tuple[str, ...]:
    """The files of some documents; says so where one of them holds more than the document."""
    places = tuple(dict.fromkeys(row.place for row in chosen))
    if any(not row.place.endswith("/" + row.path) for row in chosen):
        st.caption("Some of these are records of a file: all records of the file go with them.")
    return places


def _request(corpus: Corpus, paths: tuple[str, ...], **what: Any) -> None:
    principal = corpus.principal
    tenant = None if principal is None else principal.tenant
    indexing.begin(corpus.path, Request(paths, tenant=tenant, below=auth.indexing_roots(), **what))
    st.rerun()


@st.dialog("Move to another collection")
def _move_dialog(corpus: Corpus, chosen: Sequence[Row]) -> None:
    held = sorted({name for row in chosen for name in row.collections})
    places = _files(chosen)
    names = sorted(resources.info(corpus)["collections"])
    to = st.selectbox(
        f"Move {counted(len(chosen), 'document')} to",
        names,
        index=None,
        accept_new_options=True,
        key=_KEY + "to",
        placeholder="a collection, or the name of a new one",
    )
    source = st.selectbox("From", ["all of its collections", *held], key=_KEY + "from") if len(held) > 1 else ""
    st.caption("Nothing is read or embedded again.")
    if st.button("Move", key=_KEY + "moving", type="primary", disabled=not to):
        try:
            runs.request_of((), str(to), corpus.principal)
        except WorkbenchError as exc:
            st.html(cards.alert("", exc.message, exc.remedy))
            return
        _request(corpus, places, action=runs.MOVE, collection=str(to), source=source if source in held else "")


@st.dialog("Remove from the corpus")
def _remove_dialog(corpus: Corpus, chosen: Sequence[Row]) -> None:
    held = sorted({name for row in chosen for name in row.collections})
    places = _files(chosen)
    every = "the corpus"
    source = st.selectbox(f"Remove {counted(len(chosen), 'document')} from", [every, *held], key=_KEY + "out-of")
    st.caption("The files themselves stay. Indexing their folder again brings them back, without embedding them again.")
    if st.button("Remove", key=_KEY + "removing", type="primary"):
        _request(corpus, places, action=runs.REMOVE, source="" if source == every else source)


def _sources(corpus: Corpus) -> None:
    with controls.section("Where the documents come from", "corpus.sources") as opened:
        if not opened.open:
            return
        rows = []
        for s in corpus.engine.records.sources(resources.scope(corpus)):
            newest = s.modified.strftime("%Y-%m-%d") if s.modified else ""
            rows.append((s.path, s.kind, s.documents, s.chunks, tables.size(s.bytes), newest))
        heads = ("Source", "Kind", "Documents", "Chunks", "Size", "Newest file")
        st.html(tables.table(heads, rows, (2, 3, 4), name="Sources"))


def _identity(info: Any) -> None:
    facts = [("Generation", str(info["generation"])), ("Digest", str(info["digest"]))]
    for e in info["encoders"]:
        name = "Encoder" if e["name"] == info["encoder"] else f"Encoder of vector:{e['name']}"
        facts.append((name, f"{e['name']}, {e['dim']} dimensions, {e['runtime']}"))
    st.html(tables.table(("This corpus", ""), facts, name="Facts"))


def _tokens(corpus: Corpus) -> None:
    tokens = resources.catalogue(corpus).tokens(resources.scope(corpus))
    if not len(tokens):
        st.text("There are no chunks.")
        return
    figure = token_figure(tokens, int(settings.get("chunk_tokens")))
    controls.chart(figure, _KEY + "tokens", "Number of chunks by their tokens.")
    st.caption(
        f"Half of the {len(tokens):,} chunks have at most {int(np.median(tokens)):,} tokens, the longest has "
        f"{int(tokens.max()):,}. The dashed line is the setting chunk_tokens, to which texts are cut when they are indexed."
    )


# --- the other parts ----------------------------------------------------------------------------------------------------


def _chunks(corpus: Corpus) -> None:
    help = "Chunks that hold these letters anywhere, whatever the case. To search by words or meaning, use the Search page."
    text, where = _narrowing(corpus, "Text, section or path", help)
    engine = corpus.engine
    try:
        numbers = _held(corpus, text, where)
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return
    if not len(numbers):
        st.text("No chunk holds this: use fewer letters, or loosen the filter.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        place = _paged(len(numbers), ROWS)
        st.caption(f"{len(numbers):,} chunks, {place.start + 1:,} to {place.stop:,} shown")
    shown = numbers[place]
    paths = engine.records.columns(shown).paths
    rows: list[tuple[str, Chunk]] = [
        (path, row.chunk) for path, row in zip(paths, engine.records.rows(shown.tolist()), strict=True)
    ]
    st.html(tables.chunks_html(rows, app_state.current().to_params()))


def _refused(corpus: Corpus) -> None:
    st.html(tables.refused_html(*_left_out(corpus)))


def _runs(corpus: Corpus) -> None:
    jobs = corpus.jobs()
    st.html('<h3 class="wb-chart">Runs</h3>')
    if jobs.is_empty():
        st.text("No run was written down yet.")
    else:
        times = {
            n: st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm:ss") for n in ("Queued", "Started", "Ended")
        }
        st.dataframe(tables.headed(jobs), key=_KEY + "jobs", hide_index=True, column_config=times)
    st.html('<h3 class="wb-chart">Generations</h3>')
    if resources.scope(corpus).visible_documents is not None:
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
    indexing.draw(corpus.path, corpus, corpus.principal, corpus.engine.records.roots(resources.scope(corpus)))


_DRAW = {"overview": _documents, "chunks": _chunks, "refused": _refused, "runs": _runs, "index": _index}
