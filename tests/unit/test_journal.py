"""The embedding journal: what was embedded survives a kill at any byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from workbench.records import EncoderIdentity
from workbench.store.journal import Journal, forget, journal_name

IDENTITY = EncoderIdentity("m", "ab" * 32, "hashing 1", 4, 16)
HASHES = [f"{i:032x}" for i in range(3)]
VECTORS = np.arange(12, dtype=np.float32).reshape(3, 4)


def written(folder: Path) -> Path:
    journal = Journal(folder, IDENTITY)
    journal.append(HASHES[:1], VECTORS[:1])
    journal.append(HASHES[1:], VECTORS[1:])
    journal.sync()
    journal.close()
    return folder / journal_name(IDENTITY) / "vectors.journal"


@pytest.mark.slow
@pytest.mark.parametrize("lost", range(1, 37, 5))
def test_a_torn_tail_is_cut_off_and_written_over(tmp_path: Path, lost: int):
    """A row is 16 + 16 + 4 bytes here; a kill in the middle of the last loses that row only."""
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-lost])
    journal = Journal(tmp_path, IDENTITY)
    assert journal.hashes() == HASHES[:2]
    journal.append(HASHES[2:], VECTORS[2:])
    assert np.array_equal(journal.vectors(), VECTORS)
    journal.close()


def test_a_damaged_row_ends_the_journal(tmp_path: Path):
    path = written(tmp_path)
    data = bytearray(path.read_bytes())
    data[36 + 20] ^= 1
    path.write_bytes(bytes(data))
    journal = Journal(tmp_path, IDENTITY)
    assert journal.hashes() == HASHES[:1]
    journal.close()


@pytest.mark.parametrize(
    "other",
    [
        EncoderIdentity("m", "cd" * 32, "hashing 1", 4, 16),
        EncoderIdentity("m", "ab" * 32, "torch", 4, 16),
        EncoderIdentity("m", "ab" * 32, "hashing 1", 8, 16),
    ],
)
def test_vectors_of_other_weights_or_another_runtime_are_kept_apart(tmp_path: Path, other: EncoderIdentity):
    written(tmp_path)
    journal = Journal(tmp_path, other)
    assert journal.hashes() == []
    journal.close()


def test_rows_that_a_generation_holds_are_dropped_and_the_newest_others_kept(tmp_path: Path):
    written(tmp_path)
    forget(Journal(tmp_path, IDENTITY), {HASHES[0]}, 10)
    journal = Journal(tmp_path, IDENTITY)
    assert journal.hashes() == HASHES[1:]
    assert np.array_equal(journal.vectors(), VECTORS[1:])
    forget(journal, (), 1)
    journal = Journal(tmp_path, IDENTITY)
    assert journal.hashes() == HASHES[2:]
    journal.close()


def test_an_empty_journal_leaves_nothing_behind(tmp_path: Path):
    written(tmp_path / "j")
    forget(Journal(tmp_path / "j", IDENTITY), HASHES, 10)
    assert not (tmp_path / "j").exists()
