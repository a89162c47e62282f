"""What may have changed a result between two snapshots: settings, documents, encoders, who asked, versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workbench.plan import fields as plan_fields
from workbench.records import Principal
from workbench.snapshot.model import SavedSearch

if TYPE_CHECKING:
    from workbench.snapshot.snapshot import Snapshot

_SILENT = ("cache_seconds",)
"""Settings that change no result."""
_NAMED = 3


@dataclass(frozen=True)
class Changes:
    """Documents of two corpora: id -> path (or id, where paths were left out), in the order of paths.

    Attributes:
        added, changed, removed: In the second and not in the first; in both with other content; in the first only.
        recut: True where the documents are the same and their passages, or how they are read, are not.
        encoders: True where the vectors are those of other weights.
    """

    added: Mapping[str, str]
    changed: Mapping[str, str]
    removed: Mapping[str, str]
    recut: bool
    encoders: bool

    @property
    def any(self) -> bool:
        """True where a document came, changed or went, or passages were cut anew."""
        return bool(self.added or self.changed or self.removed or self.recut)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Change, document id and path of each."""
        for change, found in (("added", self.added), ("changed", self.changed), ("removed", self.removed)):
            for document_id, path in found.items():
                yield change, document_id, path

    def own(self, document_id: str) -> str:
        """What became of one document, or ""."""
        for said, found in (
            ("its document was added", self.added),
            ("its document changed", self.changed),
            ("its document was removed", self.removed),
        ):
            if document_id in found:
                return said
        return ""

    @property
    def words(self) -> str:
        """The corpus's changes, or ""."""
        counts = [
            f"{len(found)} {'document' if len(found) == 1 else 'documents'} {word}"
            for word, found in (("added", self.added), ("changed", self.changed), ("removed", self.removed))
            if found
        ]
        if self.recut:
            counts.append("documents cut or read differently")
        return ", ".join(counts)

    def sentences(self, first: Snapshot, second: Snapshot) -> Iterator[str]:
        """The changes of corpus, encoder, principal and versions, each in words."""
        yield from self.documents()
        if self.recut:
            yield "the same documents were cut or read differently"
        if self.encoders:
            yield f"another encoder ({_encoders(first)}; then {_encoders(second)})"
        if first.about.principal != second.about.principal:
            yield f"asked as somebody else ({_who(first.about.principal)}; then {_who(second.about.principal)})"

    def documents(self) -> Iterator[str]:
        """How many documents came, changed and went, with the first names."""
        for word, found in (("added", self.added), ("changed", self.changed), ("removed", self.removed)):
            if found:
                names = list(found.values())
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                count = f"{len(names)} {'document' if len(names) == 1 else 'documents'}"
                yield f"{count} {word} ({', '.join(names[:_NAMED])}{more})"


def _encoders(snapshot: Snapshot) -> str:
    return ", ".join(f"{e.name} {e.digest[:8]}" for e in snapshot.about.origin.encoders) or "none"


def _who(principal: Principal | None) -> str:
    if principal is None:
        return "the local owner"
    return f"tenant {principal.tenant or 'none'} with roles {', '.join(principal.roles) or 'none'}"


def changed_documents(first: Snapshot, second: Snapshot) -> Changes:
    """What came, changed and went between the corpora that two snapshots saw."""
    found = changed_since(first, _documents(second))
    encoders = _weights(first) != _weights(second)
    same = not (found.any or encoders)
    runtimes = [{(e.name, e.runtime) for e in s.about.origin.encoders} for s in (first, second)]
    cut = first.about.omitted or second.about.omitted
    recut = same and not cut and first.about.origin.digest != second.about.origin.digest and runtimes[0] == runtimes[1]
    return replace(found, recut=recut, encoders=encoders)


