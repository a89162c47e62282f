"""The OpenVINO copy of a model: made once from the torch module, compared with it, and the encoder that runs it.

A copy's folder is named after everything it depends on (weights, configuration, OpenVINO's version, the kind of processor) and
never changed: it is built beside and renamed into place, so two processes that convert at once end with one whole copy. Its
record holds the digests of its files, so that a damaged copy is made again, and how well the copy agreed with torch on a fixed
set of texts. The worst text counts, not the mean: a conversion that is right for most inputs and wrong for long ones, for
empty ones or for another script has a fine mean.

The encoder is four to five times as fast as torch in fp32. Each stream has one core: two batches on two cores are faster
than one batch on both, and the bits are the same either way.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.encode.models import Model, file_digest, read_digest
from workbench.encode.protocol import WINDOW, Encoder, Tokens, Vectors, package_version, same_length, unit
from workbench.encode.sentence import SentenceEncoder, quiet
from workbench.errors import EncoderError
from workbench.records import EncoderIdentity, ProgressCallback

LEAST = 0.999
"""A copy agrees when the cosine of its worst text is at least this."""

_SENTENCES = (
    "Retries wait longer after each failure and stop after the fifth.",
    "Please send invoice ACME-INV-49302 again; the total of 1,204.50 was wrong.",
    "def parse(line: str) -> dict[str, int]:\n    key, _, value = line.partition('=')\n    return {key: int(value)}",
    "SELECT path, count(*) FROM records WHERE tenant = ? GROUP BY path ORDER BY 2 DESC LIMIT 10;",
    "The patient's temperature rose to 39.4 °C on the second day, then fell.",
    "| name | type | default |\n|---|---|---|\n| limit | int | 10 |\n| depth | int | auto |",
    "Der Rückgabewert ist leer, wenn die Datei fehlt; sonst enthält er den Text.",
    "La función devuelve una lista vacía si no encuentra nada.",
    "Cette page décrit les réglages, leurs bornes et leurs valeurs par défaut.",
    "Индекс строится заново после каждого изменения словаря.",
    "検索結果は関連度の高い順に並びます。",
    "搜索结果按相关性排序。",
    "खोज के परिणाम प्रासंगिकता के क्रम में हैं।",
    "نتائج البحث مرتبة حسب الصلة.",
    "https://example.org/a/b?c=d&e=f#g and C:\\Users\\me\\notes.txt",
    "Traceback (most recent call last):\n  File \"a.py\", line 3\nKeyError: 'limit'",
    "s(\"bd*2 hh\").note('c3 e3').lpf(800)",
    "WARNING!!! DISK 97% FULL ON /dev/sda1",
    "🙂 thanks, that fixed it 🎉",
    "2024-02-29T23:59:59Z, 1e-9, 0x7fff, 3.14159, -42, ½, №7, x²",
)
_WHOLE = " ".join(_SENTENCES)
TEXTS = (
    *("", " ", "a", "?", "retry", "how do retries work", *_SENTENCES),
    *(_WHOLE[start : start + size] for start, size in ((0, 90), (40, 250), (90, 500), (200, 800), (300, 1100))),
    *(_WHOLE * 3, "word " * 700, "a" * 3000),
)
"""What a copy is compared on: empty, one letter, words, code, tables, other scripts, and every length up to beyond the limit."""

_FORMAT = 2
_FILES = ("model.xml", "model.bin", "tokenizer.json")
_RECORD = "record.json"
_RECORDED = ("dim", "max_tokens", "prompts", "inputs", "runtime", "worst")
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_EXAMPLE = ["A few words.", "And some more words, so that the shorter one is padded."]
_BATCH = 8

_telemetry_lock = threading.RLock()


def worst_cosine(reference: NDArray[np.float32], vectors: NDArray[np.float32]) -> float:
    """The least cosine between vectors of the same texts, float32 (n, dim); -1 for NaN, zeros and other shapes."""
    if reference.shape != vectors.shape:
        return -1.0
    a, b = np.asarray(reference, np.float64), np.asarray(vectors, np.float64)
    products = np.einsum("ij,ij->i", a, b)
    lengths = np.sqrt(np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", b, b))
    usable = np.isfinite(products) & np.isfinite(lengths) & (lengths > 0)
    return float(np.where(usable, products / np.where(usable, lengths, 1.0), -1.0).min())


# --- the copy on disk ---


@dataclass(frozen=True, slots=True)
class Copy:
    """A whole copy on disk.

    Attributes:
        folder: Its folder.
        dim, max_tokens, prompts: As the model has them; what is put before documents and before queries.
        inputs: Names of the model's inputs.
        runtime: OpenVINO's version and what it calculates in on this processor, as an identity records it.
        worst: Cosine of the text on which it agrees least with torch.
    """

    folder: Path
    dim: int
    max_tokens: int
    prompts: Sequence[str]
    inputs: Sequence[str]
    runtime: str = ""
    worst: float = -1.0

    @property
    def agrees(self) -> bool:
        return self.worst >= LEAST


def copy_folder(model: Model) -> Path:
    """Where the copy of a model belongs, whether it is there or not. Raises EncoderError."""
    name = f"{model.digest[:24]}-{model.configuration[:12]}-openvino-{package_version('openvino')}-{_processor()}"
    return settings.cache_dir() / "models" / name


def _processor() -> str:
    """A name for this kind of processor: where it differs, the arithmetic may."""
    kind = f"{platform.machine()} {platform.processor()}"
    with suppress(OSError):  # no Linux
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        kind = "\n".join(re.findall(r"(?m)^(?:vendor_id|model\t|CPU part|flags|Features).*", first))
    return hashlib.sha256(kind.encode()).hexdigest()[:8]


def find_copy(model: Model) -> Copy | None:
    """The copy of a model, or None if there is none, or one that is not what its record says."""
    folder = copy_folder(model)
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        if record["format"] != _FORMAT or any(file_digest(folder / name) != record["files"][name] for name in _FILES):
            return None
        return Copy(folder, **{name: record[name] for name in _RECORDED})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make_copy(model: Model) -> Copy:
    """Convert a model, compare it with torch, and put the copy in its place. Raises EncoderError."""
    encoder = SentenceEncoder(model)
    final = copy_folder(model)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=final.parent, prefix=".building-", ignore_cleanup_errors=True) as building:
            folder = Path(building) / "copy"
            folder.mkdir()
            _write(folder, model, encoder)
            if final.exists() and find_copy(model) is None:
                os.rename(final, Path(building) / "damaged")
            with suppress(OSError):  # another process was first, which is as good
                os.rename(folder, final)
        found = find_copy(model)
    except OSError as exc:
        raise EncoderError(
            f"The copy of {model.name} cannot be written to {final.parent}: {exc}",
            "Make room, or set cache_dir to a folder of yours",
        ) from exc
    if found is None:
        raise EncoderError(f"The copy of {model.name} in {final} is damaged", "Check the disk, then try again")
    return found


def _write(folder: Path, model: Model, encoder: SentenceEncoder) -> None:
    tokenizer = getattr(encoder.torch_model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise EncoderError(f"The model {model.name} has no fast tokenizer", "")
    reference = encoder.encode(TEXTS)  # first: conversion patches the module while it traces it
    inputs = convert(encoder.torch_model, folder / "model.xml")
    tokenizer.save(str(folder / "tokenizer.json"))
    identity = encoder.identity
    copy = Copy(folder, identity.dim, identity.max_tokens, encoder.prompts, inputs)
    fast = OpenVINOEncoder(model, copy)
    copy = replace(copy, runtime=fast.identity.runtime, worst=worst_cosine(reference, fast.encode(TEXTS)))
    fast.close()
    record = {name: getattr(copy, name) for name in _RECORDED}
    record |= {"format": _FORMAT, "name": model.name, "files": {name: read_digest(folder / name) for name in _FILES}}
    (folder / _RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name in (*_FILES, _RECORD):
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())


def convert(model: Any, target: Path) -> list[str]:
    """Write a SentenceTransformer, pooling and normalisation included, from token ids to vectors, as `.xml` with its fp32 weights
    beside it. Returns the names of the inputs, int64 (rows, tokens) each. Raises EncoderError where it takes more than tokens,
    cuts prompts out of the pooling, or cannot be traced.
    """
    import torch

    openvino = import_openvino()
    with quiet():
        given = model.preprocess(_EXAMPLE)
    names = [name for name in _INPUTS if name in given]
    others = sorted(name for name, value in given.items() if isinstance(value, torch.Tensor) and name not in _INPUTS)
    if "input_ids" not in names or others:
        raise EncoderError(f"The model takes other inputs than tokens: {', '.join(others)}", "")
    if any(getattr(module, "include_prompt", True) is False for module in model.modules()):
        raise EncoderError("The model leaves its prompt out of the pooling", "")

    class Pipeline(torch.nn.Module):  # type: ignore[misc]
        """Token ids in, one unit vector a text out."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, *values: torch.Tensor) -> torch.Tensor:
            pooled = self.inner(dict(zip(names, values, strict=True)))["sentence_embedding"]
            return torch.nn.functional.normalize(pooled, dim=-1)

    try:
        with quiet(), without_telemetry(), torch.no_grad():
            converted = openvino.convert_model(Pipeline().eval(), example_input=tuple(given[name] for name in names))
        for port, name in zip(converted.inputs, names, strict=True):
            port.get_tensor().set_names({name})
        openvino.save_model(converted, str(target), compress_to_fp16=False)
    except Exception as exc:
        raise EncoderError(f"OpenVINO cannot convert the model: {exc}", "") from exc
    return names


