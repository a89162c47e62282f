"""The snapshot itself: made from results, saved, loaded, and read; and the library of those that a corpus keeps."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import SnapshotError, UsageError
from workbench.records import Hit, Principal
from workbench.settings import path_of
from workbench.snapshot import archive
from workbench.snapshot.schema import About, Content, SavedEvaluation, SavedSearch, SavedSweep, hits, of_this_edition
from workbench.store.generations import private

if TYPE_CHECKING:
    import polars

    from workbench.corpus import Corpus
    from workbench.snapshot.diff import SnapshotDiff
    from workbench.snapshot.verify import Verification
    from workbench.store.access.visibility import Policy

SUFFIX, FOLDER = ".snapshot", "snapshots"
_ID = re.compile(r"[0-9a-f]{16}")


class Snapshot:
    """Results as they were, in one value that is saved as one file. Immutable. Made by `of`, `load` or `result.snapshot()`.

    Attributes:
        manifest: What the file says of itself: where it comes from, and the digest of each part.
        parts: Part -> bytes, as they are in the file.
    """

    def __init__(self, manifest: archive.Manifest, data: Mapping[str, bytes], content: Content | None = None) -> None:
        self.manifest = manifest
        self.parts = dict(data)
        self._content = content

    @classmethod
    def of(
        cls, items: Sequence[Any] | Any, *, note: str = "", corpus: Corpus | None = None, by: str | None = None
    ) -> Snapshot:
        """A snapshot of results, comparisons, evaluations and sweeps, all of one generation and one principal.

        Args:
            items: `SearchResult`, `Comparison`, `Evaluation` and `Sweep`, one or several.
            note: What to say of it.
            corpus: The corpus that was evaluated; needed where there is no search among the items.
            by: Who makes it; None is the setting `user`, or the login name.

        Raises:
            UsageError: There is nothing to save, or the items are of several generations or principals.
        """
        from workbench.snapshot.build import gather

        return cls._made(*gather(items, note=note, corpus=corpus, by=by))

    @classmethod
    def _made(cls, about: About, content: Content) -> Snapshot:
        """A snapshot of a content: its parts, its page, its manifest."""
        from workbench.snapshot.page import page

        data = archive.write_parts(content)
        data[archive.PAGE] = page(about, content).encode("utf-8")
        return cls(archive.describe(about, data), data, content)

    @classmethod
    def load(cls, source: str | Path | bytes) -> Snapshot:
        """Read a snapshot from a file or from its bytes, every digest checked and every part read.

        Raises:
            SnapshotNewer: It was written by a newer version.
            SnapshotError: There is no such file, it is no snapshot, or it is damaged.
        """
        if not isinstance(source, bytes):
            source = _read(path_of(source))
        manifest, data = archive.from_bytes(source)
        return cls(manifest, data, of_this_edition(archive.read_parts(data), manifest.about))

    def save(self, path: str | Path) -> Path:
        """Write the file, whole or not at all, and return its path; the suffix is `.snapshot` where none is given.

        Raises:
            SnapshotError: It cannot be written there.
        """
        target = path_of(path)
        target = target if target.suffix else target.with_suffix(SUFFIX)
        beside = target.with_name(f".{target.name}.{os.getpid()}.new")
        try:
            beside.write_bytes(self.to_bytes())
            os.replace(beside, target)
        except OSError as exc:
            beside.unlink(missing_ok=True)
            raise SnapshotError(
                f"The snapshot cannot be written to {target}: {exc.strerror or exc}", "Choose another place"
            ) from exc
        return target

    def to_bytes(self) -> bytes:
        """The file's bytes: the same for the same snapshot."""
        return archive.to_bytes(self.manifest, self.parts)

    # --- read ------------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """16 hex digits of the digest: two snapshots with one id hold the same."""
        return self.manifest.id

    @property
    def about(self) -> About:
        """Where it comes from, and what was left out."""
        return self.manifest.about

    @cached_property
    def content(self) -> Content:
        """Everything that the parts hold."""
        if self._content is not None:
            return self._content
        return of_this_edition(archive.read_parts(self.parts), self.about)

    @property
    def searches(self) -> tuple[SavedSearch, ...]:
        """The searches, in order."""
        return self.content.searches

    @property
    def evaluations(self) -> tuple[SavedEvaluation, ...]:
        """The evaluations, in order."""
        return self.content.evaluations

    @property
    def sweeps(self) -> tuple[SavedSweep, ...]:
        """The sweeps, in order; each one's two evaluations are among `evaluations`."""
        return self.content.sweeps

    @property
    def models(self) -> tuple[str, ...]:
        """The models and files that the plans name, as `rerank.model` and `rewrite.model` have them: whoever made the file chose
        them. Only `verify` loads any, and only those of the setting `allowed_models` unless it is told to load them all.
        """
        return self.content.models

    @property
    def title(self) -> str:
        """The first line of the note, else the first query or evaluation."""
        from workbench.snapshot.page import title_of

        return title_of(self.about, self.content)

    def hits(self, search: int = 0) -> tuple[Hit, ...]:
        """The shown rows of a search, best first. Raises UsageError for one that is not there."""
        self._check(search)
        return hits(self.content, search)

    def frame(self, search: int = 0) -> polars.DataFrame:
        """One row a candidate of a search, as `SearchResult.frame` has them: rank, path, start_line, end_line, label, score,
        chunk_id, document_id, and for each source `{source}_rank`, `{source}_score`, `{source}_contribution`.

        Raises:
            UsageError: The search is not there.
        """
        from workbench.snapshot.exports import candidates

        self._check(search)
        return candidates(self.content, search)

    def documents(self) -> polars.DataFrame:
        """The documents that the principal could see: document_id, path, content, tenant, roles, sensitivity."""
        return self.content.table("documents")

    def html(self) -> str:
        """`index.html`, drawn from the data by this version (the one in the file may be of another)."""
        from workbench.snapshot.page import page

        return page(self.about, self.content)

    def _check(self, search: int) -> None:
        if not 0 <= search < len(self.searches):
            has = f"It has {len(self.searches)} searches, counted from 0"
            raise UsageError(f"The snapshot has no search {search}", has)

    # --- cut, checked, compared --------------------------------------------------------------------------------------

    def redacted(self) -> Snapshot:
        """The same with citations in the place of passages: no text, title, section, url, metadata or context."""
        from workbench.snapshot import build

        return self._made(*build.redacted(self.about, self.content))

    def metadata_only(self) -> Snapshot:
        """The same without anything of a document: ranks, scores and ids stay, paths and passages go."""
        from workbench.snapshot import build

        return self._made(*build.metadata_only(self.about, self.content))

    def for_audience(
        self, principal: Principal | None, policy: Policy | None = None, shown: Collection[str] | None = None
    ) -> Snapshot:
        """What of it somebody may see: rows of other documents are left out.

        Args:
            principal: The audience; None may see it only where no document has a tenant or roles.
            policy: The corpus's policy: what a sensitivity means, and whether texts are masked for the audience (then their
                passages are replaced by citations); None shows every sensitivity.
            shown: Ids of the documents that they may see today; rows of others are left out. None: by access alone.

        Raises:
            PrincipalRequired: Nobody named, and some document has a tenant or roles.
        """
        from workbench.snapshot import build

        return self._made(*build.for_audience(self.about, self.content, principal, policy, shown))

    def verify(self, corpus: Corpus | str | Path | None = None, *, load_models: bool = False) -> Verification:
        """Check the digests, and where the generation is at hand run every search again and compare.

        Args:
            corpus: An open corpus, or its folder (opened as the principal who searched then); None checks the digests and
                the measures only.
            load_models: Load the models and files of `models`; else a search whose plan names one is not run again, unless
                the setting `allowed_models` lists it. A corpus that is served to others loads none but those.
        """
        from workbench.snapshot.verify import verify

        return verify(self, corpus, load_models=load_models)

    def diff(self, *others: Snapshot) -> SnapshotDiff:
        """What differs between this and other snapshots. Raises UsageError for none, or more than there are letters."""
        from workbench.snapshot.diff import LETTERS, SnapshotDiff

        if not others:
            raise UsageError("There is nothing to compare with", "Pass another snapshot")
        if len(others) >= len(LETTERS):
            raise UsageError(f"{1 + len(others)} snapshots are too many to compare", f"Compare at most {len(LETTERS)}")
        return SnapshotDiff((self, *others))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and self.manifest.digest == other.manifest.digest

    def __hash__(self) -> int:
        return hash(self.manifest.digest)

    def __repr__(self) -> str:
        return (
            f"<Snapshot {self.id} {self.title[:60]!r}: {len(self.searches)} searches, {len(self.evaluations)} evaluations, "
            f"generation {self.about.origin.generation}>"
        )

    def _repr_html_(self) -> str:
        """A summary, for a notebook."""
        from workbench.snapshot.page import summary

        return summary(self.about, self.content)


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > archive.MOST_FILE_BYTES:
            raise SnapshotError(f"{path} is larger than a snapshot may be", "Name a file that `save` wrote")
        return path.read_bytes()
    except FileNotFoundError as exc:
        raise SnapshotError(
            f"There is no snapshot at {path}", "Name a file that `workbench snapshot save` wrote"
        ) from exc
    except OSError as exc:
        raise SnapshotError(f"The snapshot {path} cannot be read: {exc.strerror or exc}", "Check the path") from exc


