"""Zip packages of XML (Office, OpenDocument, EPUB): their parts, safely.

Every part comes through the file's `Unpacking`, so a bomb ends as a sentence.
"""

from __future__ import annotations

import lzma
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workbench.ingest.encoding import symbols
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.outline import raised, useful_title
from workbench.ingest.readers.base import RESAVE, Member, Source
from workbench.ingest.readers.tree import attribute, child, descendants, is_on, local, parse_xml, text_of, value

if TYPE_CHECKING:
    from lxml.etree import _Element

Relations = dict[str, tuple[str, str]]
"""Id -> (last word of the type, target part)."""
_REMEDY = "Get the file again, or open it in the program that made it and save it again"
_FAULTS = (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError, zlib.error, lzma.LZMAError)
_ROMAN = dict(
    zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "m cm d cd c xc l xl x ix v iv i".split(), strict=True)
)
_CORE = dict(
    pair.split("=")
    for pair in "creator=author initial-creator=author subject=subject keywords=keywords keyword=keywords category=category"
    " description=description created=created creation-date=created lastModifiedBy=modified_by".split()
)


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
        if fault:
            problem = Problem(f"Its part {name} {fault}: words may be missing", RESAVE)
            if problem not in self._source.problems:
                self._source.problems.append(problem)
        return root

    def must(self, name: str) -> _Element:
        root = self.xml(name)
        if root is None:
            raise ReadError(f"It is broken: its part {name} is missing or unreadable", _REMEDY)
        return root

    def main(self, usual: str) -> str:
        return next((target for kind, target in self.relations("").values() if kind == "officeDocument"), usual)

    def relations(self, part: str) -> Relations:
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
        for kind, target in self.relations(part).values():
            root = self.xml(target) if kind in kinds else None
            if root is not None:
                yield root


@contextmanager
def opened(source: Source) -> Iterator[Package]:
    with source.stream() as stream:
        try:
            package = zipfile.ZipFile(stream)
        except _FAULTS as exc:
            raise ReadError("It is broken: it ends too early, or its table of contents is damaged", _REMEDY) from exc
        with package:
            yield Package(package, source)


def properties(root: Any) -> tuple[str, str, dict[str, Any]]:
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


def shown(root: Any, looks: Mapping[str, str] | None = None) -> int:
    """Change a tree of Office XML so that its `t` elements are what the program shows.

    Signs of symbol fonts become letters, formulas one line, raised figures are set apart from those before them; what is
    formatted as hidden, shapes that are hidden and what tracked changes have deleted is taken out.

    Args:
        root: The tree; None is left alone.
        looks: Style of characters -> `hidden`, `superscript` or `subscript`.

    Returns:
        How many runs and shapes of hidden text were taken out.
    """
    hidden = 0
    if root is None:
        return 0
    for node in list(root.iter("{*}cNvPr", "{*}docPr")):
        shape = node.getparent()
        if attribute(node, "hidden") in ("1", "true") and shape is not None:
            shape = shape.getparent() if local(shape).startswith("nv") else shape
            hidden += bool(text_of(shape, "t").strip()) or next(shape.iter("{*}chart", "{*}relIds"), None) is not None
            shape[:] = []
    for node in list(root.iter(*_LOOKS)):
        name, above = local(node), node.getparent()
        if above is None:  # it went with what it was in
            continue
        run = above.getparent() if local(above) == "rPr" else above
        if name == "oMath":
            words = math(node)
            node[:] = []
            node.tag, node.text = node.tag.replace("oMath", "t"), words
        elif name == "sym" and attribute(node, "char"):
            node.text = symbols(chr(int(attribute(node, "char"), 16)), attribute(node, "font"))
            node.tag = node.tag.replace("}sym", "}t")
        elif name == "del" and run is not None and local(run) == "pPr":  # the next paragraph goes on with this one
            paragraph = run.getparent()
            following = paragraph.getnext()
            if following is not None and local(following) == "p":
                at = 1 if len(following) and local(following[0]) == "pPr" else 0
                following[at:at] = [inner for inner in paragraph if local(inner) != "pPr"]
        elif name == "del" and local(above) == "trPr":
            row = above.getparent()
            row.getparent().remove(row)
        elif run is not None and local(run) == "r":
            hidden += _look(node, run, looks or {})
    return hidden


_LOOKS = tuple(f"{{*}}{name}" for name in "oMath sym del vanish vertAlign rFonts rStyle latin rPr".split())


def _look(node: Any, run: Any, looks: Mapping[str, str]) -> bool:
    name, kind, font = local(node), attribute(node, "val"), ""
    if name == "rPr":
        kind = {"": "", "-": "subscript"}.get((node.get("baseline") or "").strip("0")[:1], "superscript")
    elif name == "rStyle":
        kind = looks.get(kind, "")
    elif name == "vanish":
        kind = "hidden" if is_on(node) else ""
    elif name != "vertAlign":
        font = attribute(node, "ascii" if name == "rFonts" else "typeface").lower()
    if kind not in ("hidden", "superscript", "subscript") and font not in ("symbol", "wingdings"):
        return False
    texts = [inner for inner in run if local(inner) == "t"]
    for text in texts:
        if kind == "hidden":
            run.remove(text)
        elif font:
            text.text = symbols(text.text or "", font)
        else:
            text.text = raised(text_of(run.getprevious(), "t"), text.text or "", kind == "subscript")
            break
    return kind == "hidden" and bool(texts)


