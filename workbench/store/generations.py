"""The corpus folder: immutable generations and the pointer that names the one that answers.

::

    CORPUS/
      current                 one line, the id of the generation that answers; swapped by atomic rename
      writer.lock             held by the one process that writes
      generations/ID/         immutable once published
        lock                  held shared by every reader, exclusively by who removes the folder
        manifest.json         counts, sizes and digests of the parts, encoders, versions, and a digest of itself
        checked.json          which files were compared with their digests, and when written
        corpus.duckdb  records/  text/  vectors/KEY/
      states/NAME             one line each: a generation that is kept under this name (`workbench rollback`)
      damaged/                what `workbench doctor --repair` set aside
      building/               the next generation while a run works; removed by the next writer if the run was killed
      embeddings/DIGEST/      vectors made so far, so that an interrupted run does not embed again

A crash at any byte leaves the old generation whole: nothing in it is ever written again, the new one is complete and
synced to disk before its name appears in `generations/`, and the pointer changes in one rename. A new generation is opened
whole and its counts are compared before it is published. Readers never wait for the writer. An old one is removed only by a
writer that gets its lock exclusively, so never under a reader, and one that a state names is not removed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workbench import settings
from workbench.errors import CorpusDamaged, CorpusError, CorpusLocked, CorpusNotFound, UsageError
from workbench.locators import whole_number
from workbench.records import EncoderIdentity
from workbench.store import locks

FORMAT = 3
"""Version of the folder's layout and of every table and array in it. Readers refuse another number; an indexing run takes texts
and vectors over from those in `_EARLIER`."""
_EARLIER = (1, 2)

DATABASE = "corpus.duckdb"
WHOLE = "whole.duckdb"
"""The tables with texts, in the folder that writes to another store; its `DATABASE` has none."""
MANIFEST = "manifest.json"
CHECKED = "checked.json"

_STATE = re.compile(r"[\w][\w-]{0,63}")
_ID = re.compile(r"[0-9]+-[^/\s]+")
_SMALL = 1 << 16  # bytes of a part that is compared with its digest at every opening
_OPEN_TRIES = 50


class Layout:
    """Where things are in a corpus folder; see the module."""

    def __init__(self, corpus: Path) -> None:
        self.corpus = corpus
        self.pointer = corpus / "current"
        self.writer_lock = corpus / "writer.lock"
        self.generations = corpus / "generations"
        self.damaged = corpus / "damaged"
        self.states = corpus / "states"
        self.building = corpus / "building"
        self.embeddings = corpus / "embeddings"

    def folder(self, generation: str) -> Path:
        return self.generations / generation


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a generation: its size in bytes and sha256."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a generation says about itself.

    Attributes:
        generation: Its id: a number that only grows within a corpus, and the start of `digest`.
        created: UTC, ISO 8601.
        digest: Hex digest of what is indexed (documents, records, encoders), whatever order it came in.
        counts: `documents`, `records`, `files` and `bytes`.
        parts: File below the generation's folder, with `/`, to size and digest.
        encoders: Key of the folder below `vectors/` to the encoder's identity; `encoder` is the corpus's own.
        rules: Digest of the rules of access that every document was indexed under; None: not all under the same, or not known.
        remote: `uri` and `name` of the collections on Milvus that hold its texts, words and vectors; empty: they are here.
    """

    generation: str
    created: str
    digest: str
    counts: Mapping[str, int]
    parts: Mapping[str, Part]
    encoders: Mapping[str, EncoderIdentity] = field(default_factory=dict)
    encoder: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    rules: str | None = None
    format: int = FORMAT
    remote: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """The manifest file's text, with a digest of the rest under `seal`."""
        plain = asdict(self)
        return json.dumps({**plain, "seal": _seal(plain)}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, folder: Path, *, earlier: bool = False) -> Manifest:
        """The manifest of a generation's folder. Raises CorpusDamaged where its digest does not hold, CorpusError for another
        format (`earlier`: but for one of those that an indexing run takes over).
        """
        path = folder / MANIFEST
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            seal = data.pop("seal", "")  # a manifest that was made before there were seals has none
            if seal and seal != _seal(data):
                raise damaged(path, "does not have the digest that it says")
            if data["format"] != FORMAT and not (earlier and data["format"] in _EARLIER):
                raise CorpusError(
                    f"The corpus at {path.parents[2]} has format {data['format']}, and this version reads {FORMAT}",
                    "Index its folders again with workbench index: texts that have a vector are not embedded again"
                    if data["format"] in _EARLIER
                    else "Use the version of the workbench that wrote it, or index into another --corpus",
                )
            data["parts"] = {name: Part(**part) for name, part in data["parts"].items()}
            data["encoders"] = {key: EncoderIdentity(**value) for key, value in data["encoders"].items()}
            return cls(**data)
        except OSError as exc:
            raise unreadable(path, exc) from exc
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise damaged(path, "is not as it was written") from exc


