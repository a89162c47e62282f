"""The seam between the workbench and whatever turns text into vectors.

An encoder says who it is, encodes documents and queries, counts tokens and can be closed. Everything above this package
sees only that, so a model, another runtime and the hashing encoder of the tests are one and the same thing.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import EncoderError
from workbench.records import EncoderIdentity, Progress, ProgressCallback

Vectors = NDArray[np.float32]

STEP = "embed"
"""Name of the step in the progress reports of `encode`."""

_EVERY_SECONDS = 0.1
_WINDOW_SECONDS = 30.0


class Encoder(ABC):
    """Turns texts into unit vectors. Safe from several threads.

    Attributes:
        identity: Name, digest of the weights, runtime, dimensions and longest input.
        additive: True if a text has as many tokens as its words have together, so that lengths of lines add up.
        notes: Sentences that the user should know, such as why torch runs the model; usually none.
    """

    identity: EncoderIdentity
    additive: bool = False
    notes: tuple[str, ...] = ()
    _loaded: Any = None

    @abstractmethod
    def encode(self, texts: Sequence[str], progress: ProgressCallback | None = None) -> Vectors:
        """Vectors of documents, float32 (len(texts), dim), each row of length 1. Raises EncoderError.

        Large calls are faster: texts are sorted by length inside a call. No text is padded, so a text's vector does not
        depend on the texts beside it (torch may round its last bit otherwise in a batch; the others do not). What is
        beyond `identity.max_tokens` is cut off. `progress` is called with a Progress (step `embed`, done and total in
        texts) from the calling thread.
        """

    @abstractmethod
    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Vector of a query, float32 (dim,), length 1. The same bits whatever else is encoded. Raises EncoderError."""

    @abstractmethod
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Lengths in the model's own tokens, nothing cut off, special tokens included ([CLS] and [SEP] for BERT).

        So a text is encoded whole if its count is at most `identity.max_tokens`, and an empty text has the count of the
        special tokens alone.
        """

    @property
    def closed(self) -> bool:
        return self._loaded is None

    def close(self) -> None:
        """Let go of the model. Encoding afterwards raises EncoderError."""
        self._loaded = None

    def _open(self) -> Any:
        """What was loaded. Raises EncoderError when closed."""
        loaded = self._loaded
        if loaded is None:
            raise EncoderError(f"The encoder {self.identity.name} is closed", "Load it again with load_encoder")
        return loaded


class Meter:
    """Reports how far a step is, at most ten times a second, and always at its end: rate and time left over 30 seconds.
    Where items differ, `work` is how much all are together (tokens, bytes), and time left follows the work.
    """

    def __init__(
        self,
        tell: ProgressCallback | None,
        step: str,
        total: int,
        work: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell, self._step, self._total, self._all_work, self._clock = tell, step, total, work, clock
        self._done, self._work = 0, 0.0
        self._next = float("-inf")
        self._marks: deque[tuple[float, int, float]] = deque([(clock(), 0, 0.0)])

    def advance(self, items: int = 1, detail: str = "", work: float = 0.0) -> None:
        """Some items are done."""
        self._done += items
        self._work += work
        if self._tell is None:
            return
        now = self._clock()
        if now < self._next and self._done < self._total:
            return
        self._next = now + _EVERY_SECONDS
        self._marks.append((now, self._done, self._work))
        while len(self._marks) > 2 and now - self._marks[1][0] > _WINDOW_SECONDS:
            self._marks.popleft()
        start, done, work_done = self._marks[0]
        spent = max(now - start, 1e-9)
        rate = (self._done - done) / spent
        speed = (self._work - work_done) / spent if self._all_work else rate
        left = self._all_work - self._work if self._all_work else float(self._total - self._done)
        self._tell(
            Progress(self._step, self._done, self._total, rate, max(0.0, left / speed) if speed else None, detail)
        )


def unit(vectors: NDArray[np.floating]) -> Vectors:
    """Rows scaled to length 1, float32 (n, dim), each by itself so that neighbours change no bit; zero rows stay zero."""
    wide = np.asarray(vectors, np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    lengths[lengths == 0] = 1.0
    scaled: Vectors = (wide / lengths[:, None]).astype(np.float32)
    return scaled


def package_version(name: str) -> str:
    """A package's version without importing it and without its build (`2.13.0`); "" where it is not installed."""
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return ""
