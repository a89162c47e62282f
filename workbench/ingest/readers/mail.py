"""Mail: messages (EML, and pages saved as MHT), mailboxes (MBOX) and Outlook messages (MSG).

A message's text is its headers and its body: the plain part where there is one, else the HTML one. Attachments and messages in
the message are documents of their own, `mail.eml!/report.pdf`; so is each message of a mailbox, `box.mbox!/12.eml`, by its
number in it. A place is the part, from 1 in the order of the message; the headers are part 0. Mail names its encodings and
gets them wrong: bytes that do not fit are left to the detector.
"""

from __future__ import annotations

import base64
import email
import email.message
import email.policy
import email.utils
import re
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from workbench.ingest.encoding import decode, normalise
from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.outline import TextWriter, left_out
from workbench.ingest.readers.base import Member, Parsed, Reader, ReadFunction, Source, Unpacking, written
from workbench.ingest.readers.html import html_text
from workbench.locators import locator, whole_number

Part: TypeAlias = "email.message.Message[Any, Any]"
_SHOWN = ("Subject", "From", "To", "Cc", "Bcc", "Date")
_HEADER = re.compile(
    rb"(?m)^(?:From|To|Subject|Date|Received|Message-ID|MIME-Version|Return-Path|Delivered-To|Content-Type):", re.I
)
_SAVED_PAGE = re.compile(rb"MIME-Version:[^\r\n]*\r?\nContent-Type:[ \t]*multipart/related;", re.I)
_FROM_LINE = re.compile(rb"(?m)^From [^\r\n]*\d\d:\d\d[^\r\n]*\r?\n")
_QUOTED_FROM = re.compile(rb"(?m)^>(>*From )")
_BODIES = frozenset({"text/plain", "text/html", "text/enriched", "text/markdown"})
_DEEPEST = 60
_RICHER = 4
"""An HTML part of so many times the words is no mere copy of the plain one, which then says where to read it."""
_SUFFIXES = dict(
    pair.split("=")
    for pair in "application/pdf=.pdf text/plain=.txt text/html=.html message/rfc822=.eml image/jpeg=.jpg image/png=.png"
    " image/gif=.gif text/csv=.csv application/zip=.zip text/calendar=.ics".split()
)


def _mail(writer: TextWriter, headers: Mapping[str, str], kind: str = "mail", sent: str = "") -> Parsed:
    metadata = {name.lower(): words for name, words in headers.items() if words and name != "Subject"}
    if sent:
        metadata["date"] = sent
    return written(writer, kind, headers["Subject"], metadata=metadata | left_out(writer.hidden))


def _write_headers(writer: TextWriter, headers: Mapping[str, str]) -> None:
    writer.heading(headers["Subject"], 1, locator(part=0))
    for name, words in headers.items():
        if words and name != "Subject":
            writer.line(f"{name}: {words}", locator(part=0))
    writer.gap()


def _read_message(source: Source) -> Iterator[Parsed | Member | Problem]:
    data = source.data()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in data[:200]:
        data = decode(data)[0].encode("utf-8")
    if source.suffix == ".emlx":  # Apple's: a line with its length, the message, then what the program knows of it
        length, _, rest = data.lstrip().partition(b"\n")
        end = whole_number(length.decode("latin-1").strip(), None)
        data = data if end is None else rest[:end]
    message = email.message_from_bytes(data.lstrip(b"\r\n\xef\xbb\xbf"), policy=email.policy.compat32)
    if not message.keys() and not source.depth:
        raise ReadError("It is not a message: it has no headers", "Give it the name of what it is")
    headers = {name: " ".join(_header(message, name).split()) for name in _SHOWN}
    writer = TextWriter()
    _write_headers(writer, headers)
    parts = _Parts(writer)
    parts.write(message)
    yield _mail(writer, headers, "html" if parts.saved_page else "mail", _sent(headers["Date"]))
    names: set[str] = set()
    for number, part in parts.attached:
        name = _name(part, number, names)
        payload = part.get_payload()
        inside = payload[0] if part.get_content_type() == "message/rfc822" and isinstance(payload, list) else None
        if not isinstance(inside, email.message.Message):
            yield Member(name, _bytes(part))
        elif str(part.get("Content-Transfer-Encoding", "")).strip().lower() == "base64":
            yield Member(name, base64.b64decode(_bytes(inside), validate=False))
        else:
            yield Member(name, inside.as_bytes(policy=email.policy.compat32.clone(max_line_length=0)))


