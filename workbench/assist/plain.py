"""A reranker and rewriters that need no model: for tests, for machines without one, and as a baseline to beat.

They are no more than they say. `overlap` counts which of the query's words a text holds; it knows no meaning and no word
frequencies, so expect it to be worse than BM25. `echo` gives the query back. `keywords` leaves out the words that say
nothing, and changes no other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.assist.protocol import Floats
from workbench.store.lexical.tokens import PIECES, STOP_WORDS, analyse, fold, stem

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
