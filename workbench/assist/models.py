"""Models around a search: one reorders the top, one rewrites the query for the vector side.

Both are optional and may fail at any time (a model that is missing, an endpoint that hangs), so both raise one exception type,
`AssistError`, and the search goes on with the fused order or the query as it was, and a warning. Which name in a plan means which
implementation is decided here and nowhere else.

`rerank.model`:

* `overlap`: counts the query's words, no model;
* `endpoint:MODEL`: a chat model behind the endpoint that the settings name (`endpoint`);
* anything else: a cross-encoder, a folder or a name on the hub. A folder called `overlap` is `./overlap`.

`rewrite.model`: `echo`, `keywords`, or `endpoint:MODEL`.

Each is made once in a process, when it is first needed, and again when its files or settings change.

Reranking by a local cross-encoder: query and text go through the model together, so each sees the other's words.

Weights are a folder or a name on the hub, never fetched when HF_HUB_OFFLINE is set; none is shipped. The model runs in torch
on the CPU, and its raw logits are the scores: the sigmoid that most models put on top rounds good passages to the same 1.0
and changes no order.

Pairs go through one at a time. Padded together, a text's last bits would depend on its neighbours, and the same text in two
places would change the order; and it costs nothing: of 24 real chunks through a model of MiniLM's size, one at a time took
1.5 s of processor time, batches of 8 sorted by length 1.7, unsorted 2.1. Between pairs the clock is read: a model that is
too slow for its time is given up, and the fused order stays.
(Nogueira and Cho, "Passage Re-ranking with BERT", arXiv 1901.04085.)
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from cachetools import LRUCache, cached
from numpy.typing import NDArray

from workbench import settings
from workbench.encode.models import folder_of, read_json
from workbench.encode.protocol import readable
from workbench.encode.sentence import quiet
from workbench.errors import AssistError, EncoderError
from workbench.plan.fields import OFF
from workbench.store.lexical.tokens import PIECES, STOP_WORDS, analyse, fold, stem

_CHARACTERS_A_TOKEN = 32
_LONGEST_INPUT = 8192
_ORGANISATION = "cross-encoder"
_HEADS = ("ForSequenceClassification", "ForCausalLM")


class CrossEncoderReranker:
    """A `Reranker` that runs a sentence-transformers CrossEncoder. `seconds`: Time for one call, loading not counted; None is
    the setting `rerank_timeout_seconds`.
    """

    def __init__(self, model: str, *, seconds: float | None = None) -> None:
        self.name = model
        self._seconds = float(settings.get("rerank_timeout_seconds") if seconds is None else seconds)
        self._folder = find(model)
        check_head(model, self._folder)
        self._model, self._raw = _load(model, self._folder)
        if self._model.num_labels != 1:
            raise AssistError(
                f"The model {model} gives {self._model.num_labels} scores a pair, and reranking needs one",
                "Choose a cross-encoder that was trained for ranking",
            )
        self._lock = threading.Lock()

    def scores(self, query: str, texts: Sequence[str]) -> Floats:
        """Raw logits, float64 (n,), the same whatever the other texts are. See `Reranker.scores`. Raises AssistError."""
        deadline = time.monotonic() + self._seconds
        result = np.zeros(len(texts))
        room = min(int(self._model.max_seq_length or _LONGEST_INPUT), _LONGEST_INPUT) * _CHARACTERS_A_TOKEN
        query = readable(query[:room])
        # The tokenizer keeps state between calls, so one call at a time.
        with self._lock:
            for row, text in enumerate(texts):
                if time.monotonic() > deadline:
                    raise AssistError(
                        f"The model {self.name} did not rerank {len(texts)} texts within {self._seconds:g} seconds",
                        "Lower rerank.top, choose a smaller model, or raise rerank_timeout_seconds",
                    )
                result[row] = self._score(query, readable(text[:room]))
        if not np.isfinite(result).all():
            raise AssistError(f"The model {self.name} gave scores that are not numbers", "Choose another model")
        return result

    def _score(self, query: str, text: str) -> float:
        try:
            return float(self._model.predict((query, text), show_progress_bar=False, activation_fn=self._raw))
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError, AttributeError) as exc:
            raise AssistError(f"The model {self.name} failed: {exc}", "Choose another model in rerank.model") from exc


def find(model: str) -> Path:
    """The folder that a cross-encoder's name stands for; what the hub has is fetched unless HF_HUB_OFFLINE is set."""
    try:
        return folder_of(model, _ORGANISATION, download=True)
    except EncoderError as exc:
        remedy = "Set rerank.model to a cross-encoder's folder, to endpoint:MODEL, or to off"
        raise AssistError(exc.message, remedy) from exc


