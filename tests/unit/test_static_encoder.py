"""The static encoder: what its table is made of, which folders it runs, and that it is made once."""

from __future__ import annotations

import json
import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from static_model import make_static

from workbench.encode import distilled
from workbench.encode.load import identity_of, load_encoder, load_tokens
from workbench.encode.models import Model
from workbench.encode.static import RUNTIME, StaticEncoder, find_static
from workbench.errors import EncoderError
from workbench.records import Progress

TEXTS = ["Retry with a backoff after each failure.", "eggs and flour", "", "eggs eggs flour"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_static(tmp_path / "table", TEXTS)


def test_a_vector_is_the_direction_of_the_mean_of_its_rows(folder: Path) -> None:
    """By hand: the row of `eggs` twice and that of `flour` once."""
    table = load_file(folder / "model.safetensors")["embedding.weight"].astype(np.float64)
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    total = 2 * table[vocabulary["eggs"]] + table[vocabulary["flour"]]
    encoder = load_encoder(str(folder))
    np.testing.assert_allclose(encoder.encode_query("eggs flour EGGS"), total / np.linalg.norm(total), atol=1e-6)
    assert encoder.count_tokens(TEXTS) == [8, 3, 0, 3]


def test_an_empty_text_points_where_tokens_differ_least(folder: Path) -> None:
    vector = load_encoder(str(folder)).encode([""])[0]
    assert vector[-1] == 1
    assert np.count_nonzero(vector) == 1


def test_its_identity_is_known_without_loading_it(folder: Path) -> None:
    """Digest, dimension and runtime are the loaded encoder's, whatever the setting of the runtime."""
    identity = identity_of(str(folder))
    assert identity == load_encoder(str(folder), "torch").identity
    assert (identity.runtime, identity.dim) == (RUNTIME, 256)
    assert identity.digest != identity_of(str(make_static(folder.parent / "other", TEXTS, shift=0.1))).digest


def test_the_tokenizer_counts_alone_as_the_encoder_does(folder: Path) -> None:
    """What cuts the chunks needs no table; the hashing encoder has no tokenizer file."""
    tokens = load_tokens(str(folder))
    assert tokens is not None
    assert tokens.count(TEXTS) == load_encoder(str(folder)).count_tokens(TEXTS)
    assert load_tokens("hashing") is None


def test_tables_in_the_form_of_model2vec_run_too(tmp_path: Path, folder: Path) -> None:
    """The tensor has another name; the vectors are the same."""
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


def test_the_table_keeps_components_and_shortens_frequent_tokens() -> None:
    """Points on a line and a little beside it: the first component is the line, weights are a / (a + p) by rank."""
    rows = np.array([[2, 0.1], [-2, 0.1], [4, -0.1], [-4, -0.1], [100, 100]], np.float32)
    used = np.array([True, True, True, True, False])
    table = distilled.reduce_table(rows, used, 1, 0.1)
    p = np.array([1 / 2, 1 / 3, 1 / 4, 1 / 5])
    weights = 0.1 / (0.1 + p / p.sum())
    assert table.shape == (5, 1)
    assert table.dtype == np.float32
    np.testing.assert_allclose(np.abs(table[:4, 0]), np.array([2, 2, 4, 4]) * weights, rtol=1e-2)
    np.testing.assert_array_equal(table, distilled.reduce_table(rows, used, 1, 0.1))
    assert np.array_equal(np.sign(table[:4, 0]), [1, -1, 1, -1])


def test_it_is_asked_for_in_words_before_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who it would be is not known before it was distilled; the remedy is a command."""
    monkeypatch.setenv("WORKBENCH_CACHE_DIR", str(tmp_path))
    with pytest.raises(EncoderError, match="static was not made on this machine yet") as caught:
        identity_of("static")
    assert "--encoder static" in caught.value.remedy


def _made(source: Model, final: Path, progress: object) -> None:
    """Stands in for half a minute of distilling: a tiny table, its record, and a line in a log."""
    building = make_static(final.with_suffix(".building"), TEXTS)
    files = {name: distilled.read_digest(building / name) for name in distilled._FILES}
    (building / "record.json").write_text(json.dumps({"files": files}))
    with (final.parent / "log").open("a") as log:
        log.write("made\n")
    distilled.shutil.rmtree(final, ignore_errors=True)
    building.rename(final)


def _in_process(cache: str) -> str:
    import os

    os.environ["WORKBENCH_CACHE_DIR"] = cache
    distilled._make = _made
    return distilled.distilled().digest


def test_who_wants_it_at_once_makes_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes and four threads: one table; a damaged one is made again."""
    monkeypatch.setenv("WORKBENCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(distilled, "_make", _made)
    # A test of a page before this one leaves the app as the main module, which new processes would run.
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        digests = pool.map(_in_process, [str(tmp_path)] * 2)
    with ThreadPoolExecutor(4) as threads:
        digests += [model.digest for model in threads.map(lambda _: distilled.distilled(), range(4))]
    log = tmp_path / "models" / "log"
    assert len(set(digests)) == 1
    assert log.read_text() == "made\n"
    made = distilled.distilled()
    (made.folder / "tokenizer.json").write_text("{}")
    assert distilled.find_distilled() is None
    distilled.distilled()
    assert log.read_text() == "made\n" * 2


@pytest.mark.slow
def test_the_real_one_is_what_sentence_transformers_makes_of_its_folder(tmp_path: Path) -> None:
    """Distilled from the packaged model, with progress; loaded by the library, the vectors are the same."""
    from workbench.encode.sentence import SentenceEncoder

    seen: list[Progress] = []
    encoder = load_encoder("static", progress=seen.append)
    assert not seen or ({p.step for p in seen} == {"distil"} and seen[-1].done == seen[-1].total)
    texts = ["how do retries work", "def parse(line): return line", "naïve café", "word " * 700]
    folder = distilled.distilled().folder
    theirs = SentenceEncoder(Model("static", folder))
    np.testing.assert_allclose(encoder.encode(texts), theirs.encode(texts), atol=2e-5)
    near, far = encoder.encode(["Retry with a backoff after each failure.", "eggs and flour"])
    query = encoder.encode_query("retries after a failure")
    assert near @ query > far @ query + 0.2
