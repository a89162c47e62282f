"""Learning a ranking from judged searches: LambdaMART, told only by queries that it did not see.

LambdaMART grows regression trees on the gradients of nDCG (Burges, "From RankNet to LambdaRank to LambdaMART", MSR-TR-2010-82).
The gain is linear, a grade counts as itself, as in the workbench's own nDCG. The trees correct the fused score, since a few
hundred judged queries do not teach the order that fusion already knows: starting from nothing, with trees of 15 leaves,
held-out nDCG@10 fell below that of the fused list on Cranfield (0.560 against 0.569, 225 queries) and CISI (0.432 against 0.460,
76 queries). For the same reason the trees are small and slow: correcting, they are level there (0.569 and 0.460 again, and 0.361
against 0.360 on NFCorpus, whose queries also had a say in these settings). Expect no more where fusion is tuned already.

What a ranking is worth is only told by queries that it did not see. So training cuts the queries into folds and gives each row
the score of a model that saw none of its query's rows; measure those. The number of trees is chosen inside the training
queries, by folds of their own, so that no held-out query has a say in it: the fewest whose mean nDCG@10 is within a
standard error of the best (Breiman et al., "Classification and Regression Trees", 1984). That may be none at all: then the
order stays the fused one, and that is the answer. The model that is kept has seen all queries.

One thread, fixed seeds: the same rows and seed give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.assist.learned import LearnedRanker, lightgbm, starting_scores
from workbench.assist.protocol import Floats, Ints
from workbench.errors import AssistError, UsageError

MOST_ROUNDS = 200
HIGHEST_GRADE = 30
_INNER_FOLDS = 3
_STEP = 5
_CUTOFF = 10
_PARAMETERS: Mapping[str, Any] = {
    "objective": "lambdarank",
    "metric": "none",
    "label_gain": list(range(HIGHEST_GRADE + 1)),
    "learning_rate": 0.03,
    "num_leaves": 4,
    "feature_fraction": 0.8,
    "lambda_l2": 1.0,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
_FEWEST_IN_LEAF, _MOST_IN_LEAF = 10, 100


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A trained ranking, and how it does on queries that it did not see.

    Attributes:
        ranker: Trained on all queries.
        held_out: float64 (rows,), score of each row by a model that saw no row of its query: what to measure.
        folds: int64 (queries,), the fold of each query, from 0.
        rounds: Number of trees of `ranker`; 0 where none helped and the order stays the fused one.
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
        most_rounds: Most trees, at least 5; the number is chosen up to this, in steps of 5.
        origin: Where the judgments came from: JSON values, kept in the file.

    Returns:
        The ranking and the held-out scores.

    Raises:
        UsageError: Arguments that do not fit together, or too few queries with both better and worse candidates.
        AssistError: LightGBM is not installed, or failed.
    """
    rows, labels, sizes = _checked(names, matrix, grades, groups, folds, most_rounds)
    data = _Rows(rows, labels, sizes, starting_scores(names, rows, sizes))
    fold_of = query_folds(len(sizes), folds, seed)
    held_out = np.zeros(len(rows))
    for fold in range(folds):
        unseen = np.repeat(fold_of == fold, sizes)
        part = data.of(fold_of == fold)
        held_out[unseen] = part.start
        booster = _fit(data.of(fold_of != fold), seed, most_rounds)[0]
        if booster is not None:
            held_out[unseen] += booster.predict(part.rows, num_threads=1)
    booster, rounds = _fit(data, seed, most_rounds)
    told = {
        **(origin or {}),
        "folds": folds,
        "lightgbm": str(lightgbm().__version__),
        "queries": len(sizes),
        "rounds": rounds,
        "rows": len(rows),
        "seed": seed,
    }
    text = booster.model_to_string() if booster is not None else ""
    return Training(LearnedRanker(names, text, told), held_out, fold_of, rounds)


