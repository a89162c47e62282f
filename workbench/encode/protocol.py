"""The seam between the workbench and whatever turns text into vectors.

An encoder says who it is, encodes documents and queries, counts tokens and can be closed. Everything above this package
sees only that, so a model, another runtime and the hashing encoder of the tests are one and the same thing.
"""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import EncoderError
from workbench.records import EncoderIdentity, Progress, ProgressCallback

Vectors = NDArray[np.float32]

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

    def encode(self, texts: Sequence[str], progress: ProgressCallback | None = None) -> Vectors:
        """Vectors of documents, float32 (len(texts), dim), each row of length 1. Raises EncoderError.

        Large calls are faster: texts are sorted by length inside a call. No text is padded, so a text's vector does not
        depend on the texts beside it (torch may round its last bit otherwise in a batch; the others do not). What is
        beyond `identity.max_tokens` is cut off. `progress` is called with a Progress (step `embed`, done and total in
        texts) from the calling thread.
        """
        self._open()
        result = np.zeros((len(texts), self.identity.dim), np.float32)
        meter = self._meter(progress, len(texts))
        for row, text in enumerate(texts):
            result[row] = self.encode_query(text)
            meter.advance()
        return result

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

    def _meter(self, progress: ProgressCallback | None, total: int, work: float = 0.0) -> Meter:
        return Meter(progress, "embed", total, work)

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

    def __init__(self, tell: ProgressCallback | None, step: str, total: int, work: float = 0.0) -> None:
        self._tell, self._step, self._total, self._all_work = tell, step, total, work
        self._done, self._work = 0, 0.0
        self._next = float("-inf")
        self._marks = deque([(time.monotonic(), 0, 0.0)])

    def advance(self, items: int = 1, detail: str = "", work: float = 0.0) -> None:
        self._done += items
        self._work += work
        if self._tell is None:
            return
        now = time.monotonic()
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


WINDOW = 8192
"""Texts that are sorted together: enough that most lengths fill their batches, few enough to hold their tokens."""


class Tokens:
    """A model's own tokenizer, without torch. Safe from several threads: nothing is changed after it is made.

    Texts are cut at `longest` tokens, with the special ones ([CLS] and [SEP] for BERT) where `special` says
    that they are around a text. Raises EncoderError where the file is not a tokenizer.
    """

    def __init__(self, file: Path, longest: int, *, special: bool = True) -> None:
        from tokenizers import Tokenizer

        try:
            self._whole = Tokenizer.from_file(str(file))
            self._cut = Tokenizer.from_file(str(file))
        except Exception as exc:
            raise EncoderError(f"The tokenizer {file} cannot be read: {exc}", "Fetch the model again") from exc
        for tokenizer in (self._whole, self._cut):
            tokenizer.no_padding()
            tokenizer.no_truncation()
        self._cut.enable_truncation(longest)
        self._special = special
        # BERT's splits at white space before anything else, so the tokens of a text are those of its words.
        splits = ("BertPreTokenizer", "WhitespaceSplit", "Whitespace")
        self.additive = type(self._whole.pre_tokenizer).__name__ in splits

    def count(self, texts: Sequence[str]) -> list[int]:
        """Lengths, nothing cut, special tokens included."""
        return [len(e.ids) for e in self._encoded(self._whole, texts)]

    def cut(self, texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """Ids and type ids of each text, cut to the longest input."""
        return [(e.ids, e.type_ids) for e in self._encoded(self._cut, texts)]

    def _encoded(self, tokenizer: Any, texts: Sequence[str]) -> Any:
        return tokenizer.encode_batch_fast([readable(text) for text in texts], add_special_tokens=self._special)


def readable(text: str) -> str:
    """The text with lone surrogates replaced: a command line can hand them over, and no tokenizer takes them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def same_length(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Rows by their lengths, in groups of one length and at most so many: longest first, rows of one length in order.

    Nothing is padded then: no work is spent on padding, and a text's vector does not depend on its neighbours. Measured with
    all-MiniLM-L6-v2 in bf16: padded batches of 8 moved one vector in twenty, by up to 7e-4 in a coordinate; batches of one
    length give the bits of one text at a time, at the speed of padded ones.
    """
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    groups: list[list[int]] = []
    for _, group in itertools.groupby(order, lengths.__getitem__):
        while chosen := list(itertools.islice(group, most)):
            groups.append(chosen)
    return groups
