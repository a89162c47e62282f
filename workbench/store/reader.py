"""An open generation: its records, words, vectors and lines, all read-only and pinned until it is closed.

The parts are opened when they are first asked for, because a keyword search needs no vectors and the command line wants to
start at once, and each is compared with its digest before that; `open_all` opens them together. All of them belong to one
generation: the pin keeps its folder on disk. Whoever opens the same generation in this process, for whatever principal, uses the
same open files.
"""

from __future__ import annotations

import os
import shlex
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from workbench import settings
from workbench.errors import CorpusError, EncoderMismatch, SourceUnavailable
from workbench.ingest.rules import CorpusRules, access_changes
from workbench.records import EncoderIdentity
from workbench.store import generations
from workbench.store.access.visibility import Access, Policy
from workbench.store.arrays import Columns
from workbench.store.database import Database, fetch
from workbench.store.generations import DATABASE, Pin
from workbench.store.records import StoredRecords, stored_access
from workbench.store.types import Vectors

if TYPE_CHECKING:
    from workbench.store.grep.search import MappedGrep
    from workbench.store.lexical.search import LexicalIndex
    from workbench.store.milvus.read import MilvusParts


class _Files:
    """The open files of one generation, shared by every `Generation` of it in this process; the last one closes them."""

    def __init__(self, key: tuple[object, ...], held: Pin) -> None:
        self.key, self.pin, self.users = key, held, 0
        self.lock = threading.RLock()
        self.connection = Database(held.folder / DATABASE, partial(held.check, DATABASE))
        held.check("records/")
        self.columns = Columns(held.folder / "records")
        if settings.get("verify") == "background":
            threading.Thread(target=held.sound, name="workbench-verify", daemon=True).start()
        self.remote: MilvusParts | None = None
        if held.manifest.remote:
            from workbench.store.milvus.read import MilvusParts

            self.remote = MilvusParts(held.manifest.remote, self.columns)
        self.lexical: LexicalIndex | None = None
        self.grep: MappedGrep | None = None
        self.vectors: dict[str, Vectors] = {}
        self._narrowed: LRUCache[str, tuple[tuple[Access, ...], NDArray[np.int32]]] = LRUCache(_KEPT_RULES)

    def access(self, rules: CorpusRules) -> tuple[tuple[Access, ...], NDArray[np.int32]]:
        """Who sees documents under the rules of today: kinds of access, and each document's code among them, int32 (d,)."""
        kinds, codes = stored_access(self.columns)
        digest, declared = rules.access_digest(), rules.access()
        if not declared or digest == self.pin.manifest.rules:
            return kinds, codes
        with self.lock:
            if digest in self._narrowed:
                return self._narrowed[digest]
            sql = "SELECT d.number, f.path FROM documents d JOIN files f ON f.number = d.file_number"
            of_path: dict[str, dict[str, Any]] = {}
            now = dict(enumerate(kinds[code] for code in codes.tolist()))
            for number, path in fetch(self.connection, sql):
                if path not in of_path:
                    of_path[path] = access_changes(declared, path)
                if of_path[path]:
                    now[number] = now[number].under(of_path[path])
            distinct = tuple(dict.fromkeys(now.values()))
            place = {kind: code for code, kind in enumerate(distinct)}
            made = distinct, np.fromiter((place[now[n]] for n in range(len(codes))), np.int32, len(codes))
            self._narrowed[digest] = made
            return made

    def close(self) -> None:
        if self.grep is not None:
            self.grep.close()
        self.connection.close()
        self.pin.close()


_open: dict[tuple[object, ...], _Files] = {}
_open_lock = threading.RLock()
_KEPT_RULES = 4


