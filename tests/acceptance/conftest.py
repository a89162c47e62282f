"""Fixtures of the acceptance tests: each rule of the presets is asked of an open corpus, as a caller would."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import workbench as wb

Meet = Callable[[wb.Corpus, dict[str, int]], dict[str, int]]


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> Meet:
    """A function that makes the named sources wait for each other: searching one after the other can never pass.

    It takes how many searches of each kind meet, and returns how many of each kind came.
    """

    def arrange(corpus: wb.Corpus, expected: dict[str, int]) -> dict[str, int]:
        barrier = threading.Barrier(sum(expected.values()))
        came = dict.fromkeys(expected, 0)
        lock = threading.Lock()
        engine = corpus.engine
        classes = {"grep": type(engine.grep), "keyword": type(engine.lexical), "vector": type(engine.vectors(""))}

        def wrap(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
            def search(*args: Any, **kwargs: Any) -> Any:
                with lock:
                    came[kind] += 1
                    first = came[kind] <= expected[kind]
                if first:
                    barrier.wait(timeout=10)
                return original(*args, **kwargs)

            return search

        for kind in expected:
            monkeypatch.setattr(classes[kind], "search", wrap(kind, classes[kind].search))
        return came

    return arrange


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were embedded as queries since the test began."""
    from workbench.encode.load import load_encoder

    kind = type(load_encoder("hashing"))
    original = kind.encode_query
    texts: list[str] = []

    def encode_query(self: Any, text: str) -> Any:
        texts.append(text)
        return original(self, text)

    monkeypatch.setattr(kind, "encode_query", encode_query)
    return texts


@pytest.fixture
def no_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.errors import EncoderError
    from workbench.retrieve.engine import Engine

    def fails(self: Engine, text: str, encoder: str) -> Any:
        raise EncoderError("The model is gone", "Bring it back")

    monkeypatch.setattr(Engine, "embed", fails)
