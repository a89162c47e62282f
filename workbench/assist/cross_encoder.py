"""Reranking by a local cross-encoder: query and text go through the model together, so each sees the other's words.

Weights are a folder or a name on the hub, never fetched when HF_HUB_OFFLINE is set; none is shipped. The model runs in torch
on the CPU, and its raw logits are the scores: the sigmoid that most models put on top rounds good passages to the same 1.0
and changes no order.

Pairs go through one at a time. Padded together, a text's last bits would depend on its neighbours, and the same text in two
places would change the order; and it costs nothing: of 24 real chunks through a model of MiniLM's size, one at a time took
1.5 s of processor time, batches of 8 sorted by length 1.7, unsorted 2.1. Between pairs the clock is read: a model that is
too slow for its time is given up, and the fused order stays.
(Nogueira and Cho, "Passage Re-ranking with BERT", arXiv 1901.04085.)
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench import settings
from workbench.encode.models import folder_of, read_json
from workbench.encode.protocol import readable
from workbench.encode.sentence import quiet
from workbench.errors import AssistError, EncoderError
from workbench.ranking.candidates import Floats

_CHARACTERS_A_TOKEN = 32
_LONGEST_INPUT = 8192
_ORGANISATION = "cross-encoder"
_HEADS = ("ForSequenceClassification", "ForCausalLM")


class CrossEncoderReranker:
    """A `Reranker` that runs a sentence-transformers CrossEncoder. `seconds`: Time for one call, loading not counted; None is
    the setting `rerank_timeout_seconds`.
    """

    def __init__(self, model: str, *, seconds: float | None = None) -> None:
        self.name = model
        self._seconds = float(settings.get("rerank_timeout_seconds") if seconds is None else seconds)
        self._folder = find(model)
        check_head(model, self._folder)
        self._model, self._raw = _load(model, self._folder)
        if self._model.num_labels != 1:
            raise AssistError(
                f"The model {model} gives {self._model.num_labels} scores a pair, and reranking needs one",
                "Choose a cross-encoder that was trained for ranking",
            )
        self._lock = threading.Lock()

    def scores(self, query: str, texts: Sequence[str]) -> Floats:
        """Raw logits, float64 (n,), the same whatever the other texts are. See `Reranker.scores`. Raises AssistError."""
        deadline = time.monotonic() + self._seconds
        result = np.zeros(len(texts))
        room = min(int(self._model.max_seq_length or _LONGEST_INPUT), _LONGEST_INPUT) * _CHARACTERS_A_TOKEN
        query = readable(query[:room])
        # The tokenizer keeps state between calls, so one call at a time.
        with self._lock:
            for row, text in enumerate(texts):
                if time.monotonic() > deadline:
                    raise AssistError(
                        f"The model {self.name} did not rerank {len(texts)} texts within {self._seconds:g} seconds",
                        "Lower rerank.top, choose a smaller model, or raise rerank_timeout_seconds",
                    )
                result[row] = self._score(query, readable(text[:room]))
        if not np.isfinite(result).all():
            raise AssistError(f"The model {self.name} gave scores that are not numbers", "Choose another model")
        return result

    def _score(self, query: str, text: str) -> float:
        try:
            return float(self._model.predict((query, text), show_progress_bar=False, activation_fn=self._raw))
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError) as exc:
            raise AssistError(f"The model {self.name} failed: {exc}", "Choose another model in rerank.model") from exc


def find(model: str) -> Path:
    """The folder that a cross-encoder's name stands for; what the hub has is fetched unless HF_HUB_OFFLINE is set."""
    try:
        return folder_of(model, _ORGANISATION, download=True)
    except EncoderError as exc:
        remedy = "Set rerank.model to a cross-encoder's folder, to endpoint:MODEL, or to off"
        raise AssistError(exc.message, remedy) from exc


def signature(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of a model's files: another signature is another model."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return tuple((str(f.relative_to(folder)), f.stat().st_size, f.stat().st_mtime_ns) for f in files)


def check_head(model: str, folder: Path) -> None:
    """Refuse a model without a scoring head: the library would make one up from random numbers and only log it."""
    config, ours = (read_json(folder / name) for name in ("config.json", "config_sentence_transformers.json"))
    config, ours = (value if isinstance(value, dict) else {} for value in (config, ours))
    kinds = [str(kind) for kind in config.get("architectures") or []]
    if ours.get("model_type") == "CrossEncoder" or any(kind.endswith(_HEADS) for kind in kinds):
        return
    what = f"its configuration says {', '.join(kinds)}" if kinds else "its configuration names no scoring head"
    raise AssistError(f"{model} is not a cross-encoder: {what}", "Choose a model that was trained to score pairs")


def _load(model: str, folder: Path) -> tuple[Any, Any]:
    """The CrossEncoder in fp32, and the activation that leaves its logits as they are."""
    with quiet():
        try:
            library, torch = importlib.import_module("sentence_transformers"), importlib.import_module("torch")
        except ImportError as exc:
            raise AssistError(
                f"sentence-transformers cannot be imported: {exc}", "Install it: pip install sentence-transformers"
            ) from exc
        try:
            loaded = library.CrossEncoder(str(folder), device="cpu", local_files_only=True)
            return loaded.float().eval(), torch.nn.Identity()
        except Exception as exc:
            raise AssistError(
                f"The cross-encoder {model} in {folder} cannot be loaded: {exc}",
                "Point rerank.model at a folder saved by sentence-transformers, or fetch the model again",
            ) from exc