def import_openvino() -> Any:
    """OpenVINO, imported so that it reports nothing to anybody. Raises ImportError."""
    with without_telemetry():
        import openvino

    return openvino


@contextmanager
def without_telemetry() -> Iterator[None]:
    """Hide the package by which OpenVINO reports each import and conversion over the network.

    It falls back to a stub when that package cannot be imported. A search on somebody's own files must not call out.
    """
    name = "openvino_telemetry"
    with _telemetry_lock:
        hidden = {key: sys.modules.pop(key) for key in [*sys.modules] if key == name or key.startswith(name + ".")}
        sys.modules[name] = None  # type: ignore[assignment]
        try:
            yield
        finally:
            del sys.modules[name]
            sys.modules.update(hidden)


# --- running it ---


class OpenVINOEncoder(Encoder):
    """An `Encoder` that runs an OpenVINO copy on the CPU. Raises EncoderError where OpenVINO cannot read or compile it."""

    def __init__(self, model: Model, copy: Copy) -> None:
        openvino = import_openvino()
        threads = int(settings.get("threads"))
        self._copy, self._threads = copy, threads
        self._idle: deque[Any] = deque()
        self._tokens = Tokens(copy.folder / "tokenizer.json", copy.max_tokens)
        self.additive = self._tokens.additive
        try:
            core = openvino.Core()
            read = core.read_model(str(copy.folder / "model.xml"))
            self._loaded = core.compile_model(
                read, "CPU", {"NUM_STREAMS": str(threads), "INFERENCE_NUM_THREADS": threads}
            )
            kind = str(self._loaded.get_property("INFERENCE_PRECISION_HINT")).strip("<>'").rpartition("'")[2]
        except RuntimeError as exc:
            raise _failure(model.name, exc) from exc
        short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(kind, kind)
        runtime = f"openvino {package_version('openvino')} {short}"
        self.identity = EncoderIdentity(model.name, model.digest, runtime, copy.dim, copy.max_tokens)
        # The first inference of a process must be alone: OpenVINO's binding sets itself up in it, and two at once wait for
        # each other for ever (one for the interpreter's lock, the other for the set-up).
        self.encode_query("first")

    def encode(self, texts: Sequence[str], progress: ProgressCallback | None = None) -> Vectors:
        self._open()
        result = np.zeros((len(texts), self.identity.dim), np.float32)
        meter = self._meter(None, 0)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="encode") as pool:
            for start in range(0, len(texts), WINDOW):
                cut = self._tokens.cut([self._copy.prompts[0] + text for text in texts[start : start + WINDOW]])
                lengths = [len(ids) for ids, _ in cut]
                if not start:  # later windows are taken to be like the first
                    meter = self._meter(progress, len(texts), sum(lengths) * len(texts) / len(cut))
                groups = same_length(lengths, _BATCH)
                vectors_of = pool.map(self._infer, ([cut[row] for row in rows] for rows in groups))
                for rows, vectors in zip(groups, vectors_of, strict=True):
                    result[[start + row for row in rows]] = vectors
                    meter.advance(len(rows), work=len(rows) * lengths[rows[0]])
        return result

    def encode_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._infer(self._tokens.cut([self._copy.prompts[1] + text]))[0]
        return vector

    def _infer(self, tokens: Sequence[tuple[list[int], list[int]]]) -> Vectors:
        """Vectors of texts of one length by their ids and type ids, one stream's work: the interpreter is free meanwhile."""
        loaded = self._open()
        ids, types = np.array(tokens, np.int64).transpose(1, 0, 2)
        inputs = dict(zip(_INPUTS, (ids, np.ones_like(ids), types), strict=True))
        try:
            request = self._idle.pop()
        except IndexError:
            request = loaded.create_infer_request()
        try:
            request.infer({name: np.ascontiguousarray(inputs[name]) for name in self._copy.inputs})
        except RuntimeError as exc:
            raise _failure(self.identity.name, exc) from exc
        vectors = unit(request.get_output_tensor(0).data)
        if not self.closed:
            self._idle.append(request)
        return vectors

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._tokens.count(texts)

    def close(self) -> None:
        super().close()
        self._idle.clear()


def _failure(name: str, exc: RuntimeError) -> EncoderError:
    """OpenVINO's error: its last line says what is wrong."""
    reason = (str(exc).strip().splitlines() or [type(exc).__name__])[-1]
    return EncoderError(f"OpenVINO failed with the model {name}: {reason}", "Set encoder_runtime to torch")
