"""The first minute: what an app without a corpus offers, examples where nothing has been asked yet, and the tour.

The tour's five steps are the order of work of the guide's first page; each opens a page in the state that it speaks of.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.markup import plain, visible
from workbench.ui import auth, resources, runs
from workbench.ui import state as app_state
from workbench.ui.components import cards, controls, indexing, live, snapshot_view
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from pathlib import Path

    from workbench.corpus import Corpus

_KEY = controls.PREFIX + "welcome."
_DISMISSED = "wb.tour.dismissed"
EXAMPLES = 6


# --- without a corpus ---------------------------------------------------------------------------------------------------


def draw() -> None:
    """What a page shows where there is no corpus yet: the demo, a folder, a snapshot."""
    path = resources.corpus_path()
    if indexing.going_on(path):
        return
    st.subheader("There is no corpus yet", anchor=False)
    st.text(
        f"A corpus holds everything that you have indexed. This app keeps it in {plain(str(path.absolute()), 300)}."
    )
    if auth.may_index():
        # The demo's documents have no tenant: who signed in with one would not see them.
        demo = {} if auth.on() else {"Try the demo": lambda: _demo(path)}
        own = {"Index your files": lambda: indexing.draw(path, None, resources.local_principal())}
        ways = {**demo, **own, "Open a snapshot": _snapshot}
        for tab, draw_way in zip(st.tabs(list(ways)), ways.values(), strict=True):
            with tab:
                draw_way()
    else:
        st.text("Make it in a terminal:")
        command = f"workbench index PATH-TO-YOUR-FILES --corpus {shlex.quote(plain(str(path.absolute()), 300))}"
        st.code(command, language=None, wrap_lines=True)
        st.button("Look again", key=controls.PREFIX + "look-again", help="Check again.")
        _snapshot()


def _demo(path: Path) -> None:
    st.text(
        "Documentation and library of the Python that runs this app: about 170 files, with some 70 questions whose answers are "
        "known. It takes a minute or two, and nothing leaves this machine."
    )
    request = runs.Request(("Python's own documentation",), action=runs.DEMO)
    st.button("Build the demo", key=_KEY + "demo", type="primary", on_click=indexing.begin, args=(path, request))


def _snapshot() -> None:
    from workbench.snapshot import Snapshot
    from workbench.snapshot.page import summary
    from workbench.ui.routes import allowed

    file = st.file_uploader(
        "A snapshot that somebody gave you", type=["snapshot"], key=_KEY + "snapshot", max_upload_size=64
    )
    if file is None:
        return
    try:
        shown = allowed(Snapshot.load(file.getvalue()), resources.local_principal(), None, own=True)
    except WorkbenchError as exc:
        st.html(cards.alert(plain(file.name, 120), exc.message, exc.remedy))
        return
    title = visible(plain(shown.title, 200))
    st.html(f'<div class="wb-note"><p><b><bdi>{title}</bdi></b></p>{summary(shown.about, shown.content)}</div>')
    st.download_button("Download it as a page", shown.html, f"{shown.id}.html", "text/html", key=_KEY + "html")
    snapshot_view.report(shown)


# --- with one -----------------------------------------------------------------------------------------------------------


def examples(corpus: Corpus, most: int) -> tuple[str, Sequence[str]]:
    """Queries to begin with, and what they are: those of the active query set first, else titles of documents."""
    name, _ = live.chosen(corpus)
    if name in live.sets(corpus):
        key = (corpus.engine.key, name, resources.judged_at(corpus))
        asked = resources.once("examples", key, lambda: _judged(corpus, name, most))
        if asked:
            return f"Judged queries of the set {name}:", asked
    return "For example, a title from your documents:", resources.example_queries(corpus, most)


def _judged(corpus: Corpus, name: str, most: int) -> Sequence[str]:
    judgments = corpus.judgments(name)
    asked = [judgments.topics[i].text for i in judgments.query_ids if i in judgments.topics]
    short = list(dict.fromkeys(text for text in asked if 0 < len(text) <= 70))
    return short[:: max(1, len(short) // most)][:most]


def no_query(corpus: Corpus) -> None:
    """What a page shows where nothing has been asked."""
    try:
        facts, (about, queries) = resources.info(corpus), examples(corpus, EXAMPLES)
    except WorkbenchError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        return
    st.subheader("Ask something, and see what finds it", anchor=False)
    st.text(f"This corpus holds {facts['documents']:,} documents in {facts['records']:,} passages.")
    if queries:
        st.text(about)
        with st.container(horizontal=True):
            for position, text in enumerate(queries):
                key = f"{controls.PREFIX}example-{position}"
                st.button(cards.in_markdown(text, 70), key=key, on_click=controls.ask, args=(text,))
    st.caption(
        "Words, “phrases in quotes”, -not, prefix\\*. Grep takes the keywords box, or else the query's rarest words. "
        "[More in the guide](guide?page=search#query)"
    )
    if not st.session_state.get(_DISMISSED) and _is_new():
        with st.container(border=True, key=_KEY + "tour"):
            tour(corpus)
            st.button(
                "No tour", key=_KEY + "dismiss", type="tertiary", on_click=_dismiss, help="The Guide page keeps it."
            )


def _is_new() -> bool:
    """Whether the person has asked nothing yet in this corpus."""
    from workbench.saved.searches import HISTORY

    try:
        return not resources.searches().kept(HISTORY, 1)
    except WorkbenchError:
        return False  # The box of saved things says why.


def _dismiss() -> None:
    st.session_state[_DISMISSED] = True


def tour(corpus: Corpus) -> None:
    """Five steps, each with a link that opens a page in a state."""
    _, queries = examples(corpus, EXAMPLES)
    query = queries[0] if queries else "how does it work"
    asked, plan = {"q": query}, app_state.default_plan().replace({"fusion.alpha": 0.3})
    moved = AppState(query=query, picture="ranks", plan=plan).to_params()
    params: tuple[dict[str, str], ...] = (asked, moved, {**asked, "target": _expected(corpus, query)}, {}, {})
    st.markdown("**A tour in five steps**")
    for number, ((page, label, text), at) in enumerate(zip(_TOUR, params, strict=True), 1):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.page_link(app_state.page_of(page), label=f"{number}. {label}", query_params=at, width=250)
            st.caption(text)


_TOUR = (
    ("", "One query, four answers", "Grep, BM25, vectors and their mix beside each other: what does each alone find?"),
    ("", "Move one setting", "Alpha is 0.3 here: the chart shows how ranks moved. Drag it back to 0.8."),
    ("explain", "Why this rank?", "The steps of the search, and where one document is in each source."),
    (
        "judge",
        "Judge before you believe",
        "Grade passages without seeing who found them; every plan then gets a figure.",
    ),
    ("tune", "Try every setting", "Measure many plans on judged queries, and keep the winner with a snapshot."),
)
"""Page, label and text of each step."""


def _expected(corpus: Corpus, query: str) -> str:
    """A document that somebody may expect for a query: a judged one, else one of the first results of BM25."""
    name, _ = live.chosen(corpus)
    key = (corpus.engine.key, name, query)

    def find() -> str:
        records, judged = corpus.engine.records, dict[str, int]()
        if name in live.sets(corpus):
            judgments = corpus.judgments(name)
            judged = next(
                (dict(judgments.qrels.get(i, {})) for i, t in judgments.topics.items() if t.text == query), {}
            )
        scope = resources.scope(corpus)
        for document in sorted(judged, key=lambda document: (-judged[document], document)):
            if records.find_document(document, scope) is not None:
                return document
        hits = corpus.search(query, mode="keyword", limit=3).hits
        return hits[-1].path if hits else ""

    return resources.once("expected", key, find)