def _seal(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, default=asdict).encode()).hexdigest()


def damaged(path: Path, what: str) -> CorpusDamaged:
    """The error for a file of a corpus whose digest does not hold, or that is missing or cut short."""
    corpus = next((p.parent for p in path.parents if p.name == "generations"), path.parent)
    return CorpusDamaged(
        f"The corpus is damaged: {path} {what}",
        f"Run `workbench doctor --repair --corpus {shlex.quote(str(corpus))}`: judgments, snapshots and corpus.yaml stay",
    )


_ADVICE: Mapping[int, str] = {
    errno.EACCES: "Give yourself the right to read it",
    errno.EPERM: "Give yourself the right to read it",
    errno.EMFILE: "Close corpora that are not in use, or raise the limit of open files (ulimit -n)",
    errno.ENFILE: "Close other programs: the system's limit of open files is reached",
    errno.ENOMEM: "Free memory, and try again",
}


def unreadable(path: Path, exc: OSError | MemoryError) -> CorpusError:
    """The error for a file of a corpus that the system does not let be read: damaged only where it is missing."""
    if isinstance(exc, FileNotFoundError):
        return damaged(path, "is missing")
    number = errno.ENOMEM if isinstance(exc, MemoryError) else exc.errno or 0
    reason = os.strerror(number).lower() if number else str(exc)
    return CorpusError(f"{path} cannot be read: {reason}", _ADVICE.get(number, "Check the disk or network drive"))


def published(corpus: Path) -> list[str]:
    """Ids of the generations that are there, oldest first. A folder without lock was never published, or is being removed."""
    found = [lock.parent.name for lock in Layout(corpus).generations.glob("*/lock")]
    return sorted((name for name in found if _ID.fullmatch(name)), key=lambda name: int(name.partition("-")[0]))


def exists(corpus: Path) -> bool:
    return Layout(corpus).pointer.is_file() or bool(published(corpus))


def current(corpus: Path) -> str:
    """Id of the generation that answers: that of the pointer, or the newest one where the pointer is missing.
    Raises CorpusNotFound, and CorpusDamaged where the pointer names no generation.
    """
    pointer = Layout(corpus).pointer
    try:
        name = pointer.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError) as exc:
        there = published(corpus)
        if there:
            return there[-1]
        raise CorpusNotFound(f"There is no corpus at {corpus}", "Make one with: workbench index PATH") from exc
    except ValueError as exc:
        raise damaged(pointer, "does not name a generation") from exc
    except OSError as exc:
        raise unreadable(pointer, exc) from exc
    if not _ID.fullmatch(name):
        raise damaged(pointer, "does not name a generation")
    return name