def signature(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of a model's files: another signature is another model."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return tuple((str(f.relative_to(folder)), f.stat().st_size, f.stat().st_mtime_ns) for f in files)


def check_head(model: str, folder: Path) -> None:
    """Refuse a model without a scoring head: the library would make one up from random numbers and only log it."""
    config, ours = (read_json(folder / name) for name in ("config.json", "config_sentence_transformers.json"))
    config, ours = (value if isinstance(value, dict) else {} for value in (config, ours))
    kinds = [str(kind) for kind in config.get("architectures") or []]
    if ours.get("model_type") == "CrossEncoder" or any(kind.endswith(_HEADS) for kind in kinds):
        return
    what = f"its configuration says {', '.join(kinds)}" if kinds else "its configuration names no scoring head"
    raise AssistError(f"{model} is not a cross-encoder: {what}", "Choose a model that was trained to score pairs")


def _load(model: str, folder: Path) -> tuple[Any, Any]:
    """The CrossEncoder in fp32, and the activation that leaves its logits as they are."""
    with quiet():
        try:
            library, torch = importlib.import_module("sentence_transformers"), importlib.import_module("torch")
        except ImportError as exc:
            raise AssistError(
                f"sentence-transformers cannot be imported: {exc}", "Install it: pip install sentence-transformers"
            ) from exc
        try:
            loaded = library.CrossEncoder(str(folder), device="cpu", local_files_only=True)
            return loaded.float().eval(), torch.nn.Identity()
        except Exception as exc:
            raise AssistError(
                f"The cross-encoder {model} in {folder} cannot be loaded: {exc}",
                "Point rerank.model at a folder saved by sentence-transformers, or fetch the model again",
            ) from exc


Floats = NDArray[np.float64]

PREFIX = "endpoint:"
"""How a model behind the setting `endpoint_url` is named: `endpoint:MODEL`."""


class Reranker(Protocol):
    """Scores texts against a query, seeing both at once. Safe from several threads."""

    @property
    def name(self) -> str:
        """What the plan field `rerank.model` says."""

    def scores(self, query: str, texts: Sequence[str]) -> Floats:
        """Relevance of each text to the query. Returns float64 (len(texts),), finite, higher is better. The scale is the
        reranker's own: scores of one call may be compared with each other and with nothing else.
        """


class Rewriter(Protocol):
    """Writes a query anew. Safe from several threads."""

    @property
    def name(self) -> str:
        """What the plan field `rewrite.model` says."""

    def rewrite(self, query: str, context: str) -> str:
        """The query in other words, one line, never empty unless the query is. `context`: What the person has open, as plain
        text; "" for nothing.
        """


# --- without a model: for tests, for machines without one, and as a baseline to beat ---

OVERLAP = "overlap"
ECHO = "echo"
KEYWORDS = "keywords"


class OverlapReranker:
    """Share of the query's distinct words (stemmed, stop words left out) that occur in a text.

    A text that holds more of them is better; of two that hold equally many, the one with more of these words among its
    own. The score is (words found + density) / (words of the query + 1), density in [0, 1]: in [0, 1], and density never
    outweighs a word. A query of stop words alone is taken as it is.
    """

    name = OVERLAP

    def scores(self, query: str, texts: Sequence[str]) -> Floats:
        """Scores in [0, 1], float64 (n,). See `Reranker.scores`; raises nothing."""
        wanted = set(_terms(query, plain=False)) or set(_terms(query, plain=True))
        result = np.zeros(len(texts))
        for row, text in enumerate(texts):
            terms = _terms(text, plain=True)
            found = [term for term in terms if term in wanted]
            density = len(found) / len(terms) if terms else 0.0
            result[row] = (len(set(found)) + density) / (len(wanted) + 1)
        return result


class EchoRewriter:
    """The query as it is, trimmed; what a rewriter must at least do."""

    name = ECHO

    def rewrite(self, query: str, context: str) -> str:
        """The query. The context is not read."""
        return query.strip()


class KeywordsRewriter:
    """The query without its stop words and punctuation, in its own order, each word once whatever its case."""

    name = KEYWORDS

    def rewrite(self, query: str, context: str) -> str:
        """The query's words that say something; all of the query if none does. The context is not read."""
        words: dict[str, str] = {}
        for found in PIECES.finditer(query):
            if fold(found[0]) not in STOP_WORDS:
                words.setdefault(fold(found[0]), found[0])
        return " ".join(words.values()) or query.strip()


def _terms(text: str, plain: bool) -> list[str]:
    """Stemmed words in order: the parts of compounds, and stop words only if `plain`."""
    words = (part.word for found in PIECES.finditer(text) for part in analyse(found[0]).parts)
    return [stem(word) for word in words if plain or word not in STOP_WORDS]


# --- which name means which ---

BUILT_IN = frozenset({OFF, OVERLAP, ECHO, KEYWORDS})
"""What a plan may name without anything being loaded."""

REWRITERS = f"`{ECHO}`, `{KEYWORDS}`, or `{PREFIX}MODEL`"


def may_name(model: str) -> bool:
    """Whether a plan from an address, an MCP call or a snapshot may name a model: a built-in one, or one of `allowed_models`."""
    listed = (name.strip() for name in str(settings.get("allowed_models")).split(","))
    return model.strip() in BUILT_IN | {*filter(None, listed)}


def check_named(model: str) -> None:
    """Refuse a model that `may_name` does not allow, without looking whether there is one. Raises AssistError."""
    if not may_name(model):
        raise AssistError(
            f"The plan names the model {model!r}, which is not allowed here",
            "Who runs the server lists it in the setting allowed_models",
        )


def load_reranker(model: str) -> Reranker:
    """The reranker that `rerank.model` names. Safe from several threads; all get the same one."""
    name = model.strip()
    made: Reranker = OverlapReranker()
    if name.startswith(PREFIX):
        from workbench.assist.endpoint import Endpoint, EndpointReranker

        behind = name.removeprefix(PREFIX)
        made = _kept("rerank", name, _endpoint_state(), lambda: EndpointReranker(Endpoint(behind)))
    elif name != OVERLAP:
        folder = find(name)
        check_head(name, folder)  # before its files are listed: any folder may be named
        state = (folder, signature(folder), settings.get("rerank_timeout_seconds"))
        made = _kept("rerank", name, state, lambda: CrossEncoderReranker(name))
    return made


def load_rewriter(model: str) -> Rewriter:
    """The rewriter that `rewrite.model` names. Safe from several threads; all get the same one."""
    name = model.strip()
    if name in (ECHO, KEYWORDS):
        return EchoRewriter() if name == ECHO else KeywordsRewriter()
    if not name.startswith(PREFIX):
        raise AssistError(f"There is no rewriter called {name!r}", f"rewrite.model is {REWRITERS}")
    from workbench.assist.endpoint import Endpoint, EndpointRewriter

    behind = name.removeprefix(PREFIX)
    made: Rewriter = _kept("rewrite", name, _endpoint_state(), lambda: EndpointRewriter(Endpoint(behind)))
    return made


def _endpoint_state() -> object:
    return tuple(settings.get(name) for name in ("endpoint_url", "endpoint_key", "endpoint_timeout_seconds"))


@cached(LRUCache(4), key=lambda seam, name, state, make: (seam, name, state), condition=threading.Condition())
def _kept(seam: str, name: str, state: object, make: Callable[[], Any]) -> Any:
    """What was made under that name if its state is as it was then, else a new one; the last ones asked for are kept."""
    return make()
