"""Mending a damaged corpus: what can be made again is made again, what is damaged is set aside and never removed.

The database of a generation is its record: words, lines, columns and vectors are made again from it. Where the database itself is
damaged, or both copies of the manifest are, the newest other generation that is whole answers, or none; then the folders that
have to be indexed again are named. Judgments, snapshots and `corpus.yaml` are not touched (judgments are repaired apart).
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from workbench.errors import CorpusDamaged, CorpusError, CorpusNotFound
from workbench.indexing.run import carry_over, disk_errors, ignore_progress, locked, never
from workbench.indexing.state import Abort, IndexOptions, Previous, Run
from workbench.indexing.trial import try_searches
from workbench.indexing.write import report_of
from workbench.ingest.rules import load_rules
from workbench.records import ProgressCallback
from workbench.reports import FileStatus, IndexReport
from workbench.saved.jobs import JobState, list_jobs, recording
from workbench.store import generations, locks
from workbench.store.build import publish
from workbench.store.generations import DATABASE, MANIFEST, MANIFEST_COPY, Layout, Manifest, Pin


def repair(corpus: Path, *, progress: ProgressCallback | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Mend the generations of a corpus.

    Args:
        corpus: The corpus folder.
        progress: Called with a Progress now and then.

    Returns:
        What was done, and what is left to do, a sentence each; both empty where the corpus is whole.

    Raises:
        CorpusNotFound: Nothing was indexed there yet.
        CorpusLocked: Another process is writing.
        CorpusError: A file cannot be read, or an encoder is not on this machine.
    """
    if not generations.exists(corpus):
        raise CorpusNotFound(f"There is no corpus at {corpus}", "Make one with: workbench index PATH")
    with disk_errors(), locks.writer(Layout(corpus).writer_lock, corpus):
        done = _choose(corpus)
    if not generations.exists(corpus):
        return tuple(done), (f"No generation is intact. Index again: {_indexed(corpus)}",)
    left: list[str] = []

    def rebuild(previous: Previous, tell: ProgressCallback, abort: Abort) -> IndexReport:
        held = previous.own_encoders
        run = Run(corpus, IndexOptions(), tell, abort, previous, load_rules(corpus), held, time.monotonic())
        run.roots = dict(previous.roots)
        assert previous.pin is not None
        manifest = previous.pin.manifest
        if previous.pin.sound(anew=True):
            counts = manifest.counts
            return report_of(
                run, manifest.generation, 0, counts["records"] * len(held), (counts["documents"], counts["records"])
            )
        report = carry_over(run)
        aside = generations.set_aside(corpus, manifest.generation)
        done.append(
            f"Generation {manifest.generation} was damaged and is set aside in {aside}; {report.generation} was built from"
            f" its database: {report.documents:,} documents, {report.embedded:,} texts embedded again"
        )
        left.extend(
            f"{file.path}: {file.reason}. {file.remedy}" for file in report.files if file.status is FileStatus.FAILED
        )
        return report

    locked(recording(corpus, "repair", (), (), {}), corpus, progress or ignore_progress, never, False, rebuild)
    return tuple(done), tuple(left)


def _choose(corpus: Path) -> list[str]:
    """Let the pointer name a generation with a whole manifest and database; set aside those without. What was done."""
    layout, done = Layout(corpus), []
    there = generations.published(corpus)
    try:
        wanted = generations.current(corpus)
    except CorpusDamaged:
        wanted = ""
    chosen = ""
    for name in [*filter(there.__contains__, [wanted]), *(name for name in there[::-1] if name != wanted)]:
        restored, reason = _record_of(layout.folder(name))
        done += restored
        if not reason:
            chosen = name
            break
        done.append(f"Generation {name} is set aside in {generations.set_aside(corpus, name)}: {reason}")
    if chosen and (chosen != wanted or not layout.pointer.is_file()):
        generations.point(corpus, chosen)
        older = "" if chosen == there[-1] else ", an older state: index again for what was added since"
        done.append(f"The pointer was missing or damaged, and names generation {chosen} now{older}")
    elif not chosen:
        layout.pointer.unlink(missing_ok=True)
    return done


def _record_of(folder: Path) -> tuple[list[str], str]:
    """Restore a manifest from its copy, or the copy; what was done, and why the generation cannot be built again, or ""."""
    done = []
    for name, other in ((MANIFEST, MANIFEST_COPY), (MANIFEST_COPY, MANIFEST)):
        try:
            Manifest.read_file(folder / name)
        except CorpusDamaged:
            with suppress(CorpusDamaged):
                text = Manifest.read_file(folder / other).to_json()
                fresh = folder / f"{name}.new"
                fresh.write_text(text, encoding="utf-8")
                generations.sync(fresh)
                os.replace(fresh, folder / name)
                done.append(f"{folder / name} was damaged, and was written again from its copy")
    try:
        lock = locks.shared(folder / "lock")
        assert lock is not None
        with lock:
            Pin(folder, Manifest.read(folder), lock).check(DATABASE, anew=True)
    except CorpusDamaged as exc:
        return done, exc.message
    return done, ""


def _indexed(corpus: Path) -> str:
    """What was indexed, as far as the jobs say."""
    paths: dict[str, None] = {}
    with suppress(CorpusError):
        for job in reversed(list_jobs(corpus)):
            if job.state is JobState.DONE and job.kind == "index":
                paths.update(dict.fromkeys(job.paths))
            elif job.state is JobState.DONE and job.kind == "remove":
                paths = {path: None for path in paths if path not in job.paths}
    named = " ".join(map(shlex.quote, paths)) or "your folders"
    return f"{named} into {shlex.quote(str(corpus))}, with the tenant, roles and collection of then"


def rollback(corpus: Path, name: str) -> str:
    """Let a kept state answer again, as a generation of its own; the id of that. What answered before is kept only by its name.

    Raises:
        UsageError: No state has this name.
        CorpusDamaged: The state's files are not as they were written.
        CorpusLocked: Another process is writing.
    """
    layout = Layout(corpus)
    with disk_errors(), locks.writer(layout.writer_lock, corpus):
        generations.clean(corpus)
        source = layout.folder(generations.state(corpus, name))
        old = Manifest.read(source)
        lock = locks.shared(source / "lock")
        if lock is None:
            raise generations.damaged(source, "is missing")
        with lock:
            Pin(source, old, lock).check(anew=True)
            built = layout.building / "generation"
            manifest = _copied(corpus, source, built, old)
        encoders = [(identity.name, identity) for identity in old.encoders.values()]
        try:
            publish(corpus, built, manifest, lambda made: try_searches(made, encoders))
        finally:
            generations.clean(corpus)
    return manifest.generation


def _copied(corpus: Path, source: Path, built: Path, old: Manifest) -> Manifest:
    """A generation's parts under second names, with a manifest of the next number: the newest generation always answers."""
    for part in old.parts:
        target = built / part
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source / part, target)
        except OSError:  # a file system without second names
            shutil.copyfile(source / part, target)
    manifest = replace(old, generation=f"{generations.next_number(corpus):06d}-{old.digest[:8]}")
    generations.complete(built, manifest)
    return manifest