class _Parts:
    """Writes the parts of a message that are its body, and gathers those that are attached. Parts are numbered from 1."""

    def __init__(self, writer: TextWriter) -> None:
        self.attached: list[tuple[int, Part]] = []
        self.saved_page = False
        self._writer = writer
        self._number = 0
        self._body = False

    def write(self, part: Part, depth: int = 0, related: bool = False) -> None:
        kind = part.get_content_type()
        if kind.startswith("message/") and kind != "message/rfc822":
            # Why it was not delivered, or whether it was read: fields, in one block for each recipient.
            self._number += 1
            blocks: Any = part.get_payload() if part.is_multipart() else [part]
            for block in blocks:
                self._writer.paragraph(_fields(block), locator(part=self._number))
            return
        if part.is_multipart() and kind != "message/rfc822" and depth < _DEEPEST:
            inner = [p for p in part.get_payload() if isinstance(p, email.message.Message)]
            if kind == "multipart/alternative":
                inner = _best(inner)
            self.saved_page = self.saved_page or (depth == 0 and kind == "multipart/related" and "From" not in part)
            for one in inner:
                self.write(one, depth + 1, kind == "multipart/related")
            return
        self._number += 1
        given = str(part.get("Content-Disposition") or "").lower().startswith("attachment")
        if given or (_file_name(part) and self._body) or kind not in _BODIES:
            # A picture that the text shows (a logo, a signature) is no attachment.
            shown = "Content-ID" in part or related
            if given or not (shown and kind.startswith(("image/", "text/css", "application/octet"))):
                self.attached.append((self._number, part))
            return
        words = _text(part)
        self._body = self._body or bool(words.strip())
        write = self._writer.html if kind == "text/html" else self._writer.paragraph
        write(words, locator(part=self._number))


def _best(inner: list[Part]) -> list[Part]:
    """Of alternatives the plain text where it has the words, else the richest; what is attached in the others stays."""
    plain = [p for p in inner if p.get_content_type() == "text/plain" and _text(p).strip()][:1]
    rich = [p for p in inner if p.get_content_type() != "text/plain"]
    leaves = [leaf for p in rich for leaf in _leaves(p)]
    pages = [p for p in leaves if p.get_content_type() == "text/html" and not _file_name(p)]
    if plain and pages:
        alike, richer = _compared(_text(plain[0]), html_text(_text(pages[0]))[0])
        if not alike or richer:
            return [*(() if alike else plain), *_with(rich, pages[0])]
    if not rich or plain:
        others = [p for p in leaves if _is_attached(p)]
        return [*plain, *others] if plain else inner[:1]
    return rich[-1:]


def _leaves(part: Part, depth: int = 0) -> Iterator[Part]:
    """The parts that are no containers; a message in the message is one."""
    if part.get_content_maintype() != "multipart" or depth > _DEEPEST:
        yield part
        return
    for inner in part.get_payload() if part.is_multipart() else ():
        if isinstance(inner, email.message.Message):
            yield from _leaves(inner, depth + 1)


def _with(parts: list[Part], page: Part) -> list[Part]:
    return [p for p in parts if any(leaf is page or _is_attached(leaf) for leaf in _leaves(p))]


def _is_attached(part: Part) -> bool:
    return part.get_content_type() == "text/calendar" or bool(_file_name(part))


def _compared(plain: str, page: str) -> tuple[bool, bool]:
    """Whether two forms of a message share half of their words (else one says only where to read the other), and whether
    the page has so many more that the plain one is cut short."""
    own, other = (set(re.findall(r"\w+", words.lower())) for words in (plain, page))
    return 2 * len(own & other) >= min(len(own), len(other)), len(other) > _RICHER * len(own)


def _fields(block: Part) -> str:
    named = [f"{k}: {_decoded(str(v))}" for k, v in block.raw_items() if not k.lower().startswith("content-")]
    return "\n".join((*named, "" if block.is_multipart() else _text(block).strip())).strip()


def _text(part: Part) -> str:
    return _readable(_bytes(part), str(part.get_content_charset() or ""))


def _bytes(part: Part) -> bytes:
    try:
        data = part.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError):
        data = None
    if isinstance(data, bytes):
        return data
    payload = part.get_payload()
    return payload.encode("utf-8", "surrogateescape") if isinstance(payload, str) else b""


