"""The seams for models around a search: one puts the top in another order, one rewrites the query for the vector side.

Both are optional and may fail at any time (a model that is not there, an endpoint that hangs), so both raise one exception
type, `AssistError`, and the search goes on with the fused order or the query as it was, and a warning. `plain` ships
implementations without a model; `load` says which name means which implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.errors import AssistError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PREFIX = "endpoint:"
"""How a model behind the setting `endpoint_url` is named: `endpoint:MODEL`."""


class Reranker(Protocol):
    """Scores texts against a query, seeing both at once. Safe from several threads."""

    @property
    def name(self) -> str:
        """What the plan field `rerank.model` says."""

    def scores(self, query: str, texts: Sequence[str]) -> Floats:
        """Relevance of each text to the query.

        Returns:
            float64 (len(texts),), finite, higher is better. The scale is the reranker's own: scores of one call may be
            compared with each other and with nothing else.

        Raises:
            AssistError: The reranker could not do it, or not in its time.
        """


class Rewriter(Protocol):
    """Writes a query anew. Safe from several threads."""

    @property
    def name(self) -> str:
        """What the plan field `rewrite.model` says."""

    def rewrite(self, query: str, context: str) -> str:
        """The query in other words, one line, never empty unless the query is.

        Args:
            context: What the person has open, as plain text; "" for nothing.

        Raises:
            AssistError: The rewriter could not do it, or not in its time.
        """


def rerank(reranker: Reranker, query: str, texts: Sequence[str]) -> tuple[Floats, Ints]:
    """Score texts and put them in order.

    Returns:
        Scores, float64 (n,), in the order of `texts`; and the new order, int64 (n,) positions in `texts`, best first,
        equal scores in fused order.

    Raises:
        AssistError: From the reranker, or it gave other than one finite number a text.
    """
    scores = np.asarray(reranker.scores(query, texts), np.float64)
    if scores.shape != (len(texts),) or not np.isfinite(scores).all():
        raise AssistError(
            f"The reranker {reranker.name} did not give one finite score for each of {len(texts)} texts",
            "Choose another model in rerank.model, or set it to off",
        )
    return scores, best_first(scores)


def best_first(scores: Floats) -> Ints:
    """Positions by score, highest first, equal scores as they stood; int64 (n,)."""
    return np.argsort(-scores, kind="stable").astype(np.int64)
