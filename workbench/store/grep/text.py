"""The one mapped text file of a generation: every document's text, one after the other, with the way back to lines.

grep must run RE2 over whole documents at memory speed, and show lines and characters of what it found. So the texts
are in one file (UTF-8, document number order) that every reader maps and nobody copies, beside a few mapped arrays.

Files in the folder: `text.bin`; `text_ends.npy` (byte where each document's text ends), `text_first_lines.npy` (number of each
document's first line, and the number of lines at the end), `text_lines.npy` and `text_characters.npy` (byte where each line
starts and the characters before it, and those of the whole file at the end), all int64; and for searches that ignore case
`text_lower.bin` (the text with ASCII capitals made small, so that its offsets are the same) and `text_odd_lines.npy` (lines
with a character beyond ASCII that is a case of an ASCII letter: the Kelvin sign or the long s). Each text ends with a newline in
the file, added where it lacks one, so that no match runs from one document into the next. A newline ends a line: `a` and `a` with
a newline are one line, the empty text is none.
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

_ODD_CASES = re.compile("\u212a|\u017f".encode())

Ints = NDArray[np.int64]


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
    ends: list[int] = []
    first_lines: list[int] = []
    starts, characters, odd_lines = ([np.zeros(0, np.int64)] for _ in range(3))
    size = lines = before = 0
    with (folder / "text.bin").open("wb") as out, (folder / "text_lower.bin").open("wb") as lowered:
        for text in texts:
            data = text.encode()
            ends.append(size + len(data))
            first_lines.append(lines)
            if data and not data.endswith(b"\n"):
                data += b"\n"
            out.write(data)
            lowered.write(data.lower())
            raw = np.frombuffer(data, np.uint8)
            own = np.flatnonzero(np.append(True, raw[:-1] == 10)) if data else np.zeros(0, np.int64)
            if data:
                counts = np.add.reduceat((raw & 0xC0) != 0x80, own, dtype=np.int64)
                characters.append(before + np.cumsum(counts) - counts)
                before += int(counts.sum())
            odd = [match.start() for match in _ODD_CASES.finditer(data)]
            odd_lines.append(np.unique(np.searchsorted(own, odd, side="right") - 1) + lines)
            starts.append(own + size)
            size, lines = size + len(data), lines + len(own)
            if progress is not None and len(ends) % 1000 == 0:
                progress(Progress("text", len(ends), 0))
    arrays = {
        "text_ends": ends,
        "text_first_lines": [*first_lines, lines],
        "text_lines": np.append(np.concatenate(starts), size),
        "text_characters": np.append(np.concatenate(characters), before),
        "text_odd_lines": np.concatenate(odd_lines),
    }
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", np.asarray(values, np.int64))
    if progress is not None:
        progress(Progress("text", len(ends), len(ends)))
    return len(ends)


class MappedText:
    """The text file of a generation, read-only; safe from several threads, since nothing in it changes.

    Args:
        folder: Where `build_text` wrote.

    Attributes:
        data, lowered: The mapped bytes, and the same with ASCII capitals made small.
        line_starts: int64 (lines + 1,), byte where each line of the file starts; the last is the file's size.
        line_characters: int64 (lines + 1,), characters of the file before each line.
        first_lines: int64 (d + 1,), number in the file of each document's first line; the last is the number of lines.
        odd_lines: int64, numbers of the lines with a character beyond ASCII that is a case of an ASCII letter, ascending.

    Raises:
        CorpusDamaged: A file is missing, or the files do not fit each other.
    """

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder)
        self.data, self.lowered = map_bytes(folder / "text.bin"), map_bytes(folder / "text_lower.bin")
        self.line_starts: Ints = load_array(folder / "text_lines.npy")
        self.line_characters: Ints = load_array(folder / "text_characters.npy")
        self.first_lines: Ints = load_array(folder / "text_first_lines.npy")
        self.odd_lines: Ints = load_array(folder / "text_odd_lines.npy")
        self._ends: Ints = load_array(folder / "text_ends.npy")
        fits = len(self._ends) == len(self.first_lines) - 1 and len(self.line_starts) == len(self.line_characters)
        if not fits or not int(self.line_starts[-1]) == len(self.data) == len(self.lowered):
            raise damaged(folder / "text.bin", "does not fit its lines")

    def __len__(self) -> int:
        """Number of documents."""
        return len(self._ends)

    def text(self, document: int) -> str:
        """A document's whole text. Raises IndexError for a number outside 0..d-1."""
        if not 0 <= document < len(self):
            raise IndexError(f"there is no document {document}; the text file holds {len(self)}")
        return self.data[int(self.line_starts[self.first_lines[document]]) : int(self._ends[document])].decode()

    def document_of(self, lines: Ints) -> Ints:
        """The document of each line."""
        found: Ints = np.searchsorted(self.first_lines, lines, side="right") - 1
        return found

    def line_bytes(self, line: int) -> tuple[int, int]:
        """First and last byte of a line, without its newline."""
        return int(self.line_starts[line]), int(self.line_starts[line + 1]) - 1

    def line_span(self, document: int, line: int) -> tuple[int, int]:
        """First and last character of a line in its document's text, without its newline."""
        before, first, after = self.line_characters[[self.first_lines[document], line, line + 1]].tolist()
        return first - before, after - before - 1
