"""Tables of strings on disk: UTF-8 bytes in one file (`.bin`), where each string starts in another (`.npy`, int64)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workbench.store.grep.text import load_array, map_bytes


class StringWriter:
    """A table of strings that grows on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.with_suffix(".bin").open("wb")
        self._offsets = [0]

    def add(self, text: str) -> None:
        """Add one more."""
        self._offsets.append(self._offsets[-1] + self._file.write(text.encode("utf-8")))

    def close(self) -> None:
        """Write what is left."""
        self._file.close()
        np.save(self._path.with_suffix(".npy"), np.array(self._offsets, np.int64))


class StringTable:
    """A table of strings, mapped."""

    def __init__(self, path: Path) -> None:
        self._data = map_bytes(path.with_suffix(".bin"))
        self._offsets = load_array(path.with_suffix(".npy"))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def take(self, numbers: Sequence[int]) -> list[str]:
        """Strings by number; "" for -1."""
        places = np.asarray(numbers, np.int64)
        if not len(self):
            return [""] * len(places)
        firsts, afters = self._offsets[places].tolist(), self._offsets[places + 1].tolist()
        pairs = zip(numbers, firsts, afters, strict=True)
        return [self._data[first:after].decode("utf-8") if number >= 0 else "" for number, first, after in pairs]
