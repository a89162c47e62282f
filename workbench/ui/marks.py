"""What a person put on the hits: grades and notes, and where their files are; read once a run of the answers.

Grades and notes are read again only when one was written or other hits are shown, so that a slider costs no statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import streamlit as st

from workbench import settings
from workbench.errors import SettingError, WorkbenchError
from workbench.locators import line_of
from workbench.records import Hit
from workbench.ui import cards, resources
from workbench.ui import state as app_state
from workbench.ui.searching import Found
from workbench.ui.state import AppState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from workbench.corpus import Corpus
    from workbench.saved.searches import Note

T = TypeVar("T")
_KEPT, _ROOTS, _WRITTEN = "wb.marks", "wb.roots", "wb.marks.written"
_REFUSED = ("javascript", "data", "vbscript", "blob")


def of(corpus: Corpus, state: AppState, found: Sequence[Found]) -> cards.Marks:
    """Grades, notes and editor links of the shown hits. What cannot be read is said once and shown as absent."""
    hits = {h.chunk_id: h for f in found for h in f.hits}
    try:
        return cards.Marks(
            grades=_grades(corpus, state, hits),
            notes=_notes(hits),
            editor=_editor(corpus, hits),
            written=int(st.session_state.get(_WRITTEN, 0)),
            collections=len(resources.collections(corpus)) > 1,
            asked={k: v for k, v in state.to_params().items() if k in ("q", "keywords", "context", "filters")},
        )
    except WorkbenchError as exc:
        if st.session_state.get(_KEPT) != str(exc):
            app_state.notice(str(exc))
            st.session_state[_KEPT] = str(exc)
        return cards.Marks()


def written() -> None:
    """A grade or a note was written: read them again at the next run."""
    for name in ("grades", "notes"):
        st.session_state.pop(f"{_KEPT}.{name}", None)
    st.session_state[_WRITTEN] = st.session_state.get(_WRITTEN, 0) + 1


def _once(name: str, key: object, make: Callable[[], T]) -> T:
    kept: tuple[object, T] | None = st.session_state.get(f"{_KEPT}.{name}")
    if kept is None or kept[0] != key:
        kept = st.session_state[f"{_KEPT}.{name}"] = (key, make())
    return kept[1]


def judged_query(state: AppState) -> tuple[str, str | None]:
    """The query and the keywords that a grade is given for."""
    return (state.query, state.keywords or None) if state.query else (state.keywords, None)


def _grades(corpus: Corpus, state: AppState, hits: Mapping[str, Hit]) -> Mapping[str, int]:
    query, keywords = judged_query(state)

    def read() -> Mapping[str, int]:
        found = corpus.judging.grades(query, tuple(hits.values()), keywords=keywords)
        return {chunk_id: int(judgment.grade) for chunk_id, judgment in found.items()}

    return _once("grades", (query, keywords, corpus.engine.key, frozenset(hits)), read)


def _notes(hits: Mapping[str, Hit]) -> Mapping[str, str]:
    paths = sorted({h.path for h in hits.values()})
    written: Sequence[Note] = _once("notes", tuple(paths), lambda: resources.searches().notes(paths))
    by_path: dict[str, list[Note]] = {}
    for note in written:
        by_path.setdefault(note.path, []).append(note)
    return {
        chunk_id: " · ".join(n.text for n in by_path[h.path] if n.is_on(h.path, h.text, h.document_id))
        for chunk_id, h in hits.items()
        if h.path in by_path
    }


# --- open in the editor -----------------------------------------------------------------------------------------------


def pattern() -> str:
    """The setting `editor_link`, checked: "" where there is none. Raises SettingError for one that would run a script."""
    link = str(settings.get("editor_link")).strip()
    if link and (link.partition(":")[0].strip().lower() in _REFUSED or ":" not in link or "{path}" not in link):
        raise SettingError(
            f"editor_link is {link!r}, which is no link to a file",
            "Set it to a pattern such as vscode://file/{path}:{line}",
        )
    return link


def _editor(corpus: Corpus, hits: Mapping[str, Hit]) -> Mapping[str, str]:
    """Chunk id -> link that opens the file in the editor; empty without the setting."""
    link = pattern()
    if not link:
        return {}
    roots: dict[tuple[str, str], str] = st.session_state.setdefault(_ROOTS, {})
    records, generation = corpus.engine.records, corpus.engine.generation
    scope = records.scope(corpus.principal, None, ())
    new = {h.document_id for h in hits.values() if (generation, h.document_id) not in roots}
    numbers = {d: records.find_document(d, scope) for d in sorted(new)}
    known = [n for n in numbers.values() if n is not None]
    for document in records.headers(known):
        roots[(generation, document.document_id)] = document.root
    made = {}
    for chunk_id, hit in hits.items():
        root = roots.get((generation, hit.document_id))
        if root:
            path = quote(f"{root.rstrip('/')}/{hit.path.partition('#')[0]}")
            line = line_of(hit.locator) or hit.start_line
            made[chunk_id] = link.replace("{path}", path).replace("{line}", str(line))
    return made
