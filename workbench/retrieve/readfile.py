"""Read a document by its path, within the allowed folders, with errors as text that an agent can read.

The answer is the document's text, or one text that starts with `[ERROR: NOT_FOUND]` or `[ERROR: ACCESS_DENIED]`. A path
outside the allowed folders is denied whether or not it exists; a document that the principal may not see gives the same
bytes as one that is not there.
"""

from __future__ import annotations

import os
from pathlib import Path

from workbench import settings
from workbench.records import Principal
from workbench.retrieve.engine import Engine
from workbench.store.protocols import Scope


def read_file(engine: Engine, principal: Principal | None, path: str) -> str:
    """The stored text of a visible document, the text of a file below an allowed root, or an error text.

    Args:
        engine: The generation.
        principal: Who asks.
        path: As citations show it (relative to its root), or absolute.
    """
    scope = engine.records.scope(principal, None, ())
    asked = path.strip()
    number = engine.records.find_document(asked, scope)
    if number is not None:
        (document,) = engine.records.documents([number])
        return document.text
    explicit = _explicit_roots()
    roots = explicit or _indexed_roots(engine, scope)
    inside = _inside(asked, roots)
    if inside is None:
        shown = ", ".join(str(r) for r in roots) or "none"
        return f"[ERROR: ACCESS_DENIED] {asked} is outside the allowed folders. Allowed folders: {shown}"
    for root, relative in inside:
        number = engine.records.find_document(str(root / relative), scope)
        if number is not None:
            (document,) = engine.records.documents([number])
            return document.text
    # A file that was never indexed has nobody who may see it, unless the folders were allowed by name.
    if explicit:
        for root, relative in inside:
            text = _from_disk(root / relative)
            if text is not None:
                return text
    return f"[ERROR: NOT_FOUND] There is no document {asked}. Paths are relative to an indexed folder, as citations show them"


def _explicit_roots() -> tuple[Path, ...]:
    value = str(settings.get("allowed_roots"))
    return tuple(Path(os.path.realpath(p)) for p in value.split(os.pathsep) if p)


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
