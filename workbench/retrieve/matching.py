"""Where grep's patterns match in a piece of text, as character spans."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.plan.plan import Plan
from workbench.records import Span
from workbench.store.grep.pattern import Search, prepare


def pattern_spans(patterns: Sequence[str], text: str, plan: Plan) -> list[Span]:
    """Spans of every pattern under the plan's `grep.*` settings; line by line, as grep sees them."""
    regex, case, word = plan["grep.regex"], plan["grep.case"], plan["grep.word"]
    searches = [prepare(p, regex=regex, case=case, word=word).spans for p in patterns if p]
    spans: list[Span] = []
    start = 0
    for line in text.split("\n"):
        data = line.encode("utf-8")
        ascii_only = len(data) == len(line)
        for search in searches:
            for low, high in _occurrences(search, data):
                if not ascii_only:
                    low, high = len(data[:low].decode("utf-8")), len(data[:high].decode("utf-8"))
                spans.append(Span(start + low, start + high))
        start += len(line) + 1
    return spans


def pattern_notes(patterns: Sequence[str], plan: Plan) -> list[str]:
    """What grep cannot do with these patterns under the plan's `grep.*` settings, a sentence each."""
    regex, case, word = plan["grep.regex"], plan["grep.case"], plan["grep.word"]
    return [p.note for p in (prepare(p, regex=regex, case=case, word=word) for p in patterns if p) if p.note]


def _occurrences(search: Search, data: bytes) -> list[tuple[int, int]]:
    """Byte offsets of the matches that are not empty, left to right, not overlapping."""
    found, position = [], 0
    while position <= len(data):
        low, high = search(data, position, len(data))
        if low < 0:
            break
        if high > low:
            found.append((low, high))
        position = max(high, low + 1)
        while position < len(data) and data[position] & 0xC0 == 0x80:  # never start inside a character
            position += 1
    return found
