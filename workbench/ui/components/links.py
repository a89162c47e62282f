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

    Args:
        path: The document's path.
        document_id: Its id, which finds it where several have the path.
        lines: First and last line, from 1.
        locator: The place in its original (`sheet=Sales&row=12`).
        text: The passage: inside one long line its first words come along, so that the page can find it there.
        asked: Address parameters of the search, whose words are marked on the page.
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
