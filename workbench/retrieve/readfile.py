"""Read a document by its path or by a citation, within the allowed folders, with errors as text that an agent can read.

The answer is the document's text, or one text that starts with `[ERROR: NOT_FOUND]` or `[ERROR: ACCESS_DENIED]`. A path
outside the allowed folders is denied whether or not it exists; a document that the principal may not see gives the same
bytes as one that is not there.

A file that is not indexed is read from disk, as UTF-8 text: below an indexed folder where an indexing run would take it and the
rules of `corpus.yaml` let the principal see it (`StoredRecords.may_read`), below a folder that is allowed by name by the local
owner from whom nothing is hidden. A file that has changed since it was indexed gives its current text, with a note; where that
text cannot be given, the stored one, with a note. Nobody reads from disk under a policy that masks: it knows stored documents
only. Texts come from the mapped text file: DuckDB would unpack those of two thousand documents to give one.

What a result cites opens again: `notes.md:12-18`, `report.pdf#page=3`, `book.xlsx#sheet=Sales&row=12-18`,
`plan.docx#paragraph=12..table=2&row=3`. People write less than that, and it is read too: `12-18` (lines), `page 3`, `slide 3`,
`table 2 row 3`, `Sales!A5`, `Sales`, `1:02` in a film. A path may itself hold `#` and `:`, so a citation is tried as a path
first, and cut from its end after that.
"""

from __future__ import annotations

import hashlib
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench import settings
from workbench.errors import CorpusError, UsageError, sentence, some_of
from workbench.ingest.encoding import normalise
from workbench.ingest.errors import ReadError
from workbench.ingest.frontmatter import read_front_matter
from workbench.ingest.rules import FileRules, narrow
from workbench.locators import Place, ends_of, locator, order_of, pairs_of
from workbench.records import Document, Span
from workbench.retrieve.engine import Engine


