"""The vectors of a generation: exact search against a brute-force oracle, and the approximate index beside it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from workbench.errors import CorpusDamaged, CorpusError, EncoderMismatch, UsageError
from workbench.records import EncoderIdentity, Progress
from workbench.store.types import Scope
from workbench.store.vectors import build as vectors_build
from workbench.store.vectors import search as vectors_module
from workbench.store.vectors.build import build_vectors
from workbench.store.vectors.search import VectorIndex

Matrix = NDArray[np.float32]
IDENTITY = EncoderIdentity("hashing", "0" * 64, "hashing 1", 24, 256)
EVERYTHING = Scope()


def unit_rows(count: int, dim: int = 24, seed: int = 0, clusters: int = 12) -> Matrix:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, dim))
    rows = centres[rng.integers(0, clusters, count)] + 0.5 * rng.standard_normal((count, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def built(folder: Path, rows: Matrix, **how: int) -> VectorIndex:
    build_vectors(folder, [rows], len(rows), replace(IDENTITY, dim=rows.shape[1]), **how)
    return VectorIndex(folder)


@pytest.fixture(scope="module")
def rows() -> Matrix:
    return unit_rows(3000)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, rows: Matrix) -> VectorIndex:
    return built(tmp_path_factory.mktemp("vectors"), rows)


@pytest.fixture
def at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `auto` take the graph for small corpora too."""
    monkeypatch.setattr(vectors_module, "EXACT_LIMIT_MS", 0.0)
    monkeypatch.setattr(vectors_module, "_GRAPH_MS_PER_WIDTH", 0.0)


def test_exact_search_is_the_oracle(index: VectorIndex, rows: Matrix) -> None:
    """Score down, number up, cosines of float64, `found` everything."""
    for query in unit_rows(20, seed=1):
        answer = index.search(query, EVERYTHING, 100, exact="yes")
        truth = rows.astype(np.float64) @ query.astype(np.float64)
        order = np.lexsort((np.arange(len(rows)), -truth))[:100]
        np.testing.assert_array_equal(answer.numbers, order)
        np.testing.assert_allclose(answer.scores, truth[order], atol=1e-14)
        assert (answer.found, answer.approximate) == (3000, False)
        assert (answer.numbers.dtype, answer.scores.dtype) == (np.int64, np.float64)


def test_equal_vectors_stand_in_number_order(tmp_path: Path) -> None:
    """Thousands of ties over the border of the depth: the lowest numbers win, with equal bits."""
    rows = np.repeat(unit_rows(4), 5000, axis=0)[np.random.default_rng(2).permutation(20000)]
    index = built(tmp_path, rows)
    answer = index.search(rows[17], EVERYTHING, 50, exact="yes")
    same = np.flatnonzero((rows == rows[17]).all(axis=1))
    np.testing.assert_array_equal(answer.numbers, same[:50])
    assert len(set(answer.scores.tolist())) == 1


def test_scores_are_bit_equal_over_masks_and_depths(index: VectorIndex) -> None:
    """A record's score is the same bits in every subset, at every depth, and from `score`."""
    query = unit_rows(1, seed=3)[0]
    whole = index.search(query, EVERYTHING, 3000, exact="yes")
    by_number = np.empty(3000)
    by_number[whole.numbers] = whole.scores
    np.testing.assert_array_equal(index.score(query, np.arange(3000)), by_number)
    rng = np.random.default_rng(4)
    for share in (0.001, 0.02, 0.3, 0.9):
        mask = rng.random(3000) < share
        for depth in (1, 7, 100):
            answer = index.search(query, Scope(visible=mask, allowed=mask), depth)
            expected = whole.numbers[mask[whole.numbers]][:depth]
            np.testing.assert_array_equal(answer.numbers, expected)
            np.testing.assert_array_equal(answer.scores, by_number[expected])
            assert answer.found == mask.sum()
    for one in (0, 1234, 2999):
        assert index.score(query, np.array([one]))[0] == by_number[one]


