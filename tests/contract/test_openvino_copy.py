"""The OpenVINO copy of a model: made once, checked, whole or made again. With a tiny model of random weights."""

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import make_sentence_model

from workbench.encode import load, openvino_copy
from workbench.encode.load import identity_of, load_encoder
from workbench.encode.models import find
from workbench.encode.openvino_copy import LEAST
from workbench.errors import EncoderError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sentence_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def converted_once(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("converted") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_CACHE_DIR", str(folder))
        load_encoder(str(tiny))
    return folder


@pytest.fixture
def filled(cache: Path, converted_once: Path) -> Path:
    shutil.copytree(converted_once, cache)
    return cache


def forget() -> None:
    load._slots.clear()


def only_copy(cache: Path) -> Path:
    (folder,) = [f for f in (cache / "models").iterdir() if not f.name.startswith(".")]
    return folder


def recorded(cache: Path) -> dict[str, Any]:
    return dict(json.loads((only_copy(cache) / "record.json").read_text()))


def test_the_copy_agrees_and_is_used(tiny, filled):
    fast = load_encoder(str(tiny))
    slow = load_encoder(str(tiny), "torch")
    assert fast.identity.runtime.startswith(f"openvino {version('openvino')} ")
    assert slow.identity.runtime.startswith("torch ")
    assert (fast.identity.dim, fast.identity.max_tokens) == (slow.identity.dim, slow.identity.max_tokens) == (32, 48)
    assert fast.identity.digest == slow.identity.digest
    texts = ["retry with a backoff", "", "検索", "word " * 300]
    assert (np.einsum("ij,ij->i", fast.encode(texts), slow.encode(texts)) > LEAST).all()
    assert fast.encode_query("retry") @ slow.encode_query("retry") > LEAST
    np.testing.assert_array_equal(fast.encode_query("retry"), fast.encode(["find: retry"])[0])
    assert fast.count_tokens(texts) == slow.count_tokens(texts)
    assert LEAST <= recorded(filled)["worst"] <= 1.001
    assert identity_of(str(tiny)) == fast.identity


def test_a_copy_is_used_without_torch(tiny, filled):
    first = load_encoder(str(tiny)).encode_query("retry")
    code = (
        "import sys; from workbench.encode.load import load_encoder; e = load_encoder(sys.argv[1]);"
        "print(e.encode_query('retry').tobytes().hex(), e.identity.runtime.split()[0],"
        "      sorted({'torch', 'transformers', 'sentence_transformers', 'openvino_telemetry'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tiny)], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=2) == [first.tobytes().hex(), "openvino", "[]\n"]


def sabotage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make conversions that are a little wrong: the pooled vector leans to one side."""
    convert = openvino_copy.convert

    def wrong(model: Any, target: Path) -> list[str]:
        import torch

        class Leaning(torch.nn.Module):
            def forward(self, features: dict[str, Any]) -> dict[str, Any]:
                pooled = features["sentence_embedding"]
                lean = torch.zeros(pooled.shape[-1])
                lean[0] = 0.2
                return {**features, "sentence_embedding": pooled + lean * pooled.norm(dim=-1, keepdim=True)}

        model.append(Leaning())
        return convert(model, target)

    monkeypatch.setattr(openvino_copy, "convert", wrong)


def test_a_copy_that_is_wrong_is_not_used(tiny, cache, monkeypatch):
    sabotage(monkeypatch)
    for _ in range(2):
        encoder = load_encoder(str(tiny))
        assert encoder.identity.runtime.startswith("torch ")
        assert "does not agree with torch (worst cosine 0.9" in encoder.notes[0]
        right = load_encoder(str(tiny), "torch").encode_query("retry")
        np.testing.assert_array_equal(encoder.encode_query("retry"), right)
        forget()
    with pytest.raises(EncoderError, match="Set encoder_runtime to auto or torch"):
        load_encoder(str(tiny), "openvino")
    assert recorded(cache)["worst"] < LEAST
    assert identity_of(str(tiny)).runtime.startswith("torch ")


def test_a_copy_from_another_processor_is_not_used(tiny, filled, monkeypatch):
    monkeypatch.setattr(openvino_copy, "_processor", lambda: "another")
    load_encoder(str(tiny))
    assert sorted(f.name.rpartition("-")[2] == "another" for f in (filled / "models").iterdir()) == [False, True]


def test_a_damaged_copy_is_made_again(tiny, filled):
    model, right = find(str(tiny), download=False), load_encoder(str(tiny)).encode_query("retry")
    for name in ("model.xml", "tokenizer.json", "record.json", "model.bin"):
        file = only_copy(filled) / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-20])
        assert openvino_copy.find_copy(model) is None, name
        file.unlink()
        assert openvino_copy.find_copy(model) is None, name
        file.write_bytes(whole)
        assert openvino_copy.find_copy(model) is not None, name
    file.write_bytes(whole[:-20])
    forget()
    encoder = load_encoder(str(tiny))
    assert encoder.identity.runtime.startswith("openvino ")
    np.testing.assert_array_equal(encoder.encode_query("retry"), right)
    assert openvino_copy.find_copy(model) is not None
    assert [f.name for f in (filled / "models").iterdir() if f.name.startswith(".")] == []


def test_a_cache_that_cannot_be_written_means_torch(tiny, cache):
    cache.write_text("a file where the folder should be")
    encoder = load_encoder(str(tiny))
    assert encoder.identity.runtime.startswith("torch ")
    assert "cannot be written" in encoder.notes[0]


def test_without_openvino_torch_runs_the_model(tiny, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert "OpenVINO cannot be imported" in load_encoder(str(tiny)).notes[0]
    with pytest.raises(EncoderError, match="OpenVINO cannot be imported"):
        load_encoder(str(tiny), "openvino")
