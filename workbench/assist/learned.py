"""A ranking learned from judgments: LambdaMART over the features of a search (`features`), by LightGBM.

LambdaMART grows regression trees on the gradients of nDCG (Burges, "From RankNet to LambdaRank to LambdaMART", MSR-TR-2010-82).
The gain is linear, a grade counts as itself, as in the workbench's own nDCG.

What it is worth is only told by queries that it did not see. So training cuts the queries into folds and gives each row the
score of a model that saw none of its query's rows; measure those. The number of trees is chosen inside the training
queries, by folds of their own, so that no held-out query has a say in it. The model that is kept has seen all queries.

One thread, fixed seeds: the same rows and seed give the same bytes. The file is text: a line that names the format, one of
JSON (features in order, where it comes from, a digest of it all), then LightGBM's own text.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.assist.features import COLLECTION
from workbench.assist.protocol import Floats, Ints
from workbench.errors import AssistError, UsageError

FORMAT = "workbench learned ranking 1"
MOST_ROUNDS = 200
HIGHEST_GRADE = 30
_INNER_FOLDS = 3
_PARAMETERS: Mapping[str, Any] = {
    "objective": "lambdarank",
    "metric": "ndcg",
    "eval_at": [10],
    "label_gain": list(range(HIGHEST_GRADE + 1)),
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 10,
    "feature_fraction": 0.8,
    "lambda_l2": 1.0,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}


class LearnedRanker:
    """A trained model with the names of the features that it reads. Safe from several threads.

    Args:
        features: Names, in the order of the columns.
        text: LightGBM's text of the model.
        origin: How it was trained: JSON values.

    Raises:
        AssistError: The text is no model of so many features, or LightGBM is not installed.
    """

    def __init__(self, features: Sequence[str], text: str, origin: Mapping[str, Any]) -> None:
        self.features = tuple(features)
        self.origin = dict(origin)
        self._text = text
        library = _lightgbm()
        try:
            self._booster: Any = library.Booster(model_str=text)
        except library.basic.LightGBMError as exc:
            raise AssistError(f"The learned ranking cannot be read: {exc}", "Train it again") from exc
        if self._booster.num_feature() != len(self.features):
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
        """Scores of candidates.

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
        with self._lock:
            return np.asarray(self._booster.predict(matrix, num_threads=1), np.float64)

    def importance(self) -> tuple[tuple[str, float], ...]:
        """Features with the share of the training gain that splits on them brought, most first; shares add up to 1."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A trained ranking, and how it does on queries that it did not see.

    Attributes:
        ranker: Trained on all queries.
        held_out: float64 (rows,), score of each row by a model that saw no row of its query: what to measure.
        folds: int64 (queries,), the fold of each query, from 0.
        rounds: Number of trees of `ranker`.
    """

    ranker: LearnedRanker
    held_out: Floats
    folds: Ints
    rounds: int


def train(
    names: Sequence[str],
    matrix: Floats,
    grades: Sequence[int] | Ints,
    groups: Sequence[int] | Ints,
    *,
    seed: int = 0,
    folds: int = 5,
    most_rounds: int = MOST_ROUNDS,
    origin: Mapping[str, Any] | None = None,
) -> Training:
    """Learn a ranking from judged candidates.

    Args:
        names: Names of the features.
        matrix: float64 (rows, f): the candidates of all queries, one query after the other; finite or NaN.
        grades: Grade of each row, 0 to 30; unjudged rows are 0.
        groups: Number of rows of each query, in order, at least 1 each.
        seed: Decides the folds and which features a tree may look at.
        folds: Folds of queries, at least 2.
        most_rounds: Most trees; the number is chosen up to this.
        origin: Where the judgments came from: JSON values, kept in the file.

    Returns:
        The ranking and the held-out scores.

    Raises:
        UsageError: Arguments that do not fit together, or too few queries with both better and worse candidates.
        AssistError: LightGBM is not installed, or failed.
    """
    rows, labels, sizes = _checked(names, matrix, grades, groups, folds, most_rounds)
    query_of = np.repeat(np.arange(len(sizes)), sizes)
    fold_of = query_folds(len(sizes), folds, seed)
    held_out = np.zeros(len(rows))
    for fold in range(folds):
        seen = fold_of[query_of] != fold
        booster = _fit(rows[seen], labels[seen], sizes[fold_of != fold], seed, most_rounds)[0]
        held_out[~seen] = booster.predict(rows[~seen], num_threads=1)
    booster, rounds = _fit(rows, labels, sizes, seed, most_rounds)
    told = {
        **(origin or {}),
        "folds": folds,
        "lightgbm": str(_lightgbm().__version__),
        "queries": len(sizes),
        "rounds": rounds,
        "rows": len(rows),
        "seed": seed,
    }
    return Training(LearnedRanker(names, booster.model_to_string(), told), held_out, fold_of, rounds)


