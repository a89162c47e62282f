"""Exact vector search is the float64 brute force, for any matrix, mask, depth and pattern of ties."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from workbench.records import EncoderIdentity
from workbench.store.types import Scope
from workbench.store.vectors import VectorIndex, build_vectors


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
    """A matrix with many equal and nearly equal rows, a query, a mask or none, a depth."""
    dim = draw(st.integers(1, 17))
    count = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pool = rng.standard_normal((draw(st.integers(1, 8)), dim))
    rows = pool[rng.integers(0, len(pool), count)] + draw(
        st.sampled_from([0.0, 1e-8, 1e-6, 0.1])
    ) * rng.standard_normal((count, dim))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    matrix = np.asarray(rows / np.where(lengths == 0, 1, lengths), np.float32)
    mask = rng.random(count) < draw(st.floats(0, 1)) if draw(st.booleans()) else None
    return matrix, matrix[draw(st.integers(0, count - 1))], mask, draw(st.integers(1, count + 3))


@pytest.mark.slow
@trials(30)
@given(cases())
def test_exact_search_is_brute_force(case):
    matrix, query, mask, depth = case
    with tempfile.TemporaryDirectory() as folder:
        build_vectors(Path(folder), [matrix], len(matrix), EncoderIdentity("x", "", "", matrix.shape[1], 1))
        index = VectorIndex(Path(folder))
        answer = index.search(query, Scope(visible=mask, allowed=mask), depth, exact="yes")
        alone = np.array([index.score(query, np.array([n]))[0] for n in range(len(matrix))])
        allowed = np.arange(len(matrix)) if mask is None else np.flatnonzero(mask)
        expected = allowed[np.lexsort((allowed, -alone[allowed]))][:depth]
        np.testing.assert_array_equal(answer.numbers, expected)
        np.testing.assert_array_equal(answer.scores, alone[expected])
        assert answer.found == len(allowed)
        oracle = matrix.astype(np.float64) @ query.astype(np.float64)
        np.testing.assert_allclose(alone, np.clip(oracle, -1, 1), atol=1e-12)