def math(node: Any) -> str:
    """A formula of Office or MathML on one line: `1/2`, `v^2`, `x_i`."""
    return " ".join(_math(node).split())


def _math(node: Any) -> str:
    name = local(node)
    if name in ("t", "mi", "mn", "mo", "mtext", "ms"):
        return node.text or ""
    parts = [_math(inner) for inner in node if not local(inner).endswith(("Pr", "annotation", "annotation-xml"))]
    of = [part.strip() if re.fullmatch(r"\s*[\w.,]*\s*", part) else f"({part.strip()})" for part in parts]
    if name in ("f", "mfrac") and len(of) == 2:
        return f" {of[0]}/{of[1]} "
    if name in ("sSup", "msup", "sSub", "msub", "sSubSup", "msubsup") and len(of) > 1:
        marks = {"p": "^", "b": "_"}[name[-1]] if len(of) == 2 else "_^"
        return parts[0] + "".join(f"{mark}{part}" for mark, part in zip(marks, of[1:], strict=False) if part != "()")
    if name == "msqrt" and len(of) != 1:
        return f"\u221a({' '.join(parts)})"
    if name in ("rad", "msqrt", "mroot"):
        return f"\u221a{of[-1] if name == 'rad' else of[0]}"
    if name in ("d", "nary"):
        given = child(node, f"{name}Pr")
        signs = {key: value(given, key) for key in ("chr", "begChr", "endChr") if child(given, key) is not None}
        if name == "d":
            return f"{signs.get('begChr', '(')}{', '.join(parts)}{signs.get('endChr', ')')}"
        return f"{signs.get('chr', chr(0x222B))} {' '.join(parts)}"
    return (" " if name[:1] == "m" or name == "eqArr" else "").join(parts)


def embedded(package: Package, relations: Relations) -> Iterator[Member]:
    """Files that lie in the package as they are: embedded documents and imported pieces."""
    wanted = {target for kind, target in relations.values() if kind in ("aFChunk", "subDocument")}
    for name in package.names:
        if name in wanted or ("/embeddings/" in name and not name.endswith("/")):
            yield Member(name.rpartition("/")[2], package.read(name))


def formatted(number: int, kind: str) -> str:
    """A number in one of Word's formats; those of other scripts as digits."""
    if kind.endswith("Letter") and 0 < number <= 780:  # as far as Word goes
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if kind.startswith("upper") else letters
    if kind.endswith("Roman") and 0 < number < 4000:
        found = ""
        for size, sign in _ROMAN.items():
            found += sign * (number // size)
            number %= size
        return found.upper() if kind.startswith("upper") else found
    return f"{number:02d}" if kind == "decimalZero" else str(number)


def plain_number(number: float) -> str:
    """The shortest text of a number with at most 15 digits, which is what spreadsheets show."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else f"{number:.15g}"


def drawings(node: Any, package: Package, relations: Relations) -> Iterator[str]:
    """The words of the charts and diagrams below a node of the part that has these relations."""
    for drawing in node.iter("{*}chart", "{*}relIds"):
        part = relations.get(attribute(drawing, "dm") or attribute(drawing, "id"), ("", ""))[1]
        yield drawn(package.xml(part))


def drawn(root: Any) -> str:
    """Words of a chart or of a diagram, each once, then a chart's series: `name: category value, ...`."""
    paragraphs = [text_of(p, "t") for p in descendants(root, "p")]
    series = [_series(node) for node in descendants(root, "ser")]
    return "\n".join(dict.fromkeys(words.strip() for words in (*paragraphs, *series) if words.strip()))


def _series(node: Any) -> str:
    name = " ".join(_points(node, "tx").values())
    categories, values = _points(node, "cat", "xVal"), _points(node, "val", "yVal")
    pairs = [f"{categories.get(at, '')} {shown}".strip() for at, shown in values.items()] or list(categories.values())
    return f"{name}: {', '.join(pairs)}" if name and pairs else name or ", ".join(pairs)


def _points(series: Any, *names: str) -> dict[str, str]:
    """The cached words or numbers of a chart's series by their place; a number without the noise of floating point."""
    node = next((found for found in (child(series, name) for name in names) if found is not None), None)
    found: dict[str, str] = {}
    for point in descendants(node, "pt"):
        cached = child(point, "v")
        words = (cached.text or "").strip() if cached is not None else ""
        if words:
            try:
                shown = plain_number(float(words)) if "." in words else words
            except (ValueError, OverflowError):
                shown = words
            found.setdefault(attribute(point, "idx"), shown)
    return found
