"""The vectors of a generation: exact search against a brute-force oracle, and the approximate index beside it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from workbench.errors import CorpusDamaged, CorpusError
from workbench.records import EncoderIdentity
from workbench.store import vectors as vectors_module
from workbench.store.types import Scope
from workbench.store.vectors import VectorIndex, build_vectors

Matrix = NDArray[np.float32]
IDENTITY = EncoderIdentity("hashing", "0" * 64, "hashing 1", 24, 256)
EVERYTHING = Scope()


def unit_rows(count: int, dim: int = 24, seed: int = 0, clusters: int = 12) -> Matrix:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((clusters, dim))
    rows = centres[rng.integers(0, clusters, count)] + 0.5 * rng.standard_normal((count, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def built(folder: Path, rows: Matrix, *, graph: bool = True) -> VectorIndex:
    with pytest.MonkeyPatch.context() as patch:
        if graph:
            patch.setattr(vectors_module, "GRAPH_MS_PER_WIDTH", 0.0)
        build_vectors(folder, [rows], len(rows), replace(IDENTITY, dim=rows.shape[1]))
    return VectorIndex(folder)


def recall(index: VectorIndex, query: Matrix, depth: int) -> float:
    """Share of the exact nearest that the approximate search finds; any record as near as the last of them is as good."""
    true, found = (index.search(query, EVERYTHING, depth, exact=exact).scores for exact in ("yes", "no"))
    return float(np.mean(found >= true[-1]))


@pytest.fixture(scope="module")
def rows() -> Matrix:
    return unit_rows(3000)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, rows: Matrix) -> VectorIndex:
    return built(tmp_path_factory.mktemp("vectors"), rows)


@pytest.fixture
def at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "GRAPH_MS_PER_WIDTH", 0.0)


def test_the_approximate_answer_has_exact_scores_and_allowed_records_only(index, rows):
    recalls = []
    for query in unit_rows(30, seed=5):
        answer = index.search(query, EVERYTHING, 50, exact="no")
        assert answer.approximate
        assert len(answer.numbers) == 50
        np.testing.assert_array_equal(answer.scores, index.score(query, answer.numbers))
        np.testing.assert_array_equal(np.lexsort((answer.numbers, -answer.scores)), np.arange(50))
        recalls.append(recall(index, query, 50))
    assert np.mean(recalls) >= 0.98
    assert max(recalls) <= 1
    query = unit_rows(1, seed=8)[0]
    many, few = np.arange(3000) % 2 == 0, np.arange(3000) % 40 == 0
    answer = index.search(query, Scope(allowed=many), 50, exact="no")
    assert answer.approximate
    assert many[answer.numbers].all()
    assert len(answer.numbers) == 50
    assert not index.search(query, Scope(allowed=few), 50, exact="no").approximate
    nothing = np.zeros(3000, bool)
    assert len(index.search(rows[0], EVERYTHING, 10_000).numbers) == 3000
    assert len(index.search(rows[0], EVERYTHING, 10_000, exact="no").numbers) == 3000
    for exact in ("auto", "yes", "no"):
        for scope in (Scope(allowed=nothing), Scope(visible=nothing, allowed=nothing), Scope(visible=nothing)):
            answer = index.search(rows[0], scope, 5, exact=exact)
            assert (len(answer.numbers), answer.found) == (0, 0)
    assert len(index.search(rows[0], EVERYTHING, 0).numbers) == 0


def test_hidden_records_and_filters_mean_exact_and_many_records_the_graph(index, rows, at_any_size):
    everything = np.ones(3000, bool)
    some = np.arange(3000) % 2 == 0
    for scope in (Scope(visible=everything, allowed=everything), Scope(visible=some, allowed=some)):
        for exact in ("auto", "yes", "no"):
            assert not index.search(rows[0], scope, 10, exact=exact).approximate
    assert index.search(rows[0], EVERYTHING, 10).approximate
    assert index.search(rows[0], Scope(allowed=np.ones(3000, bool)), 10).approximate
    assert not index.search(rows[0], Scope(allowed=np.arange(3000) > 0), 10).approximate


def test_hidden_records_change_no_bit(tmp_path, rows):
    some = np.random.default_rng(6).random(3000) < 0.4
    index = built(tmp_path / "whole", rows)
    alone = built(tmp_path / "part", rows[some])
    numbers = np.flatnonzero(some)
    for query in unit_rows(10, seed=7):
        a = index.search(query, Scope(visible=some, allowed=some), 40, exact="no")
        b = alone.search(query, EVERYTHING, 40, exact="yes")
        np.testing.assert_array_equal(a.numbers, numbers[b.numbers])
        np.testing.assert_array_equal(a.scores, b.scores)


def test_a_graph_comes_and_goes_with_the_number_of_vectors(tmp_path, monkeypatch):
    """There is one exactly where `auto` would walk it; without it, exact search answers `no`, and says why."""
    walk = vectors_module.WIDTH * vectors_module.GRAPH_MS_PER_WIDTH
    monkeypatch.setattr(vectors_module, "EXACT_MS_PER_ELEMENT", walk / (450 * 24))
    query = unit_rows(1, seed=9)[0]
    for count in (300, 600, 449, 451, 0):
        index = built(tmp_path, unit_rows(count), graph=False)
        graph = count > 450
        assert (tmp_path / "index.usearch").exists() == graph
        assert index.approximates(EVERYTHING, 100, "auto") == graph
        assert index.search(query, EVERYTHING, 5, exact="no").approximate == graph
        assert len(index.search(query, EVERYTHING, 5, exact="no").numbers) == min(5, count)
        assert index.without_graph.startswith(f"Over {count} vectors exact search is no slower") == (not graph)


def test_a_graph_that_cannot_be_built_is_a_warning(tmp_path, monkeypatch):

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(vectors_module, "build_graph", fail)
    index = built(tmp_path, unit_rows(50))
    assert "out of memory" in index.without_graph
    assert not (tmp_path / "index.usearch").exists()
    assert not index.search(unit_rows(1)[0], EVERYTHING, 5, exact="no").approximate
    assert "out of memory" in json.loads((tmp_path / "identity.json").read_text())["graph"]["warning"]


@pytest.mark.parametrize(
    "harm", [lambda p: p.unlink(), lambda p: p.write_bytes(p.read_bytes()[:-100])], ids=["gone", "cut"]
)
def test_a_damaged_graph_is_a_warning(tmp_path, harm):
    built(tmp_path, unit_rows(300))
    harm(tmp_path / "index.usearch")
    index = VectorIndex(tmp_path)
    assert "missing or has another size" in index.without_graph
    answer = index.search(unit_rows(1)[0], EVERYTHING, 5, exact="no")
    assert (len(answer.numbers), answer.approximate) == (5, False)


def test_ties_are_not_missed(tmp_path, at_any_size):
    rows = unit_rows(900)
    rows[:600] = rows[0]
    index = built(tmp_path, rows)
    query = rows[0]
    assert index.search(query, EVERYTHING, 10, exact="no").approximate
    assert recall(index, query, 10) == 1.0


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
def test_wrong_vectors_are_refused(tmp_path, blocks, words):
    with pytest.raises(CorpusError, match=words):
        build_vectors(tmp_path, blocks, 6, IDENTITY)


def test_a_damaged_matrix_is_refused(tmp_path):
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
