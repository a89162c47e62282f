"""Which folder a file belongs to: roots stay what they were when a part of them, or more than them, is indexed.

A root is a folder that was indexed; paths, citations and ids are relative to it. Indexing a folder or file inside a known root
refreshes that part of it. Indexing a folder around a known root takes the root in: its files then belong to the new one, so
that no file is there twice. A file that is named alone has its folder as root, without the rest of the folder (`whole` is
False): nothing else in it becomes readable.

Two roots may hold the same relative path. The later one then gets a salt, its folder's name, which keeps the ids of its
documents apart, and keeps it from then on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.errors import UsageError
from workbench.ingest.walk import FoundFile, SkippedFile, relative_path


@dataclass(frozen=True, slots=True)
class Root:
    """An indexed folder: `whole`, or only files named in it. `options` says how it was walked (JSON)."""

    root: str
    whole: bool
    salt: str
    options: str


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def targets(paths: Sequence[str | Path]) -> tuple[str, ...]:
    """The real paths of what was asked for, sorted, without those inside another. Raises UsageError."""
    if not paths:
        raise UsageError("There is nothing to index", "Name at least one file or folder")
    found = set()
    for path in paths:
        absolute = os.path.abspath(path)
        if not os.path.exists(absolute):
            raise UsageError(f"There is no file or folder {os.fspath(path)!r}", "Check the spelling of the path")
        folder, name = (absolute, "") if os.path.isdir(absolute) else os.path.split(absolute)
        folder = os.path.realpath(folder)
        must_be_storable(folder)
        found.add(os.path.join(folder, name) if name else folder)
    return tuple(t for t in sorted(found) if not any(t != other and inside(t, other) for other in found))


def must_be_storable(folder: str) -> None:
    """Refuse a folder whose path is no UTF-8: it could not be stored, and the next run would take it for another one.

    A file or folder inside an indexed one may have such a name. Raises UsageError.
    """
    try:
        folder.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            f"The path {relative_path(folder)} is not UTF-8",
            "Rename the folder, or a folder above it that has such a name",
        ) from None


def home(folder: str, roots: Iterable[Root]) -> Root | None:
    """The whole root that holds a folder; the outermost of several."""
    return min((r for r in roots if r.whole and inside(folder, r.root)), key=lambda r: len(r.root), default=None)


def settle(
    found: Iterable[FoundFile | SkippedFile], asked: Sequence[str], old: Mapping[str, Root], options: str, own: str = ""
) -> tuple[list[FoundFile | SkippedFile], dict[str, Root]]:
    """Give every file found its root: the files with root and path as they are stored, and all roots of the corpus from now on.

    Args:
        found, asked: What the walk yields, and what was asked for (see `targets`).
        old: Roots of the corpus so far, by path.
        options: How this walk was done, kept with new roots.
        own: The corpus's folder: what it keeps there itself (memories) belongs to no folder around it.
    """
    folders = {t for t in asked if os.path.isdir(t)}
    taken_in = {f for f in folders if home(f, old.values()) is None}
    kept = {
        p: root
        for p, root in old.items()
        if (own and inside(p, own)) or not any(p != f and inside(p, f) for f in taken_in)
    }
    for folder in sorted(folders):
        holder = home(folder, kept.values())
        if holder is None:
            salt = kept[folder].salt if folder in kept else ""
            kept[folder] = Root(folder, True, salt, options)
        elif holder.root == folder:
            kept[folder] = replace(holder, options=options)
    placed: list[FoundFile | SkippedFile] = []
    for item in found:
        holder = None if own and inside(item.root, own) else home(item.root, kept.values())
        if holder is None:
            holder = kept.setdefault(item.root, Root(item.root, False, "", options))
        if holder.root == item.root:
            placed.append(item)
        else:
            above = relative_path(os.path.relpath(item.root, holder.root))
            below = "" if item.path == "./" else item.path
            placed.append(replace(item, root=holder.root, path=f"{above}/{below}"))
    placed.sort(key=lambda item: (item.root, item.path))
    return placed, kept


def salted(
    roots: Mapping[str, Root], new: set[str], paths: Mapping[str, set[str]]
) -> tuple[dict[str, Root], tuple[str, ...]]:
    """Give a salt to each new root that shares a relative path (`paths`, by root) with another; a warning for each."""
    result, warnings = dict(roots), []
    settled = [r for r in sorted(roots) if r not in new]
    for name in sorted(new):
        for other in settled:
            both = paths.get(name, set()) & paths.get(other, set())
            if both:
                taken, base = {r.salt for r in result.values()}, os.path.basename(name) or "root"
                salts = (f"{base}-{n}" if n else base for n in (0, *range(2, len(taken) + 3)))
                result[name] = replace(result[name], salt=next(salt for salt in salts if salt not in taken))
                warnings.append(
                    f"{name} and {other} both hold {min(both)}: filter by source to tell their documents apart, "
                    "or index the folder around both"
                )
                break
        settled.append(name)
    return result, tuple(warnings)
