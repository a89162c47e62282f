"""`.gitignore` files, nested: a deeper file overrules a shallower one, within a file the last matching line wins.

If the root lies in a git repository, the `.gitignore` files between the repository's top and the root count as well, as
they do for git; they do not count when they ignore the root itself, because who names a folder wants it read.
"""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NAME = ".gitignore"
_CLASS = re.compile(r"\[:(\w+):\]")
_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "xdigit": "0-9a-fA-F",
    "space": " \t", "blank": " \t",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ignore:
    """The patterns of one `.gitignore`.

    Attributes:
        spec: Its patterns.
        prefix: What to put before a path relative to the root to make it relative to this file's folder.
        cut: How many characters to take off the front instead.
        name: Path of the file, for the report.
    """

    spec: GitIgnoreSpec
    prefix: str
    cut: int
    name: str


def ignored(path: str, is_folder: bool, stack: tuple[Ignore, ...]) -> str:
    """Name of the `.gitignore` that ignores a path relative to the root, or "". The stack's last file is the deepest."""
    for ignore in reversed(stack):
        relative = _readable(ignore.prefix + path[ignore.cut :]) + ("/" if is_folder else "")
        include = ignore.spec.check_file(relative).include
        if include is not None:
            return ignore.name if include else ""
    return ""


def _readable(path: str) -> str:
    """A path in which bytes that are no UTF-8 are U+FFFD, as in the patterns: the matcher takes nothing else."""
    return os.fsencode(path).decode("utf-8", "replace")


def load(folder: str, prefix: str, cut: int) -> Ignore | None:
    """The `.gitignore` of a folder, or None. Lines that are no patterns are passed over, as git does."""
    from pathspec import GitIgnoreSpec

    file = os.path.join(folder, NAME)
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return None
    patterns = [pattern for line in lines for pattern in _patterns(line)]
    return Ignore(GitIgnoreSpec(patterns), prefix, cut, file) if patterns else None


def _patterns(line: str) -> list[Any]:
    try:
        return list(spec_of(line.removeprefix("\ufeff")).patterns)
    except ValueError:
        return []


def spec_of(line: str) -> GitIgnoreSpec:
    """One pattern as `.gitignore` has it, also with classes such as `[[:digit:]]`; ValueError where it is none.

    The library finds some faults only when it matches, and says them in the words of three regex engines.
    """
    from pathspec import GitIgnoreSpec

    spelled = _CLASS.sub(lambda match: _CLASSES.get(match[1], match[0]), line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # a bracket in brackets, which is what was written
        try:
            spec = GitIgnoreSpec.from_lines([spelled])
            spec.match_file("probe")
        except Exception as exc:
            raise ValueError(f"{line!r} is no pattern") from exc
    return spec


def above(root: str) -> tuple[Ignore, ...]:
    """The `.gitignore` files from the top of root's repository down to the folder above the root."""
    folders: list[str] = []
    folder = root
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ()
        folder = parent
        folders.append(folder)
    found: list[Ignore] = []
    for folder in reversed(folders):
        prefix = os.path.relpath(root, folder).replace(os.sep, "/") + "/"
        ignore = load(folder, prefix, 0)
        if ignore is not None:
            if ignored("", False, (ignore,)):
                return ()
            found.append(ignore)
    return tuple(found)


def ignores(root: str, path: str) -> bool:
    """Whether some `.gitignore` ignores a file at a path relative to the root, or a folder that it is in."""
    stack, folder = above(root), ""
    parts = path.split("/")
    for depth, part in enumerate(parts):
        found = load(os.path.join(root, folder), "", len(folder) + 1 if folder else 0)
        stack = (*stack, found) if found is not None else stack
        folder = f"{folder}/{part}" if folder else part
        if ignored(folder, depth < len(parts) - 1, stack):
            return True
    return False
