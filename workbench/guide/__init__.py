"""The guide: Markdown pages that are package data, read here as they are or as HTML for the app.

On GitHub the pages are read where they lie; the links between them are relative there and become addresses of the Guide
page here. `reference.md` is written from the tables of the code by `make guide`.
"""

from __future__ import annotations

import base64
import functools
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import UsageError

if TYPE_CHECKING:
    from markdown_it.token import Token

FOLDER = Path(__file__).parent
PAGES: Mapping[str, str] = {
    "start": "Start",
    "index": "Index",
    "search": "Search and plans",
    "judge": "Judge and tune",
    "share": "Share and serve",
    "scale": "Past one machine",
    "default": "Preset default",
    "passages": "Preset passages",
    "collections": "Preset collections",
    "pages": "Preset pages",
    "contract": "Preset contract",
    "scoped": "Preset scoped",
    "sql": "SQL",
    "security": "Threat model",
    "reference": "Reference",
}
"""File name without `.md` -> title, in reading order."""

_CELL = re.compile(r"<tr>\n<td><code>([a-z0-9_.]+)(?:\.&lt;source&gt;)?</code></td>")


def text(page: str) -> str:
    """A page as Markdown. Raises UsageError for an unknown name."""
    if page not in PAGES:
        raise UsageError(f"The guide has no page {page!r}", "Its pages are " + ", ".join(PAGES))
    return (FOLDER / f"{page}.md").read_text(encoding="utf-8")


def anchor(field: str) -> str:
    """The id of a plan field's or setting's row on the reference page."""
    return "field-" + re.sub(r"[._]", "-", field)


def address(page: str, part: str = "") -> str:
    """Address of a page in the app, relative to any other of the app's pages."""
    return f"guide?page={page}" + (f"#{part}" if part else "")


@functools.cache
def html(page: str) -> str:
    """A page as HTML: headings and rows of settings have ids, pictures are inside, code can be scrolled by keys. Raises
    UsageError for an unknown name.
    """
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(text(page))
    for heading, inline in itertools.pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", slug(inline.content))
        for part in inline.children or ():
            _point(part)
    made: str = reader.renderer.render(tokens, reader.options, {}).replace("<pre>", '<pre tabindex="0">')
    return _CELL.sub(lambda m: m.group().replace("<tr>", f'<tr id="{anchor(m[1])}">', 1), made)


def _point(part: Token) -> None:
    """Make a link or picture work in the app."""
    if part.type == "image":
        picture = (FOLDER / str(part.attrGet("src"))).read_bytes()
        part.attrSet("src", "data:image/png;base64," + base64.b64encode(picture).decode())
        part.attrSet("style", "max-width:100%")
    elif part.type == "link_open":
        target, _, place = str(part.attrGet("href")).partition("#")
        if target.endswith(".md") and "/" not in target:
            part.attrSet("href", address(target.removesuffix(".md"), place))


def slug(heading: str) -> str:
    """The id of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
