"""Learned ranking: the features by hand, a planted rule found on queries not seen, the same bytes from the same seed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench.assist.features import features
from workbench.assist.learned import LearnedRanker
from workbench.assist.load import is_learned, load_learned
from workbench.assist.training import Training, ndcg, query_folds, train
from workbench.errors import AssistError, UsageError
from workbench.plan.fusion import FusionPlan
from workbench.ranking.candidates import Candidates
from workbench.ranking.fuse import fuse, passthrough

NAMES = ("keyword.score", "vector.score", "collection=docs", "noise")
QUERIES, ROWS = 45, 12


def planted(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries whose relevant rows are those of `docs` with a high vector score; neither alone tells, and BM25 misleads."""
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = generator.random((QUERIES * ROWS, len(NAMES)))
    rows[:, 2] = rows[:, 2] > 0.5
    grades = ((rows[:, 2] == 1) & (rows[:, 1] > 0.6)).astype(np.int64) * 2
    rows[:, 0] = 0.9 * rows[:, 0] + 0.1 * (grades == 0)
    rows[generator.random(len(rows)) < 0.05, 3] = np.nan
    return rows, grades, np.full(QUERIES, ROWS)


def precision(scores: np.ndarray, grades: np.ndarray) -> float:
    """Mean share of relevant rows among the first r of a query, r its number of relevant rows."""
    shares = []
    for start in range(0, len(scores), ROWS):
        own = grades[start : start + ROWS] > 0
        order = np.argsort(-scores[start : start + ROWS], kind="stable")
        if own.any():
            shares.append(own[order][: own.sum()].mean())
    return float(np.mean(shares))


def candidates() -> Candidates:
    return Candidates.from_rankings({"keyword": [("a", 8.0), ("b", 4.0)], "vector": [("b", 0.9), ("c", 0.3)]})


@pytest.fixture(scope="module")
def trained() -> Training:
    pytest.importorskip("lightgbm")
    rows, grades, groups = planted()
    return train(NAMES, rows, grades, groups, most_rounds=30, folds=3, origin={"judgments": "planted"})


class TestFeatures:
    def test_each_feature_is_what_its_name_says(self) -> None:
        """Fused by rrf: b (rank 2 and 1), a (keyword 1), c (vector 2); every value worked out by hand."""
        given = candidates()
        names, matrix = features(
            given,
            fuse(given),
            [99, 9, 0],
            first_matches=[4, 0, -1],
            collections=["x", "docs", "x"],
            known=["x", "docs"],
        )
        nan = float("nan")
        expected = {
            "keyword.reciprocal_rank": [1 / 2, 1, 0],
            "keyword.score": [4, 8, nan],
            "keyword.relative": [0.5, 1, nan],
            "keyword.computed": [4, 8, nan],
            "keyword.contribution": [1 / 62, 1 / 61, 0],
            "vector.reciprocal_rank": [1, 0, 1 / 2],
            "vector.score": [0.9, nan, 0.3],
            "vector.relative": [1, nan, 0.3 / 0.9],
            "vector.computed": [0.9, nan, 0.3],
            "vector.contribution": [1 / 61, 0, 1 / 62],
            "fused.score": [1 / 62 + 1 / 61, 1 / 61, 1 / 62],
            "fused.reciprocal_rank": [1, 1 / 2, 1 / 3],
            "coverage": [2, 1, 1],
            "log_length": [np.log(100), np.log(10), 0],
            "log_first_match": [np.log(5), 0, nan],
            "collection=docs": [0, 1, 0],
            "collection=x": [1, 0, 1],
        }
        assert names == tuple(expected)
        np.testing.assert_allclose(matrix, np.column_stack(list(expected.values())), rtol=1e-15)

    def test_a_passed_through_list_and_documents_have_features_too(self) -> None:
        """The names do not change with the way of fusing; a source that fusion left out adds nothing."""
        given = candidates()
        names, matrix = features(given, passthrough(given, "keyword"), [1, 1])
        assert names == features(given, fuse(given, FusionPlan(unit="document")), [1, 1, 1])[0]
        column = dict(zip(names, matrix.T, strict=True))
        assert column["keyword.contribution"].tolist() == [8, 4]
        assert column["vector.contribution"].tolist() == [0, 0]
        assert np.isnan(column["vector.score"]).all()
        assert column["vector.computed"][1] == 0.9

    def test_nothing_found_has_no_rows(self) -> None:
        nothing = Candidates.from_rankings({"keyword": [], "vector": []})
        names, matrix = features(nothing, fuse(nothing), [])
        assert matrix.shape == (0, len(names)) == (0, 15)

    def test_an_argument_of_another_length_is_refused(self) -> None:
        with pytest.raises(UsageError, match="2 lengths for 3 fused items"):
            features(candidates(), fuse(candidates()), [1, 2])
        with pytest.raises(UsageError, match="1 collections for 3 fused items"):
            features(candidates(), fuse(candidates()), [1, 2, 3], collections=["x"])