# --- the library of a corpus ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listed:
    """One file of a library: its snapshot, or the error that it gave."""

    path: Path
    snapshot: Snapshot | None
    error: SnapshotError | None = None


class Library:
    """The snapshots that a corpus keeps: files in its folder `snapshots/`, named by their ids.

    The folder is the list. A file that is no snapshot, or was changed, is listed with what is wrong; it is never opened as one.
    """

    def __init__(self, corpus: str | Path) -> None:
        self.folder = Path(corpus) / FOLDER

    def keep(self, snapshot: Snapshot) -> Path:
        """Save a snapshot under its id, and return the path. Raises SnapshotError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            private(self.folder)
        except OSError as exc:
            raise SnapshotError(
                f"The folder {self.folder} cannot be made: {exc.strerror or exc}", "Save to a file of your own instead"
            ) from exc
        path = snapshot.save(self._path(snapshot.id))
        private(path)
        return path

    def files(self) -> list[Path]:
        """The files, newest first."""
        found = [p for p in self.folder.glob(f"*{SUFFIX}") if p.is_file()] if self.folder.is_dir() else []
        return sorted(found, key=lambda p: (-p.stat().st_mtime_ns, p.name))

    @staticmethod
    def read(path: Path) -> Listed:
        """One file of a library, or what is wrong with it."""
        try:
            return Listed(path, Snapshot.load(path))
        except SnapshotError as exc:
            return Listed(path, None, exc)

    def all(self) -> Iterator[Listed]:
        """Every file, newest first, each opened when it is reached."""
        return map(self.read, self.files())

    def modified(self, id: str) -> int:
        """When the file of a snapshot was written, nanoseconds since 1970. Raises SnapshotError where there is none."""
        if not _ID.fullmatch(id) or not self._path(id).is_file():
            raise SnapshotError(
                "There is no snapshot with this id here", "The Snapshots page lists those that there are"
            )
        return self._path(id).stat().st_mtime_ns

    def get(self, id: str) -> Snapshot:
        """The snapshot with an id. Raises SnapshotError where there is none, or where it is damaged or another one."""
        self.modified(id)  # refuses an id of another form before it becomes a path
        snapshot = Snapshot.load(self._path(id))
        if snapshot.id != id:
            raise SnapshotError(
                f"The file {id}{SUFFIX} holds another snapshot, {snapshot.id}", "Do not trust this file"
            )
        return snapshot

    def remove(self, id: str) -> None:
        """Delete a snapshot; one that is not there is no error."""
        if _ID.fullmatch(id):
            self._path(id).unlink(missing_ok=True)

    def _path(self, id: str) -> Path:
        return self.folder / f"{id}{SUFFIX}"
