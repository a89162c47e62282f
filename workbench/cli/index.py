"""`workbench index`, `remove` and `info`."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench.cli import options, output
from workbench.indexing.report import by_kind, slowest
from workbench.reports import FileStatus, IndexReport

_SHOWN_NOTES = 8
_MANY_FILES = 20

if TYPE_CHECKING:
    import polars


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
@click.option("--list", "list_files", is_flag=True, help="List every file with what became of it.")
@options.corpus_option
@options.json_option
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
    from workbench.cli.again import index_again, print_preview
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
            options.print_json(report_dict(report))
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
@options.corpus_option
@options.json_option
@click.pass_context
def remove(ctx: click.Context, paths: tuple[Path, ...], corpus: Path | None, as_json: bool) -> None:
    """Take files and folders out of a corpus; the files themselves stay."""
    from workbench.corpus import remove as run

    report = run(paths, corpus)
    if as_json:
        options.print_json(report_dict(report))
    else:
        print_report(report, list_files=False)
    ctx.exit(0 if report.count(FileStatus.REMOVED) else 1)


@click.command()
@click.option("--sources", is_flag=True, help="List what the documents came from.")
@click.option("--jobs", is_flag=True, help="List indexing runs: queued, running, done or failed, the newest first.")
@options.takes_asker
@options.json_option
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
        options.print_json(held)
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
        options.print_json({name: json.loads(frame.write_json()) for name, frame in tables.items()})
        return
    out = output.console()
    for name, frame in tables.items():
        if name == "jobs":
            for job in frame.to_dicts():
                out.print(Text(output.plain(_job_line(job))), soft_wrap=True)
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
        out.print(Text(output.plain(f"encoders: {named}")), soft_wrap=True)
    if report.copies:
        out.print(
            "1 file is a copy of another and was indexed once"
            if report.copies == 1
            else f"{report.copies:,} files are copies of another and were indexed once"
        )
    _print_kinds(report, every=list_files)
    for warning in report.warnings:
        out.print(Text("warning: " + output.plain(warning), style="yellow"), soft_wrap=True)
    shown = [f for f in report.files if list_files or f.status is FileStatus.FAILED]
    for file in shown:
        why = f": {file.reason}" + (f". {file.remedy}" if file.remedy else "") if file.reason else ""
        style = "red" if file.status is FileStatus.FAILED else ""
        out.print(Text(output.one_line(f"  {file.status.value} {file.path}{why}"), style=style), soft_wrap=True)
    if not list_files:
        skipped = Counter(f.reason for f in report.files if f.status is FileStatus.SKIPPED)
        for reason, number in sorted(skipped.items(), key=lambda item: (-item[1], item[0])):
            out.print(Text(output.plain(f"  skipped {number:,}: {reason}"), style="dim"), soft_wrap=True)
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
