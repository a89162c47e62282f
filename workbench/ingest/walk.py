"""Find the files to index, and say of every other one why it is not among them.

Nothing is left out silently: what is hidden, ignored, too large, special or unreadable comes out as a `SkippedFile` with
its reason and remedy (a whole folder as one, its path ending in `/`). The order is that of the relative paths, whatever
order the file system lists them in.

Links: a link that leads out of the root is not followed. A link inside the root is followed after everything else, and
only to what was not read under its own name; so each file is read once and a circle of links ends. What is read is what the
walk found: a link that takes its place before it is opened is not followed (`open_found`).

`.gitignore` files are nested: a deeper file overrules a shallower one, within a file the last matching line wins, and what
lies in an ignored folder is ignored. If the root lies in a git repository, those between the repository's top and the root
count as well; they do not count when they ignore the root itself, because who names a folder wants it read.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench import settings
from workbench.errors import UsageError, system_words
from workbench.records import FileStatus

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LONE_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # surrogates that stand for no byte of a file name
_VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})
_PERMISSION = "Give yourself the right to read it, or leave it out by .gitignore"
_CLASS = re.compile(r"\[:(\w+):\]")
_CLASSES = dict(
    pair.split("=") for pair in "alpha=a-zA-Z digit=0-9 alnum=a-zA-Z0-9 upper=A-Z lower=a-z xdigit=0-9a-fA-F".split()
) | dict.fromkeys(("space", "blank"), " \t")
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode), "a device"),
)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read.

    Attributes:
        root: Absolute path of the indexed folder; for a file that was named alone, of the folder it is in.
        path: Path relative to the root, NFC, `/`.
        absolute: Where to open it.
        size: Bytes.
        modified_ns: Modification time, nanoseconds since 1970 UTC.
        real: Where it is without links, as the walk found it; "" is not checked when it is opened.
    """

    root: str
    path: str
    absolute: str
    size: int
    modified_ns: int
    real: str = ""


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file or folder that is not read. A folder's path ends in `/`; `status` is FAILED where the system refused."""

    root: str
    path: str
    reason: str
    remedy: str
    status: FileStatus = FileStatus.SKIPPED


def relative_path(raw: str) -> str:
    """A path as it is stored: `/`, NFC, and bytes that are no UTF-8 written as `\\xff`, halves of a character as `?`."""
    try:
        raw.encode("utf-8")
    except UnicodeEncodeError:
        how = "replace" if _LONE_HALVES.search(raw) else "surrogateescape"
        raw = raw.encode("utf-8", how).decode("utf-8", "backslashreplace")
    return unicodedata.normalize("NFC", raw.replace(os.sep, "/"))


def folder_and_name(path: str | Path) -> tuple[str, str]:
    """The real path of a folder and "", or of the folder of a file and its name. Raises UsageError where nothing is there."""
    absolute = os.path.abspath(path)
    if not os.path.exists(absolute):
        raise UsageError(f"There is no file or folder {os.fspath(path)!r}", "Check the spelling of the path")
    folder, name = (absolute, "") if os.path.isdir(absolute) else os.path.split(absolute)
    return os.path.realpath(folder), name


def walk(
    paths: Iterable[str | Path],
    *,
    hidden: bool = False,
    gitignore: bool = True,
    max_file_mb: int | None = None,
    exclude: Sequence[str | Path] = (),
) -> Iterator[FoundFile | SkippedFile]:
    """Find the files of folders and files.

    Args:
        paths: Folders (each a root) and files (whose folder is the root; a file that is named is taken even if it is
            hidden or ignored). A file that two of them lead to comes once, under the outermost folder.
        hidden: Take files and folders whose name starts with a dot, except those of version control.
        gitignore: Honour `.gitignore`.
        max_file_mb: Larger files are skipped, in units of 2**20 bytes; None: the setting of that name.
        exclude: Folders to leave out, such as the corpus itself.

    Returns:
        An iterator; within a root in code-point order of the paths, followed links last.

    Raises:
        UsageError: A path does not exist. It is raised at once, before anything is yielded.
    """
    roots: dict[str, set[str]] = {}
    for path in paths:
        folder, name = folder_and_name(path)
        roots.setdefault(folder, set()).add(name)
    limit = settings.get("max_file_mb") if max_file_mb is None else max_file_mb
    excluded = frozenset(os.path.realpath(folder) for folder in exclude)
    return _walk(roots, hidden, gitignore, int(limit), excluded)


