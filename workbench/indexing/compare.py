"""Which files are unchanged, which are to be read, and which have gone; what another choice of encoders costs; and which folder a
file belongs to: roots stay what they were when a part of them, or more than them, is indexed.

A root is a folder that was indexed; paths, citations and ids are relative to it. Indexing a folder or file inside a known root
refreshes that part of it. Indexing a folder around a known root takes the root in: its files then belong to the new one, so
that no file is there twice. A file that is named alone has its folder as root, without the rest of the folder (`whole` is
False): nothing else in it becomes readable.

Two roots may hold the same relative path. The later one then gets a salt, its folder's name, which keeps the ids of its
documents apart, and keeps it from then on.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from workbench import settings
from workbench.encode.protocol import Meter
from workbench.errors import EncoderMismatch, UsageError, counted, system_words
from workbench.indexing.reading import Cutting
from workbench.indexing.state import FileKey, Previous, Root, Run, StoredFile, Task, check
from workbench.ingest.chunking import INGEST_VERSION
from workbench.ingest.readers.ocr import languages
from workbench.ingest.rules import FileRules
from workbench.ingest.walk import FoundFile, SkippedFile, digest_of, folder_and_name, relative_path, walk
from workbench.records import FileReport, FileStatus, Progress
from workbench.store import generations
from workbench.store.build import vector_key


def inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def targets(paths: Sequence[str | Path]) -> tuple[str, ...]:
    """The real paths of what was asked for, sorted, without those inside another. Raises UsageError."""
    if not paths:
        raise UsageError("There is nothing to index", "Name at least one file or folder")
    found = set()
    for path in paths:
        folder, name = folder_and_name(path)
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


def named_files(previous: Previous, paths: Sequence[str | Path]) -> set[FileKey]:
    """The files of a corpus below paths: absolute, relative to the working directory, or as citations show them. Raises
    UsageError for one that names nothing.
    """
    found: set[FileKey] = set()
    by_place = {relative_path(os.path.join(*key)): key for key in previous.files}
    for path in paths:
        if os.path.isabs(path) and (key := by_place.get(relative_path(os.fspath(path)))):
            found.add(key)
            continue
        places = {relative_path(os.path.abspath(path)), relative_path(os.path.realpath(path))}
        given = relative_path(os.fspath(path)).rstrip("/")
        named = {
            key
            for place_of, key in by_place.items()
            if any(inside(place_of, place) for place in places) or inside(key[1], given)
        }
        if not named:
            raise UsageError(
                f"Nothing in the corpus has the path {given!r}",
                "Write it as citations show it, or as the absolute path of its file or folder",
            )
        found |= named
    return found


def home(folder: str, roots: Iterable[Root]) -> Root | None:
    """The whole root that holds a folder; the outermost of several."""
    return min((r for r in roots if r.whole and inside(folder, r.root)), key=lambda r: len(r.root), default=None)


def settle(
    found: Iterable[FoundFile | SkippedFile], asked: Sequence[str], old: Mapping[str, Root], options: str, own: str = ""
) -> tuple[list[FoundFile | SkippedFile], dict[str, Root]]:
    """Give every file found its root: the files with root and path as they are stored, and all roots of the corpus from now on.

    `found` and `asked` are what the walk yields and what was asked for (see `targets`), `old` the roots so far, by path;
    `options` (how this walk was done) is kept with new roots. What the corpus keeps in its folder `own` itself (memories)
    belongs to no folder around it.
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