def _header(message: Part, name: str) -> str:
    return ", ".join(_decoded(str(raw)) for own, raw in message.raw_items() if own.lower() == name.lower())


def _decoded(raw: str) -> str:
    """A header as it is read: encoded words by Python's parser, bytes beyond ASCII by the detector."""
    return normalise(str(_parsed("Subject", raw) or _readable(raw.encode("utf-8", "surrogateescape"))))


def _readable(data: bytes, declared: str = "") -> str:
    try:
        return decode(data, declared)[0] if data else ""
    except ReadError:
        return normalise(data.decode("utf-8", "replace"))


def _parsed(name: str, raw: str) -> Any:
    """A header by Python's parser of today; None where it gives up, as it does on some malformed ones."""
    try:
        header: Any = email.policy.default.header_fetch_parse(name, _readable(raw.encode("utf-8", "surrogateescape")))
        str(header)
        return header
    except (ValueError, LookupError, AttributeError, TypeError, AssertionError, RecursionError):
        return None


def _file_name(part: Part) -> str:
    for name, key in (("Content-Disposition", "filename"), ("Content-Type", "name")):
        raw = next((str(value) for own, value in part.raw_items() if own.lower() == name.lower()), "")
        header = _parsed(name, raw) if key in raw.lower() else None
        found = header.params.get(key) if header is not None else None
        if found:
            return str(found)
    return str(part.get_filename() or part.get_param("name") or "")


def _sent(date: str) -> str:
    try:
        moment = email.utils.parsedate_to_datetime(date)
        return (moment.astimezone(UTC) if moment.tzinfo else moment).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _name(part: Part, number: int, taken: set[str]) -> str:
    """The attachment's name, made safe and its own."""
    name = " ".join(_decoded(_file_name(part)).replace("\\", "/").rpartition("/")[2].split()).strip(". ")
    name = name or f"part-{number}{_SUFFIXES.get(part.get_content_type(), '')}"
    name = f"{number}-{name}" if name in taken else name
    taken.add(name)
    return name


