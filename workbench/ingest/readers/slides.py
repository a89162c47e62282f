"""Slides (PPTX): the shapes of each slide in their order, its tables, charts and diagrams, then its notes and comments.

A place is the slide's number as the program shows it, from 1: `slide=3`, and `slide=3&part=notes`. Hidden slides are read too.
No chunk mixes two slides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.readers.base import Member, Parsed, Source
from workbench.ingest.readers.package import Package, attribute, child, descendants, local, opened, properties
from workbench.ingest.readers.word import embedded, main_part
from workbench.ingest.writing import TextWriter
from workbench.places import locator

_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"dt", "ftr", "sldNum", "hdr"})
_DRAWN = frozenset({"chart", "diagramData"})


def read(source: Source) -> Iterator[Parsed | Member | Problem]:
    """Read a PPTX."""
    with opened(source) as package:
        main = main_part(package, "ppt/presentation.xml")
        relations = package.relations(main)
        title, language, metadata = properties(package.xml("docProps/core.xml"))
        writer = TextWriter()
        problems: list[Problem] = []
        members: dict[str, Member] = {}
        for number, node in enumerate(descendants(package.must(main), "sldId"), 1):
            key = next((v for k, v in node.attrib.items() if k.endswith("}id")), "")
            part = relations.get(key, ("", ""))[1]
            try:
                root = package.must(part)
            except ReadError as exc:
                problems.append(Problem(f"Slide {number} cannot be read: {exc.message}", exc.remedy))
                continue
            own = package.relations(part)
            _slide(writer, package, root, own, number)
            members |= {member.name: member for member in embedded(package, own)}
        text, outline, places = writer.finish()
        yield from problems
        yield Parsed(text, "slides", outline, title, language=language, metadata=metadata, places=places)
        yield from members.values()


def _slide(writer: TextWriter, package: Package, root: Any, relations: dict[str, tuple[str, str]], number: int) -> None:
    at = locator(slide=number)
    writer.apart()
    shapes = list(_shapes(child(root, "cSld", "spTree")))
    title = next((shape for shape in shapes if _placeholder(shape) in _TITLES), None)
    if title is not None:
        writer.heading(" ".join(_paragraphs(title)), 1, at)
    for shape in shapes:
        if shape is title or _placeholder(shape) in _FURNITURE:
            continue
        table = next(descendants(shape, "tbl"), None)
        if table is not None:
            rows = ([cell for cell in row if local(cell) == "tc"] for row in table if local(row) == "tr")
            writer.table(([" ".join(_paragraphs(cell)) for cell in row], at) for row in rows)
        elif local(shape) == "pic":
            described = next((attribute(n, "descr") for n in descendants(shape, "cNvPr")), "")
            writer.paragraph(f"[{described}]" if described.strip() else "", at)
        else:
            writer.paragraph("\n".join(_paragraphs(shape)), at)
    for kind, target in relations.values():
        if kind in _DRAWN:
            writer.paragraph(_drawn(package.xml(target)), at)
    for kind, target in relations.values():
        if kind == "notesSlide":
            notes = package.xml(target)
            bodies = (s for s in _shapes(child(notes, "cSld", "spTree")) if _placeholder(s) == "body")
            for body in bodies:
                writer.paragraph("\n".join(_paragraphs(body)), locator(slide=number, part="notes"))
        elif kind == "comments":
            comments = package.xml(target)
            for comment in descendants(comments, "cm") if comments is not None else ():
                words = " ".join(n.text or "" for n in descendants(comment, "text", "t"))
                writer.paragraph(words, locator(slide=number, part="comments"))


def _shapes(tree: Any) -> Iterator[Any]:
    """Shapes, pictures and frames in their order, those of groups too."""
    for node in tree if tree is not None else ():
        name = local(node)
        if name in ("sp", "pic", "graphicFrame", "cxnSp"):
            yield node
        elif name == "grpSp":
            yield from _shapes(node)
        elif name == "AlternateContent":
            chosen = child(node, "Choice")
            yield from _shapes(chosen if chosen is not None else child(node, "Fallback"))


def _placeholder(shape: Any) -> str:
    found = next(descendants(shape, "ph"), None)
    return "" if found is None else attribute(found, "type") or "body"


def _paragraphs(node: Any) -> Iterator[str]:
    for paragraph in descendants(node, "p"):
        words = "".join(
            (n.text or "") if local(n) == "t" else "\n" for n in descendants(paragraph, "t", "br")
        )  # fmt: skip
        if words.strip():
            properties_of = child(paragraph, "pPr")
            level = attribute(properties_of, "lvl") if properties_of is not None else ""
            yield "  " * (int(level) if level.isdigit() else 0) + words.strip()


def _drawn(root: Any) -> str:
    """Words of a chart (titles, names of series and categories) or of a diagram, each once."""
    if root is None:
        return ""
    paragraphs = ["".join(n.text or "" for n in descendants(p, "t")) for p in descendants(root, "p")]
    points = (child(point, "v") for cache in descendants(root, "strCache") for point in descendants(cache, "pt"))
    cached = [value.text or "" for value in points if value is not None]
    return "\n".join(dict.fromkeys(words.strip() for words in (*paragraphs, *cached) if words.strip()))