@dataclass(frozen=True, slots=True)
class FileText:
    """What reading gave: a document's text, or the error text where `found` is False.

    The two are distinguished here and not by how the text starts, which a document could imitate.

    Attributes:
        text: All of it.
        found: Whether it is a document's text.
        path: How it was asked for, without the place.
        number: The document's number, None for a file that was never indexed.
        place: The characters that were asked for, None for all of them.
        note: What to know of it: that it is not the text that is indexed.
        current: Whether it was read from disk.
    """

    text: str
    found: bool
    path: str = ""
    number: int | None = None
    place: Span | None = None
    note: str = ""
    current: bool = False

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line of the place, from 1, of all of the text where none was asked for."""
        return lines_of(self.text, self.place or Span(0, len(self.text)))

    @property
    def asked(self) -> str:
        return self.text if self.place is None else self.text[self.place.start : self.place.end]


def lines_of(text: str, span: Span) -> tuple[int, int]:
    """First and last line of some characters of a text, from 1."""
    first = text.count("\n", 0, span.start) + 1
    return first, first + text.count("\n", span.start, max(span.end - 1, span.start))


def find_cited(
    engine: Engine, asked: str, at: str = "", allowed: tuple[Path, ...] | None = None, *, stored: bool = False
) -> FileText:
    """The text of a visible document, or of a file below an allowed folder; what is asked for is then `place`.

    Args:
        engine: The generation.
        asked: A path as citations show it (relative to its root), an absolute one, or a whole citation.
        at: A place in it, instead of that of the citation: `12-18` (lines), `page=3`, `sheet=Sales&row=12`, `Sales!A12`. A place
            that is not there is a NOT_FOUND that says which are.
        allowed: Folders allowed by name, resolved; None: those of the setting `allowed_roots`.
        stored: Give an indexed document's stored text, whether or not its file has changed since.
    """
    tried = [(_find(engine, path, allowed, stored), place) for path, place in split_citation(asked.strip())]
    found, place = next(((f, p) for f, p in tried if f.found), tried[-1])
    place = at or place
    if not found.found or not place:
        return found
    try:
        return replace(found, place=_place_in(engine, found, place))
    except UsageError as exc:
        return FileText(f"[ERROR: NOT_FOUND] {found.path}: {exc}", found=False)


def _place_in(engine: Engine, found: FileText, place: str) -> Span:
    if found.number is None or found.current:
        return find_place(place, found.text, (), ())
    (header,) = engine.records.headers([found.number])
    return find_place(place, found.text, engine.records.places(found.number), header.page_starts)


def _find(engine: Engine, path: str, allowed: tuple[Path, ...] | None, stored: bool) -> FileText:
    records, scope, asked = engine.records, engine.visible, path.strip()
    explicit, indexed = explicit_roots() if allowed is None else allowed, tuple(map(Path, records.roots(scope)))
    number, inside = records.find_document(asked, scope), list[Path]()
    if number is None:
        roots = explicit or indexed
        inside = _inside(asked, roots)
        if not inside:
            what = f"{sentence(asked)} is outside the allowed folders" if asked else "No path is given"
            shown = ", ".join(map(str, roots)) or "none"
            return FileText(f"[ERROR: ACCESS_DENIED] {what}. Allowed folders: {shown}", found=False)
        named = (records.find_document(str(file), scope) for file in inside)
        number = next((n for n in named if n is not None), None)
    if number is not None:
        found = FileText(engine.grep.text(number), True, asked, number)
        return found if stored else _as_it_is(engine, found, explicit)
    if not records.masks:
        owner = engine.principal is None and scope.visible_documents is None
        for file in inside:
            read = _from_disk(engine, file, asked, indexed, unknown=bool(explicit) and owner)
            if read is not None:
                return read
    return _not_found(asked)


def explicit_roots() -> tuple[Path, ...]:
    """The folders that the setting `allowed_roots` names, resolved; empty where it names none."""
    return tuple(_real(p) for p in str(settings.get("allowed_roots")).split(os.pathsep) if p)


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _inside(asked: str, roots: tuple[Path, ...]) -> list[Path]:
    """The file below each root that holds the path after `..` and links are resolved."""
    if not asked or "\x00" in asked:
        return []
    held = []
    for root in roots:
        # An absolute path replaces the root; realpath resolves `..` and links, so nothing climbs out.
        try:
            resolved, base = _real(root / asked), _real(root)
        except UnicodeEncodeError:  # half of a character: no file has such a name
            return []
        if base in (resolved, *resolved.parents):
            held.append(resolved)
    return held


def _as_it_is(engine: Engine, found: FileText, explicit: tuple[Path, ...]) -> FileText:
    """A stored document's text, or the current text of its file where that has changed since and may be shown."""
    records = engine.records
    assert found.number is not None
    (document,) = records.headers([found.number])
    base = _real(document.root)
    path = _real(base / document.path)
    allowed = base in path.parents and (not explicit or any(root in path.parents for root in explicit))
    if records.masks or not document.root or not allowed:
        return found
    data = _bytes_of(path)
    if data is None or hashlib.sha256(data).hexdigest() == document.sha256:
        return found
    text = _decoded(data)
    changed = f"{found.path} has changed since it was indexed"
    if text is None or records.places(found.number):
        indexed = "this is the text that was indexed; run `workbench index` on its folder to bring it up to date"
        return replace(found, note=f"{changed}: {indexed}")
    try:
        given = FileRules(tenant=document.tenant, roles=document.roles, sensitivity=document.sensitivity)
        seen, _ = narrow(given, read_front_matter(text).values)
    except ReadError:
        return _not_found(found.path)
    if seen != given and not records.may_know(seen.access, document.path, engine.principal):
        return _not_found(found.path)
    note = f"{changed}: this is its text as it is now, and the line numbers of citations are those of the text that was indexed"
    return replace(found, text=text, note=note, current=True)


