"""The OpenVINO copy of a model: made once from the torch module, kept in the cache folder, checked before it is used.

A copy's folder is named after everything it depends on (weights, configuration, OpenVINO's version) and never changed: it
is built beside and renamed into place, so two processes that convert at once end with one whole copy. It carries the
digests of its files, the vectors that torch gave for a fixed set of texts, and, for each kind of processor, how well the
copy agreed with those. So a damaged copy is noticed and made again, and a copy that came with a home folder to another
machine is checked there without loading torch.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.encode.agreement import Agreement, texts
from workbench.encode.digests import file_digest, read_digest, write_whole
from workbench.encode.models import Model
from workbench.encode.sentence import SentenceEncoder, quiet
from workbench.errors import EncoderError

if TYPE_CHECKING:
    import torch

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
