"""Files that somebody hands over (a browser, say) rather than names: kept in a folder, to be indexed from there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from workbench.errors import UsageError, system_words
from workbench.store.generations import private

FOLDER = "uploads"


def keep_files(
    files: Iterable[tuple[str, bytes]], corpus: str | Path, folder: str | Path | None = None
) -> tuple[Path, ...]:
    """Write files (name, perhaps with folders, and bytes) below a folder (None: the corpus's own) and give their paths, to be
    indexed.

    A file of that name is replaced in the corpus's own folder; elsewhere it is left alone if it has these bytes.

    Raises:
        UsageError: A name is none, a folder cannot be written, or another file has the name there.
    """
    own = folder is None
    base = Path(corpus) / FOLDER if folder is None else Path(folder).expanduser()
    kept = []
    try:
        base.mkdir(parents=True, exist_ok=True)
        if own:
            private(base)
        for name, data in files:
            parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")]
            if not parts or "\x00" in name:
                raise UsageError(f"{name!r} is not a name of a file", "Rename it")
            path = base.joinpath(*parts)
            if not own and path.exists() and path.read_bytes() != data:
                raise UsageError(
                    f"There is another file {name} in {base}", "Choose another folder, or rename one of them"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            kept.append(path)
    except OSError as exc:
        raise UsageError(f"The files cannot be kept in {base}: {system_words(exc)}", "Choose another folder") from exc
    return tuple(kept)
