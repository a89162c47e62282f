"""Read a document by its path, within the allowed folders, with errors as text that an agent can read.

The answer is the document's text, or one text that starts with `[ERROR: NOT_FOUND]` or `[ERROR: ACCESS_DENIED]`. A path
outside the allowed folders is denied whether or not it exists; a document that the principal may not see gives the same
bytes as one that is not there.

A file that is not indexed is read from disk, as UTF-8 text: below an indexed folder where an indexing run would take it and the
rules of `corpus.yaml` let the principal see it (`RecordStore.may_read`), below a folder that is allowed by name by the local
owner from whom nothing is hidden. A file that has changed since it was indexed gives its current text, with a note; where that
text cannot be given, the stored one, with a note. Nobody reads from disk under a policy that masks: it knows stored documents
only. Texts come from the mapped text file: DuckDB would unpack those of two thousand documents to give one.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from workbench import settings
from workbench.errors import UsageError, sentence
from workbench.ingest.encoding import normalise
from workbench.ingest.errors import ReadError
from workbench.ingest.frontmatter import read_front_matter
from workbench.ingest.rules import Visibility, narrow
from workbench.records import Document, Principal, Span
from workbench.retrieve.cited import find_place, split_citation
from workbench.retrieve.engine import Engine
from workbench.store.access.visibility import Policy
from workbench.store.types import Scope


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
        note: What to know of it: that it is not the text that is indexed.
        current: Whether it was read from disk.
    """

    text: str
    found: bool
    path: str = ""
    number: int | None = None
    place: Span | None = None
    note: str = ""
    current: bool = False

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
    engine: Engine,
    principal: Principal | None,
    asked: str,
    at: str = "",
    allowed: tuple[Path, ...] | None = None,
    *,
    stored: bool = False,
) -> FileText:
    """As `find_file`, for a citation as well as for a path: what is asked for is then `place`.

    A place that is not there is a NOT_FOUND that says which are.
    """
    tried = [
        (find_file(engine, principal, path, allowed, stored=stored), place)
        for path, place in split_citation(asked.strip())
    ]
    found, place = next(((f, p) for f, p in tried if f.found), tried[-1])
    place = at or place
    if not found.found or not place:
        return found
    try:
        if found.number is None or found.current:
            span = find_place(place, found.text, (), ())
        else:
            (header,) = engine.records.headers([found.number])
            span = find_place(place, found.text, engine.records.places(found.number), header.page_starts)
    except UsageError as exc:
        return FileText(f"[ERROR: NOT_FOUND] {found.path}: {exc}", found=False)
    return replace(found, place=span)


def find_file(
    engine: Engine,
    principal: Principal | None,
    path: str,
    allowed: tuple[Path, ...] | None = None,
    *,
    stored: bool = False,
) -> FileText:
    """As `read_file`, and whether there was such a document.

    Args:
        engine: The generation.
        principal: Who asks.
        path: As citations show it (relative to its root), or absolute.
        allowed: Folders allowed by name, resolved; None: those of the setting `allowed_roots`.
        stored: Give an indexed document's stored text, whether or not its file has changed since.
    """
    scope = engine.records.scope(principal, None, ())
    asked = path.strip()
    explicit = explicit_roots() if allowed is None else allowed
    indexed = _indexed_roots(engine, scope)
    roots = explicit or indexed
    number = engine.records.find_document(asked, scope)
    if number is not None:
        found = _stored(engine, number, asked)
        return found if stored else _as_it_is(engine, principal, found, explicit)
    inside = _inside(asked, roots)
    if inside is None:
        shown = ", ".join(str(r) for r in roots) or "none"
        what = f"{sentence(asked)} is outside the allowed folders" if asked else "No path is given"
        denied = f"{what}. Allowed folders: {shown}"
        return FileText(f"[ERROR: ACCESS_DENIED] {denied}", found=False)
    for root, relative in inside:
        number = engine.records.find_document(str(root / relative), scope)
        if number is not None:
            found = _stored(engine, number, asked)
            return found if stored else _as_it_is(engine, principal, found, explicit)
    if not engine.records.masks:
        owner = principal is None and scope.visible_documents is None
        for root, relative in inside:
            read = _from_disk(engine, principal, root / relative, asked, indexed, unknown=bool(explicit) and owner)
            if read is not None:
                return read
    return _not_found(asked)


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


