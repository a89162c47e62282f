"""The one mapped text file of a generation: every document's text, one after the other, with the way back to lines.

grep must run RE2 over whole documents at memory speed, and show lines and characters of what it found. So the texts
are in one file (UTF-8, document number order) that every reader maps and nobody copies, beside a few mapped arrays.

Files in the folder: `text.bin`; `text_lower.bin`, the text with ASCII capitals made small (so that its offsets are the same), for
searches that ignore case; and `lines.arrays`: `ends` (byte where each document's text ends), `first_lines` (number of each
document's first line, and the number of lines at the end), `starts` and `characters` (byte where each line starts and the
characters before it, and those of the whole file at the end), all int64. Each text ends with a newline in the file, added where
it lacks one, so that no match runs from one document into the next. A newline ends a line: `a` and `a` with a newline are one
line, the empty text is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.records import Progress, ProgressCallback
from workbench.store.arrays import load_arrays, map_bytes, save_arrays
from workbench.store.generations import damaged

if TYPE_CHECKING:
    from workbench.store.grep.pattern import GrepPattern

LINES = "lines.arrays"

Ints = NDArray[np.int64]


def build_text(folder: Path | str, texts: Iterable[str], progress: ProgressCallback | None = None) -> int:
    """Write the text file and its arrays into a folder, which is made if it is missing, and return the number of documents.
    `texts` come in document number order, and each is let go before the next is taken; `progress` is called now and then with
    the number of documents written (the total is not known: 0).
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ends: list[int] = []
    first_lines: list[int] = []
    starts, characters = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
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
            own, counts = _lines(data)
            characters.append(before + np.cumsum(counts) - counts)
            before += int(counts.sum())
            starts.append(own + size)
            size, lines = size + len(data), lines + len(own)
            if progress is not None and len(ends) % 1000 == 0:
                progress(Progress("text", len(ends), 0))
    arrays = {
        "ends": ends,
        "first_lines": [*first_lines, lines],
        "starts": np.append(np.concatenate(starts), size),
        "characters": np.append(np.concatenate(characters), before),
    }
    save_arrays(folder / LINES, {name: np.asarray(values, np.int64) for name, values in arrays.items()})
    if progress is not None:
        progress(Progress("text", len(ends), len(ends)))
    return len(ends)


def _lines(data: bytes) -> tuple[Ints, Ints]:
    """Byte where each line of a text starts, and its characters."""
    raw = np.frombuffer(data, np.uint8)
    own = np.flatnonzero(np.append(True, raw[:-1] == 10)) if data else np.zeros(0, np.int64)
    return own, np.add.reduceat((raw & 0xC0) != 0x80, own, dtype=np.int64) if data else own


class MappedText:
    """The text file of a generation, which `build_text` wrote; read-only, and safe from several threads, since nothing in it
    changes.

    Attributes:
        data, lowered: The mapped bytes, and the same with ASCII capitals made small.
        line_starts, line_characters: int64 (lines + 1,), byte where each line of the file starts, and the characters before it.
        first_lines: int64 (d + 1,), number in the file of each document's first line; the last is the number of lines.

    Raises CorpusDamaged where a file is missing, or the files do not fit each other.
    """

    complete = True
    """Whether no text that may hold a match is missing."""

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder)
        self.data, self.lowered = map_bytes(folder / "text.bin"), map_bytes(folder / "text_lower.bin")
        arrays, _ = load_arrays(folder / LINES)
        self.line_starts, self.line_characters = arrays["starts"], arrays["characters"]
        self.first_lines, self._ends = arrays["first_lines"], arrays["ends"]
        if not int(self.line_starts[-1]) == len(self.data) == len(self.lowered):
            raise damaged(folder / "text.bin", "does not fit its lines")

    def __len__(self) -> int:
        return len(self._ends)

    def holding(self, patterns: Sequence[GrepPattern], documents: Ints | None) -> MappedText:
        """The text in which matches are looked for: this one."""
        return self

    def text(self, document: int) -> str:
        """A document's whole text. Raises IndexError for a number outside 0..d-1."""
        if not 0 <= document < len(self):
            raise IndexError(f"there is no document {document}; the text file holds {len(self)}")
        return self.data[int(self.line_starts[self.first_lines[document]]) : int(self._ends[document])].decode()

    def document_of(self, lines: Ints) -> Ints:
        found: Ints = np.searchsorted(self.first_lines, lines, side="right") - 1
        return found

    def line_of(self, places: Ints) -> Ints:
        """The lines in which bytes of the file are."""
        found: Ints = np.searchsorted(self.line_starts, places, side="right") - 1
        return found

    def line_span(self, document: int, line: int) -> tuple[int, int]:
        """First and last character of a line in its document's text, without its newline."""
        before, first, after = self.line_characters[[self.first_lines[document], line, line + 1]].tolist()
        return first - before, after - before - 1


class LoadedText(MappedText):
    """The same of some documents, by number, of so many; the others are empty."""

    def __init__(self, texts: Mapping[int, str], total: int, *, complete: bool) -> None:
        numbers = sorted(texts)
        ended = [
            data + b"\n" if data and not data.endswith(b"\n") else data for data in (texts[n].encode() for n in numbers)
        ]
        found = [_lines(data) for data in ended]
        before = np.cumsum([0, *map(len, ended)])
        self.data = b"".join(ended)
        self.lowered, self.complete = self.data.lower(), complete
        counts = np.concatenate([np.zeros(0, np.int64), *(characters for _, characters in found)])
        self.line_characters = np.cumsum(np.append(0, counts))
        self.line_starts = np.append(
            np.concatenate([np.zeros(0, np.int64), *(own + at for (own, _), at in zip(found, before, strict=False))]),
            before[-1],
        )
        lines = np.zeros(total + 1, np.int64)
        lines[np.asarray(numbers, np.int64) + 1] = [len(own) for own, _ in found]
        self.first_lines = np.cumsum(lines)
        self._ends = np.zeros(total, np.int64)
        self._ends[numbers] = before[:-1] + [len(texts[n].encode()) for n in numbers]
