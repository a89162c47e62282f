"""Whatever is a zip file, by what is in it and not by its name; and archives: ZIP, TAR, single files by gzip, bzip2 or xz.

Every member of an archive is a document of its own, cited as `archive.zip!/folder/file.txt`. Names that lead out of the
archive (`..`, absolute ones), links and devices are refused, one by one; how many members, how many bytes and how deep is
limited by settings. Members come in the order of the archive; of several with one name each is read, the later ones as
`2-name.txt` and so on. An Office or OpenDocument file that was saved as one XML file is put back into its package here.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import contextlib
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, Any, cast

from workbench.ingest.encoding import decode
from workbench.ingest.errors import Problem, ReadError, skip
from workbench.ingest.readers import html, odf, sheets, slides, word
from workbench.ingest.readers.base import RESAVE, Member, Parsed, Reader, Source, Unpacking
from workbench.ingest.readers.package import Package, opened
from workbench.ingest.readers.tree import attribute, child, descendants, local, parse_text

_REMEDY = "Get the archive again, or unpack what can be unpacked and index that"
_UNPACK = "Unpack it, and index what is in it"
_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_PACKED = {".tgz": ".tar", ".tbz": ".tar", ".tbz2": ".tar", ".txz": ".tar", ".gz": "", ".bz2": "", ".xz": ""}
_FAULTS = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError)
_IS_UTF8 = 0x800
_OF_COUNTRIES = frozenset(
    "utf-8 gb18030 big5hkscs cp932 euc_jp cp949 cp1251 koi8_r koi8_u cp866 iso8859_5 mac_cyrillic".split()
)
_APPLE = {".pages": "a Pages document", ".numbers": "a Numbers document", ".key": "a Keynote presentation"}
_NOT_READ = {
    suffix: what
    for suffixes, what in (
        (".jar .war", "a Java program"),
        (".whl .egg", "a Python package"),
        (".xpi .crx", "a browser extension"),
        (".apk", "an Android program"),
        (".nupkg", "a .NET package"),
        (".npz", "a file of arrays"),
    )
    for suffix in suffixes.split()
}
_OPEN_KIND = "application/vnd.oasis.opendocument"
_FLAT = re.compile(
    r"""=["']http://schemas\.microsoft\.com/office/2006/xmlPackage["']|<office:document\s|<(?:\w+:)?wordDocument\s"""
)


def _read_zip(source: Source) -> Iterator[Parsed | Member | Problem]:
    if source.suffix in _APPLE:
        raise skip(f"It is {_APPLE[source.suffix]}, which is not read", "Save it as PDF or in an Office format")
    if source.suffix in _NOT_READ:
        raise skip(f"It is {_NOT_READ[source.suffix]}, which is not read", _UNPACK)
    with opened(source) as package:
        kind = _kind(package)
    readers = {"word": word.read, "ppt": slides.read, "xl": sheets.read, "odf": odf.read, "epub": html.read_book}
    yield from readers.get(kind, _read_archive)(source)
    yield from source.problems


def _kind(package: Package) -> str:
    if package.has("[Content_Types].xml"):
        for kind in ("word", "ppt", "xl"):
            if any(name.lower().startswith(f"{kind}/") for name in package.names):
                return kind
        if package.has("_rels/.rels"):
            raise skip("It is a drawing, a project or the like of a program that is not read", "Save it as PDF")
    kind = package.read("mimetype")[:100].decode("ascii", "replace").strip()
    if kind.startswith(_OPEN_KIND):
        return "odf"
    return "epub" if kind == "application/epub+zip" or package.has("META-INF/container.xml") else "archive"


ZIP = Reader(
    "zip",
    _read_zip,
    frozenset(".zip .docx .docm .dotx .pptx .pptm .xlsx .xlsm .odt .ods .odp .epub".split()),
    sniff=lambda head: head.startswith((b"PK\x03\x04", b"PK\x05\x06")),
    certain=True,
)


def _read_archive(source: Source) -> Iterator[Parsed | Member | Problem]:
    with opened(source) as package:
        members = [info for info in package.zip.infolist() if not info.is_dir()]
        if not members:
            raise skip("It is an archive without members", "Nothing needs to be done")
        if all(info.flag_bits & 1 for info in members):
            raise ReadError("It is locked with a password", _UNPACK)
        for info, name in zip(members, _names(members), strict=True):
            if _is_furniture(name):
                continue
            try:
                member = Member(safe_name(name), source.limits.part(package.zip, info), _zip_time(info))
            except _FAULTS:
                yield Problem(f"{name}: It cannot be unpacked", _REMEDY)
            except ReadError as exc:
                if source.limits.left_bytes < 0:
                    raise
                yield Problem(f"{name}: {exc.message}", exc.remedy)
            else:
                yield member


def safe_name(raw: str) -> str:
    """The path of a member inside its archive: `/`, without leading `./`. Raises ReadError for one that leads out of it."""
    name = raw.replace("\\", "/")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\x00" in name or re.match("[A-Za-z]:", name):
        reason = f"The member {raw[:200]!r} has a name that leads out of the archive"
        raise ReadError(reason, "Unpack it by hand, if you trust it")
    return "/".join(parts)