def test_depths_and_masks_at_the_ends(index: VectorIndex, rows: Matrix) -> None:
    """Beyond the corpus: all of it. Nothing allowed, or no depth: nothing, and no error."""
    nothing = np.zeros(3000, bool)
    assert len(index.search(rows[0], EVERYTHING, 10_000).numbers) == 3000
    assert len(index.search(rows[0], EVERYTHING, 10_000, exact="no").numbers) == 3000
    for exact in ("auto", "yes", "no"):
        for scope in (Scope(allowed=nothing), Scope(visible=nothing, allowed=nothing), Scope(visible=nothing)):
            answer = index.search(rows[0], scope, 5, exact=exact)
            assert (len(answer.numbers), answer.found) == (0, 0)
    assert len(index.search(rows[0], EVERYTHING, 0).numbers) == 0


def test_cosines_and_vectors(index: VectorIndex, rows: Matrix) -> None:
    """Every allowed cosine in number order; stored vectors in the order asked, as copies."""
    mask = np.arange(3000) % 3 == 0
    rough = index.cosines(rows[5], Scope(allowed=mask))
    assert rough.dtype == np.float32
    np.testing.assert_allclose(rough, rows[mask] @ rows[5], atol=1e-6)
    assert index.cosines(rows[5], EVERYTHING).max() <= 1
    copied = index.vectors(np.array([7, 3, 7]))
    np.testing.assert_array_equal(copied, rows[[7, 3, 7]])
    copied[:] = 0
    np.testing.assert_array_equal(index.vectors(np.array([7])), rows[[7]])


# --- the approximate index -------------------------------------------------------------------------------------------


def test_the_approximate_answer_has_exact_scores(index: VectorIndex) -> None:
    """What it finds has the bits of the exact path, in its order; most of the nearest are found, and it says what it is."""
    recalls = []
    for query in unit_rows(30, seed=5):
        answer = index.search(query, EVERYTHING, 50, exact="no")
        assert answer.approximate
        assert len(answer.numbers) == 50
        np.testing.assert_array_equal(answer.scores, index.score(query, answer.numbers))
        np.testing.assert_array_equal(np.lexsort((answer.numbers, -answer.scores)), np.arange(50))
        recalls.append(index.recall(query, EVERYTHING, 50))
    assert np.mean(recalls) >= 0.98
    assert max(recalls) <= 1


def test_hidden_records_always_mean_exact(index: VectorIndex, rows: Matrix, at_any_size: None) -> None:
    """A principal's mask turns the graph off, even if it hides nothing, even if approximate was asked for."""
    everything = np.ones(3000, bool)
    some = np.arange(3000) % 2 == 0
    for scope in (Scope(visible=everything, allowed=everything), Scope(visible=some, allowed=some)):
        for exact in ("auto", "yes", "no"):
            assert not index.search(rows[0], scope, 10, exact=exact).approximate
    assert index.recall(rows[0], Scope(visible=some, allowed=some), 10) == 1.0


def test_hidden_records_change_no_bit(tmp_path: Path, rows: Matrix) -> None:
    """The answer over what is visible is the answer of a corpus that holds nothing else."""
    some = np.random.default_rng(6).random(3000) < 0.4
    index = built(tmp_path / "whole", rows)
    alone = built(tmp_path / "part", rows[some])
    numbers = np.flatnonzero(some)
    for query in unit_rows(10, seed=7):
        a = index.search(query, Scope(visible=some, allowed=some), 40, exact="no")
        b = alone.search(query, EVERYTHING, 40, exact="yes")
        np.testing.assert_array_equal(a.numbers, numbers[b.numbers])
        np.testing.assert_array_equal(a.scores, b.scores)


def test_auto_takes_the_graph_for_many_records_and_no_filter(
    index: VectorIndex, rows: Matrix, at_any_size: None
) -> None:
    """A filter that leaves records out means exact; one that passes everything is none. Small corpora are searched exactly."""
    assert index.search(rows[0], EVERYTHING, 10).approximate
    assert index.search(rows[0], Scope(allowed=np.ones(3000, bool)), 10).approximate
    assert not index.search(rows[0], Scope(allowed=np.arange(3000) > 0), 10).approximate


def test_an_approximate_search_behind_a_filter_returns_allowed_records_only(index: VectorIndex) -> None:
    """Many allowed: the graph is asked for more and checked. Few: exact, and the answer says so."""
    query = unit_rows(1, seed=8)[0]
    many, few = np.arange(3000) % 2 == 0, np.arange(3000) % 40 == 0
    answer = index.search(query, Scope(allowed=many), 50, exact="no")
    assert answer.approximate
    assert many[answer.numbers].all()
    assert len(answer.numbers) == 50
    assert not index.search(query, Scope(allowed=few), 50, exact="no").approximate


