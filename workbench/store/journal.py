"""Embeddings made so far, so that an interrupted run goes on where it stopped.

One append-only file for each encoder digest: rows of fixed size, the 16 bytes of the text's hash, the vector, and a CRC-32 of
both. A row is written after the batch that made it and before the next one starts, so a kill loses one batch at most. A torn
or damaged tail is cut off when the file is opened for writing and ignored when it is read. Rows that a
published generation holds are dropped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.records import EncoderIdentity

_HASH = 16


class Journal:
    """The journal of one encoder below the corpus's folder of journals, open for appending. Vectors of another digest, runtime or
    dimension are never mixed in.
    """

    def __init__(self, folder: Path, identity: EncoderIdentity) -> None:
        self.folder = folder / journal_name(identity)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "vectors.journal"
        self._row = np.dtype([("hash", f"V{_HASH}"), ("vector", "<f4", (identity.dim,)), ("crc", "<u4")])
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 - lives as long as this object
        rows = self._map()
        damaged = (n for n, row in enumerate(rows) if _checksum(row) != row["crc"])
        self._file.truncate(next(damaged, len(rows)) * self._row.itemsize)

    def _map(self) -> NDArray[np.void]:
        whole = self.path.stat().st_size // self._row.itemsize
        return np.memmap(self.path, self._row, "r", shape=(whole,)) if whole else np.zeros(0, self._row)

    def __len__(self) -> int:
        return len(self._map())

    def hashes(self) -> list[str]:
        """Hex hashes of the rows, in order; a hash that is there twice has the same vector twice."""
        return [bytes(h).hex() for h in self._map()["hash"]]

    def vectors(self) -> NDArray[np.float32]:
        """The vectors by row, float32 (n, dim), mapped."""
        return np.asarray(self._map()["vector"])

    def append(self, hashes: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add vectors, float32 (m, dim), under their hashes, in one write."""
        rows = np.zeros(len(hashes), self._row)
        rows["hash"] = [np.void(bytes.fromhex(h)) for h in hashes]
        rows["vector"] = vectors
        rows["crc"] = np.fromiter(map(_checksum, rows), np.uint32, len(rows))
        data = memoryview(rows.tobytes())
        while data:
            data = data[self._file.write(data) :]

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def journal_name(identity: EncoderIdentity) -> str:
    """Name of an encoder's folder: where two encoders may not be compared, or ran differently, the names differ."""
    known = f"{identity.name}\n{identity.digest}\n{identity.runtime}\n{identity.dim}"
    return hashlib.sha256(known.encode()).hexdigest()[:16]


def forget(journal: Journal, saved: Collection[str], most: int) -> None:
    """Drop the rows whose hashes are in `saved`, which a published generation holds, and close the journal.

    What it does not hold stays: texts of a run over another folder that was interrupted, and the parts of whole documents,
    which an edit elsewhere in the document needs again. The newest `most` of them stay, so the file cannot grow for ever.
    """
    hashes = journal.hashes()
    kept = [row for row in {h: row for row, h in enumerate(hashes)}.values() if hashes[row] not in saved][-most:]
    rows = np.array(journal._map()[kept]) if kept else None
    journal.close()
    path = journal.path
    if rows is None:
        shutil.rmtree(path.parent)
        with suppress(OSError):  # other encoders' journals may be beside it
            path.parent.parent.rmdir()
        return
    fresh = path.with_suffix(".new")
    with open(fresh, "wb") as file:
        file.write(rows.tobytes())
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)


def _checksum(row: np.void) -> int:
    return zlib.crc32(row["vector"].tobytes(), zlib.crc32(bytes(row["hash"])))