def _names(members: Sequence[zipfile.ZipInfo]) -> list[str]:
    """The names of members as people wrote them.

    A name that is not marked as UTF-8 is CP437 by the rules, which `zipfile` follows, but most programs wrote it in UTF-8 or
    in the code page of their country. One archive is of one program: its names together show which.
    """
    raw = {at: own for at, member in enumerate(members) if (own := _raw_name(member)) is not None}
    together = b"\n".join(raw.values())
    try:
        name = decode(together)[1]
    except ReadError:
        name = "cp437"
    plain = all(c.isascii() or c.isalpha() for c in together.decode("cp437"))
    likely = name if name in _OF_COUNTRIES or not plain else "cp437"
    return [_spelled(raw[at], likely) if at in raw else member.filename for at, member in enumerate(members)]


def _spelled(raw: bytes, encoding: str) -> str:
    """A name in an encoding, or in the first of two that fits it: `utf-8 and cp1252` is what `decode` calls a mixture."""
    first, mixed, second = encoding.partition(" and ")
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
    except UnicodeEncodeError:  # known by an extra field, which newer versions of Python follow
        return None


def _is_furniture(name: str) -> bool:
    return name.startswith("__MACOSX/") or name.rpartition("/")[2] in (".DS_Store", "Thumbs.db")


def _zip_time(info: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return None


def _read_tar(source: Source) -> Iterator[Parsed | Member | Problem]:
    some, links = False, 0
    try:
        with source.stream() as packed, tarfile.open(fileobj=_unpacked(source, packed), mode="r|") as archive:
            for info in archive:
                if info.isdir() or _is_furniture(info.name):
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
    except _FAULTS as exc:
        raise ReadError("It is a broken archive: it ends too early, or its contents are damaged", _REMEDY) from exc
    if links and not some:
        raise skip("It holds only links and devices", "Nothing needs to be done")


class _Counted(io.RawIOBase):
    """A stream that counts what is read from it against what may come out of the file."""

    def __init__(self, stream: IO[bytes], limits: Unpacking) -> None:
        self._stream, self._limits = stream, limits

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._limits.take(len(data))
        return data


def _unpacked(source: Source, stream: IO[bytes]) -> IO[bytes]:
    """The TAR inside a packer; tarfile would unpack it itself, and count nothing."""
    opener = _opener(source.head())
    inner = opener(stream, "rb") if opener is not None else stream
    return cast("IO[bytes]", _Counted(inner, source.limits))


def _opener(head: bytes) -> Callable[..., Any] | None:
    return next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)


def _read_packed(source: Source) -> Iterator[Parsed | Member | Problem]:
    opener = _opener(source.head())
    assert opener is not None
    try:
        with source.stream() as packed, opener(packed, "rb") as stream:
            tar = _is_tar(stream.read(512))
        if not tar:
            with source.stream() as packed, opener(packed, "rb") as stream:
                data = source.limits.drain(stream, source.found.size)
    except _FAULTS as exc:
        raise ReadError("It is broken: it cannot be unpacked", _REMEDY) from exc
    if tar:
        yield from _read_tar(source)
        return
    name = source.name
    suffix = next((suffix for suffix in _PACKED if name.lower().endswith(suffix)), "")
    yield Member(name[: len(name) - len(suffix)] + _PACKED.get(suffix, "") or "content", data)


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


TAR = Reader("tar", _read_tar, frozenset({".tar"}), sniff=_is_tar, certain=True)
PACKED = Reader("packed", _read_packed, sniff=lambda head: _opener(head) is not None, certain=True)


def is_flat(raw: str) -> bool:
    return _FLAT.search(raw[:4096]) is not None


def read_flat(source: Source, raw: str) -> Iterator[Parsed | Member | Problem]:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as package:
        for name, data in _flat_parts(raw):
            source.limits.take(len(data))  # each part carries the namespaces of the whole, and may be far larger
            package.writestr(name, data)
    yield from _read_zip(source.inner(Member(source.name, stream.getvalue())))


def _flat_parts(raw: str) -> Iterator[tuple[str, bytes]]:
    """Of an OpenDocument file, a document of Word 2003, whose elements have the names of those of today, or an Office file.

    Contents and styles are the whole, since each reader looks for what is its own. A part that cannot be read is left out, and
    the file's reader reports what is missing.
    """
    from lxml import etree

    root = parse_text(raw)
    if root is None:
        raise ReadError("It is broken: its XML cannot be read", RESAVE)
    if local(root) == "document":
        kind, meta = attribute(root, "mimetype"), child(root, "meta")
        yield "mimetype", (kind if kind.startswith(_OPEN_KIND) else f"{_OPEN_KIND}.text").encode()
        for name in ("content.xml", "styles.xml"):
            yield name, etree.tostring(root)
        yield "meta.xml", etree.tostring(meta) if meta is not None else b""
        return
    yield "[Content_Types].xml", b"<Types/>"
    if local(root) == "wordDocument":
        for name, part in (("document", root), ("styles", child(root, "styles"))):
            yield f"word/{name}.xml", etree.tostring(part) if part is not None else b""
    for part in descendants(root, "part"):
        name, words, data = attribute(part, "name").lstrip("/"), child(part, "xmlData"), child(part, "binaryData")
        if words is not None and len(words):
            yield name, etree.tostring(words[0])
        elif data is not None:
            with contextlib.suppress(binascii.Error, ValueError):
                yield name, base64.b64decode(data.text or "", validate=False)
