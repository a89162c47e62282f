"""The Corpus page: what is indexed and how it is cut, what could not be indexed and why, and a run started from here.

It works without a corpus too: then it is where the first one is made. Which part is shown is in the address (`part`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench import settings
from workbench.charts import token_figure
from workbench.errors import CorpusNotFound, WorkbenchError
from workbench.records import Chunk
from workbench.store.catalogue import Catalogue
from workbench.ui import cards, controls, corpus_parts, empty, index_panel, page_style, resources, sign_in
from workbench.ui import state as app_state

if TYPE_CHECKING:
    from workbench.corpus import Corpus

PARTS = ("overview", "chunks", "refused", "runs", "index")
TITLES = {
    "overview": "Overview",
    "chunks": "Chunks",
    "refused": "Not indexed",
    "runs": "Runs and generations",
    "index": "Index",
}
ROWS = 50
_KEY = controls.PREFIX + "corpus."
_CONFIG = {"displayModeBar": False, "responsive": True}


def draw() -> None:
    """Draw the page."""
    st.html(page_style.css())
    path = resources.corpus_path()
    try:
        corpus = resources.corpus()
    except CorpusNotFound:
        if sign_in.may_index():
            st.subheader("There is no corpus yet")
            st.text("A corpus holds what you have indexed. Make one here: name the folder with your documents.")
            index_panel.draw(path, resources.local_principal())
        else:
            empty.corpus_or_help()
        return
    part = _part()
    if part == "index":
        _index(corpus)
    else:
        _DRAW[part](corpus)


def _part() -> str:
    """Which part is shown: the address says it, the buttons change it."""
    key, asked = _KEY + "part", app_state.address_value("part")
    value = asked if asked in PARTS else PARTS[0]
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    st.segmented_control(
        "Part", PARTS, required=True, default=value, key=key, format_func=lambda p: TITLES[p], on_change=_set_part,
        label_visibility="collapsed",
    )  # fmt: skip
    return value


def _set_part() -> None:
    st.query_params["part"] = str(st.session_state[_KEY + "part"])


def sees_all(corpus: Corpus) -> bool:
    """Whether who looks sees every document: only then may files without a document and whole generations be named."""
    return corpus.engine.records.scope(corpus.principal, None, ()).visible_documents is None


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
    encoders = [
        (
            "Encoder" if e["name"] == info["encoder"] else f"Encoder of vector:{e['name']}",
            f"{e['name']}, {e['dim']} dimensions, {e['runtime']}",
        )
        for e in info["encoders"]
    ]
    facts = [
        (
            "Documents",
            f"{info['documents']:,}"
            + (
                f", and {info['copies']:,} {'copy' if info['copies'] == 1 else 'copies'} of them"
                if info["copies"]
                else ""
            ),
        ),
        ("Chunks and whole-document records", f"{info['records']:,}"),
        ("Size of the originals", corpus_parts.size(info["bytes"])),
        ("Generation", str(info["generation"])),
        ("Digest", str(info["digest"])),
        *(encoders or [("Encoder", "none")]),
    ]
    st.html(corpus_parts.table(("This corpus", ""), facts, name="Facts"))
    columns = st.columns(4, gap="medium")
    counts = (
        ("Type", info["types"], "documents"),
        ("Language", info["languages"], "documents"),
        ("Collection", info["collections"], "chunks"),
        ("Sensitivity", catalogue.levels(scope), "documents"),
    )
    for column, (title, counted, what) in zip(columns, counts, strict=True):
        column.html(corpus_parts.counts_html(title, counted, what))
    st.html('<h4 class="wb-chart">Where it comes from</h4>')
    rows = [
        (s.path, s.kind, s.documents, s.chunks, corpus_parts.size(s.bytes), s.modified.strftime("%Y-%m-%d") if s.modified else "")
        for s in engine.records.sources(scope)
    ]  # fmt: skip
    st.html(
        corpus_parts.table(
            ("Source", "Kind", "Documents", "Chunks", "Size", "Newest file"), rows, (2, 3, 4), name="Sources"
        )
    )
    _tokens(catalogue, corpus)


@st.fragment
def _tokens(catalogue: Catalogue, corpus: Corpus) -> None:
    tokens = catalogue.tokens(corpus.engine.records.scope(corpus.principal, None, ()))
    if not len(tokens):
        return
    st.html('<h4 class="wb-chart">How long the chunks are</h4>')
    st.plotly_chart(
        token_figure(tokens, int(settings.get("chunk_tokens"))), key=_KEY + "tokens", config=_CONFIG,
        alt="Number of chunks by their tokens.",
    )  # fmt: skip
    median = int(sorted(tokens.tolist())[len(tokens) // 2])
    st.caption(
        f"Half of the {len(tokens):,} chunks have at most {median:,} tokens, the longest has {int(tokens.max()):,}. The dashed "
        "line is the setting chunk_tokens, to which texts are cut when they are indexed."
    )


def _chunks(corpus: Corpus) -> None:
    words, condition = st.columns([3, 2], gap="small")
    part = words.text_input(
        "Text, section or path", key=_KEY + "words", placeholder="any letters", max_chars=500,
        help="Chunks that hold these letters anywhere, whatever the case. To search by words or meaning, use the Search page.",
    )  # fmt: skip
    where = condition.text_input(
        "Filter", key=_KEY + "filter", placeholder="collection = 'docs' and type = 'markdown'", max_chars=2_000,
        help="A condition on documents, as on the Search page. [Guide](guide?page=search#filters)",
    )  # fmt: skip
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
    page = st.pagination(pages, key=f"{_KEY}page-{len(numbers)}") if pages > 1 else 1
    shown = numbers[(page - 1) * ROWS : page * ROWS]
    st.caption(f"{len(numbers):,} chunks, {(page - 1) * ROWS + 1:,} to {(page - 1) * ROWS + len(shown):,} shown")
    paths = engine.records.columns(shown).paths
    rows: list[tuple[str, Chunk]] = [
        (path, row.chunk) for path, row in zip(paths, engine.records.rows(shown.tolist()), strict=True)
    ]
    st.html(corpus_parts.chunks_html(rows, app_state.current().to_params()))


def _refused(corpus: Corpus) -> None:
    counts, listed = Catalogue(corpus.engine.opened).refused(corpus.principal, corpus_parts.MOST_FILES)
    st.html(corpus_parts.refused_html(counts, listed))


def _runs(corpus: Corpus) -> None:
    jobs = corpus.jobs()
    st.html('<h4 class="wb-chart">Runs</h4>')
    if jobs.is_empty():
        st.text("No run was written down yet.")
    else:
        st.dataframe(jobs, key=_KEY + "jobs", hide_index=True)
    st.html('<h4 class="wb-chart">Generations</h4>')
    if not sees_all(corpus):
        st.text(f"This page has {corpus.engine.generation} open; the others are for who sees the whole corpus.")
        return
    st.html(corpus_parts.generations_html(corpus.path, corpus.engine.generation))
    st.caption(
        "A generation is one immutable build. A run makes a new one beside the others and swaps; an old one goes when nobody "
        "has it open. This page follows the one that answers."
    )


def _index(corpus: Corpus) -> None:
    if not sign_in.may_index():
        st.text(
            "Runs are started by the local owner of this machine, or by who holds the role of the setting app_indexing_role."
        )
        st.code("workbench index PATH", language=None)
        return
    engine = corpus.engine
    index_panel.draw(
        corpus.path, corpus.principal, engine.records.roots(engine.records.scope(corpus.principal, None, ()))
    )


_DRAW = {"overview": _overview, "chunks": _chunks, "refused": _refused, "runs": _runs}
