"""A ranking learned from judgments: LambdaMART trees over the features of a search (`features`), by LightGBM.

The trees do not start from nothing but from the fused score (standardised within each search), and correct it; without trees
the ranking is the fused one. `training` makes such rankings.

The file is text: a line that names the format, one of JSON (features in order, where it comes from, a digest of it all), then
LightGBM's own text of the trees.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.assist.features import COLLECTION
from workbench.assist.protocol import Floats, Ints
from workbench.errors import AssistError

FORMAT = "workbench learned ranking 1"
BASE = "fused.score"
"""The feature that the trees start from."""

BASE_WEIGHT = 3.0
"""What a standard deviation of it counts, in the scale of the trees."""


class LearnedRanker:
    """A trained model with the names of the features that it reads. Safe from several threads.

    Args:
        features: Names, in the order of the columns.
        text: LightGBM's text of the trees; "" for none.
        origin: How it was trained: JSON values.

    Raises:
        AssistError: The text is no model of so many features, or LightGBM is not installed.
    """

    def __init__(self, features: Sequence[str], text: str, origin: Mapping[str, Any]) -> None:
        self.features = tuple(features)
        self.origin = dict(origin)
        self._text = text
        self._booster: Any = None
        if text:
            library = lightgbm()
            try:
                self._booster = library.Booster(model_str=text)
            except library.basic.LightGBMError as exc:
                raise AssistError(f"The learned ranking cannot be read: {exc}", "Train it again") from exc
        if text and self._booster.num_feature() != len(self.features):
            raise AssistError(
                f"The learned ranking reads {self._booster.num_feature()} features and names {len(self.features)}",
                "Train it again",
            )
        self._lock = threading.Lock()

    @property
    def digest(self) -> str:
        """sha256 hex of features, origin and model: equal digests rank alike."""
        said = json.dumps([FORMAT, self.features, self.origin, self._text], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def name(self) -> str:
        """`learned` and the start of the digest."""
        return f"learned {self.digest[:12]}"

    @property
    def collections(self) -> tuple[str, ...]:
        """Collections that have a feature, for the argument `known` of `features`."""
        return tuple(f.removeprefix(COLLECTION) for f in self.features if f.startswith(COLLECTION))

    def scores(self, names: Sequence[str], matrix: Floats) -> Floats:
        """Scores of the candidates of one search: the standardised fused score, and what the trees add to it.

        Args:
            names: Names of the features, as `features` gives them.
            matrix: float64 (m, f), one row a candidate; NaN where there is nothing to say.

        Returns:
            float64 (m,), higher is better; comparable inside one search only.

        Raises:
            AssistError: The features are others than those it learned from, or in another order.
        """
        if tuple(names) != self.features:
            raise AssistError(self._difference(tuple(names)), "Train it again on this plan's sources, or use its plan")
        if matrix.ndim != 2 or matrix.shape[1] != len(self.features):
            raise AssistError(
                f"The features have the shape {matrix.shape}, not (candidates, {len(self.features)})",
                "Give the matrix as features() made it",
            )
        if not len(matrix):
            return np.zeros(0)
        scores = starting_scores(self.features, matrix, np.array([len(matrix)]))
        with self._lock:
            return scores if self._booster is None else scores + self._booster.predict(matrix, num_threads=1)

    def importance(self) -> tuple[tuple[str, float], ...]:
        """Features with the share of the training gain that splits on them brought, most first; they add up to 1.

        All 0 where there are no trees: the ranking is the fused one.
        """
        if self._booster is None:
            return tuple((name, 0.0) for name in sorted(self.features))
        gain = np.asarray(self._booster.feature_importance("gain"), np.float64)
        shares = gain / gain.sum() if gain.sum() > 0 else gain
        pairs = zip(self.features, shares.tolist(), strict=True)
        return tuple(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))

    def dumps(self) -> str:
        """The file's text."""
        head = {"digest": self.digest, "features": self.features, "origin": self.origin}
        return f"{FORMAT}\n{json.dumps(head, ensure_ascii=False, sort_keys=True)}\n{self._text}"

    def save(self, path: Path | str) -> None:
        """Write the file, all of it or nothing. Raises AssistError."""
        target = Path(path)
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.write_text(self.dumps(), encoding="utf-8", newline="\n")
            beside.replace(target)
        except OSError as exc:
            beside.unlink(missing_ok=True)
            raise AssistError(
                f"The learned ranking cannot be written to {target}: {exc}", "Choose another place"
            ) from exc

    @classmethod
    def loads(cls, text: str, where: str = "the text") -> LearnedRanker:
        """Read a file's text, and check its digest. Raises AssistError."""
        first, _, rest = text.partition("\n")
        second, _, model = rest.partition("\n")
        if first != FORMAT:
            raise AssistError(f"{where} is not a learned ranking of this version", "Train it again")
        damaged = AssistError(f"The learned ranking in {where} is damaged", "Copy it again, or train it again")
        try:
            head = json.loads(second)
            features, origin, digest = tuple(map(str, head["features"])), dict(head["origin"]), str(head["digest"])
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            raise damaged from exc
        said = json.dumps([FORMAT, features, origin, model], sort_keys=True)
        # Before the model's text is parsed: LightGBM's parser is not made for damaged input.
        if hashlib.sha256(said.encode()).hexdigest() != digest:
            raise damaged
        return cls(features, model, origin)

    @classmethod
    def load(cls, path: Path | str) -> LearnedRanker:
        """Read a file that `save` wrote. Raises AssistError."""
        try:
            with Path(path).open(encoding="utf-8", newline="") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as exc:
            raise AssistError(f"The learned ranking {path} cannot be read: {exc}", "Check the path") from exc
        return cls.loads(text, str(path))

    def _difference(self, names: tuple[str, ...]) -> str:
        lacking = [n for n in self.features if n not in names]
        more = [n for n in names if n not in self.features]
        if not lacking and not more:
            return "The learned ranking reads the same features in another order"
        parts = [f"lacks {_some(lacking)}"] if lacking else []
        parts += [f"has {_some(more)} besides"] if more else []
        return f"The search does not give the features that the ranking learned from: it {' and '.join(parts)}"


def starting_scores(names: Sequence[str], rows: Floats, sizes: Ints) -> Floats:
    """The fused score with mean 0 and deviation `BASE_WEIGHT` within each query, float64 (rows,); 0 without that feature."""
    if BASE not in names or not len(rows):
        return np.zeros(len(rows))
    values = np.nan_to_num(rows[:, tuple(names).index(BASE)])
    starts = np.cumsum(sizes) - sizes
    centred = values - np.repeat(np.add.reduceat(values, starts) / sizes, sizes)
    deviation = np.sqrt(np.add.reduceat(centred * centred, starts) / sizes)
    return np.asarray(BASE_WEIGHT * centred / np.repeat(np.where(deviation > 0, deviation, 1.0), sizes), np.float64)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def lightgbm() -> Any:
    """The library. Raises AssistError if it is not installed."""
    try:
        return importlib.import_module("lightgbm")
    except ImportError as exc:
        raise AssistError(
            f"LightGBM cannot be imported: {exc}", "Install it: pip install 'hybrid-retrieval-workbench[learn]'"
        ) from exc
