"""The words put before a chunk: the title and the sections it lies in, where its own text does not begin with them.

A passage torn from its page has lost what it is about; a short line with the page's title and headings gives the encoder
and the word index that back. It is kept short, so that it does not drown the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.ingest.tokens import TokenCounter

SEPARATOR = " > "
_LETTERS = re.compile(r"[\W_]+")
LONGEST = 40
"""Most tokens of a context."""


def context_of(title: str, path: Sequence[str], text: str, has_heading: bool) -> str:
    """Title and section path of a chunk, without the parts that its text begins with.

    Args:
        title: The document's title.
        path: Titles of the sections that the chunk begins in, outermost first.
        text: The chunk's text.
        has_heading: Whether the chunk begins with the heading of its last section.
    """
    parts = list(path[:-1] if has_heading else path)
    if _plain(title) and not _repeats(title, path) and not _plain(text).startswith(_plain(title)):
        parts.insert(0, " ".join(title.split()))
    return SEPARATOR.join(part for n, part in enumerate(parts) if part and part not in parts[:n])


def shorten(contexts: Sequence[str], most: int, counter: TokenCounter) -> dict[str, tuple[str, int]]:
    """Cut contexts to `most` tokens: first the middle parts go, then words from the end.

    Returns:
        For each context, what is left of it and its length in tokens.
    """
    distinct = list(dict.fromkeys(contexts))
    lengths = dict(zip(distinct, counter.parts(distinct), strict=True))
    return {c: (c, lengths[c]) if lengths[c] <= most else _cut(c, most, counter) for c in distinct}


def _cut(context: str, most: int, counter: TokenCounter) -> tuple[str, int]:
    parts = context.split(SEPARATOR)
    tries = [SEPARATOR.join([parts[0], *parts[-keep:]]) for keep in range(len(parts) - 2, 0, -1)]
    words = (parts[0] if len(parts) == 1 else SEPARATOR.join([parts[0], parts[-1]])).split(" ")
    tries += [" ".join(words[:keep]) for keep in range(min(len(words), most), 0, -1)]
    tries += [words[0][:keep] for keep in (64, 32, 16, 8) if keep < len(words[0])]
    lengths = counter.parts(tries)
    return next(((t, n) for t, n in zip(tries, lengths, strict=True) if n <= most), ("", 0))


def _repeats(title: str, path: Sequence[str]) -> bool:
    """Whether a heading says the title again: `12. Attributes` and `What's New` repeat `Attributes` and `What’s new`."""
    words = _LETTERS.sub("", title.casefold())
    return any(words in _LETTERS.sub("", heading.casefold()) for heading in path[:1]) or title in path


def _plain(text: str) -> str:
    """Words for comparison: heading marks, case and spacing do not count. Only the beginning matters."""
    return " ".join(text[:2000].lstrip(" \t\n#=*-~_`").casefold().split())