def _as_it_is(engine: Engine, principal: Principal | None, found: FileText, explicit: tuple[Path, ...]) -> FileText:
    """A stored document's text, or the current text of its file where that has changed since and may be shown."""
    records = engine.records
    assert found.number is not None
    (document,) = records.headers([found.number])
    base = Path(os.path.realpath(document.root))
    path = Path(os.path.realpath(base / document.path))
    allowed = base in path.parents and (not explicit or any(root in path.parents for root in explicit))
    if records.masks or not document.root or not allowed:
        return found
    data = _bytes_of(path)
    if data is None or hashlib.sha256(data).hexdigest() == document.sha256:
        return found
    text = _decoded(data)
    changed = f"{found.path} has changed since it was indexed"
    if text is None or records.places(found.number):
        indexed = "this is the text that was indexed; run `workbench index` on its folder to bring it up to date"
        return replace(found, note=f"{changed}: {indexed}")
    try:
        given = Visibility(document.tenant, document.roles, document.sensitivity)
        seen, _ = narrow(given, read_front_matter(text).values)
    except ReadError:
        return _not_found(found.path)
    access = json.dumps([seen.tenant, seen.roles, seen.sensitivity])
    if seen != given and not records.may_know(access, document.path, principal):
        return _not_found(found.path)
    note = f"{changed}: this is its text as it is now, and the line numbers of citations are those of the text that was indexed"
    return replace(found, text=text, note=note, current=True)


def _from_disk(
    engine: Engine, principal: Principal | None, path: Path, asked: str, indexed: tuple[Path, ...], unknown: bool
) -> FileText | None:
    """The text of a file that is not indexed, or why it has none; None where there is no such file for the principal.

    Args:
        engine, principal: As in `find_file`.
        path: Where it is, links resolved.
        asked: How it was asked for.
        indexed: The indexed folders.
        unknown: Whether a file outside of them may be read.
    """
    # os.path answers False for a name that no system takes, where Path raises.
    if any(os.path.isfile(folder / "current") and os.path.isdir(folder / "generations") for folder in path.parents):
        return None  # a file of a corpus
    home = next((root for root in sorted(map(_real, indexed)) if root in path.parents), None)
    data = _bytes_of(path)
    if data is None or (home is None and not unknown):
        return None
    text = _decoded(data)
    if home is not None:
        try:
            claims = {} if text is None else read_front_matter(text).values
        except ReadError:
            return None
        if not engine.records.may_read(str(home), path.relative_to(home).as_posix(), claims, principal):
            return None
    if text is None:
        return FileText(
            f"[ERROR: NOT_TEXT] {sentence(asked)} is not indexed, and is not UTF-8 text. Index it to read what is in it",
            found=False,
        )
    return FileText(text, True, asked, note=f"{asked} is not indexed: this is the file as it is on disk", current=True)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _bytes_of(path: Path) -> bytes | None:
    """A file's bytes; None where there is none, or it cannot be read, or is larger than `max_file_mb`."""
    try:
        if not path.is_file() or path.stat().st_size > int(settings.get("max_file_mb")) << 20:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None


def _decoded(data: bytes) -> str | None:
    """UTF-8 text with the line ends that indexed texts have; None for anything else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else normalise(text)


def _not_found(asked: str) -> FileText:
    """The same for a document that is not there and for one that the principal may not see."""
    return FileText(
        f"[ERROR: NOT_FOUND] There is no document {sentence(asked)}. "
        "Paths are relative to an indexed folder, as citations show them",
        found=False,
    )


@dataclass(frozen=True, slots=True)
class Original:
    """A file's bytes, or why there are none and what to do (both without a full stop)."""

    data: bytes = b""
    reason: str = ""
    remedy: str = ""


def original(engine: Engine, principal: Principal | None, policy: Policy | None, document: Document) -> Original:
    """The bytes of a visible document's file.

    Args:
        engine: The generation that the document comes from.
        principal: Who asks.
        policy: The corpus's policy.
        document: A document that the store gave to this principal.
    """
    if policy is not None and policy.redacts(principal):
        return Original(
            reason="Parts of texts are masked for you, and a picture of the page would show them",
            remedy="Read the text, or ask somebody with the role to see all of it",
        )
    path = Path(document.root) / document.path
    roots = explicit_roots() or tuple(
        Path(os.path.realpath(r)) for r in engine.records.roots(engine.records.scope(principal, None, ()))
    )
    real = Path(os.path.realpath(path))
    if not document.root or not any(root in real.parents for root in roots):
        return Original(
            reason="The file is outside the allowed folders",
            remedy="Add its folder to the setting allowed_roots, or index the whole folder",
        )
    try:
        data = real.read_bytes()
    except OSError:
        return Original(
            reason="The file is not there any more", remedy="Index its folder again to bring the corpus up to date"
        )
    if hashlib.sha256(data).hexdigest() != document.sha256:
        return Original(
            reason="The file has changed since it was indexed", remedy="Index its folder again to see it as it is now"
        )
    return Original(data)
