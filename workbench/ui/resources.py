"""The one thing that sessions share: the open corpus.

Keyed by path and principal, the last `MOST_OPEN` of them, which share the files of one generation. It follows new generations
and the access that `corpus.yaml` gives by itself, so an indexing run or a new policy shows at the next search. A corpus that
cannot be opened is not kept: the next run tries again, and finds it once it is there.
"""

from __future__ import annotations

import functools
import gc
import getpass
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench import settings
from workbench.errors import WorkbenchError
from workbench.records import Principal, principal_key
from workbench.ui import sign_in
from workbench.ui import state as app_state
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.saved.searches import Searches
    from workbench.ui.searching import Finder

MOST_OPEN = 32
"""Corpora that are kept open for as many principals; each holds masks and results, and no files of its own."""

_FINDER, _PLANS = "wb.finder", "wb.plans"


def corpus_path() -> Path:
    """The corpus folder: the setting `corpus`, which `workbench app` sets through WORKBENCH_CORPUS."""
    return Path(str(settings.get("corpus")))


def local_principal() -> Principal | None:
    """Who asks: who signed in; where nobody does, the settings `tenant` and `roles`, None where neither is set."""
    if sign_in.on():
        return sign_in.principal()
    tenant, roles = str(settings.get("tenant")), str(settings.get("roles"))
    if not tenant and not roles:
        return None
    return Principal(tenant or None, tuple(r.strip() for r in roles.split(",") if r.strip()))


def choosable_roles() -> tuple[str, ...]:
    """The roles that the local person may look with, sorted: those the app was started with, never more."""
    principal = local_principal()
    return () if principal is None or sign_in.on() else principal.roles


def viewer() -> Principal | None:
    """Who looks: the local principal, or the same with the part of its roles that the page chose."""
    principal, chosen = local_principal(), app_state.current().roles
    if principal is None or chosen is None or sign_in.on():
        return principal
    return Principal(principal.tenant, tuple(r for r in principal.roles if r in chosen))


def _opened(path: str, principal: Principal | None) -> Corpus:
    return _kept_open(json.dumps([path, principal_key(principal)]), path, principal)


@st.cache_resource(show_spinner="Opening the corpus", max_entries=MOST_OPEN)
def _kept_open(key: str, _path: str, _principal: Principal | None) -> Corpus:
    from workbench.corpus import open_corpus

    corpus = open_corpus(_path, _principal, follow=True, served=True)
    threading.Thread(target=_warm, args=(corpus,), name="workbench-warm", daemon=True).start()
    return corpus


def _warm(corpus: Corpus) -> None:
    """Load the encoder while the person is still typing, so that the first search does not wait for it."""
    try:
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
    """The shared corpus, as who looks may see it. Raises WorkbenchError as `open_corpus` does."""
    return opened(viewer())


def opened(principal: Principal | None) -> Corpus:
    """The shared corpus, as a principal may see it. Raises WorkbenchError as `open_corpus` does."""
    return opened_at(corpus_path(), principal)


def opened_at(path: Path, principal: Principal | None) -> Corpus:
    """`opened`, of any corpus."""
    return _opened(str(path.absolute()), principal)


def searches() -> Searches:
    """What the person keeps: history, saved searches and plans, notes. Another tenant's person is another one."""
    from workbench.saved.searches import Searches, owner_of

    principal = local_principal()
    return Searches(corpus_path(), owner_of(person(), None if principal is None else principal.tenant))


def person() -> str:
    """Who the person is: the setting `user`, or the login name; of who signed in subject and issuer."""
    if sign_in.on():
        return sign_in.person()
    named = str(settings.get("user")).strip()
    if named:
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"


def saved_plans() -> dict[str, str]:
    """Name of each saved plan -> its text form, as they are now; none where the desk cannot be read."""
    from workbench.saved.searches import PLAN

    try:
        plans = {entry.name: entry.value for entry in searches().kept(PLAN)}
    except WorkbenchError:
        plans = {}  # The box of saved things says why.
    st.session_state[_PLANS] = {text: name for name, text in plans.items()}
    return plans


def plan_names() -> dict[str, str]:
    """Text form of each saved plan -> its name, as the page last read them: a slider reads no desk."""
    if _PLANS not in st.session_state:
        saved_plans()
    return dict(st.session_state[_PLANS])


def filter_fields(corpus: Corpus) -> Sequence[str]:
    """Fields that a filter may name, sorted."""
    return _fields(corpus.engine.key, corpus)


@st.cache_resource(show_spinner=False, max_entries=16)
def _fields(key: str, _corpus: Corpus) -> Sequence[str]:
    records = _corpus.engine.records
    return records.fields(records.scope(_corpus.principal, None, ()))


def may_change_words() -> bool:
    """Whether the person may change the corpus's own words, which count for everybody."""
    if sign_in.on():
        return sign_in.may_index()
    return local_principal() == viewer()


def exactness(corpus: Corpus, state: AppState) -> str:
    """How much of the exact answer to the query the approximate index finds, in a sentence."""
    from workbench.ui.searching import exactness as compare

    try:
        return compare(corpus, state)
    except WorkbenchError as exc:
        return str(exc)


def finder() -> Finder:
    """This session's results."""
    from workbench.ui.searching import Finder

    kept = st.session_state.get(_FINDER)
    if not isinstance(kept, Finder):
        kept = st.session_state[_FINDER] = Finder()
    return kept


def info(corpus: Corpus) -> Mapping[str, Any]:
    """`Corpus.info()`, kept for a generation: counting a large corpus at every slider move would be felt."""
    return _info(corpus.engine.key, corpus)


@st.cache_resource(show_spinner=False, max_entries=16)
def _info(key: str, _corpus: Corpus) -> Mapping[str, Any]:
    return _corpus.info()


def collections(corpus: Corpus) -> Sequence[str]:
    """Names of the corpus's collections, sorted."""
    return sorted(info(corpus)["collections"])


def example_queries(corpus: Corpus, most: int) -> tuple[str, ...]:
    """Titles of documents spread over the corpus, each once, that read like something to ask; kept for a generation."""
    return _titles(corpus.engine.key, most, corpus)


@st.cache_resource(show_spinner=False, max_entries=16)
def _titles(key: str, most: int, _corpus: Corpus) -> tuple[str, ...]:
    records = _corpus.engine.records
    scope = records.scope(_corpus.principal, None, ())
    visible = scope.visible_documents
    numbers = range(records.documents_total) if visible is None else visible.nonzero()[0].tolist()
    step = max(1, len(numbers) // (most * 4))
    titles = [" ".join(d.title.replace("_", " ").split()) for d in records.documents(list(numbers[::step][: most * 4]))]
    asked = dict.fromkeys(t for t in titles if 2 <= len(t.split()) <= 9 and len(t) <= 60)
    return tuple(asked)[:most]