def _from_disk(engine: Engine, path: Path, asked: str, indexed: tuple[Path, ...], unknown: bool) -> FileText | None:
    """The text of a file that is not indexed, or why it has none; None where there is no such file for the principal.

    `path` has its links resolved; `unknown` is whether a file outside of the indexed folders may be read.
    """
    # os.path answers False for a name that no system takes, where Path raises.
    if any(os.path.isfile(folder / "current") and os.path.isdir(folder / "generations") for folder in path.parents):
        return None  # a file of a corpus
    home = next((root for root in sorted(map(_real, indexed)) if root in path.parents), None)
    data = _bytes_of(path)
    if data is None or (home is None and not unknown):
        return None
    text = _decoded(data)
    if home is not None:
        try:
            claims = {} if text is None else read_front_matter(text).values
        except ReadError:
            return None
        if not engine.records.may_read(str(home), path.relative_to(home).as_posix(), claims, engine.principal):
            return None
    if text is None:
        return FileText(
            f"[ERROR: NOT_TEXT] {sentence(asked)} is not indexed, and is not UTF-8 text. Index it to read what is in it",
            found=False,
        )
    return FileText(text, True, asked, note=f"{asked} is not indexed: this is the file as it is on disk", current=True)


def _bytes_of(path: Path) -> bytes | None:
    """A file's bytes; None where there is none, or it cannot be read, or is larger than `max_file_mb`."""
    try:
        if not path.is_file() or path.stat().st_size > int(settings.get("max_file_mb")) << 20:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None


def _decoded(data: bytes) -> str | None:
    """UTF-8 text with the line ends that indexed texts have; None for anything else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else normalise(text)


def _not_found(asked: str) -> FileText:
    """The same for a document that is not there and for one that the principal may not see."""
    return FileText(
        f"[ERROR: NOT_FOUND] There is no document {sentence(asked)}. "
        "Paths are relative to an indexed folder, as citations show them",
        found=False,
    )


def original(engine: Engine, document: Document) -> bytes:
    """The bytes of a visible document's file; `document` is one that the engine gave. Raises CorpusError where there are none."""
    if engine.records.masks:
        raise CorpusError(
            "Parts of texts are masked for you, and a picture of the page would show them",
            "Read the text, or ask somebody with the role to see all of it",
        )
    roots = explicit_roots() or map(_real, engine.records.roots(engine.visible))
    real = _real(Path(document.root) / document.path)
    if not document.root or not any(root in real.parents for root in roots):
        raise CorpusError(
            "The file is outside the allowed folders",
            "Add its folder to the setting allowed_roots, or index the whole folder",
        )
    again = "Index its folder again to"
    try:
        data = real.read_bytes()
    except OSError as exc:
        raise CorpusError("The file is not there any more", f"{again} bring the corpus up to date") from exc
    if hashlib.sha256(data).hexdigest() != document.sha256:
        raise CorpusError("The file has changed since it was indexed", f"{again} see it as it is now")
    return data


# --- citations and places ---------------------------------------------------------------------------------------------------

Pairs = tuple[tuple[str, str], ...]

_LINES = re.compile(r"(?:lines?\s*[ =]?\s*|:)?(\d{1,9})(?:\s*[-–]\s*(\d{1,9}))?")
_CITED_LINES = re.compile(r"(.+):(\d{1,9}(?:-\d{1,9})?)", re.DOTALL)
_CELL = re.compile(r"(?:(.+)!)?\$?([A-Za-z]{0,3})\$?(\d{1,7})(?::\$?[A-Za-z]{0,3}\$?(\d{1,7}))?")
_TIME = re.compile(r"(?:(\d{1,2}):)?(\d{1,2}):(\d{2})(?:[.,]\d+)?")
_SAID = re.compile(r"([a-z]+)\s*[ =]\s*(\d[\d:.]*(?:\s*[-–]\s*\d[\d:.]*)?)[,;]?\s*")
_RANGE = re.compile(r"(\d[\d:.]*)-(\d[\d:.]*)")
_SHORT = {"p": "page", "pp": "page", "para": "paragraph"}
_SHORT |= {f"{key}s": key for key in ("page", "slide", "row", "cell", "paragraph", "part", "table", "output")}
_FLOWING = frozenset({"line", "column", "time"})
"""Keys whose places mark where something begins; what lies between two of them belongs to the one before."""
_MOST_NAMED = 6
_LONGEST_SAID = 300
"""Characters of a place as people write it; only a locator, which is split and not matched, may be longer."""


