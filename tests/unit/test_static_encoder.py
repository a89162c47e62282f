"""Static embeddings: which folders are run as tables, and what their vectors are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from static_model import make_static

from workbench.encode.load import identity_of, load_encoder
from workbench.encode.models import Model
from workbench.encode.static import RUNTIME, StaticEncoder, find_static
from workbench.errors import EncoderError

TEXTS = ["Retry with a backoff after each failure.", "eggs and flour", "", "eggs eggs flour"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_static(tmp_path / "table", TEXTS)


def test_a_vector_is_the_direction_of_the_mean_of_its_rows(folder: Path) -> None:
    table = load_file(folder / "model.safetensors")["embedding.weight"].astype(np.float64)
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    total = 2 * table[vocabulary["eggs"]] + table[vocabulary["flour"]]
    encoder = load_encoder(str(folder))
    np.testing.assert_allclose(encoder.encode_query("eggs flour EGGS"), total / np.linalg.norm(total), atol=1e-6)
    assert encoder.count_tokens(TEXTS) == [8, 3, 0, 3]


def test_its_identity_is_known_without_loading_it(folder: Path) -> None:
    """Digest, dimension and runtime are the loaded encoder's, whatever the setting of the runtime."""
    identity = identity_of(str(folder))
    assert identity == load_encoder(str(folder), "torch").identity
    assert (identity.runtime, identity.dim) == (RUNTIME, 256)
    assert identity.digest != identity_of(str(make_static(folder.parent / "other", TEXTS, shift=0.1))).digest


def test_tables_in_the_form_of_model2vec_run_too(tmp_path: Path, folder: Path) -> None:
    other = make_static(tmp_path / "m2v", TEXTS, key="embeddings")
    np.testing.assert_array_equal(load_encoder(str(other)).encode(TEXTS), load_encoder(str(folder)).encode(TEXTS))


@pytest.mark.parametrize("change", ["modules", "prompts", "mapping", "tokenizer", "header", "other"])
def test_a_folder_with_more_to_it_is_left_to_torch(folder: Path, change: str) -> None:
    """Another module, prompts, shared rows, a missing tokenizer, a damaged file, no static embedding at all."""
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
    else:
        (folder / "modules.json").write_text(json.dumps(modules[1:]))
    assert find_static(Model("x", folder)) is None


def test_a_table_cut_short_is_refused_with_a_remedy(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    model = Model("x", folder)
    files = find_static(model)
    assert files is not None
    with pytest.raises(EncoderError, match="cannot be read") as caught:
        StaticEncoder(model, files)
    assert "again" in caught.value.remedy


@pytest.mark.slow
def test_vectors_are_those_of_sentence_transformers(folder: Path) -> None:
    from workbench.encode.sentence import SentenceEncoder

    theirs = SentenceEncoder(Model("table", folder))
    texts = [TEXTS[0], TEXTS[1], "flour and eggs with failure"]
    np.testing.assert_allclose(load_encoder(str(folder)).encode(texts), theirs.encode(texts), atol=2e-5)
