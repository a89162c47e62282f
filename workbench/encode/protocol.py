"""The seam between the workbench and whatever turns text into vectors.

An encoder is small: it says who it is, encodes documents and queries, counts tokens and can be closed. Everything above
this package sees only that, so a model, another runtime and the hashing encoder of the tests are one and the same thing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.records import EncoderIdentity, Progress

Vectors = NDArray[np.float32]
Tell = Callable[[Progress], None]

STEP = "embed"
"""Name of the step in the progress reports of `encode`."""

_PAUSE = 0.1


class Encoder(Protocol):
    """Turns texts into unit vectors. Safe from several threads."""

    @property
    def identity(self) -> EncoderIdentity:
        """Name, digest of the weights, runtime, dimensions and longest input."""

    @property
    def additive(self) -> bool:
        """True if a text has as many tokens as its words have together, so that lengths of lines add up."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that the user should know, such as why torch runs the model; usually none."""

    def encode(self, texts: Sequence[str], progress: Tell | None = None) -> Vectors:
        """Vectors of documents.

        Large calls are faster: texts are sorted by length inside a call. No text is padded, so a text's vector does not
        depend on the texts beside it (torch may round its last bit otherwise in a batch; the others do not). What is
        beyond `identity.max_tokens` is cut off.

        Args:
            texts: Any number, any length, empty ones too.
            progress: Called with a Progress (step `embed`, done and total in texts) from the calling thread.

        Returns:
            float32 (len(texts), dim), each row of length 1.

        Raises:
            EncoderError: The encoder is closed, or the model failed.
        """

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Vector of a query, float32 (dim,), length 1. The same bits whatever else is encoded. Raises EncoderError."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Lengths in the model's own tokens, nothing cut off, special tokens included ([CLS] and [SEP] for BERT).

        So a text is encoded whole if its count is at most `identity.max_tokens`, and an empty text has the count of the
        special tokens alone.
        """

    def close(self) -> None:
        """Let go of the model. Encoding afterwards raises EncoderError."""


class Meter:
    """Turns finished work into progress reports, at most ten a second and one at the end.

    Args:
        tell: The callback, or None.
        total: Number of texts.
        tokens: Number of tokens: the time left is reckoned from these, since long texts come first.
    """

    def __init__(self, tell: Tell | None, total: int, tokens: int) -> None:
        self._tell = tell
        self._total = total
        self._tokens = max(tokens, 1)
        self._done = 0
        self._spent = 0
        self._begin = time.perf_counter()
        self._next = self._begin

    def add(self, texts: int, tokens: int) -> None:
        """Report that so many more texts, of so many tokens together, are done."""
        self._done += texts
        self._spent += tokens
        now = time.perf_counter()
        if self._tell is None or (now < self._next and self._done < self._total):
            return
        self._next = now + _PAUSE
        seconds = max(now - self._begin, 1e-9)
        left = seconds * max(0, self._tokens - self._spent) / self._spent if self._spent else None
        self._tell(Progress(STEP, self._done, self._total, self._done / seconds, left))


def unit(vectors: NDArray[np.floating]) -> Vectors:
    """Rows scaled to length 1, float32 (n, dim), each by itself so that neighbours change no bit; zero rows stay zero."""
    wide = np.asarray(vectors, np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0] = 1.0
    scaled: Vectors = (wide / lengths[:, None]).astype(np.float32)
    return scaled