def split_citation(asked: str) -> Iterator[tuple[str, str]]:
    """The ways to read a citation, as path and place, the whole as a path first; a place is "" where none is meant."""
    yield asked, ""
    lines = _CITED_LINES.fullmatch(asked)
    if lines is not None:
        yield lines[1], lines[2]
    path, mark, place = asked.rpartition("#")
    if mark and path:
        yield path, place


def find_place(at: str, text: str, places: Sequence[Place], page_starts: Sequence[int]) -> Span:
    """The characters of a text at a place.

    Args:
        at: The place: a locator, or as people write it.
        text: The document's text.
        places: Where it is in its original, in order; may be empty.
        page_starts: First character of each page; may be empty.

    Returns:
        From the first character to the last that is not blank. Raises UsageError, which says which places there are.
    """
    wanted = at.strip().removeprefix("#")
    known = tuple(places) or tuple(Place(start, locator(page=n)) for n, start in enumerate(page_starts, 1))
    looked = _Known(known, len(text))
    # A name may end in a blank of its own: a locator is read as it is written first, and without blanks around it then.
    exact = _spans(at, known, looked) if at != wanted and "=" in at else ()
    if exact:
        return _whole(exact, text)
    lines = _LINES.fullmatch(wanted) if len(wanted) <= _LONGEST_SAID else None
    numbered = bool(known) and known[-1].locator.startswith("line=")
    if lines is not None and not numbered:
        return _lines(text, int(lines[1]), int(lines[2] or lines[1]))
    if lines is not None:
        wanted = locator(line=f"{lines[1]}-{lines[2]}" if lines[2] else lines[1])
    found = _spans(wanted, known, looked)
    if not found:
        missing = next((end for end in _ends(wanted, known) if looked.span(end) is None), ())
        raise UsageError(f"There is no place {at.strip()[:_LONGEST_SAID]!r} in it", looked.there(missing, text))
    return _whole(found, text)


def _spans(wanted: str, known: Sequence[Place], looked: _Known) -> tuple[Span, ...]:
    """The characters at one place, or at the two ends of a range; () where one of them is not there."""
    spans = [looked.span(end) for end in _ends(wanted, known)]
    found = tuple(span for span in spans if span is not None)
    return found if len(found) == len(spans) else ()


def _whole(spans: Sequence[Span], text: str) -> Span:
    start, end = min(s.start for s in spans), max(s.end for s in spans)
    return Span(start, start + len(text[start:end].rstrip()))


def _lines(text: str, first: int, last: int) -> Span:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    if len(starts) > 1 and starts[-1] == len(text):
        starts.pop()  # a closing line end starts no further line
    if not 1 <= first <= len(starts):
        raise UsageError(f"There is no line {first:,} in it", f"Its last line is {len(starts):,}")
    last = min(max(first, last), len(starts))
    end = starts[last] - 1 if last < len(starts) else len(text) - text.endswith("\n")
    return Span(starts[first - 1], max(end, starts[first - 1]))


def _ends(wanted: str, known: Sequence[Place]) -> Iterator[Pairs]:
    """The places that are meant, one or the two ends of a range, as keys and values."""
    first, last = ends_of(wanted)
    for end in dict.fromkeys((first, last)):
        pairs = pairs_of(end) if "=" in end else _said(end, known)
        if pairs:
            yield tuple((_SHORT.get(key, key), value) for key, value in pairs)


