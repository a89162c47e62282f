"""The local cross-encoder, on a tiny random one: its scores are the model's, whatever stands beside a text."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from small_models import WORDS, make_cross_encoder

from workbench.assist.cross_encoder import CrossEncoderReranker
from workbench.assist.models import load_reranker
from workbench.errors import AssistError

pytestmark = pytest.mark.slow

QUERY = "how do retries work"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make_cross_encoder(tmp_path_factory.mktemp("cross") / "model")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def reranker(model: Path) -> CrossEncoderReranker:
    return CrossEncoderReranker(str(model))


def texts(count: int) -> list[str]:
    generator = np.random.Generator(np.random.PCG64(7))
    return [" ".join(generator.choice(WORDS, size=int(generator.integers(1, 30)))) for _ in range(count)]


def test_scores_are_the_logits_of_each_pair(reranker, model):
    """One finite float64 a text, equal to the model run by hand on the pair alone, with no sigmoid on top."""
    import torch
    import transformers

    given = texts(20)
    scores = reranker.scores(QUERY, given)
    assert scores.shape == (20,)
    assert scores.dtype == np.float64
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    bare = transformers.AutoModelForSequenceClassification.from_pretrained(model).eval()
    with torch.inference_mode():
        by_hand = [float(bare(**tokenizer(QUERY, text, return_tensors="pt")).logits[0, 0]) for text in given]
    np.testing.assert_allclose(scores, by_hand, atol=1e-5)
    assert len(set(scores.tolist())) > 10
    given = texts(25)
    scores = reranker.scores(QUERY, given).tolist()
    assert scores == reranker.scores(QUERY, given[::-1]).tolist()[::-1]
    assert scores == [reranker.scores(QUERY, [text])[0] for text in given]
    scores = reranker.scores(QUERY, ["", "retry " * 100_000, "éß漢字", "\ud800", "x" * 100_000])
    assert np.isfinite(scores).all()
    assert reranker.scores(QUERY, []).shape == (0,)
    assert np.isfinite(reranker.scores("", ["retry"])).all()
    assert np.isfinite(reranker.scores("q " * 10_000 + "\udfff", ["retry"])).all()


def test_a_model_too_slow_for_its_time_is_given_up_and_a_changed_one_loaded(model, tmp_path):
    with pytest.raises(AssistError, match="did not rerank 30 texts within 0 seconds") as caught:
        CrossEncoderReranker(str(model), seconds=0).scores(QUERY, texts(30))
    assert "rerank.top" in caught.value.remedy
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(load_reranker, [str(copy)] * 4))
    assert all(one is loaded[0] for one in loaded)
    assert loaded[0].name == str(copy)
    make_cross_encoder(copy, seed=5)
    other = load_reranker(str(copy))
    assert other is not loaded[0]
    assert other.scores(QUERY, texts(3)).tolist() != loaded[0].scores(QUERY, texts(3)).tolist()


def test_a_model_with_no_score_or_several_is_refused(tmp_path):
    with pytest.raises(AssistError, match="is not a cross-encoder: its configuration says BertModel"):
        load_reranker(str(make_cross_encoder(tmp_path / "encoder", headless=True)))
    with pytest.raises(AssistError, match="gives 3 scores a pair"):
        load_reranker(str(make_cross_encoder(tmp_path / "labels", labels=3)))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("/no/such/folder", "There is no model folder"),
        ("./none", "There is no model folder"),
        ("a/b/c", "There is no model folder"),
        ("", "There is no model folder"),
        ("no name at all!", "is not a model's name"),
        ("cross-encoder/none-such", "HF_HUB_OFFLINE is set"),
        ("none-such", "HF_HUB_OFFLINE is set"),
    ],
)
def test_a_model_that_is_not_there_says_what_else_to_set(name, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(AssistError, match=what) as caught:
        load_reranker(name)
    assert "rerank.model" in caught.value.remedy


@pytest.mark.parametrize("damage", ["weights", "config", "empty"])
def test_a_damaged_model_is_one_readable_error(model, tmp_path, damage):
    copy = tmp_path / "copy"
    if damage == "empty":
        copy.mkdir()
    else:
        shutil.copytree(model, copy)
        file = "model.safetensors" if damage == "weights" else "config.json"
        (copy / file).write_bytes((copy / file).read_bytes()[:40])
    with pytest.raises(AssistError, match=r"cannot be loaded|is not a cross-encoder"):
        load_reranker(str(copy))
