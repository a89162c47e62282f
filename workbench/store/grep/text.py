"""The one mapped text file of a generation: every document's text, one after the other, with the way back to lines.

grep must run RE2 over whole documents at memory speed, and show lines and characters of what it found. So the texts
stand in one file (UTF-8, document number order) that every reader maps and nobody copies, beside a few mapped arrays:
where each document starts and ends, where each line starts, and how many characters precede every 4,096th byte. A byte
offset becomes a line by one binary search, and a character offset by counting less than 4,096 bytes.

Files in the folder: `text.bin`, `text_starts.npy` and `text_ends.npy` (int64, bytes, per document), `text_lines.npy`
(int64, byte where each line starts, and the file's size at the end), `text_first_lines.npy` (int64, number of each
document's first line, and the number of lines at the end), `text_characters.npy` (int64, characters before each block),
`text_lengths.npy` (int64, characters of each document), `text_long_lines.npy` (int64, numbers of the lines of more than
`LONG_LINE` bytes); and for searches that ignore case `text_lower.bin` (the text with ASCII capitals made small, so that its
offsets are the same) and `text_odd_lines.npy` (int64, lines with a character beyond ASCII that is a case of an ASCII letter: the
Kelvin sign or the long s). Each text ends
with a newline in the file, added where it lacks one, so that no match runs from one document into the next. A newline
ends a line: `a` and `a` with a newline are one line, the empty text is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.records import Progress, ProgressCallback
from workbench.store.arrays import load_array, map_bytes
from workbench.store.generations import damaged

BLOCK = 4096
"""Bytes between two stored character counts."""

LONG_LINE = 1000
"""Lines of more bytes than this are listed, since showing them takes cutting them."""

_SLAB = 1 << 22
_ODD_CASES = re.compile("\u212a|\u017f".encode())


class _Column:
    """An int64 array that grows on disk: written as raw numbers, given its .npy header when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._raw = path.with_suffix(".raw")
        self._file = self._raw.open("wb")
        self.length = 0

    def append(self, values: NDArray[np.int64]) -> None:
        self._file.write(values.tobytes())
        self.length += len(values)

    def close(self) -> None:
        self._file.close()
        with self._path.open("wb") as out, self._raw.open("rb") as raw:
            header = {"descr": "<i8", "fortran_order": False, "shape": (self.length,)}
            np.lib.format.write_array_header_1_0(out, header)
            while slab := raw.read(_SLAB):
                out.write(slab)
        self._raw.unlink()


