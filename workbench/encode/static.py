"""Running a static embedding: a table with one row a token, and a text's vector is the mean of its tokens' rows.

A lookup and a mean in numpy are all of it, a thousand times less work than a transformer, and neither torch nor OpenVINO
is imported. Folders in the form of sentence-transformers' `StaticEmbedding` and of model2vec run here (a test compares with
sentence-transformers); one with more to it than the table and a normalisation is left to torch. Such vectors know words,
not sentences: "dog bites man" and "man bites dog" are one text to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.encode.models import Model, read_json
from workbench.encode.protocol import WINDOW, Encoder, Tokens, Vectors, unit
from workbench.errors import EncoderError
from workbench.records import EncoderIdentity, ProgressCallback

RUNTIME = "static 1"
"""What runs it, as an identity records it; the number grows when the arithmetic changes."""

MAX_TOKENS = 8192
"""Where texts are cut: a chunk is never longer (setting chunk_tokens)."""

_KEYS = ("embedding.weight", "embeddings")
_WITHOUT_TORCH = frozenset({"F16", "F32", "F64", "I8"})


@dataclass(frozen=True, slots=True)
class StaticFiles:
    """The files of a static embedding: its table, the table's name and width in that file, and its tokenizer."""

    table: Path
    key: str
    dim: int
    tokenizer: Path


def find_static(model: Model) -> StaticFiles | None:
    """The files of a model that is a static embedding and nothing else, or None. Reads no weights."""
    modules = read_json(model.folder / "modules.json")
    if not isinstance(modules, list) or not modules:
        return None
    from safetensors import SafetensorError, safe_open

    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    config = read_json(model.folder / "config_sentence_transformers.json")
    prompts = isinstance(config, dict) and any((config.get("prompts") or {}).values())
    if kinds[0] != "StaticEmbedding" or set(kinds[1:]) - {"Normalize"} or prompts:
        return None
    folder = model.folder / str(modules[0].get("path", ""))
    table, tokenizer = folder / "model.safetensors", folder / "tokenizer.json"
    try:
        with safe_open(table, "np") as tensors:
            names = set(tensors.keys())
            key = next((key for key in _KEYS if key in names), "")
            # model2vec's newer tables may share rows between tokens ("mapping"); sentence-transformers unfolds those.
            if not key or {"mapping", "weights"} & names or not tokenizer.is_file():
                return None
            rows = tensors.get_slice(key)
            kind, shape = rows.get_dtype(), rows.get_shape()
    except (OSError, SafetensorError):
        return None
    return StaticFiles(table, key, int(shape[1]), tokenizer) if kind in _WITHOUT_TORCH and len(shape) == 2 else None


def static_identity(model: Model, files: StaticFiles) -> EncoderIdentity:
    """Who the encoder is, exactly, without loading it. Raises EncoderError."""
    return EncoderIdentity(model.name, model.digest, RUNTIME, files.dim, MAX_TOKENS)


class StaticEncoder(Encoder):
    """An `Encoder` that looks rows up and takes their mean. Raises EncoderError where a file cannot be read.

    A text without a token (an empty one) gets a fixed unit vector: the last coordinate, which in tables of principal
    components is the direction in which tokens differ least, so it is near nothing.
    """

    def __init__(self, model: Model, files: StaticFiles) -> None:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        self.identity = static_identity(model, files)
        self._tokens = Tokens(files.tokenizer, MAX_TOKENS, special=False)
        self.additive = self._tokens.additive
        try:
            self._loaded = np.ascontiguousarray(load_file(files.table)[files.key], np.float32)
        except (OSError, SafetensorError) as exc:
            raise EncoderError(f"The table {files.table} cannot be read: {exc}", "Fetch the model again") from exc

    def encode(self, texts: Sequence[str], progress: ProgressCallback | None = None) -> Vectors:
        table = self._open()
        result = np.zeros((len(texts), self.identity.dim), np.float32)
        meter = self._meter(progress, len(texts))
        for start in range(0, len(texts), WINDOW):
            for row, (ids, _) in enumerate(self._tokens.cut(texts[start : start + WINDOW]), start):
                result[row] = _mean(table, ids)
                meter.advance()
        return result

    def encode_query(self, text: str) -> NDArray[np.float32]:
        return _mean(self._open(), self._tokens.cut([text])[0][0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._tokens.count(texts)


def _mean(table: NDArray[np.float32], ids: list[int]) -> NDArray[np.float32]:
    """The direction of the mean of some rows, float32 (dim,), length 1. The length of a mean does not matter, so a sum."""
    total = table[ids].sum(axis=0, dtype=np.float64) if ids else np.zeros(table.shape[1])
    if not total.any():
        total[-1] = 1.0
    vector: NDArray[np.float32] = unit(total[None, :])[0]
    return vector
