"""Which characters of a text a query matches: the same pieces and words as the index, with where they stand."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from workbench.records import Span
from workbench.store.lexical import tokens
from workbench.store.lexical.query import Matcher, ParsedQuery, Path, Step
from workbench.store.overlaps import joined


class _Occurrence(NamedTuple):
    """A word in a text: its positions (`start` to before `end`) and its characters."""

    start: int
    end: int
    first: int
    last: int


class _Words(NamedTuple):
    """The words of a text that may matter: by term those that some matcher names, by folded word all, if any is a prefix."""

    by_term: dict[str, list[_Occurrence]]
    by_word: list[tuple[str, _Occurrence]]


class _Piece(NamedTuple):
    """A piece as words: how many positions it takes, and each word with its term, relative to the piece's start."""

    positions: int
    terms: frozenset[str]
    words: tuple[tuple[str, str, _Occurrence], ...]


_LONG = 64  # a longer piece is hardly ever met again, and is not kept
_KEPT = 1 << 14


def highlight(query: ParsedQuery, text: str) -> tuple[Span, ...]:
    """Character spans of the text that what the query counts matches, in order; overlapping ones are one.

    A phrase is marked from its first word to its last. Excluded words and stop words that do not count are not marked.
    """
    matchers = [matcher for matcher, _ in query.scored]
    if not matchers or not text:
        return ()
    wanted = frozenset(term for matcher in matchers for step in matcher.steps for path in step for term in path)
    words = _words(text, wanted, any(not matcher.steps for matcher in matchers))
    spans: set[tuple[int, int]] = set()
    for matcher in matchers:
        spans.update(_matched(matcher, words))
    return tuple(Span(start, end) for start, end in joined(spans))


def occurrences(matcher: Matcher, text: str) -> int:
    """How often a matcher occurs in a text, as the index counts it."""
    wanted = frozenset(term for step in matcher.steps for path in step for term in path)
    found = _matched(matcher, _words(text, wanted, not matcher.steps))
    return len(list(found)) if not matcher.steps else len({last for _, last in found})


def _words(text: str, wanted: frozenset[str], prefixes: bool) -> _Words:
    by_term: dict[str, list[_Occurrence]] = {}
    by_word: list[tuple[str, _Occurrence]] = []
    position = 0
    for match in tokens.PIECES.finditer(text):
        said = match[0]
        piece = _analysed(said) if len(said) <= _LONG else _analysed.__wrapped__(said)
        if prefixes or not wanted.isdisjoint(piece.terms):
            at = match.start()
            for word, term, o in piece.words:
                there = _Occurrence(position + o.start, position + o.end, at + o.first, at + o.last)
                if term in wanted:
                    by_term.setdefault(term, []).append(there)
                if prefixes:
                    by_word.append((word, there))
        position += piece.positions
    return _Words(by_term, by_word)


@lru_cache(maxsize=_KEPT)
def _analysed(piece: str) -> _Piece:
    """The words of a piece. Texts repeat their pieces, and most hold nothing that was asked for."""
    parts, wholes, _ = tokens.analyse(piece)
    words = [(p.word, _Occurrence(i, i + 1, p.start, p.end)) for i, p in enumerate(parts)]
    words += [(w.word, _Occurrence(w.first, w.first + w.span, w.start, w.end)) for w in wholes]
    staged = tuple((word, tokens.stem(word), occurrence) for word, occurrence in words)
    return _Piece(len(parts), frozenset(term for _, term, _ in staged), staged)


def _matched(matcher: Matcher, words: _Words) -> Iterable[tuple[int, int]]:
    if not matcher.steps:
        return [(o.first, o.last) for word, o in words.by_word if word.startswith(matcher.prefix)]
    # state: next position -> (first character of the match, last), for every way to come there
    state: set[tuple[int, int, int]] | None = None
    for step in matcher.steps:
        state = _advance(step, words, state)
        if not state:
            return []
    return [(first, last) for _, first, last in state or ()]


def _advance(step: Step, words: _Words, state: set[tuple[int, int, int]] | None) -> set[tuple[int, int, int]]:
    after: set[tuple[int, int, int]] = set()
    for path in step:
        after |= _along(path, words, state)
    return after


def _along(path: Path, words: _Words, state: set[tuple[int, int, int]] | None) -> set[tuple[int, int, int]]:
    for term in path:
        found = words.by_term.get(term, [])
        if state is None:
            state = {(o.end, o.first, o.last) for o in found}
            continue
        begun: dict[int, list[int]] = {}
        for position, first, _ in state:
            begun.setdefault(position, []).append(first)
        state = {(o.end, first, o.last) for o in found for first in begun.get(o.start, ())}
    return state or set()