def _walk(
    roots: dict[str, set[str]], hidden: bool, gitignore: bool, most: int, excluded: frozenset[str]
) -> Iterator[FoundFile | SkippedFile]:
    seen: set[str] = set()
    for root in sorted(roots):
        if "" in roots[root]:
            yield from _Root(root, hidden, gitignore, most, excluded, seen).walk()
    for root in sorted(roots):
        for name in sorted(roots[root] - {""}):
            real = os.path.realpath(os.path.join(root, name))
            if real not in seen:
                yield from _Root(root, hidden, gitignore, most, excluded, seen).take(name, relative_path(name), real)


class _Entry(NamedTuple):
    """A file or folder to read: its path below the root as the system spells it, and its real path."""

    raw: str
    real: str
    is_folder: bool
    ignores: tuple[_Ignore, ...]


@dataclass(slots=True)
class _Root:
    """The walk of one root; files have at most `most` times 2**20 bytes.

    `seen` holds the real paths of files already yielded and folders entered, over all roots.
    """

    root: str
    hidden: bool
    gitignore: bool
    most: int
    excluded: frozenset[str]
    seen: set[str]
    names: set[str] = field(default_factory=set)
    links: list[tuple[str, tuple[_Ignore, ...]]] = field(default_factory=list)

    def walk(self) -> Iterator[FoundFile | SkippedFile]:
        yield from self._folder("", self.root, _above(self.root) if self.gitignore else ())
        while self.links:
            pending, self.links = sorted(self.links, key=lambda link: relative_path(link[0])), []
            for raw, ignores in pending:
                yield from self._link(raw, ignores)

    def skip(self, path: str, reason: str, remedy: str, status: FileStatus = FileStatus.SKIPPED) -> SkippedFile:
        return SkippedFile(self.root, path, reason, remedy, status)

    def _folder(self, raw: str, real: str, ignores: tuple[_Ignore, ...]) -> Iterator[FoundFile | SkippedFile]:
        """Everything below a folder, without recursion: a tree may be deeper than the interpreter's stack."""
        stack = [self._entries(_Entry(raw, real, True, ignores))]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, SkippedFile):
                yield item
            elif item.is_folder:
                stack.append(self._entries(item))
            else:
                yield from self.take(item.raw, relative_path(item.raw), item.real)

    def _entries(self, of: _Entry) -> Iterator[_Entry | SkippedFile]:
        """The files and folders of one folder that are to be read, and skips for the others."""
        raw, real, ignores = of.raw, of.real, of.ignores
        folder = os.path.join(self.root, raw) if raw else self.root
        shown = relative_path(raw) + "/" if raw else "./"
        if real in self.excluded:
            yield self.skip(shown, "It is the corpus itself", "Nothing needs to be done")
            return
        if real in self.seen:
            return
        self.seen.add(real)
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda e: relative_path(e.name) + "/" * e.is_dir(follow_symlinks=False))
        except OSError as exc:
            yield self.skip(shown, f"The folder cannot be read: {system_words(exc)}", _PERMISSION, FileStatus.FAILED)
            return
        if self.gitignore:
            own = _load_ignore(folder, "", len(raw) + 1 if raw else 0)
            ignores = (*ignores, own) if own is not None else ignores
        for entry in entries:
            path = f"{raw}/{entry.name}" if raw else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            skipped = self._left_out(path, entry.name, is_folder, ignores)
            if skipped is not None:
                yield skipped
            elif entry.is_symlink():
                self.links.append((path, ignores))
            else:
                yield _Entry(path, os.path.join(real, entry.name), is_folder, ignores)

    def _left_out(self, raw: str, name: str, is_folder: bool, ignores: tuple[_Ignore, ...]) -> SkippedFile | None:
        shown = relative_path(raw) + "/" * is_folder
        if name in _VERSION_CONTROL:
            return self.skip(shown, "It belongs to version control", "Nothing needs to be done")
        if name.startswith(".") and not self.hidden:
            return self.skip(shown, "It is hidden", "Ask for hidden files, or name it")
        by = _ignored(raw, is_folder, ignores)
        return self.skip(shown, f"It is ignored by {by}", "Switch .gitignore off, or name the file") if by else None

    def take(self, raw: str, shown: str, real: str) -> Iterator[FoundFile | SkippedFile]:
        """One file: found, or skipped for what it is."""
        absolute = os.path.join(self.root, raw)
        try:
            status = os.stat(absolute)
        except OSError as exc:
            yield self.skip(shown, f"The file cannot be read: {system_words(exc)}", _PERMISSION, FileStatus.FAILED)
            return
        if not stat.S_ISREG(status.st_mode):
            kind = next((name for test, name in _KINDS if test(status.st_mode)), "something special")
            yield self.skip(shown, f"It is {kind}, not a file", "Nothing needs to be done")
        elif status.st_size > self.most << 20:
            size = f"{status.st_size / (1 << 20):.1f} MB, more than the {self.most} MB"
            yield self.skip(shown, f"It has {size} of the setting max_file_mb", "Raise max_file_mb, or split the file")
        elif shown in self.names:
            reason = "Another file has the same name, spelled with other Unicode characters"
            yield self.skip(shown, reason, "Rename one of the two")
        else:
            self.names.add(shown)
            if real not in self.seen:
                self.seen.add(real)
                yield FoundFile(self.root, shown, absolute, status.st_size, status.st_mtime_ns, real)

    def _link(self, raw: str, ignores: tuple[_Ignore, ...]) -> Iterator[FoundFile | SkippedFile]:
        """Follow a link to what lies inside the root and was not read under its own name."""
        shown = relative_path(raw)
        target = os.path.realpath(os.path.join(self.root, raw))
        if not os.path.exists(target):
            yield self.skip(shown, "It is a broken link: nothing is where it leads to", "Fix the link, or remove it")
        elif target != self.root and not target.startswith(self.root.rstrip(os.sep) + os.sep):
            reason = "It is a link that leads out of the folder"
            yield self.skip(shown, reason, "Index what it leads to by its own path")
        elif target in self.seen or target == self.root:
            yield self.skip(shown, "It is a link to what is read under its own name", "Nothing needs to be done")
        elif os.path.isdir(target):
            yield from self._folder(raw, target, ignores)
        else:
            yield from self.take(raw, shown, target)