def _read_mailbox(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Each message of a mailbox, cut at its `From ` lines (the mboxrd form, in which `>From ` stands for `From `)."""
    data = source.data()
    matches = _FROM_LINE.finditer(data)
    above = (b"\n\n", b"\n\r\n")
    starts = [m for m in matches if not m.start() or data[max(0, m.start() - 3) : m.start()].endswith(above)]
    if not data.strip():
        raise skip("It holds no messages", "Nothing needs to be done")
    if not starts:
        raise ReadError("It is not a mailbox: no line marks where a message begins", "Give it the name of what it is")
    if data[: starts[0].start()].strip():
        reason = "Before its first message is text that belongs to none"
        yield Problem(reason, "Give it the suffix .txt to have all of it")
    for number, match in enumerate(starts, 1):
        end = starts[number].start() if number < len(starts) else len(data)
        yield Member(f"{number}.eml", _QUOTED_FROM.sub(rb"\1", data[match.end() : end]))


def _is_message(head: bytes) -> bool:
    # A page that Word saved in one file has the name of a document, and says only what it is made of.
    saved = _SAVED_PAGE.match(head.lstrip()) is not None
    return saved or (len({m[0].lower() for m in _HEADER.finditer(head)}) >= 3 and bool(_HEADER.match(head.lstrip())))


MESSAGE = Reader("mail", _read_message, frozenset({".eml", ".mht", ".mhtml", ".emlx"}), sniff=_is_message)
MAILBOX = Reader(
    "mailbox", _read_mailbox, frozenset({".mbox", ".mbx"}), sniff=lambda head: bool(_FROM_LINE.match(head))
)


def read_outlook(ole: Any, limits: Unpacking, folder: str = "") -> Iterator[Parsed | Member | Problem]:
    """Read the message in a folder of an OLE file ([MS-OXMSG]), then its attachments. Raises ReadError beyond the limits.

    A message that is attached is a folder of the same file: it is a document of its own all the same,
    `mail.msg!/Its subject.msg`, with its attachments inside it.
    """

    def raw(key: str, at: str = folder) -> tuple[str, bytes]:
        for kind in ("001F", "001E", "0102"):
            path = f"{at}/__substg1.0_{key}{kind}".lstrip("/")
            if ole.exists(path):
                return kind, ole.openstream(path).read()
        return "", b""

    def word(*keys: str, at: str = folder) -> str:
        """The first of some properties that has words."""
        for key in keys:
            kind, data = raw(key, at)
            words = data.decode("utf-16-le", "replace") if kind == "001F" else decode(data)[0] if data else ""
            if words:
                return words
        return ""

    address, sender, sent = word("5D01", "0C1F"), word("0C1A"), _outlook_time(ole, folder)
    headers = {
        "Subject": word("0037"),
        "From": f"{sender} <{address}>" if "@" in address and sender != address else sender or address,
        "To": word("0E04"),
        "Cc": word("0E03"),
        "Bcc": word("0E02"),
        "Date": f"{sent:%Y-%m-%d %H:%M:%S} UTC" if sent else "",
    }
    headers = {name: " ".join(words.split()) for name, words in headers.items()}
    writer = TextWriter()
    _write_headers(writer, headers)
    at = locator(part=1)
    body, page, rtf = word("1000"), raw("1013")[1], raw("1009")[1]
    markup = decode(page)[0] if page else ""
    alike, richer = _compared(body, html_text(markup)[0])
    if body.strip() and not (markup and alike and richer):
        writer.paragraph(body, at)
    if markup and (not body.strip() or not alike or richer):
        writer.html(markup, at)
    elif rtf and not body.strip():
        try:
            writer.paragraph(unpacked_rtf(rtf), at)
        except ReadError as exc:
            yield Problem(exc.message, exc.remedy)
    yield _mail(writer, headers)
    depth = len(folder.split("/")) if folder else 0
    inside = [entry for entry in ole.listdir(streams=True, storages=True) if "/".join(entry[:depth]) == folder]
    attached = sorted({e[depth] for e in inside if len(e) > depth and e[depth].startswith("__attach_version1.0_")})
    for number, name in enumerate(attached, 1):
        place = f"{folder}/{name}".lstrip("/")
        shown = word("3707", "3704", "3001", at=place).replace("/", "_").strip("\x00 ") or f"attachment-{number}"
        kind, data = raw("3701", place)
        within = f"{place}/__substg1.0_3701000D"
        if kind:
            yield Member(shown, data)
        elif ole.exists(f"{within}/__properties_version1.0"):
            name = shown if shown.lower().endswith(".msg") else f"{shown}.msg"
            yield Member(name, _streams(ole, within, limits), read=_reading(ole, within))
        else:
            reason = f"The attachment {shown!r} is an object of another program, or a link to a file"
            yield Problem(reason, "Save it as a file of its own")


def _reading(ole: Any, folder: str) -> ReadFunction:
    return lambda source: read_outlook(ole, source.limits, folder)


def unpacked_rtf(data: bytes) -> str:
    """The words of RTF as messages compress it. Raises ReadError where it is damaged."""
    from compressed_rtf import decompress

    from workbench.ingest.readers.rtf import rtf_text

    try:
        return rtf_text(decompress(data))
    except Exception as exc:  # the library raises nothing else
        raise ReadError("The text of the message is damaged", "Open it in Outlook, and save it again") from exc


def _streams(ole: Any, folder: str, limits: Unpacking) -> bytes:
    """The bytes of all streams in a folder, in the order of their names: what tells one message from another.

    Streams of a damaged file may all be the same bytes, and come to more than the file. Raises ReadError then.
    """
    inside = sorted(path for path in map("/".join, ole.listdir()) if path.startswith(f"{folder}/"))
    limits.take(sum(ole.get_size(path) for path in inside))
    return b"".join(ole.openstream(path).read() for path in inside)


def _outlook_time(ole: Any, folder: str) -> datetime | None:
    """When it was sent or delivered: PidTagClientSubmitTime, else PidTagMessageDeliveryTime, else None."""
    data = ole.openstream(f"{folder}/__properties_version1.0".lstrip("/")).read()
    found: dict[int, int] = {}
    for place in range(24 if folder else 32, len(data) - 15, 16):
        tag, _, ticks = struct.unpack_from("<IIQ", data, place)
        found[tag] = ticks
    ticks = found.get(0x00390040) or found.get(0x0E060040) or 0
    try:
        return datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10) if ticks else None
    except OverflowError:
        return None