def query_folds(queries: int, folds: int, seed: int) -> Ints:
    """The fold of each query, int64 (queries,): as equal in size as can be, shuffled by the seed."""
    order = np.random.Generator(np.random.PCG64(seed)).permutation(queries)
    fold_of = np.zeros(queries, np.int64)
    fold_of[order] = np.arange(queries) % folds
    return fold_of


def _fit(rows: Floats, labels: Ints, sizes: Ints, seed: int, most_rounds: int) -> tuple[Any, int]:
    """A model of these queries, its number of trees chosen by folds among them: best mean nDCG@10, the fewest trees."""
    query_of = np.repeat(np.arange(len(sizes)), sizes)
    fold_of = query_folds(len(sizes), _INNER_FOLDS, seed + 1)
    curves = np.zeros(most_rounds)
    for fold in range(_INNER_FOLDS):
        seen, part = fold_of[query_of] != fold, fold_of != fold
        trained = _dataset(rows[seen], labels[seen], sizes[part], seed)
        told = _dataset(rows[~seen], labels[~seen], sizes[~part], seed, trained)
        curve: dict[str, Any] = {}
        _boost(trained, seed, most_rounds, valid_sets=[told], valid_names=["inner"], record=curve)
        curves += np.asarray(curve["inner"]["ndcg@10"], np.float64)
    rounds = int(np.argmax(curves)) + 1
    return _boost(_dataset(rows, labels, sizes, seed), seed, rounds), rounds


def _dataset(rows: Floats, labels: Ints, sizes: Ints, seed: int, reference: Any = None) -> Any:
    parameters = {**_PARAMETERS, "seed": seed}
    return _lightgbm().Dataset(rows, label=labels, group=sizes, reference=reference, params=parameters)


def _boost(dataset: Any, seed: int, rounds: int, record: dict[str, Any] | None = None, **more: Any) -> Any:
    library = _lightgbm()
    callbacks = [library.record_evaluation(record)] if record is not None else []
    try:
        return library.train(
            {**_PARAMETERS, "seed": seed}, dataset, num_boost_round=rounds, callbacks=callbacks, **more
        )
    except library.basic.LightGBMError as exc:
        raise AssistError(f"LightGBM failed: {exc}", "Judge more queries, or train on another plan") from exc


def _checked(
    names: Sequence[str], matrix: Floats, grades: Sequence[int] | Ints, groups: Sequence[int] | Ints, folds: int,
    most_rounds: int,
) -> tuple[Floats, Ints, Ints]:  # fmt: skip
    rows, sizes = np.asarray(matrix, np.float64), np.asarray(groups, np.int64)
    given = np.asarray(grades, np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(names) or len(set(names)) != len(names):
        raise UsageError(
            f"{len(names)} feature names do not fit a matrix of shape {rows.shape}", "Name each column once"
        )
    if len(given) != len(rows) or int(sizes.sum()) != len(rows) or (sizes < 1).any():
        raise UsageError(
            f"{len(rows)} rows have {len(given)} grades and groups that add up to {int(sizes.sum())}",
            "Give a grade for each row, and for each query its number of rows",
        )
    if np.isinf(rows).any():
        raise UsageError("A feature is infinite", "Give NaN where there is nothing to say")
    if not ((given >= 0) & (given <= HIGHEST_GRADE) & (given == np.floor(given))).all():
        raise UsageError("A grade is not a whole number from 0 to 30", "Give 0 for rows that are not relevant")
    if folds < 2 or most_rounds < 1:
        raise UsageError(f"folds is {folds} and most_rounds {most_rounds}", "Give at least 2 folds and 1 round")
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    telling = np.maximum.reduceat(given, starts) > np.minimum.reduceat(given, starts) if len(sizes) else np.zeros(0)
    needed = folds * _INNER_FOLDS
    if int(telling.sum()) < needed:
        raise UsageError(
            f"Only {int(telling.sum())} queries have both better and worse candidates, and {needed} are needed",
            "Judge more queries, or use fewer folds",
        )
    return rows, given.astype(np.int64), sizes


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _lightgbm() -> Any:
    try:
        return importlib.import_module("lightgbm")
    except ImportError as exc:
        raise AssistError(
            f"LightGBM cannot be imported: {exc}", "Install it: pip install 'hybrid-retrieval-workbench[learn]'"
        ) from exc
