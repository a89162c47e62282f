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
from dataclasses import dataclass
from pathlib import Path

from workbench import settings
from workbench.records import Principal
from workbench.retrieve.engine import Engine
from workbench.store.protocols import Scope


@dataclass(frozen=True, slots=True)
class FileText:
    """What reading gave: a document's text, or the error text where `found` is False.

    The two are told apart here and not by how the text starts, which a document could imitate.
    """

    text: str
    found: bool


def read_file(engine: Engine, principal: Principal | None, path: str) -> str:
    """The stored text of a visible document, the text of a file below an allowed root, or an error text.

    Args:
        engine: The generation.
        principal: Who asks.
        path: As citations show it (relative to its root), or absolute.
    """
    return find_file(engine, principal, path).text


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
    number = engine.records.find_document(asked, scope)
    if number is not None:
        return _stored(engine, number)
    explicit = explicit_roots() if allowed is None else allowed
    roots = explicit or _indexed_roots(engine, scope)
    inside = _inside(asked, roots)
    if inside is None:
        shown = ", ".join(str(r) for r in roots) or "none"
        return FileText(
            f"[ERROR: ACCESS_DENIED] {asked} is outside the allowed folders. Allowed folders: {shown}", found=False
        )
    for root, relative in inside:
        number = engine.records.find_document(str(root / relative), scope)
        if number is not None:
            return _stored(engine, number)
    if explicit and principal is None and scope.visible_documents is None and not engine.records.masks:
        for root, relative in inside:
            text = _from_disk(root / relative)
            if text is not None:
                return FileText(text, found=True)
    return FileText(
        f"[ERROR: NOT_FOUND] There is no document {asked}. Paths are relative to an indexed folder, as citations show them",
        found=False,
    )


def explicit_roots() -> tuple[Path, ...]:
    """The folders that the setting `allowed_roots` names, resolved; empty where it names none."""
    value = str(settings.get("allowed_roots"))
    return tuple(Path(os.path.realpath(p)) for p in value.split(os.pathsep) if p)


def _stored(engine: Engine, number: int) -> FileText:
    return FileText(engine.grep.text(number), found=True)


def _indexed_roots(engine: Engine, scope: Scope) -> tuple[Path, ...]:
    return tuple(Path(r) for r in engine.records.roots(scope))


def _inside(asked: str, roots: tuple[Path, ...]) -> list[tuple[Path, Path]] | None:
    """Root and relative path for each root that holds the path after `..` and links are resolved; None if none does."""
    if not asked or "\x00" in asked:
        return None
    held = []
    for root in roots:
        # An absolute path replaces the root; realpath resolves `..` and links, so nothing climbs out.
        resolved = Path(os.path.realpath(root / asked))
        base = Path(os.path.realpath(root))
        if resolved == base or base in resolved.parents:
            held.append((base, resolved.relative_to(base)))
    return held or None


def _from_disk(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
