"""Repairing a damaged corpus: what can be made again is made again, what is damaged is set aside and never removed.

The database of a generation is its record: words, lines, columns and vectors are made again from it. Where the database itself is
damaged, or its manifest, the newest other generation that is whole answers, or none; then the folders that
have to be indexed again are named. Judgments, snapshots and `corpus.yaml` are not touched (judgments are repaired apart).
"""

from __future__ import annotations

import os
import shlex
import shutil
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from workbench.errors import CorpusDamaged, CorpusError
from workbench.indexing.run import carry_over, disk_errors, existing, locked
from workbench.indexing.state import Run
from workbench.indexing.write import report_of
from workbench.records import FileStatus, IndexReport
from workbench.saved.jobs import JobState, list_jobs
from workbench.store import generations, locks
from workbench.store.build import publish
from workbench.store.generations import DATABASE, Layout


def repair(corpus: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Repair the generations of a corpus: what was done, and what is left to do, a sentence each; both empty where it is whole.

    Raises CorpusNotFound, CorpusLocked, and CorpusError where a file cannot be read or an encoder is not on this machine.
    """
    existing(corpus)
    with disk_errors(), locks.writer(Layout(corpus).writer_lock, corpus):
        done = _choose(corpus)
    if not generations.exists(corpus):
        return tuple(done), (f"No generation is intact. Index again: {_indexed(corpus)}",)
    left: list[str] = []

    def rebuild(run: Run) -> IndexReport:
        pin = run.previous.pin
        assert pin is not None
        run.roots = dict(run.previous.roots)
        if pin.sound(again=True):
            return report_of(run, pin.manifest)
        report = carry_over(run)
        aside = generations.set_aside(corpus, pin.manifest.generation)
        done.append(
            f"Generation {pin.manifest.generation} was damaged and is set aside in {aside}; {report.generation} was built from"
            f" its database: {report.documents:,} documents, {report.embedded:,} texts embedded again"
        )
        failed = (file for file in report.files if file.status is FileStatus.FAILED)
        left.extend(f"{file.path}: {file.reason}. {file.remedy}" for file in failed)
        return report

    locked(corpus, "repair", (), rebuild)
    return tuple(done), tuple(left)


def _choose(corpus: Path) -> list[str]:
    """Let the pointer name a generation with a whole manifest and database; set aside those without. What was done."""
    layout, done = Layout(corpus), []
    there = generations.published(corpus)
    wanted = chosen = ""
    with suppress(CorpusDamaged):
        wanted = generations.current(corpus)
    newest_first = there[::-1]
    for name in sorted(newest_first, key=lambda name: name != wanted):
        try:
            with closing(generations.hold(layout.folder(name))) as pin:
                pin.check(DATABASE, again=True)
            chosen = name
            break
        except CorpusDamaged as exc:
            done.append(f"Generation {name} is set aside in {generations.set_aside(corpus, name)}: {exc.message}")
    if not chosen:
        layout.pointer.unlink(missing_ok=True)
    elif chosen != wanted or not layout.pointer.is_file():
        generations.point(corpus, chosen)
        older = "" if chosen == there[-1] else ", an older state: index again for what was added since"
        done.append(f"The pointer was missing or damaged, and names generation {chosen} now{older}")
    return done


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
    Raises UsageError, CorpusDamaged, CorpusLocked.
    """
    layout = Layout(corpus)
    with disk_errors(), locks.writer(layout.writer_lock, corpus):
        generations.clean(corpus)
        source = layout.folder(generations.state(corpus, name))
        built = layout.building / "generation"
        try:
            with closing(generations.hold(source)) as pin:
                pin.check(again=True)
                for part in pin.manifest.parts:
                    target = built / part
                    target.parent.mkdir(parents=True, exist_ok=True)
                    try:
                        os.link(source / part, target)
                    except OSError:  # a file system without second names
                        shutil.copyfile(source / part, target)
            number = f"{generations.next_number(corpus):06d}"  # the newest generation always answers
            manifest = replace(pin.manifest, generation=f"{number}-{pin.manifest.digest[:8]}")
            generations.complete(built, manifest)
            publish(corpus, built, manifest)
        finally:
            generations.clean(corpus)
    return manifest.generation
