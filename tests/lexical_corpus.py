"""Small word indexes for tests, and a textbook BM25 to hold them against: loops, no arrays, no SQL."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from workbench.store.lexical import tokens
from workbench.store.lexical.build import build_words
from workbench.store.lexical.query import Item, Matcher, needed, parse
from workbench.store.lexical.search import LexicalIndex

Text = str | tuple[str, str]


@dataclass
class Corpus:
    """An index and the database that it was built from."""

    lexical: LexicalIndex
    connection: duckdb.DuckDBPyConnection


def pair(text: Text) -> tuple[str, str]:
    return text if isinstance(text, tuple) else ("", text)


def build(folder: Path, texts: Sequence[Text], **options: Any) -> Corpus:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE records (number INTEGER, context VARCHAR, text VARCHAR)")
    rows = [(number, *pair(text)) for number, text in enumerate(texts)]
    if rows:
        connection.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
    build_words(connection, folder / "scratch", **options)
    return Corpus(LexicalIndex(connection), connection)


# --- the oracle -------------------------------------------------------------------------------------------------------

Graph = list[tuple[str, str, int, int]]
"""Every word of a record: folded word, term, first position, position after."""


def graph(text: Text) -> tuple[Graph, int]:
    found: Graph = []
    at = length = 0
    for part in pair(text):
        for piece in tokens.PIECES.findall(part):
            parts, wholes, _ = tokens.analyse(piece)
            found += [(p.word, tokens.stem(p.word), at + i, at + i + 1) for i, p in enumerate(parts)]
            found += [(w.word, tokens.stem(w.word), at + w.first, at + w.first + w.span) for w in wholes]
            at += len(parts)
            length += len(parts)
        at += 1
    return found, length


def occurrences(matcher: Matcher, words: Graph) -> int:
    if not matcher.steps:
        return sum(word.startswith(matcher.prefix) for word, *_ in words)
    if matcher.term is not None:
        return sum(term == matcher.term for _, term, *_ in words)
    reached: set[int] | None = None
    for step in matcher.steps:
        after: set[int] = set()
        for path in step:
            here = reached
            for wanted in path:
                here = {end for _, t, start, end in words if t == wanted and (here is None or start in here)}
            after |= here or set()
        reached = after
    return len(reached or ())


def bm25(texts: Sequence[Text], query: str, *, k1: float, b: float, operator: str) -> dict[int, float]:
    """Scores of the records that match, by the formula, one record and one summand at a time."""
    graphs = [graph(text) for text in texts]
    parsed = parse(query)
    n = len(texts)
    mean = sum(length for _, length in graphs) / n if n else 0.0
    counts = {m: [occurrences(m, words) for words, _ in graphs] for m, _ in parsed.scored}

    def holds(item: Item, record: int) -> bool:
        return occurrences(item.matcher, graphs[record][0]) > 0

    scores: dict[int, float] = {}
    for record, (_, length) in enumerate(graphs):
        if any(holds(item, record) for item in parsed.excluded):
            continue
        if operator == "all" and not any(all(holds(i, record) for i in needed(items)) for items in parsed.required):
            continue
        score = 0.0
        for matcher, weight in parsed.scored:
            tf, df = counts[matcher][record], sum(c > 0 for c in counts[matcher])
            if tf:
                idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
                score += weight * idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean))
        if score:
            scores[record] = score
    return scores
