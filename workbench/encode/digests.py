"""sha256 of large files, remembered by path, size and time of modification.

A model's weights are checked at every start, and reading 90 MB costs more than the rest of the start; so the digest is
kept in the cache folder and made again when the file's size or time differs. A remembered digest that cannot be read is
made again too: nothing here can fail except the file itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from workbench import settings

_SMALL = 1 << 20
"""Smaller files are quicker read than remembered."""


def file_digest(path: Path) -> str:
    """sha256 hex of a file's bytes, from memory if size and time are as remembered. Raises OSError."""
    path = path.resolve()
    status = path.stat()
    if status.st_size < _SMALL:
        return read_digest(path)
    stamp = [str(path), status.st_size, status.st_mtime_ns]
    memory = settings.cache_dir() / "digests" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:32]}.json"
    try:
        remembered = json.loads(memory.read_text(encoding="utf-8"))
        if remembered["file"] == stamp:
            return str(remembered["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        remembered = None  # not there, or damaged: read the file itself
    digest = read_digest(path)
    try:
        write_whole(memory, json.dumps({"file": stamp, "sha256": digest}))
    except OSError:
        return digest  # a cache folder that cannot be written makes the next start slower, no more
    return digest


def read_digest(path: Path) -> str:
    """sha256 hex of a file's bytes, read now. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: Path, text: str) -> None:
    """Write a small text file so that readers see the old one or the new one, never a part. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def together(folder: Path, files: list[Path], digest: Callable[[Path], str] = file_digest) -> str:
    """One digest of several files of a folder: a lone file's own, else that of the sorted list of names and digests."""
    if len(files) == 1:
        return digest(files[0])
    lines = sorted(f"{file.relative_to(folder).as_posix()} {digest(file)}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
