"""Whatever is a zip file, by what is in it and not by its name: an Office or OpenDocument file, a book, or an archive."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.ingest.errors import Problem, skip
from workbench.ingest.readers import archives, epub, odf, sheets, slides, word
from workbench.ingest.readers.base import Member, Parsed, Reader, Source
from workbench.ingest.readers.package import Package, opened

_LEFT_OUT = {
    ".jar": "a Java program", ".war": "a Java program", ".apk": "an Android program", ".whl": "a Python package",
    ".egg": "a Python package", ".nupkg": "a .NET package", ".xpi": "a browser extension", ".crx": "a browser extension",
    ".pages": "a Pages document", ".numbers": "a Numbers document", ".key": "a Keynote presentation", ".npz": "a file of arrays",
}  # fmt: skip
_APPLE = frozenset({".pages", ".numbers", ".key"})


def _read(source: Source) -> Iterator[Parsed | Member | Problem]:
    if source.suffix in _LEFT_OUT:
        remedy = (
            "Save it as PDF or in an Office format" if source.suffix in _APPLE else "Unpack it, and index what is in it"
        )
        raise skip(f"It is {_LEFT_OUT[source.suffix]}, which is not read", remedy)
    with opened(source) as package:
        kind = _kind(package)
    yield from {
        "word": word.read, "slides": slides.read, "sheet": sheets.read, "odf": odf.read, "epub": epub.read,
    }.get(kind, archives.read_zip)(source)  # fmt: skip
    yield from source.told


def _kind(package: Package) -> str:
    if package.has("[Content_Types].xml"):
        for folder, kind in (("word/", "word"), ("ppt/", "slides"), ("xl/", "sheet")):
            if any(name.lower().startswith(folder) for name in package.names):
                return kind
        if package.has("_rels/.rels"):
            raise skip("It is a drawing, a project or the like of a program that is not read", "Save it as PDF")
    if package.has("mimetype"):
        said = package.read("mimetype")[:100].decode("ascii", "replace").strip()
        if said.startswith("application/vnd.oasis.opendocument"):
            return "odf"
        if said == "application/epub+zip":
            return "epub"
    return "epub" if package.has("META-INF/container.xml") else "archive"


READER = Reader(
    "zip", _read,
    frozenset({".zip", ".docx", ".docm", ".dotx", ".pptx", ".pptm", ".xlsx", ".xlsm", ".odt", ".ods", ".odp", ".epub"}),
    sniff=lambda head: head.startswith((b"PK\x03\x04", b"PK\x05\x06")), certain=True,
)  # fmt: skip
