"""The product of a query with the matrix is made once for searches that ask at about the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from workbench.records import EncoderIdentity
from workbench.store.types import Scope
from workbench.store.vectors.search import MappedVectors, build_vectors

ROWS = 2000
IDENTITY = EncoderIdentity("test", "0" * 64, "test", 32, 256)


class Slow(np.ndarray[Any, Any]):
    """A matrix that says when it is multiplied whole, and waits."""

    begun: Callable[[], None]

    def __matmul__(self, other: Any) -> Any:
        if len(self) == ROWS:
            self.begun()
        return np.asarray(self) @ other


@pytest.fixture
def matrix() -> NDArray[np.float32]:
    rows = np.random.default_rng(3).normal(size=(ROWS, 32)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def index(tmp_path: Path, matrix: NDArray[np.float32]) -> MappedVectors:
    build_vectors(tmp_path, [matrix], len(matrix), IDENTITY)
    return MappedVectors(tmp_path)


def watched(index: MappedVectors, begun: Callable[[], None]) -> None:
    slow = index._matrix.view(Slow)
    slow.begun = begun
    index._matrix = slow


def test_three_searches_at_once_read_the_matrix_once(index: MappedVectors, matrix: NDArray[np.float32]) -> None:
    """All begin while the first one multiplies; each has the answer that it has alone."""
    scopes = [Scope(allowed=np.arange(ROWS) % 3 == n) for n in range(3)]
    alone = [index.search(matrix[7], scope, 20, exact="yes") for scope in scopes]
    index._products.clear()
    started, times = threading.Barrier(3), []

    def begun() -> None:
        times.append(1)
        threading.Event().wait(0.1)

    watched(index, begun)
    found: dict[int, Any] = {}

    def work(n: int) -> None:
        started.wait(timeout=10)
        found[n] = index.search(matrix[7], scopes[n], 20, exact="yes")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert times == [1]
    for n in range(3):
        assert found[n].numbers.tolist() == alone[n].numbers.tolist()
        assert found[n].scores.tolist() == alone[n].scores.tolist()


def test_few_products_are_kept(index: MappedVectors, matrix: NDArray[np.float32]) -> None:
    """Another query multiplies again; the last ones are there for the histogram."""
    times: list[int] = []
    watched(index, lambda: times.append(1))
    for row in range(6):
        index.search(matrix[row], Scope(), 5, exact="yes")
    assert len(times) == 6
    index.cosines(matrix[5], Scope())
    assert len(times) == 6
    assert len(index._products) <= 2


def test_a_product_that_fails_is_tried_again(index: MappedVectors, matrix: NDArray[np.float32]) -> None:
    """A failure reaches the caller and is not kept."""

    def fails() -> None:
        raise MemoryError

    watched(index, fails)
    with pytest.raises(MemoryError):
        index.search(matrix[0], Scope(), 5, exact="yes")
    watched(index, lambda: None)
    assert index.search(matrix[0], Scope(), 5, exact="yes").numbers[0] == 0
