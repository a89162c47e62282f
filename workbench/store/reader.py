"""An open generation: its records, words, vectors and lines, all read-only and pinned until it is closed.

The parts are opened when they are first asked for, because a keyword search needs no vectors and the command line wants to
start at once; `open_all` opens them together. All of them belong to one generation: the pin keeps its folder on disk.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from workbench.errors import EncoderMismatch
from workbench.records import EncoderIdentity
from workbench.store import generations
from workbench.store.columns import Columns
from workbench.store.duck import open_reading
from workbench.store.generations import DATABASE, Manifest, Pin
from workbench.store.place_arrays import Places
from workbench.store.stored import StoredRecords
from workbench.store.visibility import Policy

if TYPE_CHECKING:
    from workbench.store.grep import MappedGrep
    from workbench.store.lexical import MappedLexical
    from workbench.store.vectors import MappedVectors

__all__ = ["Generation", "StoredRecords", "check_encoder", "open_generation"]


class Generation:
    """One generation, open for reading. Safe from several threads. Use `open_generation`.

    Args:
        corpus: The corpus folder.
        held: The pinned generation; closed with this.
        policy: What a sensitivity means for who asks; None shows every sensitivity.
    """

    def __init__(self, corpus: Path, held: Pin, policy: Policy | None = None) -> None:
        self.corpus = corpus
        self._pin = held
        self._lock = threading.RLock()
        self._connection = open_reading(held.folder / DATABASE)
        try:
            columns, places = Columns(held.folder / "records"), Places(held.folder / "text")
            self.records = StoredRecords(self._connection, columns, held.manifest, policy, places)
        except BaseException:
            self._connection.close()
            raise
        self._lexical: MappedLexical | None = None
        self._grep: MappedGrep | None = None
        self._vectors: dict[str, MappedVectors] = {}

    @property
    def id(self) -> str:
        """Id of the generation."""
        return self._pin.manifest.generation

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self._pin.folder

    @property
    def manifest(self) -> Manifest:
        """What it says about itself."""
        return self._pin.manifest

    @property
    def encoders(self) -> Mapping[str, EncoderIdentity]:
        """Key of each vector folder to the encoder that made it."""
        return self.manifest.encoders

    @property
    def lexical(self) -> MappedLexical:
        """The word index. Raises CorpusDamaged."""
        with self._lock:
            if self._lexical is None:
                from workbench.store.lexical import MappedLexical

                self._lexical = MappedLexical(self.folder / "lexical")
            return self._lexical

    @property
    def grep(self) -> MappedGrep:
        """The line index. Raises CorpusDamaged."""
        with self._lock:
            if self._grep is None:
                from workbench.store.grep import MappedGrep

                text = self.folder / "text"
                self._grep = MappedGrep(text, text, text)
            return self._grep

    def vectors(self, encoder: str = "") -> MappedVectors:
        """The vectors of one encoder: "" is the corpus's own. Raises EncoderMismatch, CorpusDamaged."""
        key = self.encoder_key(encoder)
        with self._lock:
            if key not in self._vectors:
                from workbench.store.vectors import MappedVectors

                self._vectors[key] = MappedVectors(self.folder / "vectors" / key)
            return self._vectors[key]

    def encoder_key(self, encoder: str = "") -> str:
        """Key of an encoder by its name or key; "" is the corpus's own. Raises EncoderMismatch naming those there are."""
        if not encoder and self.manifest.encoder:
            return self.manifest.encoder
        for key, identity in self.encoders.items():
            if encoder in (key, identity.name):
                return key
        raise EncoderMismatch(
            f"This corpus has no vectors of {encoder or 'any encoder'}",
            f"It has those of {_names(self.encoders)}; name them all to add one: workbench index PATH --encoder A --encoder B",
        )

    def check_encoder(self, identity: EncoderIdentity, encoder: str = "") -> None:
        """Refuse an encoder whose vectors may not be compared with the stored ones. Raises EncoderMismatch."""
        check_encoder(self.encoders[self.encoder_key(encoder)], identity)

    def open_all(self) -> None:
        """Open every part now, so that damage shows now. Raises CorpusDamaged."""
        _ = self.lexical, self.grep
        for key in self.encoders:
            self.vectors(key)

    def verify(self) -> None:
        """Read every byte and compare it with the manifest's digests. Raises CorpusDamaged."""
        generations.verify(self.folder, self.manifest)

    def is_current(self) -> bool:
        """Whether the corpus's pointer still names this generation."""
        return generations.current(self.corpus) == self.id

    def close(self) -> None:
        """Let go of everything; more than once does nothing. What was fetched before stays usable."""
        with self._lock:
            if self._pin.closed:
                return
            if self._grep is not None:
                self._grep.close()
            self._connection.close()
            self._pin.close()

    def __enter__(self) -> Generation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_generation(corpus: str | Path, policy: Policy | None = None) -> Generation:
    """Open the current generation of a corpus and keep it on disk until it is closed.

    Raises:
        CorpusNotFound: Nothing was indexed there yet.
        CorpusDamaged: A part is missing or not as it was written.
    """
    folder = Path(corpus)
    held = generations.pin(folder)
    try:
        return Generation(folder, held, policy)
    except BaseException:
        held.close()
        raise


def check_encoder(stored: EncoderIdentity, given: EncoderIdentity) -> None:
    """Refuse to compare vectors of two encoders. The runtime may differ: it was checked to agree.

    Raises:
        EncoderMismatch: Name, weights or dimension differ.
    """
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


def _names(encoders: Mapping[str, EncoderIdentity]) -> str:
    return ", ".join(identity.name for _, identity in sorted(encoders.items())) or "none"
