"""Addresses of the Document page, made in one place: cards, tables and lists all link to it. No Streamlit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlencode

from workbench.markup import plain
from workbench.records import Chunk

LONG_LINE = 300
"""Characters from which a line is too long to find a passage in it without its first words."""


def document(
    path: str,
    *,
    document_id: str = "",
    lines: tuple[int, int] | None = None,
    locator: str = "",
    text: str = "",
    asked: Mapping[str, str] | None = None,
) -> str:
    """Address of the Document page at a place of a document, relative to the app.

    `lines` are first and last, from 1; inside one long line the first words of the passage `text` come along, so that the page
    can find it there. `asked` has the search's address parameters, whose words are marked.
    """
    parts = dict(asked or {})
    if document_id:
        parts["id"] = document_id
    parts["path"] = path
    if locator:
        parts["at"] = locator
    if lines is not None:
        parts["lines"] = f"{lines[0]}-{lines[1]}"
        if lines[0] == lines[1] and len(text) > LONG_LINE:
            parts["quote"] = plain(text[:60], 60)
    return "document?" + encoded(tuple(parts.items()))


def chunk(chunk: Chunk, path: str, document_id: str = "", asked: Mapping[str, str] | None = None) -> str:
    """Address of the Document page at a chunk of the document with that path, relative to the app."""
    return document(
        path,
        document_id=document_id,
        lines=(chunk.start_line, chunk.end_line),
        locator=chunk.locator,
        text=chunk.text,
        asked=asked,
    )


@lru_cache(maxsize=8_192)
def encoded(parts: tuple[tuple[str, str], ...]) -> str:
    """Address parameters as text. A slider draws the same links again and again, and encoding was a sixth of its time."""
    return urlencode(parts, errors="replace")
