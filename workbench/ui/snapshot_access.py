"""Which snapshots somebody may see in the app, and what of them.

A snapshot is of one tenant: the query and the note are its people's words, so nobody of another tenant sees that it is there.
Inside a tenant everybody sees the snapshot, and in it the documents that a search of theirs would find.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from workbench.errors import PrincipalRequired, SnapshotError, WorkbenchError
from workbench.records import Principal
from workbench.snapshot import Snapshot
from workbench.snapshot.capture import policy_digest
from workbench.snapshot.shelf import Listed, Shelf
from workbench.store.masking import load_policy
from workbench.store.visibility import Policy

MOST_LISTED = 200


def allowed(snapshot: Snapshot, viewer: Principal | None, policy: Policy | None) -> Snapshot:
    """What of a snapshot the viewer may see under the corpus's policy of today.

    Raises:
        SnapshotError: Nothing: it is another tenant's. Said as if it were not there.
    """
    made_as = snapshot.about.principal
    tenants = (None if made_as is None else made_as.tenant, None if viewer is None else viewer.tenant)
    if tenants[0] != tenants[1]:
        raise missing()
    if viewer == made_as and policy_digest(policy) == snapshot.about.policy:
        return snapshot
    try:
        return snapshot.for_audience(viewer, policy)
    except PrincipalRequired as exc:
        raise missing() from exc


def missing() -> SnapshotError:
    """The error for one that is not there, or not for who asks."""
    return SnapshotError("There is no snapshot with this id here", "The Snapshots page lists those that there are")


def kept(corpus: Path, viewer: Principal | None) -> list[Listed]:
    """The snapshots on the corpus's shelf that the viewer may see, newest first; damaged files with what is wrong."""
    shown: list[Listed] = []
    policy = load_policy(corpus)
    for path in Shelf(corpus).files()[:MOST_LISTED]:
        stat = path.stat()
        one = _read(str(path), stat.st_mtime_ns, stat.st_size)
        if one.snapshot is None:
            shown.append(one)
            continue
        try:
            shown.append(Listed(path, allowed(one.snapshot, viewer, policy)))
        except WorkbenchError:
            continue  # Another tenant's: not even its being there is told.
    return shown


@st.cache_resource(show_spinner=False, max_entries=64)
def _read(path: str, modified: int, size: int) -> Listed:
    """A file of the shelf, read once as long as it does not change."""
    return Shelf.read(Path(path))
