"""What stands beside a document's text: its page as a picture, its facts, and the documents of its folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.records import Chunk, Document, Span
from workbench.retrieve.original import original
from workbench.store.catalogue import Catalogue, Listed
from workbench.ui import cards, controls, links
from workbench.ui import state as app_state
from workbench.ui.text import attribute, plain, visible

if TYPE_CHECKING:
    from workbench.corpus import Corpus

MOST_LISTED = 30
NEIGHBOURS = 14
MOST_COPIES = 20
_KEY = controls.PREFIX + "document."


def side(corpus: Corpus, document: Document, chunks: Sequence[Chunk], place: Span | None) -> None:
    """Draw all of it; `place` is what of the document was asked for."""
    if document.type == "pdf" and document.page_starts:
        _page_image(corpus, document, place)
    engine = corpus.engine
    scope = engine.records.scope(corpus.principal, None, ())
    listed = Catalogue(engine.opened).folder(document.path, document.root, scope)
    st.html(neighbours_html(listed, document.path))
    number = engine.records.find_document(document.document_id, scope)
    paths = {} if number is None else engine.records.paths_of([number])
    st.html(facts_html(document, chunks, [path for found in paths.values() for path in found if path != document.path]))


# --- pages ------------------------------------------------------------------------------------------------------------


@st.fragment
def _page_image(corpus: Corpus, document: Document, place: Span | None) -> None:
    """The page that the address stands on, as it is printed; only on request, because it reads the whole file."""
    wanted = st.toggle(
        "Show the page", key=_KEY + "image", help="Draws the page of the original file, if it is there and unchanged."
    )
    if not wanted:
        return
    most = len(document.page_starts)
    own = _page_of(document, place)
    page = st.pagination(most, default=own, key=f"{_KEY}page-{document.path}-{own}")
    try:
        found = original(corpus.engine, corpus.principal, corpus.policy, document)
        if not found.data:
            st.html(cards.alert("There is no picture of the page", found.reason, found.remedy))
            return
        st.image(_png(document.sha256, page, found.data), caption=f"Page {page} of {most}", width="stretch")
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))


@st.cache_data(show_spinner="Drawing the page", max_entries=32)
def _png(sha256: str, page: int, _data: bytes) -> bytes:
    from workbench.ingest.readers.pdf import page_png

    return page_png(_data, page)


def _page_of(document: Document, place: Span | None) -> int:
    """The page of the place or of the lines in the address, or the first."""
    from workbench.ui.document import Sheet, read_target

    target = read_target(app_state.address_value("lines"))
    if place is None and not target.first:
        return 1
    offset = Sheet.of(document.text).offset_of(target) if place is None else place.start
    return max(sum(start <= offset for start in document.page_starts), 1)


# --- neighbours -------------------------------------------------------------------------------------------------------


def neighbours_html(listed: Sequence[Listed], path: str) -> str:
    """The documents of the same folder, this one among its neighbours; links keep the query."""
    names = list(dict.fromkeys(item.path for item in listed))
    if len(names) < 2 or path not in names:
        return '<p class="wb-msg">There is no other document in its folder.</p>'
    at = names.index(path)
    first = max(0, min(at - NEIGHBOURS // 2, len(names) - NEIGHBOURS))
    shown = names[first : first + NEIGHBOURS]
    rows = "".join(
        f'<li class="wb-here" aria-current="page"><bdi>{_name(n)}</bdi></li>'
        if n == path
        else f'<li><a href="{attribute(link(n))}" target="_self"{_relation(i + first, at)}><bdi>{_name(n)}</bdi></a></li>'
        for i, n in enumerate(shown)
    )
    more = len(names) - len(shown)
    tail = f'<p class="wb-msg">and {more:,} more in this folder</p>' if more else ""
    return f'<h4 class="wb-chart">In the same folder</h4><ul class="wb-links">{rows}</ul>{tail}'


def _relation(position: int, at: int) -> str:
    return ' rel="prev"' if position == at - 1 else ' rel="next"' if position == at + 1 else ""


def _name(path: str) -> str:
    return visible(plain(path[path.rfind("/") + 1 :], 80))


def link(path: str) -> str:
    """Address of another document with the state's query, relative to this page."""
    return links.document(path, asked=app_state.current().to_params())


def some_paths(corpus: Corpus) -> None:
    """The first documents of the corpus, to start from."""
    engine = corpus.engine
    paths = Catalogue(engine.opened).paths(engine.records.scope(corpus.principal, None, ()), MOST_LISTED + 1)
    rows = "".join(
        f'<li><a href="{attribute(link(p))}" target="_self"><bdi>{visible(plain(p, 200))}</bdi></a></li>'
        for p in paths[:MOST_LISTED]
    )
    st.html(f'<ul class="wb-links">{rows}</ul>')
    if len(paths) > MOST_LISTED:
        st.caption(
            f"These are the first {MOST_LISTED}; *Chunks* on the [Corpus](corpus?part=chunks) page finds the others."
        )


# --- facts ------------------------------------------------------------------------------------------------------------


def facts_html(document: Document, chunks: Sequence[Chunk], copies: Sequence[str] = ()) -> str:
    """What is known of the document, and the other paths of files with the same bytes, as a table."""
    more = len(copies) - MOST_COPIES
    facts: list[tuple[str, str]] = [
        ("type", document.type),
        ("language", document.language),
        ("collections", ", ".join(sorted({c.collection for c in chunks}))),
        ("tenant", document.tenant or ""),
        ("roles", ", ".join(document.roles)),
        ("sensitivity", document.sensitivity),
        ("modified", document.modified.strftime("%Y-%m-%d %H:%M UTC") if document.modified else ""),
        ("size", f"{document.size:,} bytes"),
        ("characters", f"{len(document.text):,}"),
        ("pages", f"{len(document.page_starts):,}" if document.page_starts else ""),
        ("url", document.url),
        ("folder", document.root),
        ("the same file", ", ".join(copies[:MOST_COPIES]) + (f" and {more:,} more" if more > 0 else "")),
        ("document id", document.document_id),
        ("sha256", document.sha256),
    ]
    facts += [(str(k), _value(v)) for k, v in sorted(document.metadata.items())]
    rows = "".join(
        f"<tr><td>{visible(plain(n, 60))}</td><td><bdi>{visible(plain(v, 400))}</bdi></td></tr>" for n, v in facts if v
    )
    return f'<h4 class="wb-chart">Facts</h4><table class="wb-table wb-facts-table">{rows}</table>'


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
