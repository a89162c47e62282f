"""A graph is taken from the generation before where the vectors are the same, and only there."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from workbench.records import EncoderIdentity
from workbench.store.generations import file_digest
from workbench.store.vectors import build as vectors_build
from workbench.store.vectors.build import GRAPH, IDENTITY, MATRIX, OldVectors, build_vectors

ENCODER = EncoderIdentity("test", "0", 16, 512, "test")


def rows(seed: int) -> np.ndarray:
    """Vectors of length 1."""
    made = np.random.default_rng(seed).normal(size=(200, ENCODER.dim)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def built(folder: Path, vectors: np.ndarray, old: OldVectors | None = None) -> dict[str, bytes]:
    """Build, and the bytes of each file."""
    build_vectors(folder, [vectors], len(vectors), ENCODER, old=old)
    return {name: (folder / name).read_bytes() for name in (MATRIX, GRAPH, IDENTITY)}


@pytest.fixture
def old(tmp_path: Path) -> OldVectors:
    """The vectors of a generation."""
    built(tmp_path / "old", rows(1))
    return OldVectors(tmp_path / "old", file_digest(tmp_path / "old" / GRAPH))


@pytest.fixture
def no_building(old: OldVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Building another graph fails."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a graph was built")

    monkeypatch.setattr(vectors_build, "build_graph", fail)


@pytest.mark.usefixtures("no_building")
def test_the_same_vectors_have_the_same_graph(tmp_path: Path, old: OldVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same file under a second name, and all is as it was; what is written there later is another file."""
    before = {name: (old.folder / name).read_bytes() for name in (MATRIX, GRAPH, IDENTITY)}
    assert built(tmp_path / "new", rows(1), old) == before
    assert os.path.samefile(old.folder / GRAPH, tmp_path / "new" / GRAPH)
    monkeypatch.undo()
    built(tmp_path / "new", rows(2))
    assert (old.folder / GRAPH).read_bytes() == before[GRAPH]


@pytest.mark.usefixtures("no_building")
def test_where_a_file_has_one_name_the_graph_is_copied(
    tmp_path: Path, old: OldVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems know no second names."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert built(tmp_path / "new", rows(1), old)[GRAPH] == (old.folder / GRAPH).read_bytes()
    assert not os.path.samefile(old.folder / GRAPH, tmp_path / "new" / GRAPH)


def other_version(old: OldVectors) -> None:
    record = json.loads((old.folder / IDENTITY).read_text())
    record["graph"]["usearch"] = "0"
    (old.folder / IDENTITY).write_text(json.dumps(record))


def damaged(old: OldVectors) -> None:
    data = bytearray((old.folder / GRAPH).read_bytes())
    data[len(data) // 2] ^= 255
    (old.folder / GRAPH).write_bytes(data)


@pytest.mark.parametrize(
    ("seed", "harm"),
    [
        (2, lambda _: None),
        (1, other_version),
        (1, damaged),
        (1, lambda old: (old.folder / GRAPH).unlink()),
        (1, lambda old: (old.folder / IDENTITY).unlink()),
    ],
    ids=["other vectors", "other usearch", "damaged", "no graph", "no record"],
)
def test_else_it_is_built(tmp_path: Path, old: OldVectors, seed: int, harm: Callable[[OldVectors], object]) -> None:
    """Other vectors, another usearch, a graph that is not as it was written or not there: the graph is a new one."""
    harm(old)
    assert built(tmp_path / "new", rows(seed), old) == built(tmp_path / "fresh", rows(seed))
