"""Zip packages of XML (Office, OpenDocument, EPUB): their parts, safely.

Every part comes through the file's `Unpacking`, so a bomb ends as a sentence. XML is parsed with entities, DTDs and the
network off, and without lxml's "huge" mode, which caps depth and text.
"""

from __future__ import annotations

import lzma
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import useful_title
from workbench.ingest.readers.base import RESAVE, Source

if TYPE_CHECKING:
    from lxml.etree import _Element

Relations = dict[str, tuple[str, str]]
"""Id -> (last word of the type, target part)."""
_CUT_SHORT = frozenset(
    f"ERR_{name}"
    for name in "TAG_NOT_FINISHED TAG_NAME_MISMATCH DOCUMENT_END LT_IN_ATTRIBUTE ATTRIBUTE_NOT_FINISHED GT_REQUIRED"
    " LTSLASH_REQUIRED NAME_REQUIRED INVALID_CHAR DOCUMENT_EMPTY".split()
)
"""Faults after which words of a part are missing; strange namespaces and the like cost nothing."""
_REMEDY = "Get the file again, or open it in the program that made it and save it again"
_FAULTS = (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError, zlib.error, lzma.LZMAError)
_CORE = {
    "creator": "author",
    "initial-creator": "author",
    "subject": "subject",
    "keywords": "keywords",
    "keyword": "keywords",
    "description": "description",
    "created": "created",
    "creation-date": "created",
    "lastModifiedBy": "modified_by",
    "category": "category",
}


class Package:
    """An open zip package. Names of parts have no leading slash; case does not count, as in Office."""

    def __init__(self, package: zipfile.ZipFile, source: Source) -> None:
        self.zip = package
        self.names = package.namelist()
        self._source = source
        self._spelled = {name.lower(): name for name in self.names}

    def has(self, name: str) -> bool:
        return name.lower() in self._spelled

    def read(self, name: str) -> bytes:
        """Bytes of a part; b"" where there is none. Raises ReadError."""
        own = self._spelled.get(name.lower())
        if own is None:
            return b""
        try:
            return self._source.limits.part(self.zip, own)
        except _FAULTS as exc:
            raise ReadError(f"It is broken: its part {own} cannot be unpacked", _REMEDY) from exc

    def xml(self, name: str) -> _Element | None:
        """A part as a tree; None where there is none, or nothing of it can be read. Raises ReadError."""
        data = self.read(name)
        root, fault = parse_xml(data) if data.strip() else (None, "")
        if fault and root is not None:
            problem = Problem(f"Its part {name} {fault}: words may be missing", RESAVE)
            if problem not in self._source.problems:
                self._source.problems.append(problem)
        return root

    def must(self, name: str) -> _Element:
        """A part that has to be there. Raises ReadError."""
        root = self.xml(name)
        if root is None:
            raise ReadError(f"It is broken: its part {name} is missing or unreadable", _REMEDY)
        return root

    def main(self, usual: str) -> str:
        """The part that the package says is its document."""
        return next((target for kind, target in self.relations("").values() if kind == "officeDocument"), usual)

    def relations(self, part: str) -> Relations:
        """A part's relations that stay inside the package."""
        folder, _, name = part.rpartition("/")
        root = self.xml(f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels")
        found: Relations = {}
        for node in root if root is not None else ():
            target = str(node.get("Target") or "")
            if target and node.get("TargetMode") != "External":
                inside = posixpath.normpath(posixpath.join(folder, target))
                kind = str(node.get("Type") or "").rpartition("/")[2]
                found[str(node.get("Id"))] = (kind, target.lstrip("/") if target.startswith("/") else inside)
        return found

    def related(self, part: str, *kinds: str) -> Iterator[_Element]:
        """The trees of a part's relations of some kinds."""
        for kind, target in self.relations(part).values():
            root = self.xml(target) if kind in kinds else None
            if root is not None:
                yield root


@contextmanager
def opened(source: Source) -> Iterator[Package]:
    """A file as a package. Raises ReadError where it is none."""
    with source.stream() as stream:
        try:
            package = zipfile.ZipFile(stream)
        except _FAULTS as exc:
            raise ReadError("It is broken: it ends too early, or its table of contents is damaged", _REMEDY) from exc
        with package:
            yield Package(package, source)


def parse_xml(data: bytes) -> tuple[_Element | None, str]:
    """A tree from XML, None where nothing of it can be read, and in words what had to be repaired or left out, or ""."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        root = None
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
    """Value of an attribute by its name without namespace; "" where there is none, or no node."""
    for key, value in node.attrib.items() if node is not None else ():
        if key.rpartition("}")[2] == name:
            return str(value)
    return ""


def child(node: Any, *names: str) -> Any:
    """The first descendant along a path of child names, or None."""
    for name in names:
        node = next((inner for inner in node if local(inner) == name), None) if node is not None else None
    return node


def value(node: Any, *names: str) -> str:
    """The attribute `val` of the first descendant along a path of child names, or ""."""
    return attribute(child(node, *names), "val")


def descendants(node: Any, *names: str) -> Iterator[Any]:
    """All elements below (and at) a node with one of these names, in document order; none of no node."""
    return (inner for inner in (node.iter() if node is not None else ()) if local(inner) in names)


def text_of(node: Any, *names: str) -> str:
    """The texts of the elements below a node with one of these names, one after the other."""
    return "".join(inner.text or "" for inner in descendants(node, *names))


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
            title = title or useful_title(words)
        elif name == "language":
            language = words.partition("-")[0].lower()
        elif name in _CORE:
            found.setdefault(_CORE[name], words)
    return title, language, found