def find_files(run: Run, asked: Sequence[str], also: Mapping[str, str]) -> list[FoundFile | SkippedFile]:
    """Find the files, give each its root, and set the run's roots. `asked` is walked as the run's options say, `also` as each
    path was walked before.
    """
    options = run.options
    how = json.dumps({"hidden": options.hidden, "gitignore": options.gitignore})
    items: list[FoundFile | SkippedFile] = []
    for walked in sorted({how, *also.values()}):
        paths = [*(asked if walked == how else ()), *(path for path, own in also.items() if own == walked)]
        for item in walk(paths, exclude=(run.corpus,), **json.loads(walked)):
            items.append(item)
            if len(items) % 1000 == 0:
                check(run.abort)
                run.tell(Progress("walk", len(items), 0))
    placed, roots = settle(items, asked, run.previous.roots, how, os.path.realpath(run.corpus))
    new = {r for r in roots if r not in run.previous.roots}
    held: dict[str, set[str]] = {}
    if new and len(roots) > 1:
        for item in placed:
            if isinstance(item, FoundFile):
                held.setdefault(item.root, set()).add(item.path)
        for root, path in run.previous.files:
            if root in roots:
                held.setdefault(root, set()).add(path)
    run.roots, warnings = salted(roots, new, held)
    run.warnings += warnings
    run.tell(Progress("walk", len(items), len(items)))
    return placed


def compare(run: Run, found: Sequence[FoundFile | SkippedFile], asked: Sequence[str]) -> list[Task]:
    """Sort the files into unchanged, skipped and to be read; find those that vanished. Returns what is to be read."""
    previous, tasks = run.previous, []
    names: set[str] = {*previous.granularities}
    meter = Meter(run.tell, "compare", len(found))
    present: set[FileKey] = set()
    unreadable: list[str] = []
    chosen: list[tuple[FoundFile, FileRules]] = []
    for each in found:
        item = each
        present.add((item.root, item.path))
        rules = _rules_for(run, item)
        reason = "" if isinstance(item, SkippedFile) else run.rules.left_out(item.path)
        if reason:
            item = SkippedFile(item.root, item.path, reason, "Change include and exclude there, and index again")
        if isinstance(item, SkippedFile):
            if item.status is FileStatus.FAILED:
                unreadable.append(relative_path(os.path.join(item.root, item.path.removeprefix("./"))).rstrip("/"))
            _left_out(run, item, rules)
            meter.advance()
        else:
            names.update(rules.collections)
            chosen.append((item, rules))
    run.cutting = cutting_for(run, names)
    _warn_of_doubles(run, chosen)
    for item, rules in chosen:
        check(run.abort)
        key = (item.root, item.path)
        old = previous.files.get(key)
        recipe = recipe_of(run, item, rules)
        if old is not None and not run.read_again and _unchanged(old, item, rules, recipe):
            # One that its reader skipped is skipped again, for the same reason.
            status = FileStatus.UNCHANGED if old.status is FileStatus.INDEXED else old.status
            run.reports[key] = FileReport(item.path, status, old.reason, old.remedy)
            run.kept.add(key)
        elif old is not None and old.status is FileStatus.INDEXED and (reason := _refusal(item.absolute)):
            _keep(run, key, f"The file cannot be read: {reason}", FileStatus.FAILED)
        else:
            if old is not None:
                run.dropped.add(key)
            tasks.append(Task(item, rules, run.roots[item.root].salt))
        meter.advance(detail=item.path)
    below = [relative_path(target) for target in asked]
    own = relative_path(os.path.realpath(run.corpus))
    for key, old in sorted(previous.files.items()):
        if key in present:
            continue
        where = relative_path(os.path.join(*key))
        if any(inside(where, place) for place in unreadable) and not run.rules.left_out(key[1]):
            if old.status is FileStatus.INDEXED:
                _keep(run, key, "Its folder cannot be read", FileStatus.UNCHANGED)
        elif key[0] not in run.roots or any(
            inside(where, target) and (inside(target, own) or not inside(where, own)) for target in below
        ):
            run.dropped.add(key)
            if old.status is FileStatus.INDEXED:
                run.reports[key] = FileReport(key[1], FileStatus.REMOVED, "It is no longer there")
    return tasks


