"""Mail: messages (EML, and pages saved as MHT) and mailboxes (MBOX).

A message's text is its headers and its body: the plain part where there is one, else the HTML one. Attachments and messages in
the message are documents of their own, `mail.eml!/report.pdf`; so is each message of a mailbox, `box.mbox!/12.eml`, by its
number in it. A place is the part, from 1 in the order of the message; the headers are part 0. Mail names its encodings and
lies about them: bytes that do not fit are told by the detector.
"""

from __future__ import annotations

import contextlib
import email
import email.errors
import email.message
import email.policy
import email.utils
import re
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.header import decode_header, make_header
from typing import Any

from workbench.ingest.encoding import decode, normalise
from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.readers.base import Member, Parsed, Reader, Source
from workbench.ingest.writing import TextWriter
from workbench.locators import locator, whole_number

_SHOWN = ("Subject", "From", "To", "Cc", "Bcc", "Date")
_HEADER = re.compile(
    rb"(?m)^(?:From|To|Subject|Date|Received|Message-ID|MIME-Version|Return-Path|Delivered-To|Content-Type):", re.I
)
_SAVED_PAGE = re.compile(rb"MIME-Version:[^\r\n]*\r?\nContent-Type:[ \t]*multipart/related;", re.I)
_FROM_LINE = re.compile(rb"(?m)^From [^\r\n]*\d\d:\d\d[^\r\n]*\r?\n")
_QUOTED_FROM = re.compile(rb"(?m)^>(>*From )")
_BODIES = frozenset({"text/plain", "text/html", "text/enriched", "text/markdown"})
_DEEPEST = 60
_SUFFIXES = {
    "application/pdf": ".pdf", "text/plain": ".txt", "text/html": ".html", "message/rfc822": ".eml", "image/jpeg": ".jpg",
    "image/png": ".png", "image/gif": ".gif", "text/csv": ".csv", "application/zip": ".zip", "text/calendar": ".ics",
}  # fmt: skip


def write_headers(writer: TextWriter, headers: Mapping[str, str]) -> None:
    """The subject as a heading, then who wrote to whom and when."""
    writer.heading(headers.get("Subject", ""), 1, locator(part=0))
    for name, value in headers.items():
        words = " ".join(value.split())
        if words and name != "Subject":
            writer.line(f"{name}: {words}", locator(part=0))
    writer.gap()


def _read_message(source: Source) -> Iterator[Parsed | Member | Problem]:
    data = source.bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in data[:200]:
        data = decode(data)[0].encode("utf-8")
    if source.suffix == ".emlx":
        data = _of_apple(data)
    message = email.message_from_bytes(data.lstrip(b"\r\n\xef\xbb\xbf"), policy=email.policy.compat32)
    headers = {name: _header(message, name) for name in _SHOWN}
    if not message.keys() and not source.depth:
        raise ReadError("It is no message: it has no headers", "Give it the name of what it is")
    writer = TextWriter()
    write_headers(writer, headers)
    attached: list[tuple[int, email.message.Message]] = []
    parts = _Parts(writer, attached)
    parts.write(message)
    text, outline, places = writer.finish()
    metadata = {k.lower(): " ".join(v.split()) for k, v in headers.items() if v.strip() and k != "Subject"}
    sent = _sent(headers["Date"])
    if sent:
        metadata["date"] = sent
    kind = "html" if parts.saved_page else "mail"
    yield Parsed(text, kind, outline, title=" ".join(headers["Subject"].split()), metadata=metadata, places=places)
    names: set[str] = set()
    for number, part in attached:
        name = _name(part, number, names)
        inner = part.get_payload()
        message_inside = inner[0] if isinstance(inner, list) and inner else None
        if part.get_content_type() == "message/rfc822" and isinstance(message_inside, email.message.Message):
            yield Member(name, message_inside.as_bytes(policy=email.policy.compat32.clone(max_line_length=0)))
        else:
            yield Member(name, _bytes(part))


def _of_apple(data: bytes) -> bytes:
    """The message of an EMLX: a line with its length, the message, then what Apple's program knows of it."""
    length, _, rest = data.lstrip().partition(b"\n")
    end = whole_number(length.decode("latin-1").strip(), None)
    return data if end is None else rest[:end]