class Generation:
    """One generation, open for reading, under a policy (None shows every sensitivity) and the corpus's rules of today (None
    leaves access as it was indexed). Safe from several threads. Use `open_generation`.

    Attributes:
        id, folder, manifest: Of the generation.
        encoders: Key of each vector folder to the encoder that made it.
    """

    def __init__(
        self, corpus: Path, files: _Files, policy: Policy | None = None, rules: CorpusRules | None = None
    ) -> None:
        self.corpus, self._files, self._closed = corpus, files, False
        self.folder, self.manifest = files.pin.folder, files.pin.manifest
        self.id, self.encoders = self.manifest.generation, self.manifest.encoders
        with _open_lock:
            files.users += 1
        try:
            access = None if rules is None else files.access(rules)
            texts = files.remote.texts if files.remote is not None else None
            self.records = StoredRecords(files.connection, files.columns, self.manifest, policy, access, rules, texts)
        except BaseException:
            self.close()
            raise

    def under(self, policy: Policy | None, rules: CorpusRules | None) -> Generation:
        """The same generation under another policy and other rules, to be closed by itself."""
        return Generation(self.corpus, self._files, policy, rules)

    @property
    def lexical(self) -> LexicalIndex:
        """The word index. Raises CorpusDamaged."""
        with self._files.lock:
            if self._files.lexical is None and self._files.remote is not None:
                self._files.lexical = self._files.remote.words(self.records)
            if self._files.lexical is None:
                from workbench.store.lexical.search import LexicalIndex

                self._files.lexical = LexicalIndex(self._files.connection)
            return self._files.lexical

    @property
    def grep(self) -> MappedGrep:
        """The line index. Raises CorpusDamaged."""
        self._files.pin.check("text/")
        with self._files.lock:
            if self._files.grep is None:
                from workbench.store.grep.search import MappedGrep

                remote = self._files.remote
                self._files.grep = MappedGrep(
                    self.folder / "text" if remote is None else remote.texts, self._files.columns
                )
            return self._files.grep

    def vectors(self, encoder: str = "") -> Vectors:
        """The vectors of one encoder: "" is the corpus's own. Raises EncoderMismatch, CorpusDamaged."""
        key = self.encoder_key(encoder)
        self._files.pin.check(f"vectors/{key}/")
        with self._files.lock:
            if key not in self._files.vectors and self._files.remote is not None:
                self._files.vectors[key] = self._files.remote.vectors(key, self.encoders[key])
            if key not in self._files.vectors:
                from workbench.store.vectors import VectorIndex

                self._files.vectors[key] = VectorIndex(self.folder / "vectors" / key)
            return self._files.vectors[key]

    def encoder_key(self, encoder: str = "") -> str:
        """Key of an encoder by its name or key; "" is the corpus's own. Raises EncoderMismatch naming those there are."""
        if not encoder and self.manifest.encoder:
            return self.manifest.encoder
        for key, identity in self.encoders.items():
            if encoder in (key, identity.name):
                return key
        names = ", ".join(identity.name for _, identity in sorted(self.encoders.items())) or "none"
        raise EncoderMismatch(
            f"This corpus has no vectors of {encoder or 'any encoder'}",
            f"It has those of {names}; name them all to add one: workbench index PATH --encoder A --encoder B",
        )

    def check_encoder(self, identity: EncoderIdentity, encoder: str = "") -> None:
        """Refuse an encoder whose vectors may not be compared with the stored ones: its weights or dimension differ. The runtime
        may differ: it was checked to agree. Raises EncoderMismatch.
        """
        stored, given = self.encoders[self.encoder_key(encoder)], identity
        if (stored.digest, stored.dim) == (given.digest, given.dim):
            return
        if stored.name == given.name:
            raise EncoderMismatch(
                f"The corpus was embedded with other weights of {given.name} ({stored.digest[:8]}) than this machine has"
                f" ({given.digest[:8]})",
                "Bring those weights here, or embed again: index without this encoder, then with it",
            )
        raise EncoderMismatch(
            f"The corpus was embedded with {stored.name} ({stored.digest[:8]}), not with {given.name} ({given.digest[:8]})",
            f"Open it with encoder={stored.name!r}, or index its folders again with encoder={given.name!r}",
        )

    def open_all(self) -> None:
        _ = self.lexical.lengths, self.grep
        for key in self.encoders:
            self.vectors(key)

    def verify(self) -> None:
        self._files.pin.check(again=True)

    def is_current(self) -> bool:
        """Whether this generation answers; where the store does not say, the one that is open does."""
        if self.manifest.remote:
            with suppress(SourceUnavailable):
                follow_store(self.corpus)
        return generations.current(self.corpus) == self.id

    def close(self) -> None:
        """Let go of everything; more than once does nothing. What was fetched before stays usable."""
        with _open_lock:
            self._files.users -= not self._closed
            last, self._closed = not self._closed and not self._files.users, True
            if last:
                _open.pop(self._files.key, None)
        if last:
            self._files.close()

    def __enter__(self) -> Generation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_generation(corpus: str | Path, policy: Policy | None = None, rules: CorpusRules | None = None) -> Generation:
    """Open the current generation of a corpus and keep it on disk until it is closed; see `Generation`. Raises
    CorpusNotFound, and CorpusDamaged where a part is missing or not as it was written.
    """
    folder = Path(corpus)
    follow_store(folder)
    return open_pinned(folder, generations.pin(folder), policy, rules)


def follow_store(folder: Path) -> None:
    """Bring the generation that answers on the store that the setting names, if it is another one than here.

    Raises SourceUnavailable where the store gives no answer and there is none here, CorpusNotFound.
    """
    if settings.get("store"):
        from workbench.store.milvus.write import fetch_generation

        try:
            fetch_generation(folder)
        except SourceUnavailable:
            if not generations.exists(folder):
                raise


def open_pinned(folder: Path, held: Pin, policy: Policy | None = None, rules: CorpusRules | None = None) -> Generation:
    """Open a generation that is pinned, perhaps one that is not published yet; the pin is closed with it.

    Files that are no longer those that were opened (damaged, or put back) are opened again.
    """
    with _open_lock:
        try:
            if held.manifest.format != generations.FORMAT:
                raise CorpusError(
                    f"The corpus at {folder} was written by an earlier version of the workbench",
                    f"Run `workbench index` with its folders and --corpus {shlex.quote(str(folder))} once: its vectors are kept",
                )
            key = (os.getpid(), str(held.folder.absolute()), *held.stamps())
            files = _open.get(key) or _Files(key, held)
        except BaseException:
            held.close()
            raise
        if files.pin is not held:
            held.close()
        _open[key] = files
        return Generation(folder, files, policy, rules)
