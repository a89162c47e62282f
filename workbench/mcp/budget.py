"""Answers of a size that a model can take: passages shortened around their matches, and what was left out, said.

A budget counts the characters of the text answer, headings and line numbers included. Each passage gets an equal share of what
is left after the headings; what a short one does not need goes to the others. Results for whose text too little is left are
named by their citations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from workbench.mcp.answers import GrepAnswer, HitAnswer, PassageAnswer, SearchAnswer

MOST_CHARACTERS = 8000
LEAST_TEXT = 240
"""A passage for which less than this is left is named and not shown."""

_CLOSING = 500  # what may be said of the rest
_GAP = 40
_LISTED = 10

_Answer = TypeVar("_Answer", SearchAnswer, GrepAnswer)


@dataclass(frozen=True, slots=True)
class Cut:
    """A shortened text: a line of ours stands for each run of lines that was left out.

    Attributes:
        text: The lines that are left.
        matches: [start, end) spans in it.
        left_out: First and last number of each run of lines that was left out.
    """

    text: str
    matches: list[list[int]]
    left_out: list[list[int]]


def gap(first: int, last: int) -> str:
    """What stands for lines that were left out."""
    return f"[… lines {first}-{last} left out …]" if last > first else f"[… line {first} left out …]"


def shorten(text: str, start_line: int, matches: Sequence[Sequence[int]], room: int, beside: int = 0) -> Cut:
    """The lines that match, then those nearest to them, as far as there is room; at least part of the first match.

    Args:
        text: Lines from `start_line` on.
        start_line: Number of the first.
        matches: [start, end) spans in it.
        room: Most characters.
        beside: What each line costs beside its own characters.
    """
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    own: list[list[tuple[int, int]]] = [
        [(max(a, at) - at, min(b, at + len(line)) - at) for a, b in matches if a < at + len(line) and b > at]
        for at, line in zip(starts, lines, strict=False)
    ]
    matching = [n for n, spans in enumerate(own) if spans] or [0]
    order = sorted(range(len(lines)), key=lambda n: (min(abs(n - m) for m in matching), n))
    kept: dict[int, tuple[int, int]] = {}
    left = room
    for n in order:
        cost = len(lines[n]) + beside + 1 + (0 if {n - 1, n + 1} & kept.keys() else _GAP)
        if cost > left and kept:
            break
        # Only the first line, which is shown in any case, is cut within.
        kept[n] = (0, len(lines[n])) if kept else _window(len(lines[n]), own[n], max(left - beside - 2 * _GAP, 40))
        left -= min(cost, left)
    return _joined(lines, own, kept, start_line)


def _window(length: int, spans: Sequence[tuple[int, int]], room: int) -> tuple[int, int]:
    """The part of a line that is shown: all of it, or the room around its first match."""
    if length <= room:
        return 0, length
    first = spans[0][0] if spans else 0
    start = max(0, min(first - room // 4, length - room))
    return start, start + room


def _joined(
    lines: Sequence[str], own: Sequence[Sequence[tuple[int, int]]], kept: dict[int, tuple[int, int]], start_line: int
) -> Cut:
    pieces: list[str] = []
    spans: list[list[int]] = []
    left_out: list[list[int]] = []
    at, before = 0, -1
    for n in (*sorted(kept), len(lines)):
        if n > before + 1:
            left_out.append([start_line + before + 1, start_line + n - 1])
            pieces.append(gap(*left_out[-1]))
            at += len(pieces[-1]) + 1
        if n == len(lines):
            break
        first, last = kept[n]
        lead = "…" if first else ""
        pieces.append(lead + lines[n][first:last] + ("…" if last < len(lines[n]) else ""))
        inside = ((max(a, first) - first, min(b, last) - first) for a, b in own[n])
        spans += [[at + len(lead) + a, at + len(lead) + b] for a, b in inside if a < b]
        at += len(pieces[-1]) + 1
        before = n
    return Cut("\n".join(pieces), spans, left_out)


def within(
    answer: _Answer, render: Callable[[_Answer], str], most_characters: int, most_passages: int | None = None
) -> _Answer:
    """An answer whose text form has about `most_characters` at most, and `most_passages` passages.

    Args:
        answer: The whole answer.
        render: Gives its text form.
        most_characters: Of the text form.
        most_passages: None: all that there are.
    """
    name = "hits" if isinstance(answer, SearchAnswer) else "passages"
    every: list[HitAnswer] | list[PassageAnswer] = getattr(answer, name)
    shown: list[HitAnswer | PassageAnswer] = [*every[:most_passages]]
    if len(shown) == len(every) and len(render(answer)) <= most_characters:
        return answer

    def size(passages: Sequence[HitAnswer | PassageAnswer]) -> int:
        return len(render(answer.model_copy(update={name: list(passages)})))

    bare = size([])
    heads = [size([p.model_copy(update={"text": "", "matches": []})]) - bare for p in shown]
    texts = [size([p]) - bare - head for p, head in zip(shown, heads, strict=True)]
    room = most_characters - bare - _CLOSING
    while len(shown) > 1 and room - sum(heads) < sum(min(t, LEAST_TEXT) for t in texts):
        shown, heads, texts = shown[:-1], heads[:-1], texts[:-1]
    share = _share(texts, room - sum(heads))
    cut = [p if size_of <= share else _shortened(p, share) for p, size_of in zip(shown, texts, strict=True)]
    omitted = [p.citation for p in every[len(shown) :]]
    return answer.model_copy(
        update={name: cut, "omitted": omitted, "more": _more(sum(not p.whole for p in cut), len(cut), omitted)}
    )


def _share(sizes: Sequence[int], room: int) -> int:
    """The most that each may have, so that all have about the room together."""
    left, share = max(room, LEAST_TEXT), 0
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _shortened(
    passage: HitAnswer | PassageAnswer, room: int
) -> HitAnswer | PassageAnswer:  # fmt: skip
    beside = len(str(passage.end_line)) + 5
    made = shorten(passage.text, passage.start_line, passage.matches, room, beside)
    changed = {"text": made.text, "matches": made.matches, "left_out": made.left_out, "whole": False}
    return passage.model_copy(update=changed)


def _more(shortened: int, shown: int, omitted: Sequence[str]) -> str:
    """What was left out, and how to get it; "" for nothing."""
    said = []
    if shortened:
        said.append(f"{shortened:,} of the {shown:,} passages {'is' if shortened == 1 else 'are'} shortened")
    if omitted:
        said.append(f"{len(omitted):,} more {'result is' if len(omitted) == 1 else 'results are'} named without text")
    if not said:
        return ""
    return (
        " and ".join(said) + ": read_file with a citation gives its lines whole, a greater max_characters longer answers"
        + (", a greater max_passages more of them" if omitted else "")
    )  # fmt: skip
