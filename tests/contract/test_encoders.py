"""One contract, every encoder: hashing and a table always, the real model where time allows; torch beside its copy is in
`test_openvino_copy.py`.
"""

import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from small_models import make_static

from workbench.encode.load import load_encoder
from workbench.encode.models import Model
from workbench.encode.protocol import Encoder
from workbench.errors import EncoderError
from workbench.records import Progress

TABLE = "a static embedding's folder"
CASES = [
    pytest.param(("hashing", None), id="hashing"),
    pytest.param((TABLE, None), id="table"),
    pytest.param(("all-MiniLM-L6-v2", "openvino"), id="openvino", marks=pytest.mark.slow),
]
TEXTS = ["how do retries work", "", "Retry with a backoff after each failure.", "x", "eggs and flour", "é ü 検索 🙂"]
TEXTS.append("a " * 900)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(params=CASES)
def encoder(request: pytest.FixtureRequest, cache: Path) -> Encoder:
    name, runtime = request.param
    return load_encoder(_named(name, cache), runtime)


def _named(name: str, cache: Path) -> str:
    """The name to load by: the tiny table is made when it is first asked for."""
    if name != TABLE:
        return name
    folder = cache / "table"
    return str(folder if folder.is_dir() else make_static(folder, [*TEXTS, "word apple first retries failure"]))


def test_vectors_are_float32_rows_of_length_one_whatever_the_batch(encoder):
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.identity.dim)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1.0, atol=2e-7)
    assert encoder.encode([]).shape == (0, encoder.identity.dim)
    assert encoder.count_tokens([]) == []
    together = encoder.encode(TEXTS * 3)
    backwards = encoder.encode(TEXTS[::-1])[::-1]
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_array_equal(together[: len(TEXTS)], alone)
    np.testing.assert_array_equal(together[-len(TEXTS) :], alone)
    np.testing.assert_array_equal(backwards, alone)
    assert encoder.encode(["caf\udce9"]).shape == (1, encoder.identity.dim)
    assert len(encoder.count_tokens(["caf\udce9"])) == 1
    seen: list[Progress] = []
    encoder.encode(TEXTS * 5, seen.append)
    assert seen[-1].done == seen[-1].total == 5 * len(TEXTS)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert {p.step for p in seen} == {"embed"}


def test_similar_texts_are_nearer_and_a_query_has_the_same_bits_every_time(encoder):
    first = encoder.encode_query("how do retries work")
    encoder.encode(TEXTS)
    assert first.shape == (encoder.identity.dim,)
    np.testing.assert_array_equal(first, encoder.encode_query("how do retries work"))
    np.testing.assert_array_equal(first, encoder.encode(["how do retries work"])[0])
    query = encoder.encode_query("retries after a failure")
    near, far = encoder.encode(["Retry with a backoff after each failure.", "eggs and flour"]) @ query
    assert near > far + 0.2


def test_tokens_are_counted_whole_and_text_beyond_the_longest_input_is_cut(encoder):
    around, one, many = encoder.count_tokens(["", "word", "word " * 600])
    assert (one - around, many - around) == (1, 600)
    longest = encoder.identity.max_tokens
    head = "word " * longest
    a, b, c = encoder.encode([head + "apple", head + "retry backoff", "first " + head])
    np.testing.assert_allclose(a, b, atol=1e-6)
    assert not np.array_equal(a, c)


def test_threads_get_the_answers_of_one(encoder):
    right = [encoder.encode_query(text) for text in TEXTS]
    wrong: list[str] = []

    def work(shift: int) -> None:
        for turn in range(6):
            row = (turn + shift) % len(TEXTS)
            if not np.array_equal(encoder.encode_query(TEXTS[row]), right[row]):
                wrong.append(TEXTS[row])
            if turn == shift and not np.allclose(encoder.encode(TEXTS[:4]), np.stack(right[:4]), atol=1e-6):
                wrong.append("batch")

    threads = [threading.Thread(target=work, args=(shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_it_is_loaded_once_and_again_after_closing(encoder, request, cache):
    name, runtime = request.node.callspec.params["encoder"]
    name = _named(name, cache)
    assert load_encoder(name, runtime) is encoder
    encoder.close()
    with pytest.raises(EncoderError, match="closed"):
        encoder.encode(["a"])
    with pytest.raises(EncoderError, match="closed"):
        encoder.encode_query("a")
    assert load_encoder(name, runtime) is not encoder


@pytest.mark.slow
def test_a_table_gives_the_vectors_of_sentence_transformers(tmp_path):
    from workbench.encode.sentence import SentenceEncoder

    texts = ["Retry with a backoff after each failure.", "eggs and flour", "flour and eggs with failure"]
    folder = make_static(tmp_path / "table", texts)
    theirs = SentenceEncoder(Model("table", folder))
    np.testing.assert_allclose(load_encoder(str(folder)).encode(texts), theirs.encode(texts), atol=2e-5)


def test_a_model_that_nobody_uses_is_let_go_of(tmp_path):
    folders = [make_static(tmp_path / f"model{n}", ["still there"], shift=n) for n in range(8)]
    held, unused = load_encoder(str(folders[0])), weakref.ref(load_encoder(str(folders[1])))
    for folder in folders[2:]:
        last = load_encoder(str(folder))
    assert load_encoder(str(folders[-1])) is last
    gc.collect()
    assert unused() is None
    assert held.encode_query("still there").shape == (held.identity.dim,)
