"""Slides (PPTX): the shapes of each slide in their order, its tables, charts and diagrams, then its notes and comments.

A place is the slide's number as the program shows it, from 1: `slide=3`, and `slide=3&part=notes`. Hidden slides are read too,
and said to be hidden in their heading and in the metadata. No chunk mixes two slides, and none has the heading of another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.readers.base import Member, Parsed, Source
from workbench.ingest.readers.numbering import formatted
from workbench.ingest.readers.package import Package, attribute, child, descendants, local, opened, properties
from workbench.ingest.readers.sheets import plain_number
from workbench.ingest.readers.word import embedded, main_part
from workbench.ingest.writing import TextWriter
from workbench.locators import locator, whole_number

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
        hidden: list[str] = []
        for number, node in enumerate(descendants(package.must(main), "sldId"), 1):
            key = next((v for k, v in node.attrib.items() if k.endswith("}id")), "")
            part = relations.get(key, ("", ""))[1]
            try:
                root = package.must(part)
            except ReadError as exc:
                problems.append(Problem(f"Slide {number} cannot be read: {exc.message}", exc.remedy))
                continue
            own = package.relations(part)
            if attribute(root, "show") in ("0", "false"):
                hidden.append(str(number))
            _slide(writer, package, root, own, number)
            members |= {member.name: member for member in embedded(package, own)}
        text, outline, places = writer.finish()
        yield from problems
        if hidden:
            metadata["hidden"] = f"slides {', '.join(hidden)}"
        yield Parsed(text, "slides", outline, title, language=language, metadata=metadata, places=places)
        yield from members.values()


def _slide(writer: TextWriter, package: Package, root: Any, relations: dict[str, tuple[str, str]], number: int) -> None:
    at = locator(slide=number)
    writer.apart()
    shapes = list(_shapes(child(root, "cSld", "spTree")))
    title = next((shape for shape in shapes if _placeholder(shape) in _TITLES), None)
    words = " ".join(_paragraphs(title)) if title is not None else ""
    if attribute(root, "show") in ("0", "false"):
        words = f"{words} (hidden slide)".strip()
    if words.strip():
        writer.heading(words, 1, at)
    else:
        writer.unheaded()
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
    counts: dict[int, int] = {}
    for paragraph in descendants(node, "p"):
        words = "".join(
            (n.text or "") if local(n) == "t" else "\n" for n in descendants(paragraph, "t", "br")
        )  # fmt: skip
        if words.strip():
            properties_of = child(paragraph, "pPr")
            said = attribute(properties_of, "lvl") if properties_of is not None else ""
            level = whole_number(said, 0, 8)
            yield "  " * level + _number(child(properties_of, "buAutoNum"), counts, level) + words.strip()


def _number(automatic: Any, counts: dict[int, int], level: int) -> str:
    """The number that the program shows before a paragraph, counted on in `counts`; "" where it shows none."""
    for deeper in [n for n in counts if n > level]:
        del counts[deeper]
    if automatic is None:
        counts.pop(level, None)
        return ""
    first = attribute(automatic, "startAt")
    counts[level] = counts[level] + 1 if level in counts else whole_number(first, 1)
    kind = attribute(automatic, "type")
    named = "upper" if "Uc" in kind else "lower"
    shown = {"alpha": f"{named}Letter", "roman": f"{named}Roman"}.get(kind[:5], "decimal")
    return f"{formatted(counts[level], shown)}{')' if 'Paren' in kind else '.'} "


def _drawn(root: Any) -> str:
    """Words of a chart or of a diagram, each once, then a chart's series: `name: category value, ...`."""
    if root is None:
        return ""
    paragraphs = ["".join(n.text or "" for n in descendants(p, "t")) for p in descendants(root, "p")]
    series = [_series(node) for node in descendants(root, "ser")]
    return "\n".join(dict.fromkeys(words.strip() for words in (*paragraphs, *series) if words.strip()))


def _series(node: Any) -> str:
    name = " ".join(_points(child(node, "tx")).values())
    categories, values = (_points(_either(node, *names)) for names in (("cat", "xVal"), ("val", "yVal")))
    pairs = [f"{categories.get(at, '')} {value}".strip() for at, value in values.items()] or list(categories.values())
    return f"{name}: {', '.join(pairs)}" if name and pairs else name or ", ".join(pairs)


def _either(node: Any, *names: str) -> Any:
    return next((found for found in (child(node, name) for name in names) if found is not None), None)


def _points(node: Any) -> dict[str, str]:
    """A chart's cached words or numbers by their place; a number without the noise of floating point."""
    found: dict[str, str] = {}
    for point in descendants(node, "pt") if node is not None else ():
        value = child(point, "v")
        words = (value.text or "").strip() if value is not None else ""
        if words:
            found.setdefault(attribute(point, "idx"), _plain(words))
    return found


def _plain(words: str) -> str:
    try:
        return plain_number(float(words)) if "." in words else words
    except (ValueError, OverflowError):
        return words