def open_found(found: FoundFile) -> io.BufferedReader:
    """Open a file that a walk found, and nothing that a link leads to which was put in its place since.

    Raises:
        OSError: It cannot be opened, or what was opened is not the file at `found.real`.
    """
    # Not blocking: what took its place may be a pipe.
    stream = os.fdopen(os.open(found.absolute, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        if found.real:
            opened, there = os.fstat(stream.fileno()), os.stat(found.real)
            same = (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino) and stat.S_ISREG(opened.st_mode)
            if not same or os.path.realpath(found.real) != found.real:
                raise OSError(errno.ELOOP, "it is a link or another file since it was found")
    except BaseException:
        stream.close()
        raise
    return stream


def digest_of(found: FoundFile) -> str:
    """sha256 hex of the bytes of a file that a walk found. Raises OSError as `open_found` does."""
    with open_found(found) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class _Ignore:
    """The patterns of one `.gitignore`, from the last, which wins, to the first: whether it ignores, and its expression.

    A path relative to the root becomes relative to this file's folder by `prefix` before it, or `cut` characters off its front.
    """

    patterns: tuple[tuple[bool, re.Pattern[str]], ...]
    prefix: str
    cut: int
    name: str


def _ignored(path: str, is_folder: bool, stack: tuple[_Ignore, ...]) -> str:
    """Name of the `.gitignore` that ignores a path relative to the root, or "". The stack's last file is the deepest."""
    for ignore in reversed(stack):
        # Bytes that are no UTF-8 are U+FFFD, as in the patterns: the matcher takes nothing else.
        readable = os.fsencode(ignore.prefix + path[ignore.cut :]).decode("utf-8", "replace")
        verdict = _verdict(ignore, readable + "/" * is_folder)
        if verdict is not None:
            return ignore.name if verdict else ""
    return ""


def _verdict(ignore: _Ignore, path: str) -> bool | None:
    """What the patterns say of this very path: what they say of the folders above it was asked when those were entered."""
    for ignores_it, expression in ignore.patterns:
        match = expression.match(path)
        if match is not None:
            mark = match.end("ps_d") if "ps_d" in expression.groupindex else -1  # the `/` behind a folder's name
            if mark in (-1, len(path)) and not (expression.pattern.endswith("/") and match.end() == len(path)):
                return ignores_it
    return None


def _load_ignore(folder: str, prefix: str, cut: int) -> _Ignore | None:
    """The `.gitignore` of a folder, or None. Lines that are no patterns are passed over, as git does."""
    file = os.path.join(folder, ".gitignore")
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return None
    patterns: list[Any] = []
    for line in lines:
        try:
            patterns += spec_of(line.removeprefix("\ufeff")).patterns
        except ValueError:
            continue
    # `*/` is any folder: its expression, which is searched for, finds the first one of a path.
    any_folder = re.compile(".*(?P<ps_d>/)$")
    given = [(p.include, p.regex) for p in reversed(patterns) if p.include is not None]
    found = tuple((include, any_folder if e.pattern == "(?P<ps_d>/)" else e) for include, e in given)
    return _Ignore(found, prefix, cut, file) if found else None


def spec_of(line: str) -> GitIgnoreSpec:
    """One pattern as `.gitignore` has it, also with classes such as `[[:digit:]]`; ValueError where it is none.

    The library finds some faults only when it matches, and reports them in the words of three regex engines.
    """
    from pathspec import GitIgnoreSpec

    spelled = _CLASS.sub(lambda match: _CLASSES.get(match[1], match[0]), line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # a bracket in brackets, which is what was written
        try:
            spec = GitIgnoreSpec.from_lines([spelled])
            spec.match_file("probe")
        except Exception as exc:
            raise ValueError(f"{line!r} is not a pattern") from exc
    return spec


def _above(root: str) -> tuple[_Ignore, ...]:
    """The `.gitignore` files from the top of root's repository down to the folder above the root."""
    folders: list[str] = []
    folder = root
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ()
        folder = parent
        folders.append(folder)
    found: list[_Ignore] = []
    for folder in reversed(folders):
        ignore = _load_ignore(folder, os.path.relpath(root, folder).replace(os.sep, "/") + "/", 0)
        if ignore is not None:
            levels = ignore.prefix.split("/")[:-1]
            if any(_verdict(ignore, "/".join(levels[:n]) + "/") for n in range(1, len(levels) + 1)):
                return ()
            found.append(ignore)
    return tuple(found)


def ignores(root: str, path: str) -> bool:
    """Whether some `.gitignore` ignores a file at a path relative to the root, or a folder that it is in."""
    stack, folder = _above(root), ""
    parts = path.split("/")
    for depth, part in enumerate(parts):
        found = _load_ignore(os.path.join(root, folder), "", len(folder) + 1 if folder else 0)
        stack = (*stack, found) if found is not None else stack
        folder = f"{folder}/{part}" if folder else part
        if _ignored(folder, depth < len(parts) - 1, stack):
            return True
    return False
