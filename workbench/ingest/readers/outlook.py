"""Outlook messages (MSG): headers, the body as text, HTML or RTF, and the attachments as members ([MS-OXMSG]).

A message that is attached is a folder of the same file: it is a document of its own all the same, `mail.msg!/Its subject.msg`,
with its attachments inside it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from workbench.ingest.encoding import decode
from workbench.ingest.errors import Problem
from workbench.ingest.readers.base import Member, Parsed, ReadFunction
from workbench.ingest.readers.mail import write_headers
from workbench.ingest.unpacking import Unpacking
from workbench.ingest.writing import TextWriter
from workbench.locators import locator

_SUBJECT, _FROM, _FROM_ADDRESS, _TO, _CC, _BCC = "0037", "0C1A", "0C1F", "0E04", "0E03", "0E02"
_BODY, _HTML, _RTF, _SMTP = "1000", "1013", "1009", "5D01"
_STORED = "__substg1.0_3701000D"
_DATA, _LONG_NAME, _NAME, _SHOWN_NAME = "3701", "3707", "3704", "3001"
_LZFU_START = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans SerifSymbolArial"
    rb"Times New RomanCourier{\colortbl\red0\green0\blue0" + b"\r\n" + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)  # fmt: skip


def read_message(ole: Any, limits: Unpacking, folder: str = "") -> Iterator[Parsed | Member | Problem]:
    """Read the message in a folder of an OLE file, then its attachments. Raises ReadError where they go beyond the limits."""
    names = ole.listdir(streams=True, storages=True)
    depth = len(folder.split("/")) if folder else 0
    inside = [entry for entry in names if "/".join(entry[:depth]) == folder] if folder else names

    def raw(key: str, at: str = folder) -> tuple[str, bytes]:
        for kind in ("001F", "001E", "0102"):
            path = f"{at}/__substg1.0_{key}{kind}".lstrip("/")
            if ole.exists(path):
                return kind, ole.openstream(path).read()
        return "", b""

    def word(key: str, at: str = folder) -> str:
        kind, data = raw(key, at)
        return data.decode("utf-16-le", "replace") if kind == "001F" else decode(data)[0] if data else ""

    writer = TextWriter()
    address = word(_SMTP) or word(_FROM_ADDRESS)
    sender = word(_FROM)
    sent = _time(ole, folder)
    headers = {
        "Subject": word(_SUBJECT),
        "From": f"{sender} <{address}>" if "@" in address and sender != address else sender or address,
        "To": word(_TO),
        "Cc": word(_CC),
        "Bcc": word(_BCC),
        "Date": f"{sent:%Y-%m-%d %H:%M:%S} UTC" if sent else "",
    }
    write_headers(writer, headers)
    at = locator(part=1)
    body, html, rtf = word(_BODY), raw(_HTML)[1], raw(_RTF)[1]
    if body.strip():
        writer.paragraph(body, at)
    elif html:
        writer.html(decode(html)[0], at)
    elif rtf:
        from workbench.ingest.readers.rtf import rtf_text

        writer.paragraph(rtf_text(unpack_rtf(rtf)), at)
    text, outline, places = writer.finish()
    metadata = {k.lower(): v.strip() for k, v in headers.items() if v.strip() and k != "Subject"}
    yield Parsed(text, "mail", outline, title=" ".join(headers["Subject"].split()), metadata=metadata, places=places)
    attached = sorted({e[depth] for e in inside if len(e) > depth and e[depth].startswith("__attach_version1.0_")})
    for number, name in enumerate(attached, 1):
        place = f"{folder}/{name}".lstrip("/")
        shown = word(_LONG_NAME, place) or word(_NAME, place) or word(_SHOWN_NAME, place) or f"attachment-{number}"
        shown = shown.replace("/", "_").strip("\x00 ") or f"attachment-{number}"
        kind, data = raw(_DATA, place)
        within = f"{place}/{_STORED}"
        if kind:
            yield Member(shown, data)
        elif ole.exists(f"{within}/__properties_version1.0"):
            name = shown if shown.lower().endswith(".msg") else f"{shown}.msg"
            yield Member(name, _streams(ole, within, limits), read=_reading(ole, within))
        else:
            yield Problem(
                f"The attachment {shown!r} is an object of another program, or a link to a file",
                "Save it as a file of its own",
            )


def _reading(ole: Any, folder: str) -> ReadFunction:
    return lambda source: read_message(ole, source.limits, folder)


def _streams(ole: Any, folder: str, limits: Unpacking) -> bytes:
    """The bytes of all streams in a folder, in the order of their names: what tells one message from another.

    Streams of a damaged file may all be the same bytes, and come to more than the file. Raises ReadError then.
    """
    inside = sorted(path for path in map("/".join, ole.listdir()) if path.startswith(f"{folder}/"))
    limits.take(sum(ole.get_size(path) for path in inside))
    return b"".join(ole.openstream(path).read() for path in inside)


def _time(ole: Any, folder: str) -> datetime | None:
    """When it was sent or delivered: PidTagClientSubmitTime, else PidTagMessageDeliveryTime, else None."""
    path = f"{folder}/__properties_version1.0".lstrip("/")
    data = ole.openstream(path).read()
    start = 32 if not folder else 24
    found: dict[int, int] = {}
    for place in range(start, len(data) - 15, 16):
        tag, _, value = struct.unpack_from("<IIQ", data, place)
        found[tag] = value
    ticks = found.get(0x00390040) or found.get(0x0E060040) or 0
    try:
        return datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10) if ticks else None
    except OverflowError:
        return None


def unpack_rtf(data: bytes) -> bytes:
    """RTF as messages compress it ([MS-OXRTFCP]): LZ with a window of 4096 bytes that starts filled."""
    if len(data) < 16:
        return b""
    _, size, magic, _ = struct.unpack_from("<4I", data)
    if magic == 0x414C454D:  # "MELA": not compressed
        return data[16 : 16 + size]
    window = bytearray(4096)
    window[: len(_LZFU_START)] = _LZFU_START
    write, place = len(_LZFU_START), 16
    found = bytearray()
    while place < len(data) and len(found) < size:
        flags = data[place]
        place += 1
        for bit in range(8):
            if place >= len(data):
                break
            if flags >> bit & 1:
                if place + 1 >= len(data):
                    return bytes(found)
                code = data[place] << 8 | data[place + 1]
                place += 2
                offset, length = code >> 4, (code & 15) + 2
                if offset == write % 4096:
                    return bytes(found)
                for n in range(length):
                    byte = window[(offset + n) % 4096]
                    window[write % 4096] = byte
                    write += 1
                    found.append(byte)
            else:
                window[write % 4096] = data[place]
                found.append(data[place])
                write += 1
                place += 1
    return bytes(found)
