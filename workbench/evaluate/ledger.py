"""What a sweep has measured so far, on disk, so that a run that was stopped goes on where it was.

One file, replaced by an atomic rename. It is keyed by what decides the figures (the corpus's digest, the judgments' digest, the
fields and values, measures, mode, filter, principal): with another key it is refused rather than mixed in.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import UsageError

_FORMAT = 1


def key_of(parts: Mapping[str, Any]) -> str:
    """Sha256 hex of what decides the figures."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


class Ledger:
    """Figures by plan text, each float64 (queries, measures) with NaN where a query was not asked yet.

    Args:
        path: The file; made at the first `save`. None keeps nothing.
        key: What decides the figures, by `key_of`.

    Raises:
        UsageError: The file belongs to another sweep, or cannot be read.
    """

    def __init__(self, path: Path | None, key: str) -> None:
        self.path, self.key = path, key
        self.known: dict[str, NDArray[np.float64]] = {}
        if path is not None and path.exists():
            self.known = _read(path, key)

    def save(self, plans: tuple[str, ...], values: NDArray[np.float64]) -> None:
        """Keep figures.

        Args:
            plans: p texts.
            values: float64 (p, queries, measures).
        """
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with beside.open("wb") as file:
                np.savez_compressed(
                    file,
                    about=np.array(json.dumps({"format": _FORMAT, "key": self.key, "plans": list(plans)})),
                    values=values,
                )
            os.replace(beside, self.path)
        finally:
            beside.unlink(missing_ok=True)


def _read(path: Path, key: str) -> dict[str, NDArray[np.float64]]:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            values = np.asarray(file["values"], np.float64)
        if about["format"] != _FORMAT or len(about["plans"]) != len(values):
            raise ValueError("another format")
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as exc:
        raise UsageError(f"{path} is no file of a sweep: {exc}", "Name another file, or remove this one") from exc
    if about["key"] != key:
        raise UsageError(
            f"{path} belongs to another sweep: the corpus, the judgments, the fields or the measures differ",
            "Name another file, or remove this one to start anew",
        )
    return dict(zip(about["plans"], values, strict=True))
