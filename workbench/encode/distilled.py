"""`static`: a second encoder that needs no download, distilled once on each machine from the packaged model.

Model2Vec (Tulkens and van Dongen, 2024, github.com/MinishLab/model2vec) showed how a sentence encoder becomes a table:

1. Each token of the vocabulary goes through the model alone, between the special tokens; the model's pooling gives its row.
2. The rows are centred and turned to their principal components, of which the first 256 stay.
3. Rows of frequent tokens are made short, so that they say little in a mean: a row is weighted by a / (a + p), the smooth
   inverse frequency of Arora, Liang and Ma ("A simple but tough-to-beat baseline for sentence embeddings", ICLR 2017).
   A vocabulary stands in the order of frequency, so by Zipf's law p is reckoned from the rank.

It is done here rather than by the library because the library's own extra for it wants older `transformers` and
`tokenizers` than the rest of the workbench; the steps are these forty lines. `a` is 3e-5, chosen among 1e-4 (the library's),
3e-5 and 1e-5 by nDCG@10 on Cranfield, CISI, MED and CACM, none of which the guide reports this encoder on.

The folder is one that sentence-transformers loads too. It is built beside its place and renamed, under a lock, so two
processes that want it at once make it once; its record carries the digests of its files, so a damaged one is made again.
Another kind of processor may round otherwise and so make another table: its digest, which every corpus records, tells.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench import settings
from workbench.encode.digests import file_digest, read_digest
from workbench.encode.models import PACKAGED, Model, find
from workbench.encode.protocol import Tell
from workbench.errors import EncoderError
from workbench.records import Progress

NAME = "static"
DIM = 256
SMOOTH = 3e-5
STEP = "distil"
"""Name of the step in the progress reports: done and total in tokens."""

_VERSION = 1
_BATCH = 256
_UNUSED = re.compile(r"\[unused\d+\]")
_FILES = ("model.safetensors", "modules.json", "tokenizer.json")
_RECORD = "record.json"
_MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}]


def static_folder(source: Model) -> Path:
    """Where the table distilled from a model belongs, whether it is there or not. Raises EncoderError."""
    recipe = f"static {_VERSION} dim {DIM} smooth {SMOOTH} from {source.digest} {source.configuration}"
    return settings.cache_dir() / "models" / f"static-{hashlib.sha256(recipe.encode()).hexdigest()[:24]}"


def find_distilled() -> Model | None:
    """The model `static` if it was distilled on this machine and is as it was written, else None. Raises EncoderError."""
    folder = static_folder(find(PACKAGED, download=False))
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        if all(file_digest(folder / name) == record["files"][name] for name in _FILES):
            return Model(NAME, folder)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None


def distilled(progress: Tell | None = None) -> Model:
    """The model `static`, distilled now if it is not there yet: half a minute, once on a machine.

    Args:
        progress: Called with a Progress (step `distil`, in tokens) while it is made.

    Raises:
        EncoderError: The packaged model cannot be loaded, or the cache folder cannot be written.
    """
    found = find_distilled()
    if found is not None:
        return found
    source = find(PACKAGED, download=False)
    final = static_folder(source)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _alone(final.with_suffix(".lock")):
            found = find_distilled()  # the process that had the lock may have made it
            if found is None:
                _make(source, final, progress)
    except OSError as exc:
        raise EncoderError(
            f"The encoder {NAME} cannot be written to {final.parent}: {exc}",
            "Make room, or set cache_dir to a folder of yours",
        ) from exc
    found = found or find_distilled()
    if found is None:
        raise EncoderError(
            f"The encoder {NAME} in {final} was damaged while it was written", "Check the disk, then try again"
        )
    return found


def _make(source: Model, final: Path, progress: Tell | None) -> None:
    from safetensors.numpy import save_file

    from workbench.encode.sentence import load_torch, runtime

    building = Path(tempfile.mkdtemp(dir=final.parent, prefix=".building-"))
    try:
        os.chmod(building, 0o755)
        model = load_torch(source)
        tokenizer = model.tokenizer.backend_tokenizer
        used = [_UNUSED.fullmatch(tokenizer.id_to_token(i) or "") is None for i in range(tokenizer.get_vocab_size())]
        table = reduce_table(token_vectors(model, progress), np.array(used), DIM, SMOOTH)
        save_file({"embedding.weight": table}, building / "model.safetensors")
        tokenizer.save(str(building / "tokenizer.json"))
        (building / "modules.json").write_text(json.dumps(_MODULES, indent=1) + "\n", encoding="utf-8")
        record = {
            "name": NAME,
            "version": _VERSION,
            "from": {"name": source.name, "digest": source.digest},
            "made_by": runtime(),
            "files": {name: read_digest(building / name) for name in _FILES},
        }
        (building / _RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        shutil.rmtree(final, ignore_errors=True)  # a damaged one; nobody else writes here now
        os.replace(building, final)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def token_vectors(model: Any, progress: Tell | None = None) -> NDArray[np.float32]:
    """Every token through the model alone, between the special tokens; pooled, not normalised.

    Args:
        model: A SentenceTransformer with a fast tokenizer.
        progress: Called with a Progress after each batch.

    Returns:
        float32 (vocabulary, dim), by token id.
    """
    import torch

    tokenizer = model.tokenizer.backend_tokenizer
    tokenizer.no_padding()  # a model's own file may pad every text to its longest
    tokenizer.no_truncation()
    empty = tokenizer.encode("", add_special_tokens=True).ids
    before, after = empty[: len(empty) // 2], empty[len(empty) // 2 :]
    modules = [module for module in model if type(module).__name__ != "Normalize"]
    total = int(tokenizer.get_vocab_size())
    rows, begin = [], time.perf_counter()
    with _one_thread(torch), torch.inference_mode():
        for start in range(0, total, _BATCH):
            tokens = range(start, min(start + _BATCH, total))
            ids = torch.tensor([[*before, token, *after] for token in tokens])
            features: dict[str, Any] = {
                "input_ids": ids,
                "attention_mask": torch.ones_like(ids),
                "token_type_ids": torch.zeros_like(ids),
            }
            for module in modules:
                features = module(features)
            rows.append(features["sentence_embedding"].numpy())
            if progress is not None:
                seconds = max(time.perf_counter() - begin, 1e-9)
                rate = tokens.stop / seconds
                progress(Progress(STEP, tokens.stop, total, rate, (total - tokens.stop) / rate, NAME))
    return np.concatenate(rows)


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Sums in one order, whatever the machine does beside; two threads on a busy machine also wait more than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def reduce_table(rows: NDArray[np.float32], used: NDArray[np.bool_], dim: int, smooth: float) -> NDArray[np.float32]:
    """Principal components of the rows, and rows of frequent tokens made short.

    Args:
        rows: float32 (tokens, any), in the order of frequency, the most frequent first.
        used: Which tokens a text can have; the others count neither in the components nor in the ranks.
        dim: Components to keep, at most the rows' own width.
        smooth: `a` of the weight a / (a + p), above 0.

    Returns:
        float32 (tokens, dim), each component's sign such that its largest part is positive (a component has none of its own).
    """
    import torch

    wide = rows.astype(np.float64)
    wide -= wide[used].mean(axis=0)
    share = 1.0 / (1.0 + np.cumsum(used))
    share /= share[used].sum()
    # By torch, since numpy's BLAS splits its sums by however many threads the environment gives it.
    with _one_thread(torch):
        counted = torch.from_numpy(wide[used])
        components = torch.linalg.eigh(counted.T @ counted).eigenvectors.numpy()
        best = components[:, ::-1][:, :dim]
        best = best * np.sign(best[np.abs(best).argmax(axis=0), np.arange(best.shape[1])])
        turned = (torch.from_numpy(wide) @ torch.from_numpy(best)).numpy()
    return np.ascontiguousarray(turned * (smooth / (smooth + share))[:, None], np.float32)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait for the lock of this file. The kernel drops it when its holder dies. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
