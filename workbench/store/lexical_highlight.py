"""Which characters of a text a query matches: the same pieces and words as the index, with where they stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from workbench.records import Span
from workbench.store import tokens
from workbench.store.query import Matcher, ParsedQuery, Path, Step


class _Occurrence(NamedTuple):
    """A word in a text: its positions (`start` to before `end`) and its characters."""

    start: int
    end: int
    first: int
    last: int


class _Words(NamedTuple):
    """The words of a text: by term, and by folded word for prefixes."""

    by_term: dict[str, list[_Occurrence]]
    by_word: list[tuple[str, _Occurrence]]


def highlight(query: ParsedQuery, text: str) -> tuple[Span, ...]:
    """Character spans of the text that what the query counts matches, in order; overlapping ones are one.

    A phrase is marked from its first word to its last. Excluded words and stop words that do not count are not marked.
    """
    matchers = [matcher for matcher, _ in query.scored]
    if not matchers or not text:
        return ()
    words = _words(text)
    spans: set[tuple[int, int]] = set()
    for matcher in matchers:
        spans.update(_matched(matcher, words))
    return _joined(sorted(spans))


def _words(text: str) -> _Words:
    by_term: dict[str, list[_Occurrence]] = {}
    by_word: list[tuple[str, _Occurrence]] = []
    position = 0
    for piece in tokens.PIECES.finditer(text):
        at = piece.start()
        parts, wholes, _ = tokens.analyse(piece[0])
        found = [
            (p.word, _Occurrence(position + i, position + i + 1, at + p.start, at + p.end)) for i, p in enumerate(parts)
        ]
        found += [
            (w.word, _Occurrence(position + w.first, position + w.first + w.span, at + w.start, at + w.end))
            for w in wholes
        ]
        for word, occurrence in found:
            by_term.setdefault(tokens.stem(word), []).append(occurrence)
        by_word += found
        position += len(parts)
    return _Words(by_term, by_word)


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


def _joined(spans: list[tuple[int, int]]) -> tuple[Span, ...]:
    """Overlapping spans as one; spans that only touch stay apart."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and start < joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, end))
        else:
            joined.append(Span(start, end))
    return tuple(joined)
