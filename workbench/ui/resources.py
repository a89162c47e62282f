"""The one thing that sessions share: the open corpus.

Keyed by path and principal; it follows new generations by itself, so an indexing run beside the app shows at the next
search. A corpus that cannot be opened is not kept: the next run tries again, and finds it once it is there.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench import settings
from workbench.errors import WorkbenchError
from workbench.records import Principal

if TYPE_CHECKING:
    from workbench.corpus_engine import CorpusEngine
    from workbench.service import Corpus
    from workbench.ui.searching import Finder

_FINDER = "wb.finder"
# Corpora of one process take turns at it too; see `wait_for_encoder`.
_FIRST_INFERENCE = threading.Lock()


def corpus_path() -> Path:
    """The corpus folder: the setting `corpus`, which `workbench app` sets through WORKBENCH_CORPUS."""
    return Path(str(settings.get("corpus")))


def local_principal() -> Principal | None:
    """Who asks: the settings `tenant` and `roles`; None where neither is set."""
    tenant, roles = str(settings.get("tenant")), str(settings.get("roles"))
    if not tenant and not roles:
        return None
    return Principal(tenant or None, tuple(r.strip() for r in roles.split(",") if r.strip()))


@dataclass(frozen=True, slots=True)
class _Opened:
    """A shared corpus, and the thread that loads its encoder."""

    corpus: Corpus
    warm: threading.Thread


@st.cache_resource(show_spinner="Opening the corpus")
def _opened(path: str, principal: Principal | None) -> _Opened:
    from workbench.service import open_corpus

    corpus = open_corpus(path, principal, follow=True)
    warm = threading.Thread(target=_warm, args=(corpus,), name="workbench-warm", daemon=True)
    warm.start()
    return _Opened(corpus, warm)


def _warm(corpus: Corpus) -> None:
    """Load the encoder while the person is still typing, so that the first search does not wait for it."""
    try:
        with _FIRST_INFERENCE:
            corpus.engine.embed("warm", "")
    except WorkbenchError:
        return  # The first vector search meets the same error and says it on the page, with its remedy.
    finally:
        _settle_heap()


@functools.cache
def _settle_heap() -> None:
    """Take what is loaded out of the garbage collector's rounds, once in a process.

    Streamlit collects fully at the end of every run, also between a slider's callback and the fragment that answers it.
    Going through the objects of libraries and models took 65 to 125 ms there; without them it takes 3.
    """
    gc.collect()
    gc.freeze()


def corpus() -> Corpus:
    """The shared corpus. Raises WorkbenchError as `open_corpus` does."""
    return _shared().corpus


def wait_for_encoder() -> None:
    """Wait until the encoder has been loaded and has run once: to be called before a vector search.

    The first inference of a process must be alone: OpenVINO's Python binding sets itself up during it, and two at once
    wait for each other for ever, one holding the interpreter's lock and the other the set-up's.
    """
    _shared().warm.join()


def _shared() -> _Opened:
    return _opened(str(corpus_path().absolute()), local_principal())


def finder() -> Finder:
    """This session's results."""
    from workbench.ui.searching import Finder

    kept = st.session_state.get(_FINDER)
    if not isinstance(kept, Finder):
        kept = st.session_state[_FINDER] = Finder()
    return kept


def info(corpus: Corpus) -> Mapping[str, Any]:
    """`Corpus.info()`, kept for a generation: counting a large corpus at every slider move would be felt."""
    return _info(str(corpus.path.absolute()), corpus.engine.generation, corpus.principal, corpus)


@st.cache_resource(show_spinner=False, max_entries=16)
def _info(path: str, generation: str, principal: Principal | None, _corpus: Corpus) -> Mapping[str, Any]:
    return _corpus.info()


def collections(corpus: Corpus) -> Sequence[str]:
    """Names of the corpus's collections, sorted."""
    return sorted(info(corpus)["collections"])


def example_queries(corpus: Corpus, most: int) -> tuple[str, ...]:
    """Titles of documents spread over the corpus, each once, that read like something to ask; kept for a generation."""
    engine = corpus.engine
    return _titles(str(corpus.path.absolute()), engine.generation, corpus.principal, most, engine)


@st.cache_resource(show_spinner=False, max_entries=16)
def _titles(
    path: str, generation: str, principal: Principal | None, most: int, _engine: CorpusEngine
) -> tuple[str, ...]:  # fmt: skip
    records = _engine.records
    scope = records.scope(principal, None, ())
    visible = scope.visible_documents
    numbers = range(records.documents_total) if visible is None else visible.nonzero()[0].tolist()
    step = max(1, len(numbers) // (most * 4))
    titles = [" ".join(d.title.replace("_", " ").split()) for d in records.documents(list(numbers[::step][: most * 4]))]
    asked = dict.fromkeys(t for t in titles if 2 <= len(t.split()) <= 9 and len(t) <= 60)
    return tuple(asked)[:most]
