"""An Office or OpenDocument file that was saved as one XML file: put back into a package, it is read as any other.

Read as XML, such a file gives relationships, styles and settings, and its words in pieces.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import zipfile
from collections.abc import Iterator

from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.readers import zipped
from workbench.ingest.readers.base import Member, Parsed, Source
from workbench.ingest.readers.package import attribute, child, descendants, parse_xml
from workbench.ingest.unpacking import Unpacking

_MARK = re.compile(r"""=["']http://schemas\.microsoft\.com/office/2006/xmlPackage["']""")
_OPEN = re.compile(r"<office:document\s")
_OPEN_KIND = "application/vnd.oasis.opendocument"
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")


def is_flat(raw: str) -> bool:
    """Whether this XML is an Office or OpenDocument package in one file."""
    return bool(_MARK.search(raw[:4096]) or _OPEN.search(raw[:4096]))


def read(source: Source, raw: str) -> Iterator[Parsed | Member | Problem]:
    """Read a package in one file as the file that it was made from. Raises ReadError."""
    pack = _packed if _MARK.search(raw[:4096]) else _packed_open
    yield from zipped.READER.read(source.inner(Member(source.name, pack(raw, source.limits))))


def _packed_open(raw: str, limits: Unpacking) -> bytes:
    """An OpenDocument file: contents and styles are the whole, since each reader looks for what is its own."""
    from lxml import etree

    root = parse_xml(_DECLARATION.sub("", raw, count=1).encode("utf-8"))
    if root is None:
        raise ReadError("It is broken: its XML cannot be read", "Open it in its program, and save it anew")
    kind, meta, whole = attribute(root, "mimetype"), child(root, "meta"), etree.tostring(root)
    limits.take(2 * len(whole))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as package:
        package.writestr("mimetype", kind if kind.startswith(_OPEN_KIND) else f"{_OPEN_KIND}.text")
        for name in ("content.xml", "styles.xml"):
            package.writestr(name, whole)
        package.writestr("meta.xml", etree.tostring(meta) if meta is not None else "")
    return stream.getvalue()


def _packed(raw: str, limits: Unpacking) -> bytes:
    """The parts as a zip package; one that cannot be read is left out, and its reader says what is missing.

    Each part carries the namespaces of the whole, so that parts may be far larger than the file. Raises ReadError then.
    """
    from lxml import etree

    root = parse_xml(raw.encode("utf-8"))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as package:
        package.writestr("[Content_Types].xml", "<Types/>")
        for part in descendants(root, "part") if root is not None else ():
            name, words, data = attribute(part, "name").lstrip("/"), child(part, "xmlData"), child(part, "binaryData")
            if words is not None and len(words):
                written = etree.tostring(words[0])
                limits.take(len(written))
                package.writestr(name, written)
            elif data is not None:
                try:
                    package.writestr(name, base64.b64decode(data.text or "", validate=False))
                except (binascii.Error, ValueError):
                    continue
    return stream.getvalue()
