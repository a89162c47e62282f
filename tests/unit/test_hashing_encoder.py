"""The hashing encoder: the same bits in every process, and near where words are shared."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.encode.hashing import DIM, IDENTITY, HashingEncoder
from workbench.encode.load import identity_of, load_encoder

CODE = (
    "import hashlib; from workbench.encode.hashing import HashingEncoder;"
    "print(hashlib.sha256(HashingEncoder().encode(['retry the call', '', 'é 検索 C++']).tobytes()).hexdigest())"
)


@pytest.mark.slow
def test_two_processes_give_the_same_bits() -> None:
    seen = {
        subprocess.run(
            [sys.executable, "-c", CODE],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_it_is_found_by_name() -> None:
    assert identity_of("hashing") == load_encoder("hashing").identity == IDENTITY
    assert IDENTITY.runtime == "hashing 1"


@given(st.text(max_size=80))
def test_any_text_has_a_unit_vector(text: str) -> None:
    vector = HashingEncoder().encode_query(text)
    assert vector.shape == (DIM,)
    assert abs(float(np.linalg.norm(vector.astype(np.float64))) - 1) < 1e-6