def _warn_of_doubles(run: Run, chosen: Sequence[tuple[FoundFile, FileRules]]) -> None:
    """Passages that are in a second collection from now on are found twice: whoever named another one may not have meant it."""
    files = Counter[str]()
    for item, _ in chosen:
        files.update(elsewhere(run, (item.root, item.path)))
    if files and not run.options.move:
        to = ", ".join(run.options.flags.collections)
        of = " and ".join(f"{counted(number, 'file')} in {name}" for name, number in sorted(files.items()))
        run.warnings.append(
            f"There were {of} already: they are in {to} too, so their passages are found twice. To have them in {to} alone, "
            "index them again with --move"
        )


def elsewhere(run: Run, key: FileKey) -> tuple[str, ...]:
    """The collections of the same granularity that a file is in and that the run's flags do not name, where it is in none that
    they name: it would be in both.
    """
    old, flags, kind = run.previous.files.get(key), run.options.flags, run.cutting.granularity
    if old is None or old.status is not FileStatus.INDEXED or not {*flags.collections}.isdisjoint(old.collections):
        return ()
    if run.rules.for_file(key[1], flags).collections != flags.collections:
        return ()  # corpus.yaml says where it belongs
    return tuple(name for name in old.collections if kind(name) in set(map(kind, flags.collections)))


def _rules_for(run: Run, item: FoundFile | SkippedFile) -> FileRules:
    """What a file gets. Where the flags name the collections, the ones that it is in already stay."""
    rules = run.rules.for_file(item.path, run.options.flags)
    old = run.previous.files.get((item.root, item.path))
    if old is None or run.options.move or rules.collections != run.options.flags.collections:
        return rules
    return replace(rules, collections=tuple({*rules.collections, *old.collections}))


def cutting_for(run: Run, names: Iterable[str]) -> Cutting:
    """How each collection is cut. Raises UsageError where an existing one would be cut in two ways, SettingError
    where words of pictures are to be recognised and cannot be.
    """
    previous, asked = run.previous, run.options.one_chunk_per_document
    whole = set(previous.whole)
    names = {*names, *run.rules.granularities}
    for name in sorted(names):
        if name not in previous.granularities and asked:
            whole.add(name)
        elif asked and name in run.options.flags.collections and name not in whole:
            raise UsageError(
                f"The collection {name} holds several chunks a document already",
                "Choose another collection or corpus for one chunk a document",
            )
    granularities = {name: run.rules.granularity(name) for name in sorted(names)}
    budget = min(int(settings.get("chunk_tokens")), run.encoders[0][1].max_tokens)
    recognised = languages() if run.options.ocr or settings.get("ocr") else ""
    return Cutting(run.encoders[0][0], budget, granularities, frozenset(whole), asked, recognised)


def recipe_of(run: Run, item: FoundFile, rules: FileRules) -> str:
    """Digest of all that shapes a file's documents beside its bytes and the collections they go to."""
    cutting = run.cutting
    shaped_by = [
        INGEST_VERSION, generations.FORMAT, run.roots[item.root].salt, rules.tenant, rules.roles, rules.sensitivity,
        rules.type, cutting.budget_tokens, run.encoders[0][1].name, run.encoders[0][1].digest,
        [[n, cutting.granularity(n).value, cutting.is_whole(n)] for n in rules.collections], cutting.ocr,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(shaped_by).encode()).hexdigest()[:32]


def _unchanged(old: StoredFile, item: FoundFile, rules: FileRules, recipe: str) -> bool:
    """Whether a file would give what it gave. A file that failed is tried again; the digest is read last."""
    was = (old.recipe, old.collections, old.size, old.modified_ns)
    if old.status is FileStatus.FAILED or was != (recipe, rules.collections, item.size, item.modified_ns):
        return False
    with suppress(OSError):
        return digest_of(item) == old.sha256
    return False


def _refusal(path: str) -> str:
    """Why the system does not let a file be read now; "" where it does, or where the file has gone."""
    try:
        with open(path, "rb"):
            return ""
    except FileNotFoundError:
        return ""
    except OSError as exc:
        return system_words(exc)


