"""Slides (PPTX): the shapes of each slide in their order, its tables, charts and diagrams, then its notes and comments.

A place is the slide's number as the program shows it, from 1: `slide=3`, and `slide=3&part=notes`. Hidden slides are read too,
and marked as hidden in their heading and in the metadata. No chunk mixes two slides, and none has the heading of another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import TextWriter, left_out
from workbench.ingest.readers.base import Member, Parsed, Source, written
from workbench.ingest.readers.package import Package, drawings, embedded, formatted, opened, properties, shown
from workbench.ingest.readers.tree import attribute, child, chosen, descendants, local
from workbench.locators import locator, whole_number


def read(source: Source) -> Iterator[Parsed | Member | Problem]:
    with opened(source) as package:
        main = package.main("ppt/presentation.xml")
        relations = package.relations(main)
        title, language, metadata = properties(package.xml("docProps/core.xml"))
        writer = TextWriter()
        members: dict[str, Member] = {}
        hidden: list[str] = []
        secrets = 0
        for number, node in enumerate(descendants(package.must(main), "sldId"), 1):
            key = next((v for k, v in node.attrib.items() if k.endswith("}id")), "")
            part = relations.get(key, ("", ""))[1]
            try:
                root = package.must(part)
                secrets += shown(root)
            except ReadError as exc:
                yield Problem(f"Slide {number} cannot be read: {exc.message}", exc.remedy)
                continue
            secret = attribute(root, "show") in ("0", "false")
            hidden += [str(number)] * secret
            _slide(writer, package, root, part, number, secret)
            members |= {member.name: member for member in embedded(package, package.relations(part))}
        metadata |= left_out(secrets, f"slides {', '.join(hidden)}" if hidden else "")
        yield written(writer, "slides", title, language=language, metadata=metadata)
        yield from members.values()


def _slide(writer: TextWriter, package: Package, root: Any, part: str, number: int, secret: bool) -> None:
    at, relations = locator(slide=number), package.relations(part)
    shapes = list(_shapes(child(root, "cSld", "spTree")))
    title = next((shape for shape in shapes if _placeholder(shape) in ("title", "ctrTitle")), None)
    writer.slide(" ".join(_paragraphs(title)) + " (hidden slide)" * secret, at)
    for shape in shapes:
        if shape is title or _placeholder(shape) in ("dt", "ftr", "sldNum", "hdr"):
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
        for words in drawings(shape, package, relations):
            writer.paragraph(words, at)
    for notes in package.related(part, "notesSlide"):
        shown(notes)
        for body in (shape for shape in _shapes(child(notes, "cSld", "spTree")) if _placeholder(shape) == "body"):
            writer.paragraph("\n".join(_paragraphs(body)), locator(slide=number, part="notes"))
    for comments in package.related(part, "comments"):
        for comment in descendants(comments, "cm"):
            words = " ".join(n.text or "" for n in descendants(comment, "text", "t"))
            writer.paragraph(words, locator(slide=number, part="comments"))


def _shapes(tree: Any) -> Iterator[Any]:
    for node in tree if tree is not None else ():
        name = local(node)
        if name in ("sp", "pic", "graphicFrame", "cxnSp"):
            yield node
        elif name in ("grpSp", "AlternateContent"):
            yield from _shapes(node if name == "grpSp" else chosen(node))


def _placeholder(shape: Any) -> str:
    found = next(descendants(shape, "ph"), None)
    return "" if found is None else attribute(found, "type") or "body"


def _paragraphs(node: Any) -> Iterator[str]:
    counts: dict[int, int] = {}
    for paragraph in descendants(node, "p"):
        words = "".join((n.text or "") if local(n) == "t" else "\n" for n in descendants(paragraph, "t", "br"))
        if words.strip():
            style = child(paragraph, "pPr")
            level = whole_number(attribute(style, "lvl"), 0, 8)
            yield "  " * level + _number(child(style, "buAutoNum"), counts, level) + words.strip()


def _number(automatic: Any, counts: dict[int, int], level: int) -> str:
    """The number that the program shows before a paragraph, counted on in `counts`; "" where it shows none."""
    for deeper in [n for n in counts if n > level]:
        del counts[deeper]
    if automatic is None:
        counts.pop(level, None)
        return ""
    counts[level] = counts[level] + 1 if level in counts else whole_number(attribute(automatic, "startAt"), 1)
    kind = attribute(automatic, "type")
    case = "upper" if "Uc" in kind else "lower"
    shown = {"alpha": f"{case}Letter", "roman": f"{case}Roman"}.get(kind[:5], "decimal")
    return f"{formatted(counts[level], shown)}{')' if 'Paren' in kind else '.'} "
