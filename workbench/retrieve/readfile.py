"""Read a document by its path, within the allowed folders, with errors as text that an agent can read.

The answer is the document's text, or one text that starts with `[ERROR: NOT_FOUND]` or `[ERROR: ACCESS_DENIED]`. A path
outside the allowed folders is denied whether or not it exists; a document that the principal may not see gives the same
bytes as one that is not there.

A file that was never indexed is read from disk only where folders are allowed by name and nobody's documents are kept apart:
the files on disk carry neither tenant nor roles, so a named principal reads stored documents and nothing else. Nor does anybody
under a policy that masks: it knows stored documents only. Texts come from the mapped text file: DuckDB would unpack those of
two thousand documents to give one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from workbench import settings
from workbench.errors import UsageError, sentence
from workbench.records import Principal, Span
from workbench.retrieve.cited import find_place, split_citation
from workbench.retrieve.engine import Engine
from workbench.store.protocols import Scope


@dataclass(frozen=True, slots=True)
class FileText:
    """What reading gave: a document's text, or the error text where `found` is False.

    The two are told apart here and not by how the text starts, which a document could imitate.

    Attributes:
        text: All of it.
        found: Whether it is a document's text.
        path: How it was asked for, without the place.
        number: The document's number, None for a file that was never indexed.
        place: The characters that were asked for, None for all of them.
    """

    text: str
    found: bool
    path: str = ""
    number: int | None = None
    place: Span | None = None

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line of the place, from 1, of all of the text where none was asked for."""
        start, end = (0, len(self.text)) if self.place is None else (self.place.start, self.place.end)
        first = self.text.count("\n", 0, start) + 1
        return first, first + self.text.count("\n", start, max(end - 1, start))

    @property
    def asked(self) -> str:
        """The text at the place that was asked for."""
        return self.text if self.place is None else self.text[self.place.start : self.place.end]


def read_file(engine: Engine, principal: Principal | None, path: str, at: str = "") -> str:
    """The stored text of a visible document, the text of a file below an allowed root, or an error text.

    Args:
        engine: The generation.
        principal: Who asks.
        path: As citations show it (relative to its root), absolute, or a whole citation, whose place alone is given.
        at: A place in it, in place of that of the citation: `12-18` (lines), `page=3`, `sheet=Sales&row=12`, `Sales!A12`.
    """
    return find_cited(engine, principal, path, at).asked


def find_cited(
    engine: Engine, principal: Principal | None, asked: str, at: str = "", allowed: tuple[Path, ...] | None = None
) -> FileText:
    """As `find_file`, for a citation as well as for a path: what is asked for is then `place`.

    A place that is not there is a NOT_FOUND that says which are.
    """
    tried = [(find_file(engine, principal, path, allowed), place) for path, place in split_citation(asked.strip())]
    found, place = next(((f, p) for f, p in tried if f.found), tried[-1])
    place = at or place
    if not found.found or not place:
        return found
    try:
        if found.number is None:
            span = find_place(place, found.text, (), ())
        else:
            (header,) = engine.records.headers([found.number])
            span = find_place(place, found.text, engine.records.places(found.number), header.page_starts)
    except UsageError as exc:
        return FileText(f"[ERROR: NOT_FOUND] {found.path}: {exc}", found=False)
    return replace(found, place=span)


def find_file(
    engine: Engine, principal: Principal | None, path: str, allowed: tuple[Path, ...] | None = None
) -> FileText:
    """As `read_file`, and whether there was such a document.

    Args:
        engine: The generation.
        principal: Who asks.
        path: As citations show it (relative to its root), or absolute.
        allowed: Folders allowed by name, resolved; None: those of the setting `allowed_roots`.
    """
    scope = engine.records.scope(principal, None, ())
    asked = path.strip()
    if not asked:
        return FileText("[ERROR: ACCESS_DENIED] No path is given. Write one as citations show it", found=False)
    number = engine.records.find_document(asked, scope)
    if number is not None:
        return _stored(engine, number, asked)
    explicit = explicit_roots() if allowed is None else allowed
    roots = explicit or _indexed_roots(engine, scope)
    inside = _inside(asked, roots)
    if inside is None:
        shown = ", ".join(str(r) for r in roots) or "none"
        denied = f"{sentence(asked)} is outside the allowed folders. Allowed folders: {shown}"
        return FileText(f"[ERROR: ACCESS_DENIED] {denied}", found=False)
    for root, relative in inside:
        number = engine.records.find_document(str(root / relative), scope)
        if number is not None:
            return _stored(engine, number, asked)
    if explicit and principal is None and scope.visible_documents is None and not engine.records.masks:
        for root, relative in inside:
            text = _from_disk(root / relative)
            if text is not None:
                return FileText(text, True, asked)
    return FileText(
        f"[ERROR: NOT_FOUND] There is no document {sentence(asked)}. "
        "Paths are relative to an indexed folder, as citations show them",
        found=False,
    )


def explicit_roots() -> tuple[Path, ...]:
    """The folders that the setting `allowed_roots` names, resolved; empty where it names none."""
    value = str(settings.get("allowed_roots"))
    return tuple(Path(os.path.realpath(p)) for p in value.split(os.pathsep) if p)


def _stored(engine: Engine, number: int, asked: str) -> FileText:
    return FileText(engine.grep.text(number), True, asked, number)


def _indexed_roots(engine: Engine, scope: Scope) -> tuple[Path, ...]:
    return tuple(Path(r) for r in engine.records.roots(scope))


def _inside(asked: str, roots: tuple[Path, ...]) -> list[tuple[Path, Path]] | None:
    """Root and relative path for each root that holds the path after `..` and links are resolved; None if none does."""
    if not asked or "\x00" in asked:
        return None
    held = []
    for root in roots:
        # An absolute path replaces the root; realpath resolves `..` and links, so nothing climbs out.
        try:
            resolved = Path(os.path.realpath(root / asked))
        except UnicodeEncodeError:  # half of a character: no file has such a name
            return None
        base = Path(os.path.realpath(root))
        if resolved == base or base in resolved.parents:
            held.append((base, resolved.relative_to(base)))
    return held or None


def _from_disk(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
