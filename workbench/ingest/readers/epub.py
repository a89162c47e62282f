"""Books (EPUB): the chapters in their order, each by the HTML reader; a place is the chapter's file, `part=text/ch1.xhtml`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from workbench.ingest.encoding import declared_encoding, decode
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.readers.base import Member, Parsed, Source
from workbench.ingest.readers.package import Package, attribute, descendants, opened
from workbench.ingest.titles import said_title
from workbench.ingest.writing import TextWriter
from workbench.locators import locator

_KEPT = {
    "creator": "author",
    "publisher": "publisher",
    "date": "date",
    "subject": "subject",
    "description": "description",
}
_PAGES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})


def read(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Read an EPUB."""
    with opened(source) as package:
        main = _book(package)
        book = package.must(main)
        folder = posixpath.dirname(main)
        items: dict[str, tuple[str, str]] = {}
        for item in descendants(book, "item"):
            part = posixpath.normpath(posixpath.join(folder, unquote(attribute(item, "href"))))
            items[attribute(item, "id")] = (part, attribute(item, "media-type"))
        spine = [items.get(attribute(ref, "idref"), ("", "")) for ref in descendants(book, "itemref")]
        pages = [part for part, kind in spine if kind in _PAGES]
        locked = _locked(package)
        if pages and all(part in locked for part in pages):
            raise ReadError("It is protected against copying (DRM)", "Get a copy without the protection")
        writer = TextWriter()
        for part in pages:
            writer.apart()
            if not package.has(part):
                yield Problem(f"The chapter {part} is missing", "Get the book again")
                continue
            data = package.read(part)
            writer.html(decode(data, declared_encoding(data[:1024]))[0], locator(part=part))
        text, outline, places = writer.finish()
        found: dict[str, str] = {}
        for node in book.iter():
            name = node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""
            words = " ".join("".join(node.itertext()).split()) if name in (*_KEPT, "title", "language") else ""
            if words:
                found[name] = f"{found[name]}; {words}" if name in found and name != "title" else found.get(name, words)
        title = said_title(found.pop("title", ""))
        language = found.pop("language", "").partition(";")[0].partition("-")[0].lower()
        metadata = {_KEPT[name]: words for name, words in found.items()}
        yield Parsed(text, "book", outline, title, language=language, metadata=metadata, places=places)


def _book(package: Package) -> str:
    """The part that lists the book's files. Raises ReadError."""
    container = package.xml("META-INF/container.xml")
    for node in descendants(container, "rootfile") if container is not None else ():
        path = attribute(node, "full-path")
        if package.has(path):
            return path
    found = next((name for name in package.names if name.endswith(".opf")), "")
    if not found:
        raise ReadError("It is broken: it does not say where its chapters are", "Get the book again")
    return found


def _locked(package: Package) -> frozenset[str]:
    """Parts that are encrypted."""
    root = package.xml("META-INF/encryption.xml") if package.has("META-INF/encryption.xml") else None
    return (
        frozenset(attribute(n, "URI") for n in descendants(root, "CipherReference"))
        if root is not None
        else frozenset()
    )