class _Parts:
    """Writes the parts of a message that are its body, and gathers those that are attached. Parts are numbered from 1."""

    def __init__(self, writer: TextWriter, attached: list[tuple[int, email.message.Message]]) -> None:
        self._writer, self._attached = writer, attached
        self._number = 0
        self._body = False
        self.saved_page = False

    def write(self, part: email.message.Message, depth: int = 0, related: bool = False) -> None:
        kind = part.get_content_type()
        if kind.startswith("message/") and kind != "message/rfc822":
            # Why it was not delivered, or whether it was read: fields, in one block for each recipient.
            self._number += 1
            blocks = part.get_payload() if part.is_multipart() else [part]
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
        named = part.get_filename() or part.get_param("name")
        given = str(part.get("Content-Disposition") or "").lower().startswith("attachment")
        if given or (named and self._body) or kind not in _BODIES:
            # A picture that the text shows (a logo, a signature) is no attachment.
            shown = "Content-ID" in part or related
            if given or not (shown and kind.startswith(("image/", "text/css", "application/octet"))):
                self._attached.append((self._number, part))
            return
        words = _text(part)
        at = locator(part=self._number)
        self._body = self._body or bool(words.strip())
        if kind == "text/html":
            self._writer.html(words, at)
        else:
            self._writer.paragraph(words, at)


def _best(inner: list[email.message.Message]) -> list[email.message.Message]:
    """Of alternatives the plain text where it has words, else the richest; what is attached beside them stays."""
    plain = [p for p in inner if p.get_content_type() == "text/plain" and _text(p).strip()]
    rich = [p for p in inner if p.get_content_type() != "text/plain"]
    others = [p for p in rich if p.get_content_type() == "text/calendar" or p.get_filename()]
    if plain:
        return [*plain[:1], *others]
    return rich[-1:] if rich else inner[:1]


def _fields(block: Any) -> str:
    """The fields of a report, and what follows them."""
    named = [f"{name}: {_words(value)}" for name, value in block.items() if not name.lower().startswith("content-")]
    return "\n".join((*named, "" if block.is_multipart() else _text(block).strip())).strip()


def _text(part: email.message.Message) -> str:
    data = _bytes(part)
    declared = str(part.get_content_charset() or "")
    try:
        return decode(data, declared)[0] if data else ""
    except ReadError:
        return normalise(data.decode("utf-8", "replace"))


def _bytes(part: email.message.Message) -> bytes:
    try:
        data = part.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError):
        data = None
    if isinstance(data, bytes):
        return data
    payload = part.get_payload()
    return payload.encode("utf-8", "surrogateescape") if isinstance(payload, str) else b""


def _header(message: email.message.Message, name: str) -> str:
    """All headers of a name, decoded; an encoded word of an unknown encoding is told by the detector."""
    values = message.get_all(name, [])
    return ", ".join(_words(value) for value in values)


def _words(value: Any) -> str:
    raw = str(value).encode("utf-8", "surrogateescape")
    try:
        parts = decode_header(raw.decode("utf-8", "strict") if _is_utf8(raw) else decode(raw)[0])
    except (ValueError, ReadError, email.errors.MessageError):
        return normalise(str(value))
    with contextlib.suppress(LookupError, UnicodeError, email.errors.MessageError):
        return normalise(str(make_header(parts)))  # which knows where a space between two parts was meant
    found = []
    for data, encoding in parts:
        if isinstance(data, str):
            found.append(data)
            continue
        try:
            found.append(data.decode(encoding or "utf-8", "replace"))
        except LookupError:
            found.append(data.decode("utf-8", "replace"))
    return normalise("".join(found))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _sent(date: str) -> str:
    try:
        moment = email.utils.parsedate_to_datetime(date)
        return (moment.astimezone(UTC) if moment.tzinfo else moment).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _name(part: email.message.Message, number: int, taken: set[str]) -> str:
    """The attachment's name, made safe and its own."""
    raw = _words(part.get_filename() or part.get_param("name") or "")
    name = " ".join(raw.replace("\\", "/").rpartition("/")[2].split()).strip(". ")
    name = name or f"part-{number}{_SUFFIXES.get(part.get_content_type(), '')}"
    if name in taken:
        name = f"{number}-{name}"
    taken.add(name)
    return name


def _read_mailbox(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Each message of a mailbox, cut at its `From ` lines (the mboxrd form, in which `>From ` stands for `From `)."""
    data = source.bytes()
    starts = [
        m for m in _FROM_LINE.finditer(data) if m.start() == 0 or data[: m.start()].endswith((b"\n\n", b"\n\r\n"))
    ]
    if not starts:
        raise (
            skip("It holds no messages", "Nothing needs to be done")
            if not data.strip()
            else ReadError("It is no mailbox: no line says where a message begins", "Give it the name of what it is")
        )
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
