"""Models around a search: one reorders the top, one rewrites the query for the vector side.

Both are optional and may fail at any time (a model that is missing, an endpoint that hangs), so both raise one exception type,
`AssistError`, and the search goes on with the fused order or the query as it was, and a warning. Which name in a plan means which
implementation is decided here and nowhere else.

`rerank.model`:

* `overlap`: counts the query's words, no model;
* `endpoint:MODEL`: a chat model behind the endpoint that the settings name (`endpoint`);
* anything else: a cross-encoder, a folder or a name on the hub (`cross_encoder`). A folder called `overlap` is `./overlap`.

`rewrite.model`: `echo`, `keywords`, or `endpoint:MODEL`.

Each is made once in a process, when it is first needed, and again when its files or settings change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from cachetools import LRUCache, cached

from workbench import settings
from workbench.errors import AssistError
from workbench.plan.fields import OFF
from workbench.ranking.candidates import Floats
from workbench.store.lexical.tokens import PIECES, STOP_WORDS, analyse, fold, stem

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
    """Writes a query again. Safe from several threads."""

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


def offered(field: str) -> tuple[str, ...]:
    """What a plan from an address may name in `rerank.model` or `rewrite.model`: off, the built-in ones of its kind, and those of
    `allowed_models`.
    """
    own = (OVERLAP,) if field == "rerank.model" else (ECHO, KEYWORDS)
    listed = [name.strip() for name in str(settings.get("allowed_models")).split(",")]
    kind = [name for name in listed if name and (field == "rerank.model" or name.startswith(PREFIX))]
    return tuple(dict.fromkeys((OFF, *own, *kind)))


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
        from workbench.assist import cross_encoder

        folder = cross_encoder.find(name)
        cross_encoder.check_head(name, folder)  # before its files are listed: any folder may be named
        state = (folder, cross_encoder.signature(folder), settings.get("rerank_timeout_seconds"))
        made = _kept("rerank", name, state, lambda: cross_encoder.CrossEncoderReranker(name))
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
