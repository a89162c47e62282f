"""Parts of the Corpus page as HTML: files that were refused, chunks, generations. No Streamlit."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import CorpusError
from workbench.markup import attribute, plain, visible
from workbench.records import Chunk, FileStatus, cite
from workbench.store.catalogue import Refused
from workbench.store.generations import Layout, Manifest, current, published
from workbench.ui.components import cards

MOST_FILES = 200
REFUSED = ("", "File", "Reason", "What to do")


def size(number: float) -> str:
    unit = "bytes"
    for greater in ("KB", "MB", "GB"):
        if number < 1000:
            break
        number, unit = number / 1000, greater
    return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"


@dataclass(frozen=True, slots=True)
class Html:
    """A cell of HTML made here, not text from a document, with more attributes (` title="..."`)."""

    html: str
    attributes: str = ""


def link(href: str, text: str, most: int = 120) -> Html:
    return Html(f'<a href="{attribute(href)}"><bdi>{visible(plain(text, most))}</bdi></a>')


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Any]],
    numbers: Container[int] = (),
    name: str = "",
    row_attributes: Sequence[str] = (),
) -> str:
    """Rows of values (text, numbers, `Html`) as a table; `numbers` are the columns, from 0, of numbers, `name` is what it is
    called for who hears it.
    """

    def cell(at: int, value: Any) -> str:
        attributes = ' class="wb-num"' if at in numbers else ""
        if isinstance(value, Html):
            return f"<td{attributes}{value.attributes}>{value.html}</td>"
        shown = f"{value:,}" if isinstance(value, int) else f"<bdi>{visible(plain(str(value), 400))}</bdi>"
        return f"<td{attributes}>{shown}</td>"

    lines = ["".join(cell(i, value) for i, value in enumerate(row)) for row in rows]
    more = row_attributes or [""] * len(lines)
    head = "".join(
        f"<th{' class=wb-num' if i in numbers else ''}>{visible(h)}</th>" if h else "<td></td>"
        for i, h in enumerate(heads)
    )
    body = "".join(f"<tr{own}>{line}</tr>" for own, line in zip(more, lines, strict=True))
    label = f' aria-label="{attribute(name)}"' if name else ""
    return f'<div class="wb-scroll"><table class="wb-table"{label}><tr>{head}</tr>{body}</table></div>'


def headed(frame: Any, **heads: str) -> Any:
    """A polars frame for who reads it: its columns under the given heads, the others under their own names as words."""
    return frame.rename({name: heads.get(name, name.replace("_", " ").capitalize()) for name in frame.columns})


def refused_html(counts: Mapping[tuple[str, str], int], listed: Sequence[Refused]) -> str:
    if not counts:
        return '<p class="wb-note">Every file that was found is indexed.</p>'
    reasons = [(status, reason, number) for (status, reason), number in counts.items()]
    reasons.sort(key=lambda r: (r[0] != FileStatus.FAILED, -r[2], r[1]))
    rows = [(f.status.value, f.path, f.reason, f.remedy) for f in listed[:MOST_FILES]]
    total = sum(counts.values())
    more = f'<p class="wb-msg">The first {len(rows):,} of {total:,} files.</p>' if total > len(rows) else ""
    return (
        table(("", "Reason", "Files"), reasons, (2,), "Reasons")
        + '<h3 class="wb-chart">The files</h3>'
        + table(REFUSED, rows, name="Files that were not indexed")
        + more
    )


def chunks_html(
    rows: Sequence[tuple[str, Chunk]], query: Mapping[str, str], about: Sequence[str] = (), name: str = "Chunks"
) -> str:
    """Chunks (path and chunk), one line each, which opens in place: the whole text, and a link to its place in the document with
    the words of the state's parameters marked. `about`: what is said of each, in place of its collection and length.
    """
    made = []
    for n, (path, chunk) in enumerate(rows):
        cited = cite(path, chunk.start_line, chunk.end_line, chunk.page, chunk.locator)
        kind = chunk.collection + (" (document)" if chunk.granularity == "document" else "")
        section = chunk.section.rpartition(" > ")[2]
        kind = about[n] if about else f"{kind} · {chunk.tokens:,} tokens"
        cells = ((cited, 160), (kind, 80), (section, 60), (chunk.text[:400], 200))
        spans = "".join(f"<span><bdi>{visible(plain(text, most))}</bdi></span>" for text, most in cells)
        where = link(cards.chunk_address(chunk, path, query), f"Open {cited}", 200)
        made.append(
            f'<details class="wb-chunk"><summary>{spans}</summary><p class="wb-msg">{where.html} '
            f"chunk {chunk.chunk_index + 1}, {visible(plain(chunk.section, 200))}</p>"
            f'<div class="wb-chunk-text" dir="auto">{visible(chunk.text)}</div></details>'
        )
    return f'<div class="wb-chunks" role="group" aria-label="{name}">{"".join(made)}</div>'


def generations_html(corpus: Path, opened: str) -> str:
    """Every generation on the disk with its digest, the newest first; which one answers, and which one this page has open."""
    rows: list[tuple[Any, ...]] = []
    for name in reversed(published(corpus)):
        marks = [m for m, so in (("current", name == current(corpus)), ("open here", name == opened)) if so]
        try:
            manifest = Manifest.read(Layout(corpus).folder(name))
        except CorpusError as exc:
            rows.append((name, ", ".join(marks), exc.message, "", "", "", ""))
            continue
        numbers = (manifest.counts.get("documents", 0), manifest.counts.get("records", 0))
        on_disk = size(sum(part.bytes for part in manifest.parts.values()))
        created = manifest.created[:19].replace("T", " ")
        rows.append((name, ", ".join(marks), created, *numbers, on_disk, manifest.digest))
    heads = ("Generation", "", "Made (UTC)", "Documents", "Chunks", "On disk", "Digest")
    return table(heads, rows, (3, 4, 5), "Generations")