def test_a_filter_the_graph_cannot_satisfy_falls_back_to_exact(
    index: VectorIndex, rows: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a walk finds too few allowed records the exact path answers, in full."""
    near = index.search(rows[0], EVERYTHING, 3000, exact="yes").numbers
    far = np.zeros(3000, bool)
    far[near[2000:]] = True
    monkeypatch.setattr(vectors_module, "first_width", lambda depth: 60)
    monkeypatch.setattr(vectors_module, "second_width", lambda depth, last, facts: 120)
    answer = index.search(rows[0], Scope(allowed=far), 50, exact="no")
    assert not answer.approximate
    np.testing.assert_array_equal(answer.numbers, near[2000:2050])


def test_how_the_rows_come_does_not_matter(tmp_path: Path) -> None:
    """One block, many blocks or a file on disk: the same vectors and the same answers, exact and approximate."""
    rows = unit_rows(700, seed=10)
    np.save(tmp_path / "rows.npy", rows)
    build_vectors(tmp_path / "a", [rows], 700, IDENTITY)
    build_vectors(tmp_path / "b", (rows[i : i + 33] for i in range(0, 700, 33)), 700, IDENTITY)
    build_vectors(tmp_path / "c", tmp_path / "rows.npy", 700, IDENTITY)
    for exact in ("yes", "no"):
        answers = [VectorIndex(tmp_path / n).search(rows[3], EVERYTHING, 50, exact=exact) for n in "abc"]
        assert len({(a.numbers.tobytes(), a.scores.tobytes()) for a in answers}) == 1


def test_a_graph_that_cannot_be_built_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact search answers, whatever was asked for, and the reason is kept."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(vectors_build, "build_graph", fail)
    index = built(tmp_path, unit_rows(50))
    assert "out of memory" in index.warnings[0]
    assert not (tmp_path / "index.usearch").exists()
    assert not index.search(unit_rows(1)[0], EVERYTHING, 5, exact="no").approximate
    assert "out of memory" in json.loads((tmp_path / "identity.json").read_text())["graph"]["warning"]


@pytest.mark.parametrize(
    "harm", [lambda p: p.unlink(), lambda p: p.write_bytes(p.read_bytes()[:-100])], ids=["gone", "cut"]
)
def test_a_damaged_graph_is_a_warning(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    """A graph that is missing or cut short is not mapped; exact search answers."""
    built(tmp_path, unit_rows(300))
    harm(tmp_path / "index.usearch")
    index = VectorIndex(tmp_path)
    assert "missing or has another size" in index.warnings[0]
    answer = index.search(unit_rows(1)[0], EVERYTHING, 5, exact="no")
    assert (len(answer.numbers), answer.approximate) == (5, False)


# --- sizes, damage, threads ------------------------------------------------------------------------------------------


def test_an_empty_corpus_works(tmp_path: Path) -> None:
    """No records: no graph, no warning, empty answers."""
    build_vectors(tmp_path, [], 0, IDENTITY)
    index = VectorIndex(tmp_path)
    assert (len(index), index.warnings) == (0, ())
    query = unit_rows(1)[0]
    for exact in ("auto", "yes", "no"):
        assert len(index.search(query, EVERYTHING, 5, exact=exact).numbers) == 0
    assert len(index.cosines(query, EVERYTHING)) == 0
    assert index.vectors(np.empty(0, np.int64)).shape == (0, 24)
    assert index.recall(query, EVERYTHING, 5) == 1.0


def test_ties_are_not_missed(tmp_path: Path, at_any_size: None) -> None:
    """Of 600 equal rows any ten are as near as any other ten."""
    rows = unit_rows(900)
    rows[:600] = rows[0]
    index = built(tmp_path, rows)
    query = rows[0]
    assert index.search(query, EVERYTHING, 10, exact="no").approximate
    assert index.recall(query, EVERYTHING, 10) == 1.0


@pytest.mark.parametrize("count", [1, 2, 101])
def test_small_corpora_work(tmp_path: Path, count: int) -> None:
    """Exact and approximate agree where the graph holds a handful."""
    index = built(tmp_path, unit_rows(count))
    query = unit_rows(1, seed=11)[0]
    a, b = (index.search(query, EVERYTHING, 100, exact=exact) for exact in ("yes", "no"))
    np.testing.assert_array_equal(a.numbers, b.numbers)
    np.testing.assert_array_equal(a.scores, b.scores)


def test_a_zero_row_is_equally_far_from_everything(tmp_path: Path) -> None:
    """The mean of opposite vectors may be nothing; it is stored, with cosine 0."""
    rows = unit_rows(10)
    rows[4] = 0
    assert built(tmp_path, rows).score(rows[0], np.array([4]))[0] == 0.0


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([unit_rows(5)], "5 vectors for 6 records"),
        ([unit_rows(5), unit_rows(5)], "more vectors than the 6 records"),
        ([unit_rows(6, dim=8)], "24 dimensions"),
        ([unit_rows(6) * np.float32(2)], "record 0 has length 2, not 1"),
        ([np.full((6, 24), np.nan, np.float32)], "length nan"),
    ],
)
def test_wrong_vectors_are_refused(tmp_path: Path, blocks: list[Matrix], words: str) -> None:
    """Too few, too many, too wide, not of length 1, not finite: one sentence each."""
    with pytest.raises(CorpusError, match=words):
        build_vectors(tmp_path, blocks, 6, IDENTITY)


def test_a_damaged_matrix_is_refused(tmp_path: Path) -> None:
    """A file that is missing, cut short or of another shape is CorpusDamaged, not a crash."""
    built(tmp_path, unit_rows(30))
    whole = (tmp_path / "vectors.npy").read_bytes()
    for harm in (whole[:-8], whole[:40], b""):
        (tmp_path / "vectors.npy").write_bytes(harm)
        with pytest.raises(CorpusDamaged):
            VectorIndex(tmp_path)
    np.save(tmp_path / "vectors.npy", unit_rows(29))
    with pytest.raises(CorpusDamaged, match="29"):
        VectorIndex(tmp_path)
    (tmp_path / "identity.json").write_text("{}")
    with pytest.raises(CorpusDamaged):
        VectorIndex(tmp_path)


def test_wrong_queries_are_refused(index: VectorIndex, rows: Matrix) -> None:
    """Another width, a value that is not finite, an unknown word, a mask of another corpus."""
    with pytest.raises(EncoderMismatch, match="24 dimensions"):
        index.search(rows[0][:10], EVERYTHING, 5)
    with pytest.raises(UsageError, match="not finite"):
        index.search(rows[0] * np.float32(np.inf), EVERYTHING, 5)
    with pytest.raises(UsageError, match="auto, yes or no"):
        index.search(rows[0], EVERYTHING, 5, exact="perhaps")
    with pytest.raises(UsageError, match="2 records of 3000"):
        index.search(rows[0], Scope(allowed=np.ones(2, bool)), 5)


def test_threads_get_the_answers_of_one(tmp_path: Path, rows: Matrix) -> None:
    """Eight threads, exact and approximate mixed, from the first search on."""
    index = built(tmp_path, rows)
    queries = unit_rows(40, seed=12)
    mask = np.arange(3000) % 2 == 0
    ways = [
        (EVERYTHING, "yes"),
        (EVERYTHING, "no"),
        (Scope(allowed=mask), "no"),
        (Scope(visible=mask, allowed=mask), "auto"),
    ]
    answers: dict[tuple[int, int, int], tuple[bytes, bytes]] = {}
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for turn in range(len(queries)):
                row = (turn + 5 * thread) % len(queries)
                for way, (scope, exact) in enumerate(ways):
                    answer = index.search(queries[row], scope, 30, exact=exact)
                    answers[thread, row, way] = (answer.numbers.tobytes(), answer.scores.tobytes())
        except BaseException as exc:  # noqa: BLE001  reported by the main thread
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for (_, row, way), answer in answers.items():
        assert answer == answers[0, row, way]


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    """Both steps report every record."""
    seen: list[Progress] = []
    build_vectors(tmp_path, [unit_rows(90), unit_rows(10)], 100, IDENTITY, seen.append)
    for step in ("vectors", "graph"):
        last = [p for p in seen if p.step == step][-1]
        assert (last.done, last.total) == (100, 100)
