"""Which snapshots somebody may see in the app, and what of them.

A snapshot is of one tenant: the query and the note are its people's words, so nobody of another tenant sees that it is there.
Inside a tenant everybody sees the snapshot, and in it the documents that they could see then and may see today. Who holds the
tenant and roles that it was made with also sees the documents that have left the corpus since.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import PrincipalRequired, SnapshotError, WorkbenchError
from workbench.records import Principal
from workbench.snapshot import Snapshot
from workbench.snapshot.build import policy_digest
from workbench.snapshot.snapshot import Library, Listed
from workbench.store.access.visibility import Policy
from workbench.store.types import Scope

if TYPE_CHECKING:
    from workbench.corpus import Corpus

MOST_LISTED = 200


def allowed(
    snapshot: Snapshot, viewer: Principal | None, policy: Policy | None, today: Today | None = None, own: bool = False
) -> Snapshot:
    """What of a snapshot the viewer may see.

    Args:
        snapshot: The snapshot.
        viewer: Who looks.
        policy: The corpus's policy of today.
        today: The corpus's documents of today; None: nothing is known of them, and others than its makers see none.
        own: It is a file of the viewer's own, and perhaps of another corpus: documents that this one lacks stay.

    Raises:
        SnapshotError: Nothing: it is another tenant's. Said as if it were not there.
    """
    made_as = snapshot.about.principal
    tenants = (None if made_as is None else made_as.tenant, None if viewer is None else viewer.tenant)
    if tenants[0] != tenants[1]:
        raise missing()
    shown = frozenset() if today is None else today.visible
    if own or viewer == made_as:
        hidden = frozenset() if today is None else today.there - today.visible
        held = snapshot.documents()["document_id"].to_list()
        shown = frozenset(held) - hidden
        if viewer == made_as and policy_digest(policy) == snapshot.about.policy and len(shown) == len({*held}):
            return snapshot
    try:
        return snapshot.for_audience(viewer, policy, shown)
    except PrincipalRequired as exc:
        raise missing() from exc


@dataclass(frozen=True, slots=True)
class Today:
    """Ids of the documents of a corpus: all that are there, and those that the viewer may see."""

    there: frozenset[str]
    visible: frozenset[str]


def today(corpus: Corpus) -> Today:
    """The documents of now, as who looks may see them."""
    return _today(corpus.engine.key, corpus)


@st.cache_resource(show_spinner=False, max_entries=8)
def _today(key: str, _corpus: Corpus) -> Today:
    records = _corpus.engine.opened.records
    return Today(records.ids(Scope()), records.ids(records.scope(_corpus.principal, None, ())))


def missing() -> SnapshotError:
    """The error for one that is not there, or not for who asks."""
    return SnapshotError("There is no snapshot with this id here", "The Snapshots page lists those that there are")


def kept(corpus: Corpus) -> list[Listed]:
    """The snapshots on the corpus's shelf that its principal may see, newest first; damaged files with what is wrong."""
    shown: list[Listed] = []
    for path in Library(corpus.path).files()[:MOST_LISTED]:
        stat = path.stat()
        one = _read(str(path), stat.st_mtime_ns, stat.st_size)
        if one.snapshot is None:
            shown.append(one)
            continue
        try:
            shown.append(Listed(path, allowed(one.snapshot, corpus.principal, corpus.policy, today(corpus))))
        except WorkbenchError:
            continue  # Another tenant's: not even its being there is told.
    return shown


@st.cache_resource(show_spinner=False, max_entries=64)
def _read(path: str, modified: int, size: int) -> Listed:
    """A file of the shelf, read once as long as it does not change."""
    return Library.read(Path(path))
