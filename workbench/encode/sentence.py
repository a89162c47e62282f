"""The model as sentence-transformers defines and loads it, run by torch in fp32.

This is the reference: the OpenVINO copy is made from it and has to agree with it, and it runs the model itself where there
is no such copy. It runs on the CPU, so that the same corpus has the same vectors on every machine.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.encode.batching import WINDOW, readable
from workbench.encode.models import Model, offline
from workbench.encode.protocol import STEP, Meter, Vectors, unit
from workbench.errors import EncoderError
from workbench.records import EncoderIdentity, ProgressCallback

_BATCH = 8
_ENDLESS = 1 << 20


class SentenceEncoder:
    """An `Encoder` that runs a sentence-transformers model with torch.

    Args:
        model: Where it is.
        notes: Why torch runs it, if that was not asked for.

    Raises:
        EncoderError: It cannot be loaded.
    """

    def __init__(self, model: Model, notes: tuple[str, ...] = ()) -> None:
        digest = model.digest
        self._model: Any = load_torch(model)
        self.notes = notes
        self.additive = False
        self.prompts = prompts_of(self._model)
        self._lock = threading.Lock()
        self._name = model.name
        longest = self._model.max_seq_length or 0
        self.longest = int(longest) if 0 < longest < _ENDLESS else _ENDLESS  # a static embedding says infinity
        self.identity = EncoderIdentity(model.name, digest, runtime(), _dimensions(self._model), self.longest)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._model is None

    @property
    def torch_model(self) -> Any:
        """The SentenceTransformer itself. Raises EncoderError when closed."""
        return self._open()

    def encode(self, texts: Sequence[str], progress: ProgressCallback | None = None) -> Vectors:
        """Vectors of documents, float32 (n, dim). See `Encoder.encode`."""
        return self._run(texts, self.prompts[0], progress)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Vector of a query, float32 (dim,)."""
        vector: NDArray[np.float32] = self._run([text], self.prompts[1], None)[0]
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Lengths in the model's tokens, special ones included, nothing cut."""
        model = self._open()
        if not texts:
            return []
        cleaned = [readable(text) for text in texts]
        with self._lock:
            tokenizer = model.tokenizer
            if callable(tokenizer):
                return [
                    len(ids) for ids in tokenizer(cleaned, truncation=False, padding=False, verbose=False)["input_ids"]
                ]
            return [len(e.ids) for e in tokenizer.encode_batch(cleaned)]

    def close(self) -> None:
        """Let go of the model."""
        self._model = None

    def _open(self) -> Any:
        model = self._model
        if model is None:
            raise EncoderError(f"The encoder {self._name} is closed", "Load it again with load_encoder")
        return model

    def _run(self, texts: Sequence[str], prompt: str, progress: ProgressCallback | None) -> Vectors:
        model = self._open()
        result = np.zeros((len(texts), self.identity.dim), np.float32)
        lengths = self.count_tokens([prompt + text for text in texts])
        lengths = [min(length, self.longest) for length in lengths]
        meter = Meter(progress, STEP, len(texts), sum(lengths))
        for start in range(0, len(texts), WINDOW):
            window = range(start, min(start + WINDOW, len(texts)))
            for rows in _groups(window, lengths):
                with self._lock:
                    try:
                        vectors = model.encode(
                            [readable(texts[row]) for row in rows],
                            prompt=prompt or None,
                            batch_size=len(rows),
                            show_progress_bar=False,
                            convert_to_numpy=True,
                        )
                    except (RuntimeError, ValueError, TypeError, IndexError) as exc:
                        raise EncoderError(
                            f"The model {self._name} failed: {exc}", "Try another model, or report the text"
                        ) from exc
                result[rows] = unit(np.asarray(vectors, np.float32))
                meter.advance(len(rows), work=sum(lengths[row] for row in rows))
        return result


def runtime() -> str:
    """`torch 2.13.0 fp32`, without importing torch."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"torch {version('torch').partition('+')[0]} fp32"
    except PackageNotFoundError:
        return "torch"


def load_torch(model: Model) -> Any:
    """The SentenceTransformer in fp32 on the CPU. Raises EncoderError with what to do."""
    with quiet():
        try:
            library = importlib.import_module("sentence_transformers")
        except ImportError as exc:
            raise EncoderError(
                f"sentence-transformers cannot be imported: {exc}",
                "Install it: pip install sentence-transformers; or set `encoder` to hashing",
            ) from exc
        try:
            loaded = library.SentenceTransformer(str(model.folder), device="cpu", local_files_only=offline())
            return loaded.float().eval()
        except Exception as exc:
            raise EncoderError(
                f"The model {model.name} in {model.folder} cannot be loaded: {exc}",
                "Point `encoder` at a folder saved by sentence-transformers, or fetch the model again",
            ) from exc


def prompts_of(model: Any) -> tuple[str, str]:
    """What the model wants put before documents and before queries; mostly nothing."""
    prompts = model.prompts or {}
    default = prompts.get(model.default_prompt_name) if model.default_prompt_name else None
    document = next((prompts[n] for n in ("document", "passage", "corpus") if prompts.get(n)), default)
    return str(document or ""), str(prompts.get("query") or default or "")


def _dimensions(model: Any) -> int:
    return int(model.get_embedding_dimension() or len(model.encode("a", show_progress_bar=False)))


def _groups(rows: range, lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows of one length together, at most a batch, longest first."""
    ordered = sorted(rows, key=lambda row: (-lengths[row], row))
    group: list[int] = []
    for row in ordered:
        if group and (lengths[row] != lengths[group[0]] or len(group) == _BATCH):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' progress bars and advice to developers off the user's terminal."""
    names = ("transformers", "sentence_transformers", "huggingface_hub")
    loggers = [logging.getLogger(name) for name in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bars = _bars(False)
        levels = [logger.level for logger in loggers]
        try:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            _bars(bars)


def _bars(wanted: bool) -> bool:
    """Switch the progress bars of transformers, if it is installed; say whether they were on."""
    try:
        switches = importlib.import_module("transformers.utils.logging")
    except ImportError:
        return False
    before = bool(switches.is_progress_bar_enabled())
    if wanted:
        switches.enable_progress_bar()
    else:
        switches.disable_progress_bar()
    return before