class Pin:
    """A generation that stays on disk while this is open: its folder, manifest and shared lock. Safe from several threads.

    `check` compares parts with their digests before they are used. What was compared is remembered in the folder with each
    file's size, times and number, so that the next process reads a part again only if somebody wrote to its file.
    """

    def __init__(self, folder: Path, manifest: Manifest, lock: locks.FileLock) -> None:
        self.folder, self.manifest = folder, manifest
        self._reading, self._comparing = lock, threading.Lock()
        self._sound: set[str] = set()
        try:
            self._stamps = dict(json.loads((folder / CHECKED).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            self._stamps = {}  # every part is read once more

    @property
    def database(self) -> str:
        """Name of the file whose tables have the texts."""
        return WHOLE if WHOLE in self.manifest.parts else DATABASE

    def close(self) -> None:
        self._reading.close()

    def check(self, start: str = "", *, again: bool = False, most: int | None = None) -> None:
        """Compare the parts whose names start so with the manifest's digests, each once: nothing is read before it holds.

        `again` reads every byte, whatever is remembered; `most` leaves larger parts out. Raises CorpusDamaged where a part is
        missing or has another size or digest, CorpusError where it cannot be read.
        """
        read = False
        for name, part in self.manifest.parts.items():
            if name.startswith(start) and (most is None or part.bytes <= most) and (again or name not in self._sound):
                with self._comparing:
                    self._sound.discard(name)
                    stamp = _stamp(self.folder / name, part)
                    if again or self._stamps.get(name) != stamp:
                        read = True
                        self._stamps.pop(name, None)
                        _compare(self.folder / name, part)
                        self._stamps[name] = stamp
                    self._sound.add(name)
        if read:
            _write_stamps(self.folder, self._stamps)

    def sound(self, start: str = "", *, again: bool = False) -> bool:
        """Whether `check` finds these parts as they were written."""
        try:
            self.check(start, again=again)
        except CorpusDamaged:
            return False
        return True

    def stamps(self) -> tuple[tuple[int, ...], ...]:
        """What changes when somebody writes to a part. Raises CorpusDamaged where one is missing or has another size."""
        return tuple(tuple(_stamp(self.folder / name, part)) for name, part in self.manifest.parts.items())


def _compare(path: Path, part: Part) -> None:
    try:
        digest = file_digest(path)
    except OSError as exc:
        raise unreadable(path, exc) from exc
    if digest != part.sha256:
        raise damaged(path, "does not have the digest that its manifest says")


def _stamp(path: Path, part: Part) -> list[int]:
    """What changes when somebody writes to a file. Raises CorpusDamaged where it has another size than the part."""
    try:
        status = path.stat()
    except OSError as exc:
        raise unreadable(path, exc) from exc
    if status.st_size != part.bytes:
        raise damaged(path, f"has {status.st_size} bytes instead of {part.bytes}")
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _write_stamps(folder: Path, stamps: Mapping[str, list[int]]) -> None:
    with suppress(OSError):  # a folder that cannot be written is compared by every process
        write_whole(folder / CHECKED, json.dumps(dict(stamps)))


def hold(folder: Path, manifest: Manifest | None = None, *, earlier: bool = False) -> Pin:
    """Hold a generation by its folder, whether the pointer names it or not. Raises CorpusDamaged, CorpusError."""
    try:
        lock = locks.shared(folder / "lock")
    except OSError as exc:
        raise unreadable(folder / "lock", exc) from exc
    try:
        # The folder may have gone and the descriptor outlived it: the lock counts only while its name exists.
        if lock is None or not (folder / "lock").exists():
            raise damaged(folder, "is missing")
        return Pin(folder, manifest or Manifest.read(folder, earlier=earlier), lock)
    except BaseException:
        if lock is not None:
            lock.close()
        raise


def pin(corpus: Path, *, whole: bool = True, earlier: bool = False) -> Pin:
    """Hold the current generation: read its pointer, lock it, and (`whole`) refuse one of which a part is missing or has another
    size, or a small one another digest; `earlier` takes one of an earlier format too. Between reading the pointer and taking the
    lock a writer may publish another generation and remove this one; then the pointer is read again.

    Raises CorpusNotFound, CorpusDamaged, CorpusError.
    """
    for _ in range(_OPEN_TRIES):
        name = current(corpus)
        folder = Layout(corpus).folder(name)
        try:
            held = hold(folder, earlier=earlier)
        except CorpusDamaged:
            if current(corpus) == name:
                raise
            continue
        if whole:
            try:
                held.stamps()
                held.check(most=_SMALL)
            except BaseException:
                held.close()
                raise
        return held
    raise CorpusLocked(
        f"The generations of {corpus} change faster than they can be opened", "Try again in a few seconds"
    )


def file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def measure_parts(folder: Path) -> dict[str, Part]:
    """Size and digest of every file below a folder but the manifest and the lock, by name, sorted."""
    parts = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in (MANIFEST, CHECKED, "lock"):
            parts[name] = Part(path.stat().st_size, file_digest(path))
    return parts


# --- writing: all of this only under the writer's lock ---------------------------------------------------------------


def next_number(corpus: Path) -> int:
    """The number of the next generation: larger than that of any that was ever seen here."""
    layout = Layout(corpus)
    names = [p.name for p in layout.generations.iterdir()] if layout.generations.is_dir() else []
    names += [current(corpus)] if exists(corpus) else []
    return 1 + max((whole_number(name.partition("-")[0], 0) for name in names), default=0)


def complete(built: Path, manifest: Manifest) -> None:
    """Give a built folder its manifest, its lock and what is known of its parts, which were measured just now."""
    (built / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    (built / "lock").touch()
    for path in (built, *built.rglob("*")):
        private(path)
    _write_stamps(built, {name: _stamp(built / name, part) for name, part in manifest.parts.items()})


def publish(corpus: Path, built: Path, manifest: Manifest) -> None:
    """Give a complete folder of the same file system its name, then swap the pointer. Everything is on disk before the swap."""
    layout = Layout(corpus)
    for path in (*sorted(built.rglob("*")), built):
        sync(path)
    layout.generations.mkdir(exist_ok=True)
    os.rename(built, layout.folder(manifest.generation))
    sync(layout.generations)
    step("renamed")
    point(corpus, manifest.generation)


def point(corpus: Path, generation: str) -> None:
    """Let the pointer name a generation, by one rename."""
    write_whole(Layout(corpus).pointer, generation + "\n", "pointer-written")
    step("swapped")


def set_aside(corpus: Path, generation: str) -> Path:
    """Move a damaged generation out of the way, into `damaged/`, and return where it is. Nothing of it is removed."""
    layout = Layout(corpus)
    layout.damaged.mkdir(exist_ok=True)
    names = (generation, *(f"{generation}.{n}" for n in range(1, 1000)))
    target = next(path for name in names if not (path := layout.damaged / name).exists())
    os.rename(layout.folder(generation), target)
    sync(layout.damaged)
    step("aside")
    return target


# --- named states: generations that are kept --------------------------------------------------------------------------


def states(corpus: Path) -> dict[str, str]:
    """Name of each kept state -> its generation, by name."""
    files = sorted(Layout(corpus).states.glob("*"))
    return {file.name: file.read_text(encoding="utf-8").strip() for file in files if _STATE.fullmatch(file.name)}


def keep_state(corpus: Path, name: str) -> str:
    """Keep the current generation under a name, and return its id. Raises UsageError, CorpusLocked."""
    if not _STATE.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of a state", "Use letters, digits, - and _, such as before-june")
    layout = Layout(corpus)
    with locks.writer(layout.writer_lock, corpus):
        generation = current(corpus)
        layout.states.mkdir(exist_ok=True)
        write_whole(layout.states / name, generation + "\n")
    return generation


def state(corpus: Path, name: str) -> str:
    """The generation of a kept state. Raises UsageError naming those that there are."""
    known = states(corpus)
    if name not in known:
        raise UsageError(f"No state is called {name!r}", f"Those that are kept: {', '.join(known) or 'none'}")
    return known[name]


def clean(corpus: Path) -> list[str]:
    """Remove what no one needs: what a killed run left, and old generations that nobody reads and no state names. Returns
    the names of the removed generations, sorted.
    """
    layout = Layout(corpus)
    shutil.rmtree(layout.building, ignore_errors=True)
    for unfinished in layout.corpus.glob(".current-*"):
        unfinished.unlink(missing_ok=True)
    if not layout.generations.is_dir():
        return []
    keep = {*states(corpus).values(), current(corpus) if exists(corpus) else ""}
    return [f.name for f in sorted(layout.generations.iterdir()) if f.name not in keep and _remove(f)]


def _remove(folder: Path) -> bool:
    """Remove one generation unless somebody holds it. One without a lock was never published, or is half removed."""
    if (folder / "lock").exists():
        lock = locks.exclusive(folder / "lock")
        if lock is None:
            return False
        with lock:
            # The lock file goes first: a reader that opened it before sees its name gone and reads the pointer again.
            (folder / "lock").unlink()
    shutil.rmtree(folder)
    return True


def sync(path: Path) -> None:
    """Put a file or a folder's names on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, text: str, written: str = "") -> None:
    """Write a small file so that readers see the old text or the new one, and the new one is on disk. `written` names the step
    between the two (see `step`). Raises OSError."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}-{threading.get_ident()}")
    fresh.write_text(text, encoding="utf-8")
    sync(fresh)
    private(fresh)
    with suppress(FileNotFoundError):
        os.chmod(fresh, path.stat().st_mode & 0o777)
    if written:
        step(written)
    os.replace(fresh, path)
    sync(path.parent)


def private(path: Path) -> None:
    """Make a file or folder of a corpus its owner's only, where the setting `corpus_private` says so and the system lets us."""
    if settings.get("corpus_private"):
        with suppress(OSError):
            os.chmod(path, 0o700 if path.is_dir() else 0o600)


def step(name: str) -> None:
    """A named point of a run. `hooks` are called there: tests put something into it that kills the process."""
    for hook in hooks:
        hook(name)


hooks: list[Callable[[str], None]] = []
