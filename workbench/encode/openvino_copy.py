"""The OpenVINO copy of a model: made once from the torch module, checked before it is used, and the encoder that runs it.

A copy's folder is named after everything it depends on (weights, configuration, OpenVINO's version) and never changed: it
is built beside and renamed into place, so two processes that convert at once end with one whole copy. It carries the
digests of its files, the vectors that torch gave for a fixed set of texts, and, for each kind of processor, how well the
copy agreed with those. So a damaged copy is noticed and made again, and a copy that came with a home folder to another
machine is checked there without loading torch. The worst text counts, not the mean: a conversion that is right for most
inputs and wrong for long ones, for empty ones or for another script has a fine mean.

The encoder is four to five times as fast as torch in fp32. Each stream has one core: two batches on two cores are faster
than one batch on both, and the bits are the same either way.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.encode.batching import WINDOW, Batch, Tokens, batches, features
from workbench.encode.models import Model, file_digest, read_digest, write_whole
from workbench.encode.protocol import STEP, Meter, Vectors, unit
from workbench.encode.sentence import SentenceEncoder, quiet
from workbench.errors import EncoderError
from workbench.records import EncoderIdentity, ProgressCallback

if TYPE_CHECKING:
    import torch

LEAST = 0.999
"""A copy agrees when the cosine of its worst text is at least this."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How near a copy's vectors are to the model's own: cosines over `texts` texts."""

    worst: float
    mean: float
    texts: int

    @property
    def passed(self) -> bool:
        """True when the worst text agrees."""
        return self.worst >= LEAST

    def __str__(self) -> str:
        return f"worst cosine {self.worst:.6f}, mean {self.mean:.6f}, over {self.texts} texts (at least {LEAST} needed)"


