"""Old Office files and Outlook messages for the tests of readers, written byte by byte as their specifications say.

No library that is kept writes them. Each holds only what its format asks for; other programs open them too.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise

Streams = Mapping[str, bytes]

_SECTOR, _MINI, _CUTOFF = 512, 64, 4096
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def ole(streams: Streams) -> bytes:
    """A compound file ([MS-CFB]) of streams, whose names are paths with `/`."""
    names = sorted({"/".join(path.split("/")[:n]) for path in streams for n in range(1, path.count("/") + 2)})
    mini, mini_fat, sectors, fat = bytearray(), [], bytearray(), []
    places = {}
    for name in names:
        data = streams.get(name, b"")
        size, (store, table) = (_MINI, (mini, mini_fat)) if len(data) < _CUTOFF else (_SECTOR, (sectors, fat))
        places[name] = _chained(store, table, data, size)
    root = _chained(sectors, fat, bytes(mini), _SECTOR)
    first_mini = _chained(sectors, fat, struct.pack(f"<{len(mini_fat)}I", *mini_fat), _SECTOR, b"\xff")
    directory = _chained(sectors, fat, _directory(names, streams, places, root, len(mini)), _SECTOR)
    number = 1
    while number * 128 < len(fat) + number:
        number += 1
    own = list(range(len(fat), len(fat) + number))
    fat += [_FAT] * number
    sectors += struct.pack(f"<{number * 128}I", *fat, *[_FREE] * (number * 128 - len(fat)))
    mini_sectors = -(-len(mini_fat) * 4 // _SECTOR)
    head = struct.pack(
        "<8s16x5H6x9I", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, 0, number, directory, 0, _CUTOFF,
        first_mini, mini_sectors, _END, 0,
    )  # fmt: skip
    return head + struct.pack("<109I", *own, *[_FREE] * (109 - number)) + bytes(sectors)


def _chained(store: bytearray, table: list[int], data: bytes, size: int, filler: bytes = b"\0") -> int:
    """Put bytes at the end of a store and their chain into its table; the number of the first sector."""
    if not data:
        return _END
    first, count = len(table), -(-len(data) // size)
    table += [*range(first + 1, first + count), _END]
    store += data.ljust(count * size, filler)
    return first


def _directory(names: Sequence[str], streams: Streams, places: Mapping[str, int], root: int, mini: int) -> bytes:
    entries = ["", *names]
    children = {
        parent: sorted(
            (n for n in names if n.rpartition("/")[0] == parent),
            key=lambda n: (len(n.rpartition("/")[2]), n.rpartition("/")[2].upper()),
        )
        for parent in ["", *(n for n in names if n not in streams)]
    }
    after = {one: two for own in children.values() for one, two in pairwise(own)}
    found = b""
    for name in entries:
        own = (name.rpartition("/")[2] or "Root Entry").encode("utf-16-le")
        stream = name in streams
        kind, start, size = (2, places[name], len(streams[name])) if stream else (1, 0, 0)
        if not name:
            kind, start, size = 5, root, mini
        right = entries.index(after[name]) if name in after else _FREE
        child = entries.index(children[name][0]) if children.get(name) else _FREE
        found += own.ljust(64, b"\0") + struct.pack(
            "<HBB3I16x4x16xIQ", len(own) + 2, kind, 1, _FREE, right, child, start, size
        )
    return found


# --- Outlook ----------------------------------------------------------------------------------------------------------


def msg(subject: str, body: str, attachments: Mapping[str, bytes | Streams] | None = None) -> bytes:
    """An Outlook message ([MS-OXMSG]); an attachment is the bytes of a file, or the streams of a message (`msg_streams`)."""
    return ole(msg_streams(subject, body, attachments))


def msg_streams(
    subject: str, body: str, attachments: Mapping[str, bytes | Streams] | None = None, inside: bool = False
) -> dict[str, bytes]:
    """The streams of a message, by their paths; `inside`: of one that is attached to another."""
    found = {
        "__properties_version1.0": bytes(24 if inside else 32)
        + struct.pack("<IIQ", 0x00390040, 6, 133_500_000_000_000_000),
        **{
            f"__substg1.0_{key}001F": words.encode("utf-16-le")
            for key, words in (
                ("0037", subject),
                ("0C1A", "Ada"),
                ("0C1F", "ada@example.org"),
                ("0E04", "Bob"),
                ("1000", body),
            )
        },
    }
    for number, (name, data) in enumerate((attachments or {}).items()):
        at = f"__attach_version1.0_#{number:08X}"
        found[f"{at}/__properties_version1.0"] = bytes(8)
        found[f"{at}/__substg1.0_3707001F"] = name.encode("utf-16-le")
        if isinstance(data, bytes):
            found[f"{at}/__substg1.0_37010102"] = data
        else:
            found |= {f"{at}/__substg1.0_3701000D/{path}": stream for path, stream in data.items()}
    return found


# --- Word, Excel, PowerPoint ------------------------------------------------------------------------------------------


def doc(paragraphs: Sequence[str], rows: Sequence[Sequence[str]] = ()) -> bytes:
    """A Word 97 document ([MS-DOC]) of one piece: paragraphs, then a table."""
    text = "".join(p + "\r" for p in paragraphs) + "".join("".join(c + "\x07" for c in row) + "\x07" for row in rows)
    words = text.encode("utf-16-le")
    stream = bytearray(0x400)
    struct.pack_into("<2H", stream, 0, 0xA5EC, 0xC1)
    struct.pack_into("<H", stream, 0x0A, 0x0200)
    struct.pack_into("<i", stream, 0x4C, len(words) // 2)
    pieces = struct.pack("<2I2xI2x", 0, len(words) // 2, 0x400)
    table = b"\x02" + struct.pack("<I", len(pieces)) + pieces
    struct.pack_into("<2I", stream, 0x1A2, 0, len(table))
    return ole({"WordDocument": bytes(stream) + words, "1Table": table})


def xls(sheets: Mapping[str, Sequence[Sequence[str | float | None]]]) -> bytes:
    bodies = [_sheet(rows) for rows in sheets.values()]
    head = _record(0x809, struct.pack("<4H2I", 0x600, 5, 0x0DBB, 0x07CC, 0, 6)) + _record(0x42, struct.pack("<H", 1200))
    head += _record(0xE0, struct.pack("<3H14x", 0, 0, 1))
    at = len(head) + sum(12 + 2 * len(name) for name in sheets) + 4
    for body, name in zip(bodies, sheets, strict=True):
        head += _record(0x85, struct.pack("<IHBB", at, 0, len(name), 1) + name.encode("utf-16-le"))
        at += len(body)
    return ole({"Workbook": (head + _record(0x0A, b"") + b"".join(bodies)).ljust(_CUTOFF, b"\0")})


def _sheet(rows: Sequence[Sequence[str | float | None]]) -> bytes:
    found = _record(0x809, struct.pack("<4H2I", 0x600, 0x10, 0x0DBB, 0x07CC, 0, 6))
    for row, cells in enumerate(rows):
        for column, value in enumerate(cells):
            if isinstance(value, str):
                words = value.encode("utf-16-le")
                found += _record(0x204, struct.pack("<4HB", row, column, 0, len(words) // 2, 1) + words)
            elif value is not None:
                found += _record(0x203, struct.pack("<3Hd", row, column, 0, value))
    return found + _record(0x0A, b"")


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<2H", kind, len(data)) + data


def ppt(
    slides: Sequence[tuple[str, str, str]], before: Sequence[tuple[str, str, str]] = (), locked: bool = False
) -> bytes:
    """A presentation ([MS-PPT]): title, body, notes. The title stands in the outline, the body in its shape.

    Args:
        slides: As they are.
        before: Slides as an earlier save had them; their records are still in the file.
        locked: Say that it is encrypted.
    """
    stream, last = _saved(b"", before, 0) if before else (b"", 0)
    stream, last = _saved(stream, slides, last)
    token = 0xF3D1C4DF if locked else 0xE391C05F
    return ole({"PowerPoint Document": stream, "Current User": _atom(0x0FF6, struct.pack("<3I", 20, token, last))})


def _saved(stream: bytes, slides: Sequence[tuple[str, str, str]], last: int) -> tuple[bytes, int]:
    """The stream after one more save, and where that save's own record is. Object 1 is the document."""
    places: list[int] = [0]
    listed, notes = b"", b""
    for number, (title, body, note) in enumerate(slides, 1):
        listed += _atom(0x03F3, struct.pack("<4I4x", len(places) + 1, 0, 1, 255 + number)) + _atom(
            0x0F9F, struct.pack("<I", 0)
        )
        listed += _atom(0x0FA0, title.encode("utf-16-le"))
        places.append(len(stream))
        identity = 1000 + number if note else 0
        boxes = _box(_atom(0x0F9E, struct.pack("<I", 0))) + _box(_atom(0x0F9F, struct.pack("<I", 1)), _text(body))
        stream += _held(
            0x03EE, _atom(0x03EF, struct.pack("<12x3I", 0, identity, 0)) + _held(0x040C, _held(0xF002, boxes))
        )
        if note:
            notes += _atom(0x03F3, struct.pack("<4I4x", len(places) + 1, 0, 0, identity))
            places.append(len(stream))
            stream += _held(0x03F0, _held(0x040C, _box(_atom(0x0F9F, struct.pack("<I", 2)), _text(note))))
    places[0] = len(stream)
    stream += _held(0x03E8, _held(0x0FF0, listed, 0) + _held(0x0FF0, notes, 2))
    directory = len(stream)
    stream += _atom(0x1772, struct.pack(f"<{len(places) + 1}I", len(places) << 20 | 1, *places))
    edit = len(stream)
    return stream + _atom(0x0FF5, struct.pack("<IH2B4I", 0, 0, 0, 3, last, directory, 1, len(places) + 1)), edit


def _text(words: str) -> bytes:
    if max(words, default="a") < "\x80":
        return _atom(0x0FA8, words.encode("ascii"))
    return _atom(0x0FA0, words.encode("utf-16-le"))


def _box(*atoms: bytes) -> bytes:
    return _held(0xF004, _held(0xF00D, b"".join(atoms)))


def _held(kind: int, data: bytes, instance: int = 0) -> bytes:
    return struct.pack("<2HI", 15 | instance << 4, kind, len(data)) + data


def _atom(kind: int, data: bytes) -> bytes:
    return struct.pack("<2HI", 0, kind, len(data)) + data
