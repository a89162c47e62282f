"""What pages look up: the open corpus, which sessions share; saved searches and plans; editor links.

An open corpus is kept by path and principal, the last `MOST_OPEN` of them, which share the files of one generation. It follows
new generations and the access that `corpus.yaml` gives by itself, so an indexing run or a new policy shows at the next search. A
corpus that cannot be opened is not kept: the next run tries again, and finds it once it is there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import quote

import streamlit as st

from workbench import settings
from workbench.errors import CorpusNotFound, SettingError, WorkbenchError
from workbench.locators import line_of
from workbench.records import Hit, Principal, principal_key
from workbench.saved.database import Database
from workbench.store.catalogue import Catalogue
from workbench.store.types import Scope
from workbench.ui import auth
from workbench.ui import state as app_state
from workbench.ui.components import cards
from workbench.ui.finder import Finder

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.saved.searches import Searches

MOST_OPEN = 32
"""Corpora that are kept open for as many principals; each holds masks and results, and no files of its own."""

_PLANS = "wb.plans"
P = ParamSpec("P")
T = TypeVar("T")


def corpus_path() -> Path:
    """The corpus folder: the setting `corpus`, which `workbench app` sets through WORKBENCH_CORPUS."""
    return Path(str(settings.get("corpus")))


def settings_principal() -> Principal | None:
    tenant, roles = str(settings.get("tenant")), str(settings.get("roles"))
    named = tuple(r.strip() for r in roles.split(",") if r.strip())
    return Principal(tenant or None, named) if tenant or roles else None


def local_principal() -> Principal | None:
    """Who asks: who signed in; where nobody does, the principal of the settings."""
    return auth.principal() if auth.on() else settings_principal()


def choosable_roles() -> tuple[str, ...]:
    """The roles that the local person may look with, sorted: those the app was started with, never more."""
    principal = local_principal()
    return () if principal is None or auth.on() else principal.roles


def viewer() -> Principal | None:
    principal, chosen = local_principal(), app_state.current().roles
    if principal is None or chosen is None or auth.on():
        return principal
    return Principal(principal.tenant, tuple(r for r in principal.roles if r in chosen))


@st.cache_resource(show_spinner="Opening the corpus", max_entries=MOST_OPEN)
def _open(key: str, _path: Path, _principal: Principal | None) -> Corpus:
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


def corpus() -> Corpus:
    """The shared corpus, as who looks may see it. Raises WorkbenchError as `open_corpus` does."""
    return opened(viewer())


def corpus_if_any() -> Corpus | None:
    """The shared corpus; None where it cannot be opened, which the page then says."""
    try:
        return corpus()
    except WorkbenchError:
        return None


def opened(principal: Principal | None, path: Path | None = None) -> Corpus:
    """The shared corpus (or the one in another folder), as a principal may see it. Raises WorkbenchError."""
    path = (path or corpus_path()).absolute()
    return _open(json.dumps([str(path), principal_key(principal)]), path, principal)


def searches() -> Searches:
    """What the person keeps: history, saved searches and plans, notes. Another tenant's person is another one."""
    from workbench.saved.searches import Searches, owner_of

    principal = local_principal()
    return Searches(corpus_path(), owner_of(person(), None if principal is None else principal.tenant))


def person() -> str:
    """Who the person is: the setting `user`, or the login name; of who signed in subject and issuer."""
    return auth.person() if auth.on() else settings.login() or "somebody"


def saved_plans() -> dict[str, str]:
    """Name of each saved plan -> its text form, as they are now; none where the database cannot be read."""
    from workbench.saved.searches import PLAN

    try:
        plans = {entry.name: entry.value for entry in searches().kept(PLAN)}
    except WorkbenchError:
        plans = {}  # The box of saved things says why.
    st.session_state[_PLANS] = {text: name for name, text in plans.items()}
    return plans


def plan_names() -> dict[str, str]:
    """Text form of each saved plan -> its name, as the page last read them: a slider reads no database."""
    if _PLANS not in st.session_state:
        saved_plans()
    return dict(st.session_state[_PLANS])


