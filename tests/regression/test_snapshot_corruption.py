"""Thousands of damaged snapshots: each is refused with a sentence, or reads exactly as the whole one."""

from __future__ import annotations

import random

import pytest
from snapshot_cases import shrunk

import workbench as wb
from workbench.errors import SnapshotError

SEED = 20_240_607


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One of the ways in which files go wrong: bits, runs, cuts, repeats, swaps, foreign bytes."""
    body = bytearray(data)
    at = chance.randrange(len(body))
    length = min(chance.choice((1, 2, 4, 16, 64, 512)), len(body) - at)
    kind = chance.randrange(8)
    if kind == 0:
        body[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        body[at] = chance.randrange(256)
    elif kind == 2:
        body[at : at + length] = bytes(length)
    elif kind == 3:
        del body[at : at + length]
    elif kind == 4:
        del body[at:]
    elif kind == 5:
        body[at:at] = body[at : at + length]
    elif kind == 6:
        other = chance.randrange(len(body))
        body[at : at + length], body[other : other + length] = body[other : other + length], body[at : at + length]
    else:
        body[at : at + length] = chance.randbytes(length)
    return bytes(body)


def opened(data: bytes) -> wb.Snapshot | SnapshotError:
    """What the bytes are, or the error that they give; any other error fails the test."""
    try:
        return wb.Snapshot.load(data)
    except SnapshotError as exc:
        return exc


def check(snapshot: wb.Snapshot, tries: int, seed: int) -> tuple[int, int]:
    """Damage it so often; the numbers of files that were refused and that were harmless."""
    whole, chance = snapshot.to_bytes(), random.Random(seed)
    refused = harmless = 0
    for _ in range(tries):
        read = opened(damaged(whole, chance))
        if isinstance(read, SnapshotError):
            assert read.remedy
            assert "\n" not in str(read)
            refused += 1
            continue
        assert read.parts == snapshot.parts
        assert read.manifest == snapshot.manifest
        assert read.verify().digests
        harmless += 1
    return refused, harmless


@pytest.fixture(scope="module")
def snapshot(sample: wb.Corpus) -> wb.Snapshot:
    return shrunk(
        sample.search("how do retries work", keywords="retry", plan="default limit=3").snapshot("to be damaged")
    )


def test_two_thousand_damages_are_refused_or_harmless(snapshot: wb.Snapshot) -> None:
    """No crash, and no wrong content that is taken for the saved one."""
    refused, harmless = check(snapshot, 2_000, SEED)
    assert refused + harmless == 2_000
    assert refused > 1_600
