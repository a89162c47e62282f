"""PDF, a page at a time, by pypdfium2.

Pages are joined by a blank line and `page_starts` says where each begins, so a citation names the page. Bookmarks become
sections, at their title's place on the page where it is found. Files attached to a PDF are documents of their own. PDFium is
not thread-safe: one lock guards every call. What is done to the words (columns, broken words, running heads) is in `pdf_text`.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import UsageError
from workbench.ingest.encoding import normalise
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import Outline, Section
from workbench.ingest.readers.base import Member, Parsed, Reader, Source
from workbench.ingest.readers.pdf_letters import page_text
from workbench.ingest.readers.pdf_notes import page_notes, pinned_files
from workbench.ingest.readers.pdf_text import Box, column_order, join_words, without_furniture
from workbench.ingest.readers.pdf_title import title_of
from workbench.ingest.titles import said_title

LOCK = threading.RLock()
"""Held by everybody who calls PDFium in this process."""
PICTURE = (1_100, 1_700)
"""Most pixels of the picture of a page, width and height."""
_OCR = "Run it through text recognition (for example ocrmypdf), and index the result"
_FEWEST_CHARACTERS = 400
_LARGE = 0.2
_KEPT = {"Author": "author", "Subject": "subject", "Keywords": "keywords", "CreationDate": "created"}
_PDF_DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?")


def _read(source: Source) -> Iterator[Parsed | Member | Problem]:
    data = source.bytes()
    if b"%PDF-" not in data[:1024]:
        raise ReadError("It is called a PDF and is none", "Get the file again, or give it the name of what it is")
    with LOCK:
        content = _content(data)
    yield from content.problems
    pages = without_furniture(join_words(content.pages))
    text, starts = _join([_with_notes(page, notes) for page, notes in zip(pages, content.notes, strict=True)])
    if not text.strip():
        raise ReadError(
            "It has no text: its pages are pictures (a scan)" if content.pictures else "It has no text on any page",
            _OCR,
        )
    if content.pictures:
        words = f"{len(content.pictures)} of its {len(starts)} pages are pictures without text"
        yield Problem(f"{words}: {_shown(content.pictures)}", _OCR)
    if content.partly:
        words = f"{len(content.partly)} of its {len(starts)} pages are mostly pictures, whose words are not read"
        yield Problem(f"{words}: {_shown(content.partly)}", _OCR)
    yield Parsed(
        text,
        "pdf",
        Outline(_sections(text, starts, content.bookmarks)),
        title=content.title,
        metadata=content.metadata,
        page_starts=tuple(starts),
    )
    yield from content.attached


def _shown(pages: Sequence[int]) -> str:
    return ", ".join(map(str, pages[:10])) + (", ..." if len(pages) > 10 else "")


READER = Reader("pdf", _read, frozenset({".pdf"}), sniff=lambda head: b"%PDF-" in head[:1024], certain=True)


@dataclass(frozen=True, slots=True)
class _Content:
    pages: tuple[str, ...]
    notes: tuple[str, ...]  # a page
    title: str
    metadata: dict[str, Any]
    bookmarks: tuple[tuple[int, int, str], ...]  # page index, level from 1, title
    pictures: tuple[int, ...]  # numbers of the pages that are pictures
    partly: tuple[int, ...]  # and of those that are mostly pictures
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
        form = _form(document)
        pages: list[_Page] = []
        problems: list[Problem] = []
        for index in range(len(document)):
            try:
                pages.append(_page(document, index, form))
            except pypdfium2.PdfiumError as exc:
                problems.append(Problem(f"Page {index + 1} cannot be read: {exc}", "Print the file to a new PDF"))
                pages.append(_Page("", "", "", False, ()))
        if problems and len(problems) == len(pages):
            raise ReadError(
                "It is broken: none of its pages can be read", "Get the file again, or print it to a new PDF"
            )
        title, metadata = _metadata(document)
        bookmarks = _bookmarks(document)
        pinned = [(name, data) for page in pages for name, data in page.pinned]
        attached = (*_attached(document, problems), *(Member(name, data) for name, data in pinned if data is not None))
        problems += [
            Problem(f"The pinned file {name!r} is not in the PDF, or cannot be read", "Index that file by itself")
            for name, data in pinned
            if data is None
        ]
        return _Content(
            tuple(page.text for page in pages), tuple(page.notes for page in pages),
            title or _root(bookmarks) or said_title(pages[0].title if pages else ""), metadata, bookmarks,
            tuple(number for number, page in enumerate(pages, 1) if page.pictured and not page.text.strip()),
            tuple(number for number, page in enumerate(pages, 1) if page.pictured and page.text.strip()),
            attached, tuple(problems),
        )  # fmt: skip
    finally:
        document.close()


@dataclass(frozen=True, slots=True)
class _Page:
    text: str
    notes: str
    title: str  # what its type says is the title
    pictured: bool  # it holds a picture and no text, or little text and a large picture
    pinned: tuple[tuple[str, bytes | None], ...]


def _form(document: Any) -> Any:
    """What fields are asked through, or None; XFA forms, which PDFium reads only in part, are read as their pages show them."""
    import pypdfium2.raw as raw

    if document.get_formtype() != raw.FORMTYPE_ACRO_FORM:
        return None
    document.init_forms()
    return document.formenv


def _page(document: Any, index: int, form: Any) -> _Page:
    page = document.get_page(index)
    try:
        content = page.get_textpage()
        try:
            boxes = _boxes(content)
            edges = Box(*page.get_bbox())
            text = page_text(content, boxes, edges)
            parts = column_order(boxes, edges.left, edges.right) if len(text) > _FEWEST_CHARACTERS else None
            if parts is not None:
                said = (str(content.get_text_bounded(b.left, b.bottom, b.right, b.top)) for b in parts)
                text = normalise("\n".join(words.rstrip() for words in said if words.strip()))
            title = title_of(content, edges.bottom, edges.top) if index == 0 else ""
        finally:
            content.close()
        pictured = len(text) < _FEWEST_CHARACTERS and _pictured(page, _LARGE if text.strip() else 0.0)
        return _Page(text.rstrip(), page_notes(page, form), title, pictured, tuple(pinned_files(page)))
    finally:
        page.close()


def _pictured(page: Any, share: float) -> bool:
    """Whether a picture takes more than this share of the page."""
    import pypdfium2.raw as raw

    width, height = page.get_size()
    for thing in page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3):
        left, bottom, right, top = thing.get_bounds()
        if (right - left) * (top - bottom) >= share * width * height:
            return True
    return False


def _boxes(content: Any) -> list[Box]:
    return [Box(*content.get_rect(index)) for index in range(content.count_rects())]


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
    metadata: dict[str, Any] = {
        ours: found[theirs] for theirs, ours in _KEPT.items() if said_title(found.get(theirs, ""))
    }
    date = _PDF_DATE.match(str(metadata.get("created", "")))
    if date is not None:
        year, month, day, hour, minute, second = (part or "" for part in date.groups())
        metadata["created"] = f"{year}-{month or '01'}-{day or '01'}T{hour or '00'}:{minute or '00'}:{second or '00'}"
    return said_title(found.get("Title", "")), metadata


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


def _root(bookmarks: tuple[tuple[int, int, str], ...]) -> str:
    """The bookmark under which all others are, if there is one: the title of the whole."""
    inside = bookmarks[1:]
    return bookmarks[0][2] if inside and all(level > bookmarks[0][1] for _, level, _ in inside) else ""


def _with_notes(page: str, notes: str) -> str:
    return f"{page}\n\n{notes}" if page.strip() and notes else page or notes


def _join(pages: Sequence[str]) -> tuple[str, list[int]]:
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


def page_png(data: bytes, page: int) -> bytes:
    """A page, from 1, as a picture (PNG) of at most `PICTURE` pixels, whatever size the page says it has.

    Raises:
        UsageError: The file or the page cannot be drawn.
    """
    import pypdfium2

    with LOCK:
        try:
            document = pypdfium2.PdfDocument(data)
            try:
                if not 1 <= page <= len(document):
                    reason = f"The file has {len(document):,} pages and none numbered {page:,}"
                    raise UsageError(reason, "Choose another page")
                sheet = document[page - 1]
                width, height = sheet.get_size()
                scale = min(PICTURE[0] / max(width, 1.0), PICTURE[1] / max(height, 1.0))
                picture = sheet.render(scale=scale).to_pil()
            finally:
                document.close()
        except (pypdfium2.PdfiumError, ValueError, RuntimeError, MemoryError) as exc:
            raise UsageError(f"Page {page:,} cannot be drawn: {exc}", "Read its text instead") from exc
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()
