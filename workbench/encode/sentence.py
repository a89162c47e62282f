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

from workbench.encode.models import Model, offline
from workbench.encode.protocol import WINDOW, Encoder, Vectors, package_version, readable, same_length, unit
from workbench.errors import EncoderError
from workbench.records import EncoderIdentity, ProgressCallback

_BATCH = 8
_ENDLESS = 1 << 20


class SentenceEncoder(Encoder):
    """An `Encoder` that runs a sentence-transformers model with torch; `notes` say why, if that was not asked for."""

    def __init__(self, model: Model, notes: tuple[str, ...] = ()) -> None:
        digest = model.digest
        self._loaded = _load(model)
        self.notes = notes
        self.prompts = _prompts_of(self._loaded)
        self._lock = threading.Lock()
        longest = self._loaded.max_seq_length or 0
        longest = int(longest) if 0 < longest < _ENDLESS else _ENDLESS  # a static embedding says infinity
        dim = int(self._loaded.get_embedding_dimension() or len(self._loaded.encode("a", show_progress_bar=False)))
        self.identity = EncoderIdentity(model.name, digest, runtime(), dim, longest)

    @property
    def torch_model(self) -> Any:
        """The SentenceTransformer itself. Raises EncoderError when closed."""
        return self._open()

    def encode(self, texts: Sequence[str], progress: ProgressCallback | None = None) -> Vectors:
        return self._run(texts, self.prompts[0], progress)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._run([text], self.prompts[1], None)[0]
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        tokenizer = self._open().tokenizer
        if not texts:
            return []
        cleaned = [readable(text) for text in texts]
        with self._lock:
            if callable(tokenizer):
                return list(map(len, tokenizer(cleaned, truncation=False, padding=False, verbose=False)["input_ids"]))
            return [len(e.ids) for e in tokenizer.encode_batch(cleaned)]

    def _run(self, texts: Sequence[str], prompt: str, progress: ProgressCallback | None) -> Vectors:
        model = self._open()
        result = np.zeros((len(texts), self.identity.dim), np.float32)
        lengths = [min(n, self.identity.max_tokens) for n in self.count_tokens([prompt + text for text in texts])]
        meter = self._meter(progress, len(texts), sum(lengths))
        for start in range(0, len(texts), WINDOW):
            for group in same_length(lengths[start : start + WINDOW], _BATCH):
                rows = [start + row for row in group]
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
                            f"The model {self.identity.name} failed: {exc}", "Try another model, or report the text"
                        ) from exc
                result[rows] = unit(np.asarray(vectors, np.float32))
                meter.advance(len(rows), work=sum(lengths[row] for row in rows))
        return result


def runtime() -> str:
    """`torch 2.13.0 fp32`, without importing torch."""
    return f"torch {package_version('torch')} fp32"


def _load(model: Model) -> Any:
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
            return (
                library.SentenceTransformer(str(model.folder), device="cpu", local_files_only=offline()).float().eval()
            )
        except Exception as exc:
            raise EncoderError(
                f"The model {model.name} in {model.folder} cannot be loaded: {exc}",
                "Point `encoder` at a folder saved by sentence-transformers, or fetch the model again",
            ) from exc


def _prompts_of(model: Any) -> tuple[str, str]:
    """What the model wants put before documents and before queries; mostly nothing."""
    prompts = model.prompts or {}
    default = prompts.get(model.default_prompt_name) if model.default_prompt_name else None
    document = next((prompts[n] for n in ("document", "passage", "corpus") if prompts.get(n)), default)
    return str(document or ""), str(prompts.get("query") or default or "")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' progress bars and advice to developers off the user's terminal."""
    loggers = [logging.getLogger(name) for name in ("transformers", "sentence_transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    try:
        bars: Any = importlib.import_module("transformers.utils.logging")
        shown = bars.is_progress_bar_enabled()
    except ImportError:
        bars, shown = None, False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            if shown:
                bars.disable_progress_bar()
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            if shown:
                bars.enable_progress_bar()
