"""Zip packages of XML (Office, OpenDocument, EPUB): their parts, safely, and which kind of package a zip file is.

Every part comes through the file's `Unpacking`, so a bomb ends as a sentence. XML is parsed with entities, DTDs and the
network off, and without lxml's "huge" mode, which caps depth and text.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.readers.base import Source
from workbench.ingest.titles import said_title

if TYPE_CHECKING:
    from lxml.etree import _Element

_CUT_SHORT = frozenset(
    {"ERR_TAG_NOT_FINISHED", "ERR_TAG_NAME_MISMATCH", "ERR_DOCUMENT_END", "ERR_LT_IN_ATTRIBUTE", "ERR_ATTRIBUTE_NOT_FINISHED",
     "ERR_GT_REQUIRED", "ERR_LTSLASH_REQUIRED", "ERR_NAME_REQUIRED", "ERR_INVALID_CHAR", "ERR_DOCUMENT_EMPTY"}
)  # fmt: skip
"""Faults after which words of a part are missing; strange namespaces and the like cost nothing."""
_BROKEN = "Get the file again, or open it in the program that made it and save it anew"


class Package:
    """An open zip package. Names of parts have no leading slash."""

    def __init__(self, package: zipfile.ZipFile, source: Source) -> None:
        self.zip = package
        self._source = source
        self._limits = source.limits
        self.names = package.namelist()
        self._there = {name.lower(): name for name in self.names}

    def has(self, name: str) -> bool:
        """Whether there is such a part; case does not count, as in Office."""
        return name.lower() in self._there

    def read(self, name: str) -> bytes:
        """Bytes of a part; b"" where there is none. Raises ReadError."""
        own = self._there.get(name.lower())
        if own is None:
            return b""
        try:
            return self._limits.part(self.zip, own)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError) as exc:
            raise ReadError(f"It is broken: its part {own} cannot be unpacked", _BROKEN) from exc
        except Exception as exc:  # zlib, bz2 and lzma each have an error of their own
            if type(exc).__name__ in ("error", "LZMAError"):
                raise ReadError(f"It is broken: its part {own} cannot be unpacked", _BROKEN) from exc
            raise

    def xml(self, name: str) -> _Element | None:
        """A part as a tree; None where there is none, or nothing of it can be read. Raises ReadError."""
        data = self.read(name)
        if not data.strip():
            return None
        root, fault = parsed_xml(data)
        if fault and root is not None:
            said = f"Its part {name} {fault}: words may be missing"
            if said not in (problem.reason for problem in self._source.told):
                self._source.told.append(Problem(said, "Open it in its program, and save it anew"))
        return root

    def must(self, name: str) -> _Element:
        """A part that has to be there. Raises ReadError."""
        root = self.xml(name)
        if root is None:
            raise ReadError(f"It is broken: its part {name} is missing or unreadable", _BROKEN)
        return root

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Id -> (last word of the type, target part) of a part's relations that stay inside the package."""
        folder, _, name = part.rpartition("/")
        root = self.xml(f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels")
        found: dict[str, tuple[str, str]] = {}
        for node in root if root is not None else ():
            target = str(node.get("Target") or "")
            if target and node.get("TargetMode") != "External":
                path = (
                    target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
                )
                found[str(node.get("Id"))] = (str(node.get("Type") or "").rpartition("/")[2], path)
        return found


@contextmanager
def opened(source: Source) -> Iterator[Package]:
    """A file as a package. Raises ReadError where it is none."""
    with source.stream() as stream:
        try:
            package = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as exc:
            raise ReadError("It is broken: it ends too early, or its table of contents is damaged", _BROKEN) from exc
        with package:
            yield Package(package, source)


def parse_xml(data: bytes) -> _Element | None:
    """A tree from XML, mended where it is slightly broken; None where nothing of it can be read."""
    return parsed_xml(data)[0]


def parsed_xml(data: bytes) -> tuple[_Element | None, str]:
    """As `parse_xml`, and in words what had to be mended or left out, or ""."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None, ""
    if root is None:
        return None, ""
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and next(declared.iterentities(), None) is not None:
        return root, "declares entities, which are not followed"
    broken = any(entry.type_name in _CUT_SHORT for entry in parser.error_log)
    return root, "is not well-formed XML" if broken else ""


def local(node: Any) -> str:
    """Name of an element without its namespace; "" for an entity, comment or instruction."""
    tag = node.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(node: Any, name: str) -> str:
    """Value of an attribute by its name without namespace; "" where there is none."""
    for key, value in node.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return ""


def child(node: Any, *names: str) -> Any:
    """The first descendant along a path of child names, or None."""
    for name in names:
        node = next((inner for inner in node if local(inner) == name), None) if node is not None else None
    return node


def descendants(node: Any, *names: str) -> Iterator[Any]:
    """All elements below (and at) a node with one of these names, in document order."""
    return (inner for inner in node.iter() if local(inner) in names)


_CORE = {
    "creator": "author", "subject": "subject", "keywords": "keywords", "description": "description", "created": "created",
    "lastModifiedBy": "modified_by", "category": "category", "keyword": "keywords", "initial-creator": "author",
    "creation-date": "created",
}  # fmt: skip


def properties(root: Any) -> tuple[str, str, dict[str, Any]]:
    """Title, language and metadata from the core properties of an Office or OpenDocument file."""
    title = language = ""
    found: dict[str, Any] = {}
    for node in root.iter() if root is not None else ():
        words = " ".join((node.text or "").split())
        name = local(node)
        if not words:
            continue
        if name == "title":
            title = title or said_title(words)
        elif name == "language":
            language = words.partition("-")[0].lower()
        elif name in _CORE:
            found.setdefault(_CORE[name], words)
    return title, language, found
