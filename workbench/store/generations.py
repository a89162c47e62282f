"""The corpus folder: immutable generations and the pointer that names the one that answers.

::

    CORPUS/
      current                 one line, the id of the generation that answers; swapped by atomic rename
      writer.lock             held by the one process that writes
      generations/ID/         immutable once published
        lock                  held shared by every reader, exclusively by who removes the folder
        manifest.json         counts, sizes and digests of the parts, encoders, versions
        corpus.duckdb  records/  lexical/  text/  vectors/KEY/
      building/               the next generation while a run works; removed by the next writer if the run was killed
      embeddings/DIGEST/      vectors made so far, so that an interrupted run does not embed again

A crash at any byte leaves the old generation whole: nothing in it is ever written again, the new one is complete and
synced to disk before its name appears in `generations/`, and the pointer changes in one rename. Readers never wait for the
writer. An old generation is removed only by a writer that gets its lock exclusively, so never under a reader.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workbench import settings
from workbench.errors import CorpusDamaged, CorpusNotFound
from workbench.records import EncoderIdentity
from workbench.store import locks

FORMAT = 1
"""Version of the folder's layout and of every table and array in it; another number is refused."""

DATABASE = "corpus.duckdb"
MANIFEST = "manifest.json"

_OPEN_TRIES = 50
_REMOVE_TRIES, _REMOVE_PAUSE = 20, 0.1


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in a corpus folder."""

    corpus: Path

    @property
    def pointer(self) -> Path:
        """The file that names the current generation."""
        return self.corpus / "current"

    @property
    def writer_lock(self) -> Path:
        """The writer's lock file."""
        return self.corpus / "writer.lock"

    @property
    def generations(self) -> Path:
        """The folder of generations."""
        return self.corpus / "generations"

    @property
    def building(self) -> Path:
        """Where a run builds the next generation and keeps what it stages."""
        return self.corpus / "building"

    @property
    def embeddings(self) -> Path:
        """The folder of embedding journals."""
        return self.corpus / "embeddings"

    def folder(self, generation: str) -> Path:
        """Folder of one generation."""
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
        counts: `documents`, `records`, `files`, `bytes`, and `copies` (documents indexed as another one).
        parts: File below the generation's folder, with `/`, to size and digest.
        encoders: Key of the folder below `vectors/` to the encoder's identity.
        encoder: Key of the corpus's own encoder, whose tokenizer cut the texts.
        packages: Versions that built it.
        rules: Digest of the rules of access that every document was indexed under (`CorpusRules.access_digest`); None: not all
            under the same, or not known.
        format: See `FORMAT`.
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

    def to_json(self) -> str:
        """The manifest file's text."""
        return json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a generation's folder. Raises CorpusDamaged."""
        path = folder / MANIFEST
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise CorpusDamaged(
                    f"The corpus at {folder.parent.parent} has format {data['format']}, and this version reads {FORMAT}",
                    "Move the corpus away and index again, or use the version of the workbench that wrote it",
                )
            return cls(
                generation=data["generation"],
                created=data["created"],
                digest=data["digest"],
                counts=data["counts"],
                parts={name: Part(**part) for name, part in data["parts"].items()},
                encoders={key: EncoderIdentity(**value) for key, value in data["encoders"].items()},
                encoder=data["encoder"],
                packages=data["packages"],
                rules=data.get("rules"),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
            raise damaged(path, "cannot be read") from exc


def damaged(path: Path, what: str) -> CorpusDamaged:
    """The error for a file of a generation that is not as it was written."""
    return CorpusDamaged(
        f"The corpus file {path} {what}", "Remove the corpus folder and index again (workbench index PATH)"
    )


def exists(corpus: Path) -> bool:
    """True where a corpus with a published generation is."""
    return Layout(corpus).pointer.is_file()


def current(corpus: Path) -> str:
    """Id of the generation that answers.

    Raises:
        CorpusNotFound: Nothing was indexed there yet.
        CorpusDamaged: The pointer cannot be read.
    """
    pointer = Layout(corpus).pointer
    try:
        name = pointer.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise CorpusNotFound(f"There is no corpus at {corpus}", "Make one with: workbench index PATH") from exc
    except (OSError, ValueError) as exc:
        raise damaged(pointer, f"cannot be read: {exc}") from exc
    if not name or "/" in name or name.startswith("."):
        raise damaged(pointer, "does not name a generation")
    return name


class Pin:
    """A generation that stays on disk while this is open: its folder, manifest and shared lock."""

    def __init__(self, folder: Path, manifest: Manifest, lock: locks.FileLock) -> None:
        self.folder = folder
        self.manifest = manifest
        self._lock = lock

    def close(self) -> None:
        """Let go of the generation."""
        self._lock.close()

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return not self._lock.held


def pin(corpus: Path) -> Pin:
    """Hold the current generation: read its pointer, lock it, and check that its parts are there at their sizes.

    Between reading the pointer and taking the lock a writer may publish another generation and remove this one; then the
    lock is not to be had and the pointer is read again.

    Raises:
        CorpusNotFound: Nothing was indexed there yet.
        CorpusDamaged: A part is missing or has another size.
    """
    layout = Layout(corpus)
    for _ in range(_OPEN_TRIES):
        name = current(corpus)
        folder = layout.folder(name)
        lock = locks.shared(folder / "lock")
        if lock is None:
            if current(corpus) == name and not (folder / "lock").exists():
                raise damaged(folder, "is missing")
            continue
        try:
            # The folder may have gone and the descriptor outlived it: the lock counts only while its name exists.
            if not (folder / "lock").exists():
                lock.close()
                continue
            manifest = Manifest.read(folder)
            check_sizes(folder, manifest)
            return Pin(folder, manifest, lock)
        except BaseException:
            lock.close()
            raise
    raise CorpusDamaged(
        f"The current generation of {corpus} stays locked by whoever removes it", "Try again in a few seconds"
    )


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """Compare the size of every part with the manifest: a few stats. Raises CorpusDamaged."""
    for name, part in manifest.parts.items():
        path = folder / name
        try:
            size = path.stat().st_size
        except FileNotFoundError as exc:
            raise damaged(path, "is missing") from exc
        if size != part.bytes:
            raise damaged(path, f"has {size} bytes instead of {part.bytes}")


def verify(folder: Path, manifest: Manifest) -> None:
    """Compare size and sha256 of every part with the manifest: reads every byte. Raises CorpusDamaged."""
    check_sizes(folder, manifest)
    for name, part in manifest.parts.items():
        if file_digest(folder / name) != part.sha256:
            raise damaged(folder / name, "does not have the digest that its manifest says")


def intact(pin: Pin, start: str) -> bool:
    """Whether the parts whose names start so are there with the bytes that the manifest says: reads them."""
    parts = {name: part for name, part in pin.manifest.parts.items() if name.startswith(start)}
    try:
        return bool(parts) and all(file_digest(pin.folder / name) == part.sha256 for name, part in parts.items())
    except OSError:
        return False


def file_digest(path: Path) -> str:
    """sha256 hex of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def measure_parts(folder: Path) -> dict[str, Part]:
    """Size and digest of every file below a folder but the manifest and the lock, by name, sorted."""
    parts = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in (MANIFEST, "lock"):
            parts[name] = Part(path.stat().st_size, file_digest(path))
    return parts


# --- writing: all of this only under the writer's lock ---------------------------------------------------------------


def next_number(corpus: Path) -> int:
    """The number of the next generation: larger than that of any that was ever seen here."""
    layout = Layout(corpus)
    names = [p.name for p in layout.generations.iterdir()] if layout.generations.is_dir() else []
    if layout.pointer.is_file():
        names.append(current(corpus))
    numbers = [int(head) for name in names if (head := name.partition("-")[0]).isdigit()]
    return max(numbers, default=0) + 1


def publish(corpus: Path, built: Path, manifest: Manifest) -> Path:
    """Give a built folder its name, then swap the pointer. Everything is on disk before the swap.

    Args:
        corpus: The corpus folder.
        built: A complete generation on the same file system, without manifest.
        manifest: Its manifest, with the parts measured.

    Returns:
        The generation's folder.
    """
    layout = Layout(corpus)
    (built / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    (built / "lock").touch()
    for path in (built, *built.rglob("*")):
        private(path)
    sync_tree(built)
    layout.generations.mkdir(exist_ok=True)
    folder = layout.folder(manifest.generation)
    os.rename(built, folder)
    sync(layout.generations)
    step("renamed")
    fresh = layout.pointer.with_name("current.new")
    with open(fresh, "w", encoding="utf-8") as file:
        file.write(manifest.generation + "\n")
        file.flush()
        os.fsync(file.fileno())
    step("pointer-written")
    private(fresh)
    os.replace(fresh, layout.pointer)
    sync(layout.corpus)
    step("swapped")
    return folder


def clean(corpus: Path) -> list[str]:
    """Remove what no one needs: what a killed run left, and old generations that nobody reads.

    Returns:
        Names of the removed generations, sorted.
    """
    layout = Layout(corpus)
    remove_tree(layout.building)
    with suppress(FileNotFoundError):
        layout.pointer.with_name("current.new").unlink()
    if not layout.generations.is_dir():
        return []
    keep = current(corpus) if layout.pointer.is_file() else ""
    return [f.name for f in sorted(layout.generations.iterdir()) if f.name != keep and _remove(f)]


def _remove(folder: Path) -> bool:
    """Remove one generation unless somebody holds it."""
    if not (folder / "lock").exists():  # never published, or its removal was interrupted: no reader can hold it
        remove_tree(folder)
        return True
    lock = locks.exclusive(folder / "lock")
    if lock is None:
        return False
    with lock:
        # The lock file goes first: a reader that opened it before sees its name gone and reads the pointer again.
        (folder / "lock").unlink()
        remove_tree(folder)
    return True


def remove_tree(folder: Path) -> None:
    """Remove a folder that may not be there. A helper process of a killed run may be about to write its last file there."""
    for _ in range(_REMOVE_TRIES):
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            if not folder.exists():
                return
        except OSError:
            time.sleep(_REMOVE_PAUSE)
        else:
            return
    shutil.rmtree(folder)


def sync(path: Path) -> None:
    """Put a file or a folder's names on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Put every file and folder below, and the folder itself, on disk."""
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


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
