"""Which locator a character of a document has: mapped arrays, so that neither a result nor a passage of grep asks the database.

Files in the folder: `place_rows.npy` (int64, where each document's places start, and their number at the end),
`place_starts.npy` (int64, characters) and the string table `place_locators`. A corpus in which no document has places has
none of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from workbench.locators import Place, joined
from workbench.store.grep.text import load_array
from workbench.store.string_table import StringTable, StringWriter


def build_places(folder: Path, documents: int, places: Iterable[tuple[int, int, str]]) -> None:
    """Write the arrays; nothing where there are no places.

    Args:
        folder: Where to write; it exists.
        documents: Number of documents.
        places: Document number, first character and locator, in that order.
    """
    starts, counts, strings = array("q"), np.zeros(documents + 1, np.int64), None
    for number, start, locator in places:
        strings = strings or StringWriter(folder / "place_locators")
        starts.append(start)
        counts[number + 1] += 1
        strings.add(locator)
    if strings is not None:
        strings.close()
        np.save(folder / "place_starts.npy", np.array(starts, np.int64))
        np.save(folder / "place_rows.npy", np.cumsum(counts))


class Places:
    """The arrays of `build_places`, mapped read-only; safe from several threads. Raises CorpusDamaged."""

    def __init__(self, folder: Path) -> None:
        self._there = (folder / "place_rows.npy").is_file()
        if self._there:
            self._rows = load_array(folder / "place_rows.npy")
            self._starts = load_array(folder / "place_starts.npy")
            self._locators = StringTable(folder / "place_locators")

    def of(self, document: int) -> tuple[Place, ...]:
        """All places of a document, in order."""
        if not self._there:
            return ()
        low, high = int(self._rows[document]), int(self._rows[document + 1])
        names = self._locators.take(range(low, high))
        return tuple(Place(start, name) for start, name in zip(self._starts[low:high].tolist(), names, strict=True))

    def locator(self, document: int, start: int, end: int) -> str:
        """Where the characters `start` (included) to `end` of a document stand in its original; "" where nothing says."""
        if not self._there:
            return ""
        low, high = int(self._rows[document]), int(self._rows[document + 1])
        if low == high:
            return ""
        own = self._starts[low:high]
        first, last = (int(n) - 1 for n in np.searchsorted(own, [start, max(start, end - 1)], side="right"))
        if last < 0:
            return ""
        names = self._locators.take([low + max(first, 0), low + last])
        return joined(names[0], names[1])