def changed_since(first: Snapshot, two: Mapping[str, tuple[str, str]]) -> Changes:
    """What came, changed and went since a snapshot: `two` has each document's path and content now, by id."""
    one = _documents(first)
    added = {i: path for i, (path, _) in two.items() if i not in one}
    removed = {i: path for i, (path, _) in one.items() if i not in two}
    changed = {i: path for i, (path, content) in two.items() if i in one and one[i][1] != content}
    return Changes(added, changed, removed, recut=False, encoders=False)


def _documents(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    rows = snapshot.documents().iter_rows(named=True)
    return {r["document_id"]: (r["path"] or r["document_id"], r["content"]) for r in rows}


def _weights(snapshot: Snapshot) -> set[tuple[str, int]]:
    return {(e.digest, e.dim) for e in snapshot.about.origin.encoders}


def settings_of(search: SavedSearch) -> dict[str, str]:
    """Everything that was set for a search, as text: its plan's fields, and mode, keywords, filter and context."""
    asked = {"mode": search.mode, "keywords": search.keywords, "filter": search.filters, "context": search.context}
    values: dict[str, Any] = {name: value for name, value in search.settings.items() if name not in _SILENT}
    return {**asked, **{name: plan_fields.show(value) for name, value in values.items()}}


def pairs_of(snapshots: Sequence[Snapshot]) -> tuple[tuple[str, tuple[int | None, ...]], ...]:
    """Each query with the number of its search in every snapshot.

    Searches of one query are paired by mode first, then as they come: one asked in two modes is two.
    """
    found: list[tuple[str, str, list[int | None]]] = []
    for at, snapshot in enumerate(snapshots):
        left = dict(enumerate(snapshot.searches))
        for by_mode in (True, False):
            for number, search in list(left.items()):
                query = search.query or search.keywords
                free = (n for q, m, n in found if q == query and n[at] is None and (not by_mode or m == search.mode))
                numbers = next(free, None)
                if numbers is not None:
                    numbers[at] = number
                    del left[number]
        for number, search in left.items():
            found.append((search.query or search.keywords, search.mode, [None] * len(snapshots)))
            found[-1][2][at] = number
    return tuple((query, tuple(numbers)) for query, _, numbers in found)


@dataclass(frozen=True)
class Causes:
    """Everything that differs between two searches of one query.

    Attributes:
        settings: Setting -> (before, after).
        corpus: The corpus's changes in words, or "".
        encoder, principal: True where they differ.
        versions: Packages that differ.
    """

    settings: Mapping[str, tuple[str, str]]
    corpus: str
    encoder: bool
    principal: bool
    versions: tuple[str, ...]

    @property
    def any(self) -> bool:
        """True where something but the versions differs."""
        return bool(self.settings or self.corpus or self.encoder or self.principal)

    @property
    def words(self) -> str:
        """All of it in words; versions only where nothing else differs."""
        said = [
            f"setting {name} ({before or 'none'} to {after or 'none'})"
            for name, (before, after) in self.settings.items()
        ]
        if self.corpus:
            said.append(f"corpus ({self.corpus})")
        if self.encoder:
            said.append("encoder")
        if self.principal:
            said.append("who asked")
        if not said and self.versions:
            said.append(f"versions ({', '.join(self.versions)})")
        return ", ".join(said) or "nothing that the snapshots record"


def causes_of(first: Snapshot, one: int, second: Snapshot, two: int, changes: Changes) -> Causes:
    """Everything that differs between search `one` of the first snapshot and search `two` of the second."""
    before, after = settings_of(first.searches[one]), settings_of(second.searches[two])
    settings = {
        name: (before.get(name, "default"), after.get(name, "default"))
        for name in dict.fromkeys([*before, *after])
        if before.get(name, "default") != after.get(name, "default")
    }
    packages = [s.about.packages for s in (first, second)]
    versions = [n for n in sorted({*packages[0], *packages[1]}) if packages[0].get(n) != packages[1].get(n)]
    principal = first.about.principal != second.about.principal
    return Causes(settings, changes.words, changes.encoders, principal, tuple(versions))
