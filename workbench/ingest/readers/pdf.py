"""PDF, a page at a time, by pypdfium2.

Pages are joined by a blank line and `page_starts` says where each begins, so a citation names the page. Bookmarks become
sections, at their title's place on the page where it is found. Files attached to a PDF are documents of their own. PDFium is
not thread-safe: one lock guards every call. What is done to the words (columns, broken words, running heads) is in `pdf_text`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench.ingest.encoding import normalise
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import Outline, Section
from workbench.ingest.readers.base import Member, Parsed, Reader, Source
from workbench.ingest.readers.pdf_text import Box, column_order, join_words, without_furniture

LOCK = threading.RLock()
"""Held by everybody who calls PDFium in this process."""
_OCR = "Run it through text recognition (for example ocrmypdf), and index the result"
_FEWEST_CHARACTERS = 400
_NO_TITLE = re.compile(
    r"(?i)^(untitled|microsoft (word|powerpoint|excel) ?-.*|.*\.(docx?|pptx?|xlsx?|indd|tex|dvi|pdf|odt|rtf)|title|)$"
)
_KEPT = {"Author": "author", "Subject": "subject", "Keywords": "keywords", "CreationDate": "created"}
_PDF_DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?")


def _read(source: Source) -> Iterator[Parsed | Member | Problem]:
    data = source.bytes()
    if b"%PDF-" not in data[:1024]:
        raise ReadError("It is called a PDF and is none", "Get the file again, or give it the name of what it is")
    with LOCK:
        content = _content(data)
    yield from content.problems
    text, starts = _join(tuple(without_furniture(join_words(content.pages))))
    if not text.strip():
        raise ReadError(
            "It has no text: its pages are pictures (a scan)" if content.pictures else "It has no text on any page",
            _OCR,
        )
    if content.pictures:
        shown = ", ".join(str(page) for page in content.pictures[:10]) + (", ..." if len(content.pictures) > 10 else "")
        yield Problem(f"{len(content.pictures)} of its {len(starts)} pages are pictures without text: {shown}", _OCR)
    yield Parsed(
        text,
        "pdf",
        Outline(_sections(text, starts, content.bookmarks)),
        title=content.title,
        metadata=content.metadata,
        page_starts=tuple(starts),
    )
    yield from content.attached


READER = Reader("pdf", _read, frozenset({".pdf"}), sniff=lambda head: b"%PDF-" in head[:1024], certain=True)


@dataclass(frozen=True, slots=True)
class _Content:
    pages: tuple[str, ...]
    title: str
    metadata: dict[str, Any]
    bookmarks: tuple[tuple[int, int, str], ...]  # page index, level from 1, title
    pictures: tuple[int, ...]  # numbers of the pages that are pictures
    attached: tuple[Member, ...]
    problems: tuple[Problem, ...]


def _content(data: bytes) -> _Content:
    """Everything we want of a PDF. Call it under the lock."""
    import pypdfium2
    import pypdfium2.raw as raw

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as exc:
        if exc.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise ReadError("It is locked with a password", "Save it without the password, and index that") from exc
        raise ReadError(
            "It is broken: it cannot be opened as a PDF", "Get the file again, or print it to a new PDF"
        ) from exc
    try:
        pages: list[str] = []
        problems: list[Problem] = []
        pictures: list[int] = []
        for index in range(len(document)):
            try:
                text, picture = _page(document, index)
            except pypdfium2.PdfiumError as exc:
                problems.append(Problem(f"Page {index + 1} cannot be read: {exc}", "Print the file to a new PDF"))
                text, picture = "", False
            pages.append(text)
            if picture:
                pictures.append(index + 1)
        if problems and len(problems) == len(pages):
            raise ReadError(
                "It is broken: none of its pages can be read", "Get the file again, or print it to a new PDF"
            )
        title, metadata = _metadata(document)
        attached = _attached(document, problems)
        return _Content(
            tuple(pages), title, metadata, _bookmarks(document), tuple(pictures), attached, tuple(problems)
        )  # fmt: skip
    finally:
        document.close()


def _page(document: Any, index: int) -> tuple[str, bool]:
    """Text of one page, and whether a page without text holds a picture."""
    import pypdfium2.raw as raw

    page = document.get_page(index)
    try:
        content = page.get_textpage()
        try:
            text = normalise(str(content.get_text_bounded()))
            parts = column_order(_boxes(content), *_edges(page)) if len(text) > _FEWEST_CHARACTERS else None
            if parts is not None:
                said = (str(content.get_text_bounded(b.left, b.bottom, b.right, b.top)) for b in parts)
                text = normalise("\n".join(words.rstrip() for words in said if words.strip()))
        finally:
            content.close()
        picture = not text.strip() and any(o.type == raw.FPDF_PAGEOBJ_IMAGE for o in page.get_objects(max_depth=3))
        return text.rstrip(), picture
    finally:
        page.close()


def _boxes(content: Any) -> list[Box]:
    return [Box(*content.get_rect(index)) for index in range(content.count_rects())]


def _edges(page: Any) -> tuple[float, float]:
    left, _, right, _ = page.get_bbox()
    return left, right


def _attached(document: Any, problems: list[Problem]) -> tuple[Member, ...]:
    """The files attached to the document as a whole."""
    import pypdfium2

    found: list[Member] = []
    for index in range(document.count_attachments()):
        try:
            attachment = document.get_attachment(index)
            name = normalise(attachment.get_name()).replace("\\", "/").rpartition("/")[2]
            found.append(Member(name or f"attachment-{index + 1}", bytes(attachment.get_data())))
        except pypdfium2.PdfiumError as exc:
            problems.append(Problem(f"Attachment {index + 1} cannot be read: {exc}", "Save it from the PDF"))
    return tuple(found)


def _metadata(document: Any) -> tuple[str, dict[str, Any]]:
    found = {k: normalise(str(v)).strip() for k, v in document.get_metadata_dict().items() if v}
    title = " ".join(found.get("Title", "").split())
    metadata: dict[str, Any] = {ours: found[theirs] for theirs, ours in _KEPT.items() if found.get(theirs)}
    date = _PDF_DATE.match(str(metadata.get("created", "")))
    if date is not None:
        year, month, day, hour, minute, second = (part or "" for part in date.groups())
        metadata["created"] = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}"
    return ("" if _NO_TITLE.match(title) else title), metadata


def _bookmarks(document: Any) -> tuple[tuple[int, int, str], ...]:
    """The table of contents; one that PDFium cannot read is the same as none."""
    import pypdfium2

    found: list[tuple[int, int, str]] = []
    try:
        for bookmark in document.get_toc():
            target = bookmark.get_dest()
            page = target.get_index() if target is not None else None
            title = " ".join(normalise(bookmark.get_title()).split())
            if page is not None and page >= 0 and title:
                found.append((page, bookmark.level + 1, title))
    except pypdfium2.PdfiumError:
        return ()
    return tuple(found)


def _join(pages: tuple[str, ...]) -> tuple[str, list[int]]:
    """The pages' texts with a blank line between them, and where each begins."""
    starts: list[int] = []
    position = 0
    for page in pages:
        starts.append(position)
        position += len(page) + 2
    return "\n\n".join(pages), starts


def _sections(text: str, starts: list[int], bookmarks: tuple[tuple[int, int, str], ...]) -> tuple[Section, ...]:
    """A section a bookmark, in the order of the text; one that would start before the last one is passed over."""
    found: list[Section] = []
    after = 0
    for page, level, title in bookmarks:
        if page >= len(starts):
            continue
        end = starts[page + 1] if page + 1 < len(starts) else len(text)
        low = max(starts[page], after)
        words = r"\s+".join(re.escape(word) for word in title.split())
        match = re.compile(rf"(?im)^[ \t]*(?:[\dA-Z]+(?:\.\d+)*\.?\s+)?{words}").search(text, low, end)
        start = match.start() if match is not None else low
        if start >= end or (found and start <= found[-1].start):
            continue
        # The heading's line belongs to it to its end.
        body = text.find("\n", match.end(), end) + 1 if match is not None else start
        body = body or (match.end() if match is not None else start)
        found.append(Section(start, body, level, title))
        after = body
    return tuple(found)
