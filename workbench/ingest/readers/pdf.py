"""PDF, a page at a time, by pypdfium2.

Pages are joined by a blank line and `page_starts` says where each begins, so a citation names the page. Bookmarks become
sections, at their title's place on the page where it is found. Remarks and filled fields come after the words of their page;
files attached to a PDF are documents of their own. PDFium is not thread-safe: one lock guards every call.

PDFium gives text in the order in which the page was drawn, which is nearly always the order of reading. Changed is little: a
page of prose that was drawn line by line across two columns is read by columns, words broken at the end of a line are joined,
running heads and page numbers are taken off, and a few wrong guesses of letters and spaces are corrected (`_repaired`).
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import math
import re
import threading
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from workbench.errors import UsageError
from workbench.ingest.encoding import normalise
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import Outline, Section, left_out, useful_title
from workbench.ingest.readers import ocr
from workbench.ingest.readers.base import LOCKED, Member, Parsed, Reader, Source
from workbench.locators import Place, locator

LOCK = threading.RLock()
"""Held by everybody who calls PDFium in this process."""
PICTURE = (1_100, 1_700)
"""Most pixels of the picture of a page, width and height."""
_SCAN = (3_500, 3_500)
_OCR = "Index it with --ocr (the setting ocr), or run it through text recognition (for example ocrmypdf)"
_REPRINT = "Get the file again, or print it to a new PDF"
_FEWEST_CHARACTERS = 400
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm\b[^>]*(?:>(?!>)[^>]*)*>>\s*stream\r?\n")
_OFF = re.compile(rb"/OFF\s*\[([^\]]*)\]")
_NAME = re.compile(rb"/Name\s*(?:\(((?:[^()\\]|\\.)*)\)|<([0-9A-Fa-f\s]*)>)")
_OBJECT, _REFERENCE = re.compile(rb"(?<!\d)(\d+) \d+ obj\b"), re.compile(rb"(\d+) \d+ R")
_MOST_OBJECTS = 1 << 22
_LARGE = 0.2  # of the page: a picture that may hold its words
_KEPT = {"Author": "author", "Subject": "subject", "Keywords": "keywords", "CreationDate": "created"}
_DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?")
_DIGITS = re.compile(r"\d{2,}")
_RAISED = 0.8  # of the size of the digits before it
_ALEF_LAM = re.compile("[\u0622\u0623\u0625\u0627]\u0644")
_MARK_BEFORE = re.compile("[ \u00a0]([\u064b-\u0652\u0670])([\u0621-\u064a])")
_SCRIPTS = re.compile("(?<=[\u0590-\u06ff])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u0590-\u06ff])")
_WORDS_APART, _BESIDE = 0.15, 0.6  # of the size of the letters
_LINE_END = re.compile(r"\S\r?\n(?=\S)")
_LONE = re.compile(r"(?<=[^\W\d_] )[^\W\d_aAIioOyYeE](?= )")
_LINE = re.compile(r"[^\s].*")
_MANY_LONE, _SPACED = 0.02, 0.08  # lone letters a space; gaps inside words by the height of the line
_BROKEN_WORD = re.compile("(\\w+)(?:[\ufffe\x02\u00ad]\\s*\n?|-\n)(?=(\\w+))")
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(r"(?i)[\W_]*(?:(?:page|seite|p\.|pg\.?)\s*)?#(?:\s*(?:of|von|/|\|)\s*#)?[\W_]*")
_EDGE_LINES, _FEWEST_PAGES, _LETTERS_OF_A_HEAD = 3, 4, 12
_MOST_AHEAD = 100
"""How far a number that counts the pages may be ahead of them: a chapter of a longer book begins on page 87."""
_PUSHED, _SIGNED, _CHOSEN = 1, 7, (2, 3)  # kinds of fields: buttons, signatures, check boxes and radio buttons

Bookmark = tuple[int, int, str]
"""Page index, level from 1, title."""


def _read(source: Source) -> Iterator[Parsed | Member | Problem]:
    data = source.data()
    if b"%PDF-" not in data[:1024]:
        raise ReadError("It is not a PDF, despite its name", "Get the file again, or give it the name of what it is")
    with LOCK:
        content = _content(data)
    for number, page in enumerate(content.pages, 1) if source.ocr else ():
        if page.pictured:
            _recognise(page, number, source, content.problems)
    yield from content.problems
    texts = without_furniture(join_words([page.text for page in content.pages]))
    full = ["\n\n".join(filter(None, (t, p.recognised, p.notes))) for t, p in zip(texts, content.pages, strict=True)]
    text = "\n\n".join(full)
    starts = [0]
    for own in full[:-1]:
        starts.append(starts[-1] + len(own) + 2)
    pictured = [(n, page) for n, page in enumerate(content.pages, 1) if page.pictured and not page.recognised]
    empty = [number for number, page in pictured if not page.text.strip()]
    remedy = "No words are recognised in them" if source.ocr else _OCR
    if not text.strip() and empty:
        raise ReadError("It has no text: its pages are pictures (a scan)", remedy)
    if not text.strip():
        reason = "It has no text on any page: they are blank, or drawn without letters"
        raise ReadError(reason, "Nothing can be read of it")
    partly = [number for number, page in pictured if page.text.strip() and not source.ocr]
    for numbers, what in ((empty, "pictures without text"), (partly, "mostly pictures, whose words are not read")):
        if numbers:
            shown = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
            yield Problem(f"{len(numbers)} of its {len(starts)} pages are {what}: {shown}", remedy)
    outline = Outline(_sections(text, starts, content.bookmarks))
    places = tuple(
        Place(at, ocr.place(page=n) if page.recognised else locator(page=n))
        for n, (at, page) in enumerate(zip(starts, content.pages, strict=True), 1)
    )
    metadata = content.metadata
    yield Parsed(text, "pdf", outline, content.title, metadata=metadata, page_starts=tuple(starts), places=places)
    yield from content.attached


def _recognise(page: _Page, number: int, source: Source, problems: list[Problem]) -> None:
    """Recognise the words of a page, and keep the lines that its own text does not have."""
    try:
        found = ocr.recognised(page_png(source.data(), number, _SCAN, ocr.DOTS_AN_INCH / 72), source)
    except (ReadError, UsageError) as exc:
        problems.append(Problem(f"Page {number}: {exc.message}", exc.remedy))
        return
    own = set(re.findall(r"\w+", page.text))
    lines = found.split("\n")
    page.recognised = "\n".join(line for line in lines if not own or set(re.findall(r"\w+", line)) - own).strip("\n")


READER = Reader("pdf", _read, frozenset({".pdf"}), sniff=lambda head: b"%PDF-" in head[:1024], certain=True)


@dataclass(slots=True)
class _Page:
    """A page: `pictured` if it holds a picture and no text, or little text and a large picture."""

    text: str = ""
    recognised: str = ""
    notes: str = ""
    pictured: bool = False


@dataclass(slots=True)
class _Content:
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    bookmarks: list[Bookmark] = field(default_factory=list)
    pages: list[_Page] = field(default_factory=list)
    attached: list[Member] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def _content(data: bytes) -> _Content:
    """Everything we want of a PDF. Call it under the lock."""
    import pypdfium2
    import pypdfium2.raw as raw

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as exc:
        if exc.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise ReadError(*LOCKED) from exc
        raise ReadError("It is broken: it cannot be opened as a PDF", _REPRINT) from exc
    found = _Content()
    off, hidden = _layers_off(data), 0
    try:
        form = None
        if document.get_formtype() != raw.FORMTYPE_NONE:
            document.init_forms()
            form = document.formenv
        _attached(document, found)
        for index in range(len(document)):
            try:
                page = document.get_page(index)
                hidden += _without_layers(page, off)
                found.pages.append(_page(page, form, found))
            except pypdfium2.PdfiumError as exc:
                found.problems.append(Problem(f"Page {index + 1} cannot be read: {exc}", "Print the file to a new PDF"))
                found.pages.append(_Page())
        if found.problems and found.pages and all(page == _Page() for page in found.pages):
            raise ReadError("It is broken: none of its pages can be read", _REPRINT)
        if document.get_formtype() == raw.FORMTYPE_XFA_FULL:
            reason = "Its program lays it out again as a form (XFA), and only what its pages hold is read"
            found.problems.append(Problem(reason, "Fill it in, and print it to a new PDF"))
        with contextlib.suppress(pypdfium2.PdfiumError):  # a table of contents that cannot be read is the same as none
            for bookmark in document.get_toc():
                target = bookmark.get_dest()
                page = target.get_index() if target is not None else None
                title = " ".join(normalise(bookmark.get_title()).split())
                if page is not None and page >= 0 and title:
                    found.bookmarks.append((page, bookmark.level + 1, title))
        words = {k: normalise(str(v)).strip() for k, v in document.get_metadata_dict().items() if v}
    finally:
        document.close()
    found.metadata = {ours: words[name] for name, ours in _KEPT.items() if useful_title(words.get(name, ""))}
    found.metadata |= left_out(hidden)
    date = _DATE.match(str(found.metadata.get("created", "")))
    if date is not None:
        parts = [part or other for part, other in zip(date.groups(), ("", "01", "01", "00", "00", "00"), strict=True)]
        found.metadata["created"] = "{}-{}-{}T{}:{}:{}".format(*parts)
    # The bookmark under which all others are is the title of the whole.
    inside = found.bookmarks[1:]
    whole = bool(inside) and all(level > found.bookmarks[0][1] for _, level, _ in inside)
    found.title = useful_title(words.get("Title", "")) or (found.bookmarks[0][2] if whole else "")
    return found


def _page(page: Any, form: Any, found: _Content) -> _Page:
    try:
        content = page.get_textpage()
        try:
            text = _repaired(content, str(content.get_text_range()))
            if len(text) > _FEWEST_CHARACTERS:
                left, _, right, _ = page.get_bbox()
                boxes = [Box(*content.get_rect(index)) for index in range(content.count_rects())]
                parts = column_order(boxes, left, right) or ()
                inside = [str(content.get_text_bounded(b.left, b.bottom, b.right, b.top)).rstrip() for b in parts]
                text = "\n".join(filter(None, inside)) or text
        finally:
            content.close()
        text = normalise(text).rstrip()
        little = len(text) < _FEWEST_CHARACTERS
        pictured = little and _has_picture(page, _LARGE if text.strip() else 0.0)
        return _Page(text, notes=_notes(page, form, found), pictured=pictured)
    finally:
        page.close()


def _layers_off(data: bytes) -> frozenset[str]:
    """Names of the layers that a reader of the file does not see at first; PDFium names those of each text, not their state."""
    if b"/OCProperties" not in data and b"/ObjStm" not in data:
        return frozenset()
    parts = [data]
    for match in _OBJECT_STREAM.finditer(data):
        end = data.find(b"endstream", match.end())
        with contextlib.suppress(zlib.error):
            packed = data[match.end() : end if end >= 0 else len(data)]
            parts.append(zlib.decompressobj().decompress(packed, _MOST_OBJECTS))
    if not any(b"/OCProperties" in part for part in parts):
        return frozenset()
    off = {number for part in parts for listed in _OFF.finditer(part) for number in _REFERENCE.findall(listed[1])}
    names = (_NAME.search(body.partition(b"endobj")[0]) for part in parts for body in _bodies(part, off, part is data))
    return frozenset(_layer_name(*match.groups()) for match in names if match is not None)


def _bodies(part: bytes, numbers: set[bytes], plain: bool) -> Iterator[bytes]:
    """Where objects begin: after their number, or in a stream of objects, which begins with their numbers and places."""
    if plain:
        starts = [match.end() for match in _OBJECT.finditer(part) if match[1] in numbers]
    else:
        head = part[: len(part) - len(part.lstrip(b"0123456789 \t\n\r\f\v"))]
        pairs = head.split()
        starts = [len(head) + int(at) for own, at in zip(pairs[::2], pairs[1::2], strict=False) if own in numbers]
    return (part[start : start + 1000] for start in starts)


def _layer_name(plain: bytes | None, digits: bytes | None) -> str:
    pairs = re.sub(rb"\s", b"", digits or b"").decode("ascii")
    raw = re.sub(rb"\\(.)", rb"\1", plain) if plain is not None else bytes.fromhex(pairs + "0" * (len(pairs) % 2))
    return raw[2:].decode("utf-16-be", "replace") if raw.startswith(b"\xfe\xff") else raw.decode("latin-1")


def _without_layers(page: Any, off: frozenset[str]) -> int:
    """Take the texts of these layers off a page, not out of its file; returns how many there were."""
    import pypdfium2.raw as raw

    taken = 0
    for thing in list(page.get_objects(filter=(raw.FPDF_PAGEOBJ_TEXT,), max_depth=1)) if off else ():
        marks = (raw.FPDFPageObj_GetMark(thing, n) for n in range(raw.FPDFPageObj_CountMarks(thing)))
        if any(_parameter(mark, b"Name") in off for mark in marks):
            page.remove_obj(thing)
            taken += 1
    return taken


def _parameter(mark: Any, key: bytes) -> str:
    import pypdfium2.raw as raw

    size = ctypes.c_ulong()
    raw.FPDFPageObjMark_GetParamStringValue(mark, key, None, 0, size)
    buffer = ctypes.create_string_buffer(max(size.value, 2))
    pointer = ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR))
    raw.FPDFPageObjMark_GetParamStringValue(mark, key, pointer, size.value, size)
    return buffer.raw[: max(size.value - 2, 0)].decode("utf-16-le", "replace")


def _has_picture(page: Any, share: float) -> bool:
    """Whether a picture takes more than this share of the page."""
    import pypdfium2.raw as raw

    width, height = page.get_size()
    bounds = (thing.get_bounds() for thing in page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3))
    return any((right - left) * (top - bottom) >= share * width * height for left, bottom, right, top in bounds)


def _repaired(content: Any, text: str) -> str:
    """The text with what the boxes and sizes of its letters show to be guessed wrong.

    - A raised digit behind a number is the mark of a footnote and no digit of it: it is set apart.
    - The Arabic ligature of lam and alef is one glyph for two letters, which come the wrong way round, as
      does a vowel mark, behind a guessed space.
    - Lines that run up or down the page, and lines beside them, come in pieces.
    - Between Arabic or Hebrew and Latin letters the space comes on the wrong side.
    - Recognised text under a scan is laid out letter by letter, and a space is guessed inside words ("Nort h America"): no
      wider than the gaps between the other letters.
    """
    import pypdfium2.raw as raw

    if max(text, default="") > "\uffff":
        return text  # PDFium counts such a letter twice

    def size(at: int) -> float:
        return float(raw.FPDFText_GetFontSize(content, raw.FPDFText_GetCharIndexFromTextIndex(content, at)))

    def box(at: int) -> tuple[float, ...]:
        sides = [ctypes.c_double() for _ in range(4)]
        raw.FPDFText_GetCharBox(content, raw.FPDFText_GetCharIndexFromTextIndex(content, at), *sides)
        return tuple(side.value for side in sides)

    signs = list(text)
    for number in _DIGITS.finditer(text):
        first, end = number.span()
        if size(end - 1) < _RAISED * size(first):
            cut = next(at for at in range(first + 1, end) if size(at) < _RAISED * size(first))
            signs[cut] = " " + signs[cut]
    for pair in _ALEF_LAM.finditer(text):
        if box(pair.start()) == box(pair.start() + 1):
            signs[pair.start() : pair.end()] = signs[pair.end() - 1], signs[pair.start()]
    for broken in _LINE_END.finditer(text):
        one, other = broken.start(), broken.end()
        if abs(size(one) - size(other)) > 0.1 * size(one):
            continue  # a mark above the line
        index = raw.FPDFText_GetCharIndexFromTextIndex(content, one)
        along = 2 * (abs(math.sin(raw.FPDFText_GetCharAngle(content, index))) > 0.9)  # 2: up or down the page
        left, right = sorted((box(one), box(other)), key=lambda sides: sides[along])
        gap = (right[along] - left[along + 1]) / size(one)
        if gap < _BESIDE and left[2 - along] < right[3 - along] and right[2 - along] < left[3 - along]:
            signs[one + 1 : other] = [" " * (gap > _WORDS_APART), *[""] * (other - one - 2)]
    lone = len(_LONE.findall(text))
    if lone >= 3 and lone >= _MANY_LONE * text.count(" "):
        for line in _LINE.finditer(text):
            boxes = {at: box(at) for at in range(*line.span()) if not text[at].isspace()}
            gaps = [boxes[at + 1][0] - boxes[at][1] for at in boxes if at + 1 in boxes]
            usual = median(gaps) if len(gaps) > 2 else 0.0
            height = max(top for *_, top in boxes.values()) - min(sides[2] for sides in boxes.values())
            for at in range(*line.span()) if usual >= _SPACED * height else ():
                if text[at] == " " and at - 1 in boxes and at + 1 in boxes:
                    drawn = raw.FPDFText_IsGenerated(content, raw.FPDFText_GetCharIndexFromTextIndex(content, at)) != 1
                    if not drawn and boxes[at + 1][0] - boxes[at - 1][1] <= max(usual * 1.3, _SPACED * height):
                        signs[at] = ""
    return _SCRIPTS.sub(" ", _MARK_BEFORE.sub(r"\2\1", "".join(signs)))


def _attached(document: Any, found: _Content) -> None:
    import pypdfium2

    for index in range(document.count_attachments()):
        try:
            attachment = document.get_attachment(index)
            name = normalise(attachment.get_name()).replace("\\", "/").rpartition("/")[2]
            found.attached.append(Member(name or f"attachment-{index + 1}", bytes(attachment.get_data())))
        except pypdfium2.PdfiumError as exc:
            found.problems.append(Problem(f"Attachment {index + 1} cannot be read: {exc}", "Save it from the PDF"))


def _notes(page: Any, form: Any, found: _Content) -> str:
    """The remarks and filled fields of a page, a line each, as `author: words` or `field: value`; keeps files pinned to it."""
    import pypdfium2
    import pypdfium2.raw as raw

    lines: dict[str, None] = {}
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        note = raw.FPDFPage_GetAnnot(page, index)
        if not note:
            continue
        try:
            kind = raw.FPDFAnnot_GetSubtype(note)
            file = raw.FPDFAnnot_GetFileAttachment(note) if kind == raw.FPDF_ANNOT_FILEATTACHMENT else None
            if kind == raw.FPDF_ANNOT_WIDGET:
                lines.setdefault(_field(form, note) if form is not None else "")
            elif file:
                attachment = pypdfium2.PdfAttachment(file, page.pdf)
                name = normalise(attachment.get_name())
                try:
                    found.attached.append(Member(name, bytes(attachment.get_data())))
                except pypdfium2.PdfiumError:
                    reason = f"The pinned file {name!r} is not in the PDF, or cannot be read"
                    found.problems.append(Problem(reason, "Index that file by itself"))
            elif kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_FILEATTACHMENT):
                words, author = (_string(raw.FPDFAnnot_GetStringValue, note, key) for key in (b"Contents", b"T"))
                lines.setdefault(f"{author}: {words}" if author and words else words)
        finally:
            raw.FPDFPage_CloseAnnot(note)
    return "\n".join(filter(None, lines))


def _field(form: Any, note: Any) -> str:
    """`name: value` of a filled field; "" for an empty one, a button and a signature."""
    import pypdfium2.raw as raw

    kind = raw.FPDFAnnot_GetFormFieldType(form, note)
    if kind in (_PUSHED, _SIGNED):
        return ""
    name = _string(raw.FPDFAnnot_GetFormFieldAlternateName, form, note)
    name = name or _string(raw.FPDFAnnot_GetFormFieldName, form, note)
    if kind in _CHOSEN:
        chosen = _string(raw.FPDFAnnot_GetFormFieldExportValue, form, note) or "yes"
        return f"{name}: {chosen}" if raw.FPDFAnnot_IsChecked(form, note) else ""
    value = _string(raw.FPDFAnnot_GetFormFieldValue, form, note)
    return f"{name}: {value}" if name and value else value


def _string(ask: Any, *arguments: Any) -> str:
    """A string of PDFium's, asked for its length in bytes first, then for itself (UTF-16 with a zero at its end)."""
    import pypdfium2.raw as raw

    size = ask(*arguments, None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    ask(*arguments, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    text = buffer.raw[: size - 2].decode("utf-16-le", "replace")
    return "\n".join(line.strip() for line in normalise(text).split("\n") if line.strip())


def _sections(text: str, starts: Sequence[int], bookmarks: Sequence[Bookmark]) -> tuple[Section, ...]:
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
        after = (text.find("\n", match.end(), end) + 1 or match.end()) if match is not None else start
        found.append(Section(start, after, level, title))
    return tuple(found)


class Box(NamedTuple):
    """A run of text on a line: its place on the page in points, y upwards."""

    left: float
    bottom: float
    right: float
    top: float


def column_order(boxes: Sequence[Box], left: float, right: float) -> list[Box] | None:
    """The parts of a page in the order of reading, where it is prose in two columns that was drawn across them; else None.

    The boxes are runs of text as they were drawn. What spans both columns comes before the left column below it,
    then the right one, and so on. Columns differ from tables by how much of their width the lines fill.
    """
    middle = _gutter(boxes, left, right)
    if middle is None:
        return None
    lefts = [b for b in boxes if b.right <= middle]
    rights = [b for b in boxes if b.left >= middle]
    sides = [b.right <= middle for b in boxes if b.right <= middle or b.left >= middle]
    turns = sum(a != b for a, b in pairwise(sides))
    if turns < len(sides) / 3 or not (_is_prose(lefts) and _is_prose(rights)):
        return None
    across = sorted((b for b in boxes if b.left < middle < b.right), key=lambda b: -b.top)
    edges = [max(b.top for b in boxes) + 1, *(y for b in across for y in (b.top + 0.5, b.bottom - 0.5))]
    edges.append(min(b.bottom for b in boxes) - 1)
    order: list[Box] = []
    for index, (top, bottom) in enumerate(pairwise(edges)):
        if top > bottom and index % 2:
            order.append(Box(left, bottom, right, top))
        elif top > bottom:
            order += [Box(left, bottom, middle, top), Box(middle, bottom, right, top)]
    return order


def _gutter(boxes: Sequence[Box], left: float, right: float) -> float | None:
    """Where the white between two columns runs, or None: at most a tenth of the lines cross it."""
    if len(boxes) < 16:
        return None
    width = right - left
    crossing = {step: sum(b.left < left + width * step / 100 < b.right for b in boxes) for step in range(35, 66)}
    best = min(crossing, key=lambda step: (crossing[step], abs(step - 50)))
    return left + width * best / 100 if crossing[best] <= len(boxes) // 10 else None


def _is_prose(column: Sequence[Box]) -> bool:
    """Lines of prose fill their column; the cells of a table do not."""
    if len(column) < 8:
        return False
    full = max(b.right for b in column) - min(b.left for b in column)
    return full > 0 and median(b.right - b.left for b in column) >= 0.7 * full


def join_words(pages: Sequence[str]) -> list[str]:
    """Join words that were broken at the end of a line; a hyphen that belongs to the word stays.

    It belongs to it before a capital or a digit (`Lucene-BM25`), and where the document has the word with it elsewhere in the
    middle of a line and not without it.
    """
    words = Counter(w.lower() for page in pages for w in re.findall(r"\w+(?:-\w+)*", page))

    def joined(match: re.Match[str]) -> str:
        before, after = match[1], match[2]
        whole, hyphened = f"{before}{after}".lower(), f"{before}-{after}".lower()
        if not after[0].islower() or (words[hyphened] and not words[whole]):
            return f"{before}-"
        # A hyphen that was written as one is dropped only where the word is known without it, or can hardly be another.
        certain = match[0][len(before)] != "-" or words[whole] or before.islower() or before.istitle()
        return before if certain else f"{before}-"

    return [_BROKEN_WORD.sub(joined, page) for page in pages]


def without_furniture(pages: Sequence[str]) -> list[str]:
    """Take running heads, feet and page numbers off the pages; a head stays where it comes first.

    Only the first and last lines of a page are looked at, from its edge inwards, in documents of some pages. A line that
    differs from page to page by its number alone is furniture if the number counts the pages.
    """
    if sum(bool(page.strip()) for page in pages) < _FEWEST_PAGES:
        return list(pages)
    split = [page.split("\n") for page in pages]
    for from_top in (True, False):
        furniture = _repeated(split, from_top)
        seen: set[str] = set()
        for lines in split:
            for index in _edge(lines, from_top):
                pattern = _pattern(lines[index])
                if pattern not in furniture:
                    break
                if pattern in seen or _PAGE_NUMBER.fullmatch(pattern):
                    lines[index] = ""
                seen.add(pattern)
    return ["\n".join(lines).strip("\n") for lines in split]


def _edge(lines: Sequence[str], from_top: bool) -> list[int]:
    """The first or last lines that are not blank, from the edge inwards; never so many that a page could lose its body."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    most = min(_EDGE_LINES, (len(filled) - 1) // 2) if filled else 0
    return filled[:most] if from_top else filled[::-1][:most]


def _pattern(line: str) -> str:
    return _NUMBER.sub("#", " ".join(line.split()))


def _repeated(split: Sequence[Sequence[str]], from_top: bool) -> frozenset[str]:
    """Patterns of the lines at this edge of at least two pages in five (left and right pages may differ)."""
    found: dict[str, list[tuple[int, list[int]]]] = {}
    filled = 0
    for number, lines in enumerate(split):
        edge = _edge(lines, from_top)
        filled += bool(edge)
        for pattern, line in {_pattern(lines[i]): lines[i] for i in edge}.items():
            found.setdefault(pattern, []).append((number, [int(n) for n in _NUMBER.findall(line)[:8]]))
    enough = max(3, filled * 0.4)
    return frozenset(p for p, where in found.items() if len(where) >= enough and _is_furniture(p, where, from_top))


def _is_furniture(pattern: str, where: Sequence[tuple[int, list[int]]], from_top: bool) -> bool:
    """Whether lines of one pattern, with their pages and numbers, are a head or foot: one text, or a count of the pages.

    A number that rises with the pages but is far above them is the number of a certificate or an invoice, which people search.
    """
    if len({tuple(numbers) for _, numbers in where}) <= 1:
        return any(c.isalpha() for c in pattern) or bool(_PAGE_NUMBER.fullmatch(pattern))
    numbered = bool(_PAGE_NUMBER.fullmatch(pattern))
    places = range(min(len(numbers) for _, numbers in where))
    ahead = [{numbers[place] - page for page, numbers in where} for place in places]
    counting = any(len(steps) <= 1 + len(where) // 10 and (numbered or min(steps) <= _MOST_AHEAD) for steps in ahead)
    # No heading is at the foot of a page; at its head, `Step 3` may be one.
    return counting and (not from_top or numbered or sum(c.isalpha() for c in pattern) >= _LETTERS_OF_A_HEAD)


def page_png(data: bytes, page: int, most: tuple[int, int] = PICTURE, finest: float = 100.0) -> bytes:
    """A page, from 1, as a picture (PNG) of at most so many pixels, and `finest` for a point, whatever size the page says it has.

    Raises UsageError where the file or the page cannot be drawn.
    """
    import pypdfium2

    out = io.BytesIO()
    with LOCK:
        try:
            document = pypdfium2.PdfDocument(data)
            try:
                if not 1 <= page <= len(document):
                    reason = f"The file has {len(document):,} pages and none numbered {page:,}"
                    raise UsageError(reason, "Choose another page")
                sheet = document[page - 1]
                width, height = sheet.get_size()
                scale = min(most[0] / max(width, 1.0), most[1] / max(height, 1.0), finest)
                sheet.render(scale=scale).to_pil().save(out, "PNG")
            finally:
                document.close()
        except (pypdfium2.PdfiumError, ValueError, RuntimeError, MemoryError) as exc:
            raise UsageError(f"Page {page:,} cannot be drawn: {exc}", "Read its text instead") from exc
    return out.getvalue()