def build_text(folder: Path | str, texts: Iterable[str], progress: ProgressCallback | None = None) -> int:
    """Write the text file and its arrays.

    Args:
        folder: Where to write; made if it is missing.
        texts: The documents' texts in document number order; each is let go before the next is taken.
        progress: Called now and then with the number of documents written (the total is not known: 0).

    Returns:
        The number of documents.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = (
        "text_starts",
        "text_ends",
        "text_lengths",
        "text_lines",
        "text_first_lines",
        "text_characters",
        "text_long_lines",
        "text_odd_lines",
    )
    starts, ends, lengths, lines, first_lines, characters, long_lines, odd_lines = columns = tuple(
        _Column(folder / f"{name}.npy") for name in names
    )
    size = in_block = counted = documents = 0
    with (folder / "text.bin").open("wb") as out, (folder / "text_lower.bin").open("wb") as lowered:
        for text in texts:
            data = text.encode("utf-8")
            starts.append(np.array([size], np.int64))
            ends.append(np.array([size + len(data)], np.int64))
            lengths.append(np.array([len(text)], np.int64))
            first_lines.append(np.array([lines.length], np.int64))
            if data and not data.endswith(b"\n"):
                data += b"\n"
            out.write(data)
            lowered.write(data.lower())
            raw = np.frombuffer(data, np.uint8)
            newlines = np.flatnonzero(raw == 10)
            if len(newlines):
                line_starts = np.concatenate(([0], newlines[:-1] + 1))
                long_lines.append(np.flatnonzero(newlines - line_starts > LONG_LINE) + lines.length)
                odd = [at.start() for at in _ODD_CASES.finditer(data)]
                odd_lines.append(np.unique(np.searchsorted(line_starts, odd, side="right") - 1) + lines.length)
                lines.append(line_starts + size)
            for at in range(0, len(raw), _SLAB):
                sums, in_block, counted = _block_counts(raw[at : at + _SLAB], (size + at) % BLOCK, in_block, counted)
                characters.append(sums)
            size += len(data)
            documents += 1
            if progress is not None and documents % 1000 == 0:
                progress(Progress("text", documents, 0))
    characters.append(np.array([counted] if in_block or not characters.length else [], np.int64))
    lines.append(np.array([size], np.int64))
    first_lines.append(np.array([lines.length - 1], np.int64))
    for column in columns:
        column.close()
    if progress is not None:
        progress(Progress("text", documents, documents))
    return documents


def _block_counts(
    raw: NDArray[np.uint8], offset: int, in_block: int, counted: int
) -> tuple[NDArray[np.int64], int, int]:
    """Characters before each block that is completed by these bytes; then the characters in and before the open one."""
    cuts = np.arange(-offset, len(raw), BLOCK)
    cuts[0] = 0
    per_piece = np.add.reduceat((raw & 0xC0) != 0x80, cuts, dtype=np.int64)
    per_piece[0] += in_block
    before = counted + np.concatenate(([0], np.cumsum(per_piece)))
    complete = len(per_piece) if (offset + len(raw)) % BLOCK == 0 else len(per_piece) - 1
    open_count = 0 if complete == len(per_piece) else int(per_piece[-1])
    return before[:complete], open_count, int(before[complete])


class MappedText:
    """The text file of a generation, read-only; safe from several threads, since nothing in it changes.

    Args:
        folder: Where `build_text` wrote.

    Attributes:
        data, lowered: The mapped bytes, and the same with ASCII capitals made small.
        starts, ends: int64 (d,), bytes of each document's text in the file; the end leaves out an added newline.
        lengths: int64 (d,), characters of each document's text.
        line_starts: int64 (lines + 1,), byte where each line of the file starts; the last is the file's size.
        long_lines: int64, numbers of the lines of more than `LONG_LINE` bytes, ascending.
        odd_lines: int64, numbers of the lines with a character beyond ASCII that is a case of an ASCII letter, ascending.
        first_lines: int64 (d + 1,), number in the file of each document's first line; the last is the number of lines.

    Raises:
        CorpusDamaged: A file is missing, or the files do not fit each other.
    """

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder)
        self.data = map_bytes(folder / "text.bin")
        self.starts = load_array(folder / "text_starts.npy")
        self.ends = load_array(folder / "text_ends.npy")
        self.lengths = load_array(folder / "text_lengths.npy")
        self.line_starts = load_array(folder / "text_lines.npy")
        self.first_lines = load_array(folder / "text_first_lines.npy")
        self.long_lines = load_array(folder / "text_long_lines.npy")
        self.lowered = map_bytes(folder / "text_lower.bin")
        self.odd_lines = load_array(folder / "text_odd_lines.npy")
        self._characters = load_array(folder / "text_characters.npy")
        fits = len(self.starts) == len(self.ends) == len(self.first_lines) - 1
        if not fits or not int(self.line_starts[-1]) == len(self.data) == len(self.lowered):
            raise damaged(folder / "text.bin", "does not fit its lines")

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.starts)

    def text(self, document: int) -> str:
        """A document's whole text. Raises IndexError for a number outside 0..d-1."""
        self._check(document)
        return self.data[int(self.starts[document]) : int(self.ends[document])].decode("utf-8")

    def slice(self, document: int, start: int, end: int) -> str:
        """The characters `start` (included) to `end` (excluded) of a document's text, clipped to it."""
        self._check(document)
        if end <= start:
            return ""
        first, last = self.byte_offset(document, max(0, start)), self.byte_offset(document, end)
        return self.data[first:last].decode("utf-8")

    def character_offset(self, document: int, offset: int) -> int:
        """Character offset in the document of a byte offset in the file (at the start of a character)."""
        start = int(self.starts[document])
        if self.ends[document] - start == self.lengths[document]:
            return offset - start
        return self._characters_before(offset) - self._characters_before(start)

    def byte_offset(self, document: int, character: int) -> int:
        """Byte offset in the file of a document's character; an offset past its end gives its end."""
        wanted = self._characters_before(int(self.starts[document])) + character
        block = int(np.searchsorted(self._characters, wanted, side="right")) - 1
        limit = int(self.ends[document])
        start = block * BLOCK
        raw = np.frombuffer(self.data[start : start + BLOCK], np.uint8)
        leads = np.flatnonzero((raw & 0xC0) != 0x80)
        inside = wanted - int(self._characters[block])
        return min(limit, start + int(leads[inside])) if inside < len(leads) else min(limit, start + len(raw))

    def _characters_before(self, offset: int) -> int:
        block = min(offset // BLOCK, len(self._characters) - 1)
        raw = np.frombuffer(self.data[block * BLOCK : offset], np.uint8)
        return int(self._characters[block]) + int(np.count_nonzero((raw & 0xC0) != 0x80))

    def _check(self, document: int) -> None:
        if not 0 <= document < len(self):
            raise IndexError(f"there is no document {document}; the text file holds {len(self)}")
