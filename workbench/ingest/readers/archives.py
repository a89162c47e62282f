"""Archives (ZIP, TAR, and single files packed by gzip, bzip2 or xz): every member is a document of its own.

A member is cited as `archive.zip!/folder/file.txt`. Names that lead out of the archive (`..`, absolute ones), links and devices
are refused, one by one; how many members, how many bytes and how deep is limited by settings. Members come in the order of the
archive; of several with one name each is read, the later ones as `2-name.txt` and so on.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, Any, cast

from workbench.ingest.encoding import decode
from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.readers.base import Member, Parsed, Reader, Source
from workbench.ingest.readers.package import opened
from workbench.ingest.unpacking import safe_name

_BROKEN_REMEDY = "Get the archive again, or unpack what can be unpacked and index that"
_PACKERS = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\x00", "xz"))
_OPENERS: dict[str, Callable[..., Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
_PACKED = {".tgz": ".tar", ".tbz": ".tar", ".tbz2": ".tar", ".txz": ".tar", ".gz": "", ".bz2": "", ".xz": ""}
_ERRORS = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError)
_IS_UTF8 = 0x800
_OF_COUNTRIES = frozenset(
    {
        "utf-8",
        "gb18030",
        "big5",
        "cp932",
        "euc_jp",
        "cp949",
        "cp1251",
        "koi8_r",
        "koi8_u",
        "cp866",
        "iso8859_5",
        "mac_cyrillic",
    }
)
_FURNITURE = ("__MACOSX/", ".DS_Store", "Thumbs.db")


def read_zip(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Read a ZIP archive's members."""
    with opened(source) as held:
        package = held.zip
        members = [info for info in package.infolist() if not info.is_dir()]
        if not members:
            raise skip("It is an archive without members", "Nothing needs to be done")
        if all(info.flag_bits & 1 for info in members):
            raise ReadError("It is locked with a password", "Unpack it, and index what is in it")
        for info, name in zip(members, _names(members), strict=True):
            if _furniture(name):
                continue
            try:
                member = Member(safe_name(name), source.limits.part(package, info), _zip_time(info))
            except _ERRORS:
                yield Problem(f"{name}: It cannot be unpacked", _BROKEN_REMEDY)
            except ReadError as exc:
                if source.limits.left_bytes < 0:
                    raise
                yield Problem(f"{name}: {exc.message}", exc.remedy)
            else:
                yield member


def _names(members: Sequence[zipfile.ZipInfo]) -> list[str]:
    """The names of members as people wrote them.

    A name that is not marked as UTF-8 is CP437 by the rules, which `zipfile` follows, but most programs wrote it in UTF-8 or
    in the code page of their country. One archive is of one program: its names together tell which.
    """
    raw = {at: own for at, member in enumerate(members) if (own := _raw_name(member)) is not None}
    together = b"\n".join(raw.values())
    try:
        name = decode(together)[1]
    except ReadError:
        name = "cp437"
    plain = all(c.isascii() or c.isalpha() for c in together.decode("cp437"))
    told = name if name in _OF_COUNTRIES or not plain else "cp437"
    return [_spelled(raw[at], told) if at in raw else member.filename for at, member in enumerate(members)]


def _spelled(raw: bytes, told: str) -> str:
    """A name in an encoding, or in the first of two that fits it: `utf-8 and cp1252` is what `decode` says of a mixture."""
    first, mixed, second = told.partition(" and ")
    try:
        return raw.decode(first, "strict" if mixed else "replace")
    except UnicodeDecodeError:
        return raw.decode(second, "replace")


def _raw_name(member: zipfile.ZipInfo) -> bytes | None:
    """The bytes of a name of which nothing says how they are to be read; None of one that is known."""
    if member.flag_bits & _IS_UTF8 or member.filename.isascii():
        return None
    try:
        return member.filename.encode("cp437")
    except UnicodeEncodeError:  # told by an extra field, which newer versions of Python follow
        return None


def _furniture(name: str) -> bool:
    return name.startswith(_FURNITURE[0]) or name.rpartition("/")[2] in _FURNITURE[1:]


def _zip_time(info: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return None


def _read_tar(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Read a TAR archive's members."""
    some, links = False, 0
    try:
        with source.stream() as packed, tarfile.open(fileobj=_unpacked(source, packed), mode="r|") as archive:
            for info in archive:
                if info.isdir() or _furniture(info.name):
                    continue
                try:
                    name = safe_name(info.name)
                    if not info.isfile():
                        links += 1
                        raise skip("It is a link or a device", "Nothing needs to be done")
                    some = True
                    stream = archive.extractfile(info)
                    data = stream.read() if stream is not None else b""  # the stream below counts
                except ReadError as exc:
                    if source.limits.left_bytes < 0:
                        raise
                    yield Problem(f"{info.name}: {exc.message}", exc.remedy)
                    continue
                yield Member(name, data, datetime.fromtimestamp(max(0, min(info.mtime, 4e9)), UTC))
    except _ERRORS as exc:
        raise ReadError(
            "It is a broken archive: it ends too early, or its contents are damaged", _BROKEN_REMEDY
        ) from exc
    if links and not some:
        raise skip("It holds only links and devices", "Nothing needs to be done")


class _Counted(io.RawIOBase):
    """A stream that counts what is read from it against what may come out of the file."""

    def __init__(self, stream: IO[bytes], source: Source) -> None:
        self._stream, self._limits = stream, source.limits

    def read(self, size: int = -1) -> bytes:
        """Some bytes. Raises ReadError where they are too many."""
        data = self._stream.read(size)
        self._limits.take(len(data))
        return data


def _unpacked(source: Source, stream: IO[bytes]) -> IO[bytes]:
    """The TAR inside a packer; tarfile would unpack it itself, and count nothing."""
    for magic, name in _PACKERS:
        if source.head().startswith(magic):
            stream = cast("IO[bytes]", _OPENERS[name](stream, "rb"))
    return cast("IO[bytes]", _Counted(stream, source))


def _read_packed(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Read a TAR behind a packer, or the one file that was packed."""
    kind = next(name for magic, name in _PACKERS if source.head().startswith(magic))
    opener = _OPENERS[kind]
    try:
        with source.stream() as packed, cast("IO[bytes]", opener(packed, "rb")) as stream:
            start = stream.read(512)
    except _ERRORS as exc:
        raise ReadError("It is broken: it cannot be unpacked", _BROKEN_REMEDY) from exc
    if _is_tar(start):
        yield from _read_tar(source)
        return
    try:
        with source.stream() as packed, cast("IO[bytes]", opener(packed, "rb")) as stream:
            data = source.limits.drain(stream, source.found.size)
    except _ERRORS as exc:
        raise ReadError("It is broken: it cannot be unpacked", _BROKEN_REMEDY) from exc
    name = source.name
    for suffix, instead in _PACKED.items():
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)] + instead
            break
    yield Member(name or "content", data)


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


TAR = Reader("tar", _read_tar, frozenset({".tar"}), sniff=_is_tar, certain=True)
PACKED = Reader("packed", _read_packed, sniff=lambda head: head.startswith(tuple(m for m, _ in _PACKERS)), certain=True)
