"""`workbench index`, `remove`, `rollback` and `info`."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench import settings
from workbench.cli import options, output
from workbench.errors import WorkbenchError
from workbench.indexing.report import by_kind, slowest
from workbench.reports import FileStatus, IndexReport

if TYPE_CHECKING:
    import polars

    from workbench.indexing.preview import IndexPreview


_SHOWN_NOTES = 8
_MANY_FILES = 20


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--collection", "collections", multiple=True, help="Named part of the corpus; may be repeated. Default: docs."
)
@click.option("--tenant", help="Tenant of these documents.")
@click.option(
    "--role", "roles", multiple=True, help="A role that may see them; may be repeated. Default: everyone of the tenant."
)
@click.option("--sensitivity", help="public, normal, internal, confidential or restricted.")
@click.option("--type", "kind", help="Type of these documents, instead of the one read from them.")
@click.option(
    "--encoder",
    "encoders",
    multiple=True,
    help="Sentence-transformers model: a name, a folder, or `hashing`. May be repeated: the first is the source "
    "`vector`, each other one is `vector:NAME`; one that is left out goes.",
)
@click.option("--hidden", is_flag=True, help="Index hidden files and folders too.")
@click.option("--one-chunk", is_flag=True, help="Make each document one chunk.")
@click.option("--wait", is_flag=True, help="Wait while another process is indexing.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a file failed.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@click.option("--watch", "watching", is_flag=True, help="Index, then again after every change, until Ctrl-C.")
@click.option("--list", "list_files", is_flag=True, help="List every file and its status.")
@options.CORPUS
@options.JSON
@click.pass_context
def index(
    ctx: click.Context,
    paths: tuple[Path, ...],
    collections: tuple[str, ...],
    tenant: str | None,
    roles: tuple[str, ...],
    sensitivity: str | None,
    kind: str | None,
    encoders: tuple[str, ...],
    hidden: bool,
    one_chunk: bool,
    wait: bool,
    strict: bool,
    dry_run: bool,
    watching: bool,
    list_files: bool,
    corpus: Path | None,
    as_json: bool,
) -> None:
    """Index files and folders. What did not change is not embedded again; files that vanished are removed.

    Ctrl-C is safe at any time: the corpus stays as it was, and the next run goes on where this one stopped.
    """
    from workbench.corpus import index as run
    from workbench.corpus import preview
    from workbench.errors import UsageError

    if dry_run and watching:
        raise UsageError("--dry-run changes nothing, so there is nothing to --watch", "Leave one of the two out")
    how = {
        "tenant": tenant, "roles": roles, "sensitivity": sensitivity, "type": kind, "encoder": encoders or None, "hidden": hidden,
        "one_chunk_per_document": one_chunk,
    }  # fmt: skip
    wanted = collections or ("docs",)
    if dry_run:
        print_preview(preview(paths, corpus, wanted, **how), list_files=list_files, as_json=as_json)
        return

    def once(waiting: bool) -> IndexReport:
        with output.progress_bar(enabled=not as_json) as progress:
            report = run(paths, corpus, wanted, progress, wait=waiting, **how)
        if as_json:
            output.print_json(report_dict(report))
        else:
            print_report(report, list_files=list_files)
        return report

    failed = 0

    def first() -> None:
        nonlocal failed
        try:
            failed = once(wait).count(FileStatus.FAILED)
        except KeyboardInterrupt:
            output.say("workbench: Stopped. The corpus is as it was; run the same command to go on.", err=True)
            ctx.exit(130)

    if watching:
        index_again(paths, corpus, first, lambda: once(True))
    else:
        first()
    ctx.exit(1 if strict and failed else 0)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@options.CORPUS
@options.JSON
@click.pass_context
def remove(ctx: click.Context, paths: tuple[Path, ...], corpus: Path | None, as_json: bool) -> None:
    """Take files and folders out of a corpus; the files themselves stay."""
    from workbench.corpus import remove as run

    report = run(paths, corpus)
    if as_json:
        output.print_json(report_dict(report))
    else:
        print_report(report, list_files=False)
    ctx.exit(0 if report.count(FileStatus.REMOVED) else 1)


@click.command()
@click.option("--sources", is_flag=True, help="List what the documents came from.")
@click.option("--jobs", is_flag=True, help="List indexing runs: queued, running, done or failed, the newest first.")
@options.takes_asker
@options.JSON
def info(sources: bool, jobs: bool, asker: options.Asker, as_json: bool) -> None:
    """Say what a corpus holds: generation, counts, encoder, digest and bytes."""
    with asker.open() as opened:
        tables = {}
        if sources:
            tables["sources"] = opened.sources()
        if jobs:
            tables["jobs"] = opened.jobs()
        held = {} if tables else dict(opened.info())
    if tables:
        _print_tables(tables, as_json=as_json)
        return
    if as_json:
        output.print_json(held)
        return
    out = output.console()
    held["encoders"] = {
        e["name"]: f"({'vector' if e['name'] == held['encoder'] else 'vector:' + e['name']}, {e['dim']} dimensions)"
        for e in held["encoders"]
    }
    for name, value in held.items():
        shown = (
            ", ".join(f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in value.items())
            if isinstance(value, dict)
            else value
        )
        out.print(
            Text(f"{name}: ", style="bold") + Text(f"{shown:,}" if isinstance(shown, int) else output.plain(str(shown)))
        )


def _print_tables(tables: Mapping[str, polars.DataFrame], *, as_json: bool) -> None:
    """Sources and jobs: every column as JSON, the telling ones on the screen."""
    if as_json:
        output.print_json({name: json.loads(frame.write_json()) for name, frame in tables.items()})
        return
    out = output.console()
    for name, frame in tables.items():
        if name == "jobs":
            for job in frame.to_dicts():
                out.print(Text(_job_line(job)), soft_wrap=True)
            if not len(frame):
                out.print("No indexing run is known: they are kept from the next one on")
        else:
            for row in frame.to_dicts():
                counts = _counts(row) + f", {output.counted(row['bytes'], 'byte')}"
                counts += f", {output.counted(row['copies'], 'copy|copies')} of documents" if row["copies"] else ""
                out.print(Text(output.one_line(f"{row['path']}: {row['kind']}, {counts}")), soft_wrap=True)


def _job_line(job: Mapping[str, Any]) -> str:
    """A job in one line: number, state, when, what, and what came of it."""
    at = job["ended"] or job["started"] or job["queued"]
    said = f"{job['number']}. {job['state']} {at:%Y-%m-%d %H:%M:%S} UTC, {job['kind']} {' '.join(job['paths'])}"
    if job["found"] is not None:
        parts = ("indexed", "unchanged", "skipped", "failed", "removed")
        counts = ", ".join(f"{job[name]:,} {name}" for name in parts if job[name])
        said += f": {output.counted(job['found'], 'file')}{': ' if counts else ''}{counts}; {_counts(job)}"
    if job["reason"]:
        said += f": {job['reason']}" + (f". {job['remedy']}" if job["remedy"] else "")
    return said


def _counts(row: Mapping[str, Any]) -> str:
    return f"{output.counted(row['documents'], 'document')}, {output.counted(row['chunks'], 'chunk')}"


def report_dict(report: IndexReport) -> dict[str, object]:
    """An indexing report as JSON values."""
    data = dataclasses.asdict(report)
    data["found"] = report.found
    data["copies"] = report.copies
    data["kinds"] = [{**dataclasses.asdict(kind), "files_a_second": kind.rate} for kind in by_kind(report)]
    data["slowest"] = [{"path": file.path, "seconds": file.seconds} for file in slowest(report)]
    data["counts"] = {status.value: report.count(status) for status in FileStatus}
    return data


def _print_kinds(report: IndexReport, *, every: bool) -> None:
    """The table of kinds and the slowest files, where many files were read or every file is listed."""
    kinds = by_kind(report)
    if not every and (len(kinds) < 2 or sum(kind.files - kind.unchanged for kind in kinds) < _MANY_FILES):
        return
    head = ("kind", "files", "read", "documents", "chunks", "unchanged", "skipped", "failed", "seconds", "files/s")
    rows = [
        (
            output.plain(k.kind), *(f"{n:,}" for n in (k.files, k.read, k.documents, k.chunks, k.unchanged, k.skipped, k.failed)),
            f"{k.seconds:.2f}", f"{k.rate:,.0f}" if k.seconds else "",
        )
        for k in kinds
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        cells = (
            cell.ljust(w) if column == 0 else cell.rjust(w)
            for column, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        output.console().print(Text("  " + "  ".join(cells)), soft_wrap=True)
    slow = [file for file in slowest(report) if file.seconds >= (0.1 if every else 1)]
    for file in slow:
        output.console().print(
            Text(output.one_line(f"  slow {file.seconds:.1f} s: {file.path}"), style="dim"), soft_wrap=True
        )


def print_report(report: IndexReport, *, list_files: bool) -> None:
    """The counts, and every file that was not indexed with its reason, grouped by reason where there are many."""
    out = output.console()
    counts = ", ".join(
        f"{report.count(s):,} {s.value}"
        for s in (FileStatus.INDEXED, FileStatus.UNCHANGED, FileStatus.SKIPPED, FileStatus.FAILED)
    )
    # A line of the report stays one line in a pipe, however long it is.
    out.print(
        f"{output.counted(report.found, 'file')}: {counts}; {report.count(FileStatus.REMOVED):,} removed",
        soft_wrap=True,
    )
    made = f"{output.counted(report.documents, 'document')}, {output.counted(report.chunks, 'chunk')}"
    out.print(
        f"{made}; {report.embedded:,} embedded, {report.reused:,} reused; {report.seconds:.1f} s; "
        f"generation {report.generation}{'' if report.changed else ' (nothing changed)'}",
        soft_wrap=True,
    )
    if report.embedded and report.embedding_seconds:
        share = report.embedding_seconds / max(report.seconds, report.embedding_seconds)
        out.print(
            f"embedding {report.embedding_seconds:.1f} s, {share:.0%} of the run, "
            f"{report.embedded / report.embedding_seconds:,.0f} texts a second",
            soft_wrap=True,
        )
    if len(report.encoders) > 1:
        own, *others = report.encoders
        named = ", ".join((f"{own} (vector)", *(f"{name} (vector:{name})" for name in others)))
        out.print(Text(f"encoders: {named}"), soft_wrap=True)
    if report.copies:
        holds = "file holds" if report.copies == 1 else "files hold"
        out.print(f"{report.copies:,} {holds} the same bytes as another; results name them together", soft_wrap=True)
    _print_kinds(report, every=list_files)
    output.warn(report.warnings)
    shown = [f for f in report.files if list_files or f.status is FileStatus.FAILED]
    for file in shown:
        why = f": {file.reason}" + (f". {file.remedy}" if file.remedy else "") if file.reason else ""
        style = "red" if file.status is FileStatus.FAILED else ""
        out.print(Text(output.one_line(f"  {file.status.value} {file.path}{why}"), style=style), soft_wrap=True)
    if not list_files:
        skipped = Counter(f.reason for f in report.files if f.status is FileStatus.SKIPPED)
        for reason, number in sorted(skipped.items(), key=lambda item: (-item[1], item[0])):
            out.print(Text(f"  skipped {number:,}: {reason}", style="dim"), soft_wrap=True)
        noted = Counter(
            f"{f.reason}. {f.remedy}" if f.remedy else f.reason
            for f in report.files
            if f.status is FileStatus.INDEXED and f.reason and not f.same_as
        )
        for reason, number in noted.most_common(_SHOWN_NOTES):
            out.print(Text(output.one_line(f"  note on {number:,}: {reason}"), style="dim"), soft_wrap=True)
        if len(noted) > _SHOWN_NOTES:
            left = sum(noted.values()) - sum(number for _, number in noted.most_common(_SHOWN_NOTES))
            out.print(Text(f"  note on {left:,} more: --list names them", style="dim"), soft_wrap=True)


def print_preview(found: IndexPreview, *, list_files: bool, as_json: bool) -> None:
    """What a run would do: the counts, what would be read or go, and why files would be left out."""
    from workbench.indexing.preview import Action

    if as_json:
        data = dataclasses.asdict(found)
        data["copies"] = found.copies
        data["counts"] = {action.value: found.count(action) for action in Action}
        output.print_json(data)
        return
    out = output.console()
    counts = ", ".join(f"{found.count(action):,} {action.value}" for action in Action)
    out.print(f"{output.counted(len(found.files), 'file')}: {counts}", soft_wrap=True)
    size = f"{found.read_bytes / 1e6:,.1f} MB" if found.read_bytes >= 1e5 else f"{found.read_bytes:,} bytes"
    out.print(f"{size} would be read. Nothing was changed; leave out --dry-run to index.")
    if found.copies:
        one = found.copies == 1
        out.print(f"{found.copies:,} {'file holds' if one else 'files hold'} the same bytes as another")
    shown = (Action.NEW, Action.CHANGED, Action.REMOVED, Action.FAILED) if not list_files else tuple(Action)
    most = len(found.files) if list_files else 20
    for action in shown:
        files = [file for file in found.files if file.action is action]
        for file in files[:most]:
            why = f": {file.reason}" if file.reason else f": the same bytes as {file.copy_of}" if file.copy_of else ""
            out.print(Text(output.one_line(f"  {action.value} {file.path}{why}")), soft_wrap=True)
        if len(files) > most:
            out.print(Text(f"  {action.value}: {len(files) - most:,} more; --list shows them", style="dim"))
    if not list_files:
        skipped = Counter(file.reason for file in found.files if file.action is Action.SKIPPED)
        for reason, number in sorted(skipped.items(), key=lambda item: (-item[1], item[0])):
            out.print(Text(f"  skipped {number:,}: {reason}", style="dim"))


def index_again(
    paths: Sequence[Path], corpus: Path | None, first: Callable[[], object], once: Callable[[], object]
) -> None:
    """Index, then after each burst of changes until Ctrl-C. A later run that fails is said, and the next change tries again."""
    from workbench.indexing import watch

    def run() -> None:
        try:
            once()
        except WorkbenchError as exc:
            output.say(f"workbench: {exc}", err=True)

    def begin() -> None:
        first()
        output.say("Watching for changes; Ctrl-C ends it.", err=True)

    try:
        watch(paths, Path(settings.get("corpus") if corpus is None else corpus), run, lambda: False, begin)
    except KeyboardInterrupt:
        output.say("workbench: Stopped watching.", err=True)


@click.command()
@click.argument("name", required=False)
@click.option("--keep", metavar="NAME", help="Keep the corpus as it is now under this name, until it is forgotten.")
@click.option("--forget", metavar="NAME", help="Keep this state no longer; its space is freed by the next run.")
@options.CORPUS
@options.JSON
@click.pass_context
def rollback(
    ctx: click.Context, name: str | None, keep: str | None, forget: str | None, corpus: Path | None, as_json: bool
) -> None:
    """Go back to the state NAME of the corpus; without a name, list the states that are kept.

    Judgments, snapshots and `corpus.yaml` stay as they are. The next `workbench index` compares with the files again.

    \b
    workbench rollback --keep before-june
    workbench rollback before-june
    """
    from workbench.indexing.repair import rollback as go_back
    from workbench.store import generations

    path = Path(settings.get("corpus")) if corpus is None else corpus
    generations.current(path)
    if sum(value is not None for value in (name, keep, forget)) > 1:
        raise click.UsageError("Name one of NAME, --keep and --forget")
    if forget is not None:
        generations.state(path, forget)
        (generations.Layout(path).states / forget).unlink(missing_ok=True)
        said = f"The state {forget} is forgotten"
    elif keep is not None:
        said = f"Generation {generations.keep_state(path, keep)} is kept as {keep}"
    elif name is not None:
        generation = generations.state(path, name)
        said = f"The corpus answers from the state {name} (generation {generation}) now, as generation {go_back(path, name)}"
    else:
        said = ""
    known = generations.states(path)
    if as_json:
        output.print_json({"generation": generations.current(path), "states": known})
    elif said:
        click.echo(said)
    else:
        for state, generation in known.items():
            click.echo(f"{state}\t{generation}")
        if not known:
            click.echo("No state is kept. Keep the corpus as it is now with: workbench rollback --keep NAME")
    ctx.exit(0 if known or said else 1)
