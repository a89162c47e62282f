"""The hashing encoder: vectors from hashed words and character n-grams, without a model.

It serves tests and machines without a model. Words and the n-grams inside them are hashed to signed coordinates (the
hashing trick: Weinberger et al., "Feature hashing for large scale multitask learning", ICML 2009; n-grams of words as in
Bojanowski et al., "Enriching word vectors with subword information", TACL 2017), so texts that share words, stems or
parts of identifiers are near each other. It knows nothing of meaning: synonyms are strangers to it.

It uses no hash of Python's own (those differ between processes) and adds in a fixed order, so the same text gives the
same bits everywhere.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from workbench.encode.protocol import Encoder, unit
from workbench.records import EncoderIdentity

NAME = "hashing"
DIM = 256
MAX_TOKENS = 256

_VERSION = 1
_GRAMS = (3, 4, 5)
_WORD = re.compile(r"[^\W_]+")
# Short words are mostly the common ones (the, of, to); with no corpus to count in, length stands for rarity.
_FULL_LENGTH = 6
_GRAM_SHARE = 1.0
_RECIPE = f"hashing {_VERSION} dim {DIM} tokens {MAX_TOKENS} grams {_GRAMS} length {_FULL_LENGTH} share {_GRAM_SHARE}"

IDENTITY = EncoderIdentity(NAME, hashlib.sha256(_RECIPE.encode()).hexdigest(), f"{NAME} {_VERSION}", DIM, MAX_TOKENS)


class HashingEncoder(Encoder):
    """An `Encoder` without a model. A text without a letter or digit gets one fixed unit vector."""

    identity = IDENTITY
    additive = True

    def __init__(self) -> None:
        self._loaded = True

    def encode_query(self, text: str) -> NDArray[np.float32]:
        self._open()
        return _vector(text)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Number of words in each text; there are no special tokens."""
        return [len(_words(text)) for text in texts]


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _vector(text: str) -> NDArray[np.float32]:
    total = np.zeros(DIM)
    for word, count in sorted(Counter(_words(text)[:MAX_TOKENS]).items()):
        total += (1.0 + np.log(count)) * _word(word)
    if not total.any():
        total[0] = 1.0
    vector: NDArray[np.float32] = unit(total[None, :])[0]
    return vector


@lru_cache(maxsize=1 << 14)
def _word(word: str) -> NDArray[np.float64]:
    """The word's own vector: itself, and beside it its n-grams with borders marked."""
    vector = np.zeros(DIM)
    _add(vector, "w" + word, 1.0)
    marked = f"<{word}>"
    grams = [marked[i : i + n] for n in _GRAMS for i in range(len(marked) - n + 1)]
    for gram in grams:
        _add(vector, "g" + gram, _GRAM_SHARE / np.sqrt(len(grams)))
    vector *= min(1.0, len(word) / _FULL_LENGTH)
    vector.setflags(write=False)
    return vector


def _add(vector: NDArray[np.float64], feature: str, weight: float) -> None:
    number = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
    vector[(number >> 1) % DIM] += weight if number & 1 else -weight