def _keep(run: Run, key: FileKey, reason: str, status: FileStatus) -> None:
    """A file that cannot be read now has not gone: what was indexed of it stays. Raises EncoderMismatch."""
    if run.read_again:
        raise EncoderMismatch(
            f"All texts must be embedded again for another encoder, and {os.path.join(*key)} cannot be read",
            "Give yourself the right to read it, or take it out of the corpus first",
        )
    reason = f"{reason}; what was indexed of it before stays"
    run.reports[key] = FileReport(key[1], status, reason, "Give yourself the right to read it, and index again")


def _left_out(run: Run, item: SkippedFile, rules: FileRules) -> None:
    key = (item.root, item.path)
    old = run.previous.files.get(key)
    if item.status is FileStatus.FAILED and old is not None and old.status is FileStatus.INDEXED:
        _keep(run, key, item.reason, FileStatus.FAILED)
        return
    run.reports[key] = FileReport(item.path, item.status, item.reason, item.remedy)
    if key in run.previous.files:
        run.dropped.add(key)
    run.rows.append(
        StoredFile(item.root, item.path, 0, 0, "", "", (), item.status, item.reason, item.remedy, 0, 0, rules.access)
    )


# --- encoders ---
# The first is the corpus's own (`vector`) and its tokenizer cuts; each other one is a source `vector:NAME`. A new one needs every
# text again, so all folders of the corpus are read, but texts that have a vector of an older encoder are not embedded for that
# one again. Leaving one out needs nothing: its vectors are not carried over.


def settle_encoders(run: Run, asked: tuple[str, ...]) -> dict[str, str]:
    """Compare the run's encoders with the corpus's: what has to be read again, and what the report says of it. Returns other
    paths of the corpus that are to be read, with how they were walked: none unless an encoder is new. Raises EncoderMismatch
    where one of them is not there.
    """
    held = list(run.previous.encoders)
    names = {vector_key(identity): name for name, identity in run.encoders}
    if held:
        main = next(iter(names))
        new = [name for key, name in names.items() if key not in held]
        gone = sorted(identity.name for key, identity in run.previous.encoders.items() if key not in names)
        run.read_again, run.fewer = bool(new) or main != held[0], bool(gone)
        others = [name for name in new if name in gone]
        if others:
            run.warnings.append(f"{', '.join(others)} has other weights now: every text was embedded for it again")
        if main != held[0] and names[main] not in others:
            run.warnings.append(
                f"The corpus now has the encoder {', '.join(names.values())}: texts without a vector of it were embedded"
            )
        elif added := ", ".join(name for name in new if name not in gone):
            run.warnings.append(f"The corpus now has the encoder {added} too: every text was embedded for it")
        if left := ", ".join(name for name in gone if name not in new):
            run.warnings.append(f"The corpus no longer has the encoder {left}: its vectors are gone")
    budget = min(int(settings.get("chunk_tokens")), run.encoders[0][1].max_tokens)
    for name, identity in run.encoders[1:]:
        if identity.max_tokens < budget:
            run.warnings.append(
                f"{name} reads the first {identity.max_tokens} tokens of a chunk, and chunks have up to {budget};"
                " set chunk_tokens to fit both"
            )
    return other_targets(asked, run.previous) if run.read_again else {}


def other_targets(asked: tuple[str, ...], previous: Previous, *, there: bool = False) -> dict[str, str]:
    """Every folder and file of the corpus outside `asked`, with how it was walked: those that are there, or all of them, because
    records of folders that nobody asked for would lack a vector. Raises EncoderMismatch where one of all is not there.
    """
    paths = {root.root: root.options for root in previous.roots.values() if root.whole}
    for folder, name in sorted(previous.files):
        root = previous.roots[folder]
        if not root.whole:
            paths[os.path.join(folder, name)] = root.options
    also = {path: how for path, how in sorted(paths.items()) if not any(inside(path, target) for target in asked)}
    missing = [path for path in also if not os.path.exists(path)]
    if missing and not there:
        raise EncoderMismatch(
            f"All texts must be embedded again for another encoder, and {missing[0]} is not there",
            f"Bring it back, or take it out first: workbench remove {shlex.quote(missing[0])}",
        )
    return {path: how for path, how in also.items() if path not in missing}