def kept(most: int = 16) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep what a function says of a corpus as long as its generation, policy and principal stay; sessions share it."""
    keys: dict[str | type, Callable[[Any], Any]] = {"workbench.corpus.Corpus": lambda corpus: corpus.engine.key}
    return st.cache_resource(show_spinner=False, max_entries=most, hash_funcs=keys)


def scope(corpus: Corpus, where: str = "") -> Scope:
    """What who looks may see of the documents that a filter lets through. Raises FilterError."""
    return corpus.engine.records.scope(corpus.principal, where or None, ())


def catalogue(corpus: Corpus) -> Catalogue:
    return Catalogue(corpus.engine.opened)


@kept()
def filter_fields(corpus: Corpus) -> Sequence[str]:
    return corpus.engine.records.fields(scope(corpus))


def may_change_words() -> bool:
    if auth.on():
        return auth.may_index()
    return local_principal() == viewer()


def finder() -> Finder:
    found: Finder = st.session_state.setdefault("wb.finder", Finder())
    return found


@kept()
def info(corpus: Corpus) -> Mapping[str, Any]:
    """`Corpus.info()`: counting a large corpus at every slider move would be felt."""
    return corpus.info()


def collections(corpus: Corpus) -> Sequence[str]:
    return sorted(info(corpus)["collections"])


@kept()
def example_queries(corpus: Corpus, most: int) -> tuple[str, ...]:
    """Titles of documents spread over the corpus, each once, that read like something to ask."""
    records, visible = corpus.engine.records, scope(corpus).visible_documents
    numbers = range(records.documents_total) if visible is None else visible.nonzero()[0].tolist()
    step = max(1, len(numbers) // (most * 4))
    titles = [" ".join(d.title.replace("_", " ").split()) for d in records.documents(list(numbers[::step][: most * 4]))]
    asked = dict.fromkeys(t for t in titles if 2 <= len(t.split()) <= 9 and len(t) <= 60)
    return tuple(asked)[:most]


def corpus_or_help() -> Corpus | None:
    """The open corpus; where there is none, the page offers to make one: None."""
    try:
        return corpus()
    except CorpusNotFound:
        from workbench.ui.components import welcome

        welcome.draw()
    except WorkbenchError as exc:
        st.html(cards.alert("The corpus cannot be opened", exc.message, exc.remedy))
    return None


_ONCE = "wb.once"
_REFUSED = ("javascript", "data", "vbscript", "blob")


def once(name: str, key: object, make: Callable[[], T]) -> T:
    """What the session keeps under a name as long as its key stays."""
    kept: tuple[object, T] | None = st.session_state.get(f"{_ONCE}.{name}")
    if kept is None or kept[0] != key:
        kept = st.session_state[f"{_ONCE}.{name}"] = (key, make())
    return kept[1]


# --- open in the editor -----------------------------------------------------------------------------------------------


def editor_pattern() -> str:
    """The setting `editor_link`, checked: "" where there is none. Raises SettingError for one that would run a script."""
    link = str(settings.get("editor_link")).strip()
    if link and (link.partition(":")[0].strip().lower() in _REFUSED or ":" not in link or "{path}" not in link):
        raise SettingError(
            f"editor_link is {link!r}, which is not a link to a file",
            "Set it to a pattern such as vscode://file/{path}:{line}",
        )
    return link


def editor_links(corpus: Corpus, hits: Mapping[str, Hit]) -> Mapping[str, str]:
    """Chunk id -> link that opens the file in the editor; empty without the setting."""
    link = editor_pattern()
    if not link:
        return {}
    records, ids = corpus.engine.records, frozenset(hit.document_id for hit in hits.values())

    def read() -> Mapping[str, str]:
        seen = scope(corpus)
        numbers = [n for d in sorted(ids) if (n := records.find_document(d, seen)) is not None]
        return {document.document_id: document.root for document in records.headers(numbers)}

    roots, made = once("roots", (corpus.engine.key, ids), read), {}
    for chunk_id, hit in hits.items():
        if root := roots.get(hit.document_id):
            path = quote(f"{root.rstrip('/')}/{hit.path.partition('#')[0]}")
            line = line_of(hit.locator) or hit.start_line
            made[chunk_id] = link.replace("{path}", path).replace("{line}", str(line))
    return made


def judged_at(corpus: Corpus) -> int:
    path, last = Database(corpus.path).path, 0
    for file in (path, path.with_name(path.name + "-wal")):
        with suppress(OSError):
            last = max(last, file.stat().st_mtime_ns)
    return last