@pytest.mark.parametrize(("queries", "folds"), [(10, 5), (11, 5), (3, 3), (7, 2)])
def test_folds_are_as_equal_as_can_be_and_fixed_by_the_seed(queries: int, folds: int) -> None:
    fold_of = query_folds(queries, folds, 1)
    sizes = np.bincount(fold_of, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    assert fold_of.tolist() == query_folds(queries, folds, 1).tolist()


def test_ndcg_is_the_textbooks_for_each_query() -> None:
    """Linear gain over log2(rank + 1) against the best order of the query's own rows; ties stay in row order."""
    scores = np.array([0.1, 0.9, 0.5, 0.5, 0.5, 1.0, 2.0])
    grades = np.array([2, 0, 1, 0, 3, 0, 0])
    first = (1 / np.log2(3) + 2 / np.log2(4)) / (2 + 1 / np.log2(3))
    second = (3 / np.log2(3)) / 3
    told = ndcg(scores, grades, np.array([3, 2, 2]))
    np.testing.assert_allclose(told, [first, second, 0])
    np.testing.assert_allclose(ndcg(scores, grades, np.array([3, 2, 2]), cutoff=1), [0, 0, 0])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"names": NAMES[:3]}, "3 feature names do not fit"),
        ({"names": ("a", "a", "b", "c")}, "do not fit"),
        ({"grades": [1, 2]}, "have 2 grades"),
        ({"groups": [1, 2]}, "groups that add up to 3"),
        ({"groups": [0, QUERIES * ROWS]}, "groups that add up"),
        ({"grades": np.full(QUERIES * ROWS, -1)}, "not a whole number from 0 to 30"),
        ({"grades": np.full(QUERIES * ROWS, 0.5)}, "not a whole number"),
        ({"grades": np.full(QUERIES * ROWS, 31)}, "not a whole number"),
        ({"grades": np.zeros(QUERIES * ROWS)}, "Only 0 queries have both"),
        ({"matrix": np.full((QUERIES * ROWS, 4), np.inf)}, "is infinite"),
        ({"folds": 1}, "folds is 1"),
        ({"folds": 40}, "120 are needed"),
        ({"most_rounds": 0}, "most_rounds 0"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(change: dict[str, object], what: str) -> None:
    rows, grades, groups = planted()
    given = {"names": NAMES, "matrix": rows, "grades": grades, "groups": groups, **change}
    more = {key: given.pop(key) for key in ("folds", "most_rounds") if key in given}
    with pytest.raises(UsageError, match=what):
        train(*given.values(), **more)  # type: ignore[arg-type]


@pytest.mark.slow
class TestTraining:
    """LightGBM takes seconds to load."""

    def test_a_planted_rule_is_found_on_queries_not_seen(self, trained: Training) -> None:
        """Held-out scores beat every single feature by far, and the model does so on fresh queries."""
        rows, grades, _ = planted()
        alone = max(precision(rows[:, column], grades) for column in range(3))
        assert alone < 0.8
        assert precision(trained.held_out, grades) > 0.95
        fresh, fresh_grades, _ = planted(seed=9)
        assert precision(trained.ranker.scores(NAMES, fresh), fresh_grades) > 0.95
        assert trained.ranker.importance()[-1][0] == "noise"
        assert sum(share for _, share in trained.ranker.importance()) == pytest.approx(1)

    def test_a_held_out_score_knows_nothing_of_its_query(self, trained: Training) -> None:
        """Turning the grades of one fold's queries around does not change a bit of that fold's scores."""
        rows, grades, groups = planted()
        own = np.repeat(trained.folds == 0, ROWS)
        turned = np.where(own, 2 - grades, grades)
        again = train(NAMES, rows, turned, groups, most_rounds=30, folds=3)
        assert again.held_out[own].tolist() == trained.held_out[own].tolist()
        assert again.held_out[~own].tolist() != trained.held_out[~own].tolist()

    @pytest.mark.usefixtures("trained")
    def test_nothing_is_learned_from_chance(self) -> None:
        """Grades without a rule: held-out scores do no better than chance, whatever the model says of its own rows."""
        rows, _, groups = planted()
        grades = (np.random.Generator(np.random.PCG64(3)).random(len(rows)) < 0.3).astype(np.int64)
        chance = train(NAMES, rows, grades, groups, most_rounds=30, folds=3)
        assert abs(precision(chance.held_out, grades) - 0.3) < 0.1

    @pytest.mark.usefixtures("trained")
    def test_without_anything_to_learn_the_fused_order_stays(self) -> None:
        """Grades that follow the fused score and chance: no trees, held-out and kept scores rank as fusion does."""
        generator = np.random.Generator(np.random.PCG64(1))
        names = ("fused.score", *NAMES)
        rows, _, groups = planted()
        fused = generator.random(len(rows))
        grades = (fused + 0.3 * generator.random(len(rows)) > 0.9).astype(np.int64)
        told = train(names, np.column_stack([fused, rows]), grades, groups, most_rounds=30, folds=3)
        assert told.rounds == 0
        assert {share for _, share in told.ranker.importance()} == {0.0}
        search = np.column_stack([fused, rows])[:ROWS]
        for ranker in (told.ranker, LearnedRanker.loads(told.ranker.dumps())):
            assert np.argsort(ranker.scores(names, search)).tolist() == np.argsort(fused[:ROWS]).tolist()

    @pytest.mark.usefixtures("trained")
    def test_trees_correct_the_fused_score(self) -> None:
        """Where a rule is there to learn, it is learned on top of a fused score that knows nothing of it."""
        rows, grades, groups = planted()
        fused = np.random.Generator(np.random.PCG64(1)).random(len(rows))
        told = train(("fused.score", *NAMES), np.column_stack([fused, rows]), grades, groups, folds=3)
        assert told.rounds > 0
        assert precision(fused, grades) < 0.4
        assert precision(told.held_out, grades) > 0.9

    def test_the_same_seed_gives_the_same_bytes(self, trained: Training) -> None:
        """Here, and in another process with another hash seed; another seed gives another file."""
        rows, grades, groups = planted()
        origin = {"judgments": "planted"}
        same = train(NAMES, rows, grades, groups, most_rounds=30, folds=3, origin=origin)
        assert same.ranker.dumps() == trained.ranker.dumps()
        assert same.held_out.tobytes() == trained.held_out.tobytes()
        other = train(NAMES, rows, grades, groups, most_rounds=30, folds=3, origin=origin, seed=1)
        assert other.ranker.digest != trained.ranker.digest
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); import test_assist_learned as t;"
            "from workbench.assist.training import train;"
            "print(train(t.NAMES, *t.planted(), most_rounds=30, folds=3, origin={'judgments': 'planted'}).ranker.digest)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": "77", "PATH": "/usr/bin:/bin"},
        )
        assert done.stdout.strip() == trained.ranker.digest

    def test_a_saved_ranking_is_the_same_ranking(self, trained: Training, tmp_path: Path) -> None:
        """Features, origin and every bit of the scores; loaded once, and again when the file changes."""
        file = tmp_path / "my ranking.txt"
        trained.ranker.save(file)
        assert [p.name for p in tmp_path.iterdir()] == ["my ranking.txt"]
        loaded = load_learned(f"learned:{file}")
        assert is_learned(f" learned:{file}")
        rows, _, _ = planted(seed=5)
        assert loaded.scores(NAMES, rows).tobytes() == trained.ranker.scores(NAMES, rows).tobytes()
        assert (loaded.digest, loaded.features, loaded.name) == (
            trained.ranker.digest,
            NAMES,
            f"learned {loaded.digest[:12]}",
        )
        assert loaded.collections == ("docs",)
        assert loaded.origin["judgments"] == "planted"
        assert (loaded.origin["queries"], loaded.origin["rounds"]) == (QUERIES, trained.rounds)
        assert load_learned(f"learned:{file}") is loaded
        assert loaded.dumps() == file.read_text(encoding="utf-8")

    def test_other_features_are_refused(self, trained: Training) -> None:
        rows, _, _ = planted()
        ranker = trained.ranker
        with pytest.raises(AssistError, match="lacks noise and has other besides"):
            ranker.scores((*NAMES[:3], "other"), rows)
        with pytest.raises(AssistError, match="lacks noise"):
            ranker.scores(NAMES[:3], rows[:, :3])
        with pytest.raises(AssistError, match="in another order"):
            ranker.scores(NAMES[::-1], rows)
        with pytest.raises(AssistError, match="have the shape"):
            ranker.scores(NAMES, rows[:, :3])
        assert ranker.scores(NAMES, rows[:0]).shape == (0,)

    @pytest.mark.parametrize("damage", ["a tree", "a name", "cut", "no JSON", "not one", "binary"])
    def test_a_damaged_file_is_refused(self, trained: Training, tmp_path: Path, damage: str) -> None:
        text = trained.ranker.dumps()
        head, body = text.split("\n", 2)[1:]
        changed = {
            "a tree": text.replace("leaf_value=", "leaf_value=9", 1),
            "a name": text.replace('"noise"', '"noize"'),
            "cut": text[: len(text) // 2],
            "no JSON": text.replace(head, "[" * 100_000),
            "not one": json.dumps({"features": []}),
            "binary": text,
        }[damage]
        file = tmp_path / "ranking.txt"
        file.write_bytes(b"\xff\xfe" if damage == "binary" else changed.encode())
        assert body
        with pytest.raises(AssistError, match=r"is damaged|is not a learned ranking|cannot be read"):
            LearnedRanker.load(file)

    def test_a_place_that_cannot_be_written_is_a_readable_error(self, trained: Training, tmp_path: Path) -> None:
        with pytest.raises(AssistError, match="cannot be written"):
            trained.ranker.save(tmp_path / "none" / "ranking.txt")
