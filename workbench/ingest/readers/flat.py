"""An Office file that was saved as one XML file: its parts are put back into a package, which its own reader reads.

Read as XML, such a file gives relationships, styles and settings, and its words in pieces.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import zipfile
from collections.abc import Iterator

from workbench.ingest.errors import Problem
from workbench.ingest.readers import zipped
from workbench.ingest.readers.base import Member, Parsed, Source
from workbench.ingest.readers.package import attribute, child, descendants, parse_xml
from workbench.ingest.unpacking import Unpacking

_MARK = re.compile(r"""=["']http://schemas\.microsoft\.com/office/2006/xmlPackage["']""")


def is_flat(raw: str) -> bool:
    """Whether this XML is an Office package in one file."""
    return bool(_MARK.search(raw[:4096]))


def read(source: Source, raw: str) -> Iterator[Parsed | Member | Problem]:
    """Read an Office package in one file as the file that it was made from."""
    yield from zipped.READER.read(source.inner(Member(source.name, _packed(raw, source.limits))))


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