def _said(words: str, known: Sequence[Place]) -> Pairs:
    """A place as people write it, as keys and values; () where it is none."""
    keys = {key for place in known for key, _ in pairs_of(place.locator)}
    named = _named(words, known)
    if named or len(words) > _LONGEST_SAID:
        return named
    time = _TIME.fullmatch(words)
    if time is not None and "time" in keys:
        return (("time", f"{int(time[1] or 0):02}:{int(time[2]):02}:{int(time[3]):02}"),)
    cell = _CELL.fullmatch(words)
    if cell is not None and "row" in keys and (cell[1] or "").count("\n") == 0:
        rows = ("row", cell[3] if cell[4] is None else f"{cell[3]}-{cell[4]}")
        if cell[1] is not None:
            return (("sheet", cell[1].strip().strip("'")), rows)
        first = next((pair for pair in pairs_of(known[0].locator) if pair[0] == "sheet"), None)
        return (rows,) if first is None else (first, rows)
    pairs: list[tuple[str, str]] = []
    rest = words.strip().lower()
    while match := _SAID.match(rest):
        pairs.append((_SHORT.get(match[1], match[1]), re.sub(r"\s*[-–]\s*", "-", match[2])))
        rest = rest[match.end() :]
    if rest and pairs:
        pairs.append(("part", rest))  # `slide 3 notes`
    return tuple(pairs)


def _named(words: str, known: Sequence[Place]) -> Pairs:
    """The outermost key whose value is just these words: a sheet, a part of a book."""
    wanted = words.strip().strip("'\"").casefold()
    for place in known:
        key, value = pairs_of(place.locator)[0]
        if value.casefold() == wanted and not value.isdigit():
            return ((key, value),)
    return ()


class _Known:
    """The places of a document, to look one up in."""

    def __init__(self, places: Sequence[Place], length: int) -> None:
        self._starts = [place.start for place in places]
        self._ends = [*self._starts[1:], length]
        self._pairs = [pairs_of(place.locator) for place in places]

    def span(self, wanted: Pairs) -> Span | None:
        """From the first to the last place that is meant, or inside of what is; None where there is none."""
        own = [n for n, pairs in enumerate(self._pairs) if _within(wanted, pairs)]
        if not own and wanted[-1][0] in _FLOWING:
            own = self._before(wanted)
        return Span(self._starts[own[0]], self._ends[own[-1]]) if own else None

    def _before(self, wanted: Pairs) -> list[int]:
        """The place before a line or moment that is none itself."""
        key, value = wanted[-1]
        low = order_of(value.partition("-")[0])
        own = [(n, dict(pairs)) for n, pairs in enumerate(self._pairs) if _within(wanted[:-1], pairs)]
        same = [(order_of(keys[key]), n) for n, keys in own if key in keys]
        # In the order of their numbers: a page may show the words of its lines in another one.
        at = bisect_right(sorted(number for number, _ in same), low)
        nearest = sorted(same)[at - 1][0] if at else None
        return [n for number, n in same if number == nearest]

    def there(self, wanted: Pairs, text: str) -> str:
        """What places there are, in a few words: the values of the innermost key that went wrong."""
        if not self._pairs:
            return f"It is cited by its lines, of which it has {len(text.splitlines()):,}, such as 12-18"
        outer = wanted[:-1]
        if outer and self.span(outer) is not None:
            values = [dict(pairs).get(wanted[-1][0], "") for pairs in self._pairs if _within(outer, pairs)]
            held = _listed(wanted[-1][0], values)
            if held:
                return f"There, {' '.join(outer[-1])} has {held}"
        keys = dict.fromkeys(pairs[0][0] for pairs in self._pairs)
        held = "; ".join(_listed(key, [v for p in self._pairs for k, v in p[:1] if k == key]) for key in keys)
        return f"It has {held}"


def _within(wanted: Pairs, pairs: Pairs) -> bool:
    """Whether a place has all the keys that are meant, with their values or with a number of their range."""
    own = dict(pairs)
    return all(key in own and _fits(value, own[key]) for key, value in wanted)


def _fits(wanted: str, value: str) -> bool:
    if wanted.casefold() == value.casefold():
        return True
    span = _RANGE.fullmatch(wanted)
    if span is None or not value[:1].isdigit():
        return False
    return order_of(span[1]) <= order_of(value) <= order_of(span[2])


def _listed(key: str, values: Sequence[str]) -> str:
    names = list(dict.fromkeys(value for value in values if value))
    if not names:
        return ""
    if len(names) > 2 and all(name[:1].isdigit() for name in names):
        return f"{key} {names[0]} to {names[-1]}"
    return f"{key} {some_of(names, _MOST_NAMED)}"