def query_folds(queries: int, folds: int, seed: int) -> Ints:
    """The fold of each query, int64 (queries,): as equal in size as can be, shuffled by the seed."""
    order = np.random.Generator(np.random.PCG64(seed)).permutation(queries)
    fold_of = np.zeros(queries, np.int64)
    fold_of[order] = np.arange(queries) % folds
    return fold_of


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Candidates of some queries, one query after the other, and the scores that the trees start from."""

    rows: Floats
    labels: Ints
    sizes: Ints
    start: Floats

    def of(self, queries: NDArray[np.bool_]) -> _Rows:
        """Those of some of the queries."""
        own = np.repeat(queries, self.sizes)
        return _Rows(self.rows[own], self.labels[own], self.sizes[queries], self.start[own])


def _fit(data: _Rows, seed: int, most_rounds: int) -> tuple[Any, int]:
    """Trees for these queries, or None, and their number."""
    fold_of = query_folds(len(data.sizes), _INNER_FOLDS, seed + 1)
    steps = range(0, most_rounds + 1, _STEP)
    told = np.zeros((len(steps), len(data.sizes)))
    for fold in range(_INNER_FOLDS):
        part = data.of(fold_of == fold)
        booster = _boost(data.of(fold_of != fold), seed, steps[-1])
        scores = part.start
        for row, step in enumerate(steps):
            if step:
                scores = scores + booster.predict(
                    part.rows, start_iteration=step - _STEP, num_iteration=_STEP, num_threads=1
                )
            told[row, fold_of == fold] = ndcg(scores, part.labels, part.sizes)
    rounds = steps[_simplest(told)]
    return (_boost(data, seed, rounds) if rounds else None), rounds


def _simplest(told: Floats) -> int:
    """The first row whose mean is within one standard error (of the paired differences) of the best row's."""
    behind = told[int(np.argmax(told.mean(axis=1)))] - told
    error = behind.std(axis=1, ddof=1) / np.sqrt(told.shape[1])
    return int(np.argmax(behind.mean(axis=1) <= error))


def ndcg(scores: Floats, grades: Ints, sizes: Ints, cutoff: int = _CUTOFF) -> Floats:
    """nDCG with linear gain of each query, against the best order of its own rows; ties in row order.

    Args:
        scores, grades: (rows,), one query after the other.
        sizes: int64 (queries,), rows of each.
        cutoff: Ranks that count.

    Returns:
        float64 (queries,), 0 where no row is relevant.
    """
    starts = np.cumsum(sizes) - sizes
    query_of = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(scores)) - starts[query_of]
    weight = np.where(place < cutoff, 1.0 / np.log2(place + 2.0), 0.0)
    gained, best = (
        np.add.reduceat(grades[np.lexsort((-by, query_of))] * weight, starts)
        for by in (scores, grades.astype(np.float64))
    )
    return np.asarray(np.where(best > 0, gained / np.where(best > 0, best, 1.0), 0.0), np.float64)


def _boost(data: _Rows, seed: int, rounds: int) -> Any:
    library = lightgbm()
    fewest = min(_MOST_IN_LEAF, max(_FEWEST_IN_LEAF, len(data.rows) // 100))
    parameters = {**_PARAMETERS, "min_data_in_leaf": fewest, "seed": seed}
    try:
        dataset = library.Dataset(
            data.rows, label=data.labels, group=data.sizes, init_score=data.start, params=parameters
        )
        return library.train(parameters, dataset, num_boost_round=rounds)
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
    if folds < 2 or most_rounds < _STEP:
        raise UsageError(f"folds is {folds} and most_rounds {most_rounds}", "Give at least 2 folds and 5 rounds")
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    telling = np.maximum.reduceat(given, starts) > np.minimum.reduceat(given, starts) if len(sizes) else np.zeros(0)
    needed = folds * _INNER_FOLDS
    if int(telling.sum()) < needed:
        raise UsageError(
            f"Only {int(telling.sum())} queries have both better and worse candidates, and {needed} are needed",
            "Judge more queries, or use fewer folds",
        )
    return rows, given.astype(np.int64), sizes