def agreement(reference: NDArray[np.float32], vectors: NDArray[np.float32]) -> Agreement:
    """Compare two sets of vectors of the same texts, float32 (n, dim). NaN and other shapes agree with nothing."""
    if reference.shape != vectors.shape:
        return Agreement(-1.0, -1.0, len(reference))
    a, b = np.asarray(reference, np.float64), np.asarray(vectors, np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", b, b))
    products = np.einsum("ij,ij->i", a, b)
    usable = np.isfinite(products) & np.isfinite(lengths) & (lengths > 0)
    cosines = np.where(usable, products / np.where(usable, lengths, 1.0), -1.0)
    return Agreement(float(cosines.min()), float(cosines.mean()), len(cosines))


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


def texts() -> tuple[str, ...]:
    """The fixed texts: empty, one letter, words, code, tables, other scripts, and every length up to beyond the limit."""
    whole = " ".join(_SENTENCES)
    lengths = tuple(
        whole[start : start + size] for start, size in ((0, 90), (40, 250), (90, 500), (200, 800), (300, 1100))
    )
    beyond = (whole * 3, "word " * 700, "a" * 3000)
    return ("", " ", "a", "?", "retry", "how do retries work", *_SENTENCES, *lengths, *beyond)


# --- the copy on disk ---

_FORMAT = 1
_FILES = ("model.xml", "model.bin", "tokenizer.json", "reference.npy")
_RECORD = "record.json"
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_EXAMPLE = ("A few words.", "And some more words, so that the shorter one is padded.")
_ABANDONED_SECONDS = 3600.0

_telemetry_lock = threading.RLock()


class NotConvertible(EncoderError):
    """The model cannot be run by OpenVINO from its tokens; torch has to."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A whole copy on disk.

    Attributes:
        folder: Its folder.
        dim, max_tokens: As the model has them.
        inputs: Names of the model's inputs.
        prompts: What is put before documents and before queries.
        version: OpenVINO's version.
    """

    folder: Path
    dim: int
    max_tokens: int
    inputs: tuple[str, ...]
    prompts: tuple[str, str]
    version: str

    def reference(self) -> NDArray[np.float32]:
        """What torch gave for the fixed texts, float32 (texts, dim)."""
        vectors: NDArray[np.float32] = np.load(self.folder / "reference.npy")
        return vectors

    def checks(self) -> dict[str, tuple[str, Agreement]]:
        """Precision and agreement by processor, as recorded."""
        found = {}
        for file in sorted(self.folder.glob("check-*.json")):
            try:
                data = json.loads(file.read_text(encoding="utf-8"))
                figures = Agreement(float(data["worst"]), float(data["mean"]), int(data["texts"]))
                found[str(data["processor"])] = (str(data["precision"]), figures)
            except (OSError, ValueError, KeyError, TypeError):
                continue  # damaged: it is checked again, and then written over
        return found

    def write_check(self, processor: str, precision: str, figures: Agreement) -> None:
        """Record how well the copy agreed on a kind of processor. Raises OSError."""
        name = f"check-{hashlib.sha256(processor.encode()).hexdigest()[:12]}.json"
        data = {"processor": processor, "precision": precision, **asdict(figures), "passed": figures.passed}
        write_whole(self.folder / name, json.dumps(data, indent=1, sort_keys=True) + "\n")


def copy_folder(model: Model) -> Path:
    """Where the copy of a model belongs, whether it is there or not. Raises EncoderError."""
    name = f"{model.digest[:24]}-{model.configuration[:12]}-openvino-{openvino_version()}"
    return settings.cache_dir() / "models" / name


def openvino_version() -> str:
    """`2026.4.1`; "" where OpenVINO is not installed. Does not import it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("openvino")
    except PackageNotFoundError:
        return ""


def find_copy(model: Model) -> Converted | None:
    """The copy of a model, or None if there is none, or one that is not what its record says."""
    folder = copy_folder(model)
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        if record["format"] != _FORMAT or record["digest"] != model.digest:
            return None
        if any(file_digest(folder / name) != record["files"][name] for name in _FILES):
            return None
        document, query = record["prompts"]
        return Converted(
            folder, int(record["dim"]), int(record["max_tokens"]), tuple(record["inputs"]), (document, query),
            str(record["made_by"]["openvino"]),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make_copy(model: Model, encoder: SentenceEncoder) -> Converted:
    """Convert a model that torch has loaded, and put the copy in its place.

    Args:
        model: Where it is.
        encoder: The same model, loaded.

    Raises:
        NotConvertible: It takes more than tokens, or OpenVINO cannot convert it.
        EncoderError: The cache folder cannot be written.
    """
    final = copy_folder(model)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _sweep(final.parent)
        building = Path(tempfile.mkdtemp(dir=final.parent, prefix=".building-"))
    except OSError as exc:
        raise EncoderError(
            f"The cache folder {final.parent} cannot be written: {exc}", "Set cache_dir to a folder of yours"
        ) from exc
    try:
        os.chmod(building, 0o755)
        _write(building, model, encoder)
        _publish(building, final, model)
    except OSError as exc:
        raise EncoderError(
            f"The copy of {model.name} cannot be written to {final.parent}: {exc}", "Make room, or set cache_dir"
        ) from exc
    finally:
        shutil.rmtree(building, ignore_errors=True)
    found = find_copy(model)
    if found is None:
        raise EncoderError(
            f"The copy of {model.name} in {final} was damaged while it was written", "Check the disk, then try again"
        )
    return found


def _write(folder: Path, model: Model, encoder: SentenceEncoder) -> None:
    tokenizer = getattr(encoder.torch_model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise NotConvertible(f"The model {model.name} has no fast tokenizer", "")
    # The reference first: conversion patches the module while it traces it.
    np.save(folder / "reference.npy", encoder.encode(texts()))
    inputs = convert(encoder.torch_model, folder / "model.xml")
    tokenizer.save(str(folder / "tokenizer.json"))
    record = {
        "format": _FORMAT,
        "name": model.name,
        "digest": model.digest,
        "configuration": model.configuration,
        "dim": encoder.identity.dim,
        "max_tokens": encoder.identity.max_tokens,
        "inputs": inputs,
        "prompts": encoder.prompts,
        "made_by": {"openvino": openvino_version(), "reference": encoder.identity.runtime},
        "files": {name: read_digest(folder / name) for name in _FILES},
    }
    (folder / _RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name in (*_FILES, _RECORD):
        _sync(folder / name)


def convert(model: Any, target: Path) -> list[str]:
    """Convert a SentenceTransformer, pooling and normalisation included, from token ids to vectors; fp32 weights.

    Args:
        model: The SentenceTransformer.
        target: The `.xml` file to write; the weights go beside it.

    Returns:
        Names of the inputs: int64 (rows, tokens) each.

    Raises:
        NotConvertible: It takes more than tokens, cuts prompts out of the pooling, or cannot be traced.
    """
    import torch

    openvino = import_openvino()
    with quiet():
        given = model.preprocess(list(_EXAMPLE))
    names = [name for name in _INPUTS if name in given]
    others = sorted(name for name, value in given.items() if isinstance(value, torch.Tensor) and name not in _INPUTS)
    if "input_ids" not in names or others:
        raise NotConvertible(f"The model takes other inputs than tokens: {', '.join(others)}", "")
    if any(getattr(module, "include_prompt", True) is False for module in model.modules()):
        raise NotConvertible("The model leaves its prompt out of the pooling", "")

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
        raise NotConvertible(f"OpenVINO cannot convert the model: {exc}", "") from exc
    return names


def _publish(building: Path, final: Path, model: Model) -> None:
    """Rename into place. Another process may have been first, which is as good; a damaged copy is moved away."""
    for _ in range(3):
        try:
            os.rename(building, final)
        except OSError:
            if not final.exists():
                raise
            if find_copy(model) is not None:
                return
            away = Path(tempfile.mkdtemp(dir=final.parent, prefix=".damaged-"))
            try:
                os.rename(final, away / "copy")
            except FileNotFoundError:
                continue  # the other process moved it away first
            finally:
                shutil.rmtree(away, ignore_errors=True)
        else:
            return


def _sweep(folder: Path) -> None:
    """Remove what crashed runs left behind."""
    for left in [*folder.glob(".building-*"), *folder.glob(".damaged-*")]:
        try:
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        except FileNotFoundError:
            continue


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


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

_BATCH = 8


class OpenVINOEncoder:
    """An `Encoder` that runs an OpenVINO copy on the CPU.

    Args:
        model: The model it is a copy of.
        copy: The copy.

    Raises:
        EncoderError: OpenVINO cannot read or compile it.
    """

    def __init__(self, model: Model, copy: Converted) -> None:
        openvino = import_openvino()
        threads = int(settings.get("threads"))
        self._queue = openvino.AsyncInferQueue
        self._name = model.name
        self._copy = copy
        self._jobs = threads
        self._idle: deque[Any] = deque()
        self._tokens = Tokens(copy.folder / "tokenizer.json", copy.max_tokens)
        try:
            core = openvino.Core()
            self.processor = str(core.get_property("CPU", "FULL_DEVICE_NAME"))
            self._compiled: Any = core.compile_model(
                core.read_model(str(copy.folder / "model.xml")),
                "CPU",
                {"NUM_STREAMS": str(threads), "INFERENCE_NUM_THREADS": threads},
            )
            self.precision = _precision(self._compiled)
        except RuntimeError as exc:
            raise EncoderError(
                f"OpenVINO cannot run its copy of {model.name}: {_first_line(exc)}", "Set encoder_runtime to torch"
            ) from exc
        self.additive = self._tokens.additive
        self.notes: tuple[str, ...] = ()
        runtime = f"openvino {copy.version} {self.precision}"
        self.identity = EncoderIdentity(model.name, model.digest, runtime, copy.dim, copy.max_tokens)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._compiled is None

    def agreement(self) -> Agreement:
        """How well the copy agrees with torch on this processor: as recorded, else measured and recorded."""
        recorded = self._copy.checks().get(self.processor)
        if recorded is not None and recorded[0] == self.precision:
            return recorded[1]
        figures = agreement(self._copy.reference(), self.encode(texts()))
        try:
            self._copy.write_check(self.processor, self.precision, figures)
        except OSError:
            return figures  # a cache that cannot be written: measured again at the next start
        return figures

    def encode(self, texts: Sequence[str], progress: ProgressCallback | None = None) -> Vectors:
        """Vectors of documents, float32 (n, dim). See `Encoder.encode`."""
        compiled = self._open()
        result = np.zeros((len(texts), self.identity.dim), np.float32)
        finished: deque[Batch] = deque()

        def keep(request: Any, work: tuple[int, Batch]) -> None:
            start, batch = work
            result[[start + row for row in batch.rows]] = unit(request.get_output_tensor(0).data)
            finished.append(batch)

        queue = self._queue(compiled, self._jobs)
        queue.set_callback(keep)
        tokens = 0
        meter: Meter | None = None
        for start in range(0, len(texts), WINDOW):
            cut = self._tokens.cut([self._copy.prompts[0] + text for text in texts[start : start + WINDOW]])
            tokens = sum(len(ids) for ids, _ in cut)
            if meter is None:  # later windows are taken to be like the first
                meter = Meter(progress, STEP, len(texts), tokens * len(texts) / len(cut))
            try:
                for batch in batches(cut, _BATCH):
                    queue.start_async(features(batch, self._copy.inputs), (start, batch))
                    _report(meter, finished)
                queue.wait_all()
            except RuntimeError as exc:
                raise EncoderError(
                    f"OpenVINO failed with the model {self._name}: {_first_line(exc)}", "Set encoder_runtime to torch"
                ) from exc
            _report(meter, finished)
        return result

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Vector of a query, float32 (dim,)."""
        compiled = self._open()
        batch = next(batches(self._tokens.cut([self._copy.prompts[1] + text]), 1))
        try:
            request = self._idle.pop()
        except IndexError:
            request = compiled.create_infer_request()
        try:
            request.infer(features(batch, self._copy.inputs))
        except RuntimeError as exc:
            raise EncoderError(
                f"OpenVINO failed with the model {self._name}: {_first_line(exc)}", "Set encoder_runtime to torch"
            ) from exc
        vector: NDArray[np.float32] = unit(request.get_output_tensor(0).data)[0]
        if not self.closed:
            self._idle.append(request)
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Lengths in the model's tokens, special ones included, nothing cut."""
        return self._tokens.count(texts)

    def close(self) -> None:
        """Let go of the model."""
        self._compiled = None
        self._idle.clear()

    def _open(self) -> Any:
        compiled = self._compiled
        if compiled is None:
            raise EncoderError(f"The encoder {self._name} is closed", "Load it again with load_encoder")
        return compiled


def _report(meter: Meter, finished: deque[Batch]) -> None:
    while finished:
        batch = finished.popleft()
        meter.advance(len(batch.rows), work=batch.tokens)


def _precision(compiled: Any) -> str:
    """`bf16`, `fp16` or `fp32`: what this processor calculates in."""
    name = str(compiled.get_property("INFERENCE_PRECISION_HINT"))
    for short, spelling in (("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32")):
        if spelling in name:
            return short
    return name.strip("<>'").rpartition("'")[2] or name


def _first_line(exc: Exception) -> str:
    return str(exc).strip().splitlines()[-1] if str(exc).strip() else type(exc).__name__
