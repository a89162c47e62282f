"""`workbench index`, `remove`, `rollback` and `info`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench.cli import options, output
from workbench.cli.options import ANY_PATH, Given, argument, flag, option, several, takes
from workbench.cli.output import line
from workbench.errors import UsageError, WorkbenchError, counted
from workbench.records import FileStatus, IndexReport, by_kind, slowest

if TYPE_CHECKING:
    from workbench.indexing.preview import IndexPreview

_SHOWN_NOTES = 8
_MANY_FILES = 20
_PATHS = argument("paths", nargs=-1, required=True, type=ANY_PATH)


@click.command()
@takes(
    _PATHS,
    several("--collection", "collections", help="Named part of the corpus; may be repeated. Default: docs."),
    option("--tenant", help="Tenant of these documents."),
    several("--role", "roles", help="A role that may see them; may be repeated. Default: everyone of the tenant."),
    option("--sensitivity", help="public, normal, internal, confidential or restricted."),
    option("--type", "kind", help="Type of these documents, instead of the one read from them."),
    several(
        "--encoder",
        "encoders",
        help="Sentence-transformers model: a name, a folder, or `hashing`. May be repeated: the first is the source "
        "`vector`, each other one is `vector:NAME`; one that is left out goes.",
    ),
    flag("--hidden", help="Index hidden files and folders too."),
    flag(
        "--ocr", help="Recognise words in scanned pages and pictures, by tesseract; the setting `ocr` does it always."
    ),
    flag("--one-chunk", help="Make each document one chunk."),
    flag("--move", help="Files that are in other collections leave those; else they are in both."),
    option("--ray", default="", help="Read and embed on Ray: `local`, or the address of a cluster."),
    flag("--wait", help="Wait while another process is indexing."),
    flag("--strict", help="Exit with 1 when a file failed."),
    flag("--dry-run", help="Say what would happen, and change nothing."),
    flag("--check-words", help="Compare the words of each file with those that another program finds; change nothing."),
    flag("--watch", "watching", help="Index, then again after every change, until Ctrl-C."),
    flag("--list", "list_files", help="List every file and its status."),
    options.CORPUS,
    options.JSON,
)
def index(o: Given) -> None:
    """Index files and folders. What did not change is not embedded again; files that vanished are removed.

    Ctrl-C is safe at any time: the corpus stays as it was, and the next run goes on where this one stopped.
    """
    from workbench.corpus import index as run
    from workbench.corpus import preview

    if o.dry_run and o.watching:
        raise UsageError("--dry-run changes nothing, so there is nothing to --watch", "Leave one of the two out")
    how = o.pick("tenant", "roles", "sensitivity", "hidden", "ocr", "ray", "move")
    how |= {"type": o.kind, "encoder": o.encoders or None, "one_chunk_per_document": o.one_chunk}
    collections = o.collections or ("docs",)
    if o.check_words:
        raise SystemExit(1 if _check_words(o) and o.strict else 0)
    if o.dry_run:
        _print_preview(preview(o.paths, o.corpus, collections, **how), o)
        return

    def once(wait: bool) -> IndexReport:
        with output.progress_bar(enabled=not o.as_json) as progress:
            report = run(o.paths, o.corpus, collections, progress, wait=wait, **how)
        show_report(report, o.as_json, list_files=o.list_files)
        return report

    def first() -> int:
        try:
            return once(o.wait).count(FileStatus.FAILED)
        except KeyboardInterrupt:
            output.say("workbench: Stopped. The corpus is as it was; run the same command to go on.", err=True)
            raise SystemExit(130) from None

    failed = _watch(o, first, lambda: once(True)) if o.watching else first()
    raise SystemExit(1 if o.strict and failed else 0)


def show_report(report: IndexReport, as_json: bool, *, list_files: bool = False) -> None:
    """An indexing report, as JSON or as lines."""
    if as_json:
        output.print_json(report_dict(report))
    else:
        print_report(report, list_files=list_files)


@click.command()
@takes(
    _PATHS,
    option("--collection", help="Take them out of this collection alone; they stay in the others."),
    options.CORPUS,
    options.JSON,
)
def remove(o: Given) -> None:
    """Take files and folders out of a corpus, or out of one collection; the files themselves stay."""
    from workbench.corpus import remove as run

    report = run(o.paths, o.corpus, o.collection)
    show_report(report, o.as_json)
    raise SystemExit(0 if report.changed else 1)


@click.command()
@takes(
    _PATHS,
    option("--to", required=True, help="The collection that they are in from now on."),
    option("--from", "source", help="The one that they leave. Default: every other one."),
    options.CORPUS,
    options.JSON,
)
def move(o: Given) -> None:
    """Move what is indexed of files and folders to another collection; nothing is read or embedded."""
    from workbench.corpus import move as run

    show_report(run(o.paths, o.corpus, to=o.to, source=o.source), o.as_json)


@click.command()
@takes(
    flag("--documents", help="List the documents."),
    option("--filter", "filters", help="Of these, those that fulfil a condition, such as \"type = 'pdf'\"."),
    flag("--sources", help="List what the documents came from."),
    flag("--jobs", help="List indexing runs: queued, running, done or failed, the newest first."),
    *options.ASKER,
)
def info(o: Given) -> None:
    """Say what a corpus holds: generation, counts, encoder, digest and bytes."""
    with o.open() as opened:
        tables = {n: getattr(opened, n)() for n in ("sources", "jobs") if vars(o)[n]}
        if o.documents or o.filters:
            tables["documents"] = opened.documents(o.filters)
        held = {} if tables else dict(opened.info())
    if o.as_json:
        output.print_json({name: json.loads(frame.write_json()) for name, frame in tables.items()} or held)
        return
    lines = {"jobs": _job_line, "sources": _source_line, "documents": _document_line}
    for name, frame in tables.items():
        for row in frame.to_dicts():
            line(lines[name](row) if name == "jobs" else output.one_line(lines[name](row)))
        if name == "jobs" and not len(frame):
            line("No indexing run is known: they are kept from the next one on")
    for name, value in held.items():
        if name == "encoders":
            first = held["encoder"]
            value = {
                e["name"]: f"({'vector' if e['name'] == first else 'vector:' + e['name']}, {e['dim']} dimensions)"
                for e in value
            }
        if isinstance(value, dict):
            shown = ", ".join(f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in value.items())
        else:
            shown = f"{value:,}" if isinstance(value, int) else str(value)
        output.console().print(Text(f"{name}: ", style="bold") + Text(output.plain(shown)))


def _source_line(source: Mapping[str, Any]) -> str:
    copies = f", {counted(source['copies'], 'copy|copies')} of documents" if source["copies"] else ""
    return f"{source['path']}: {source['kind']}, {_counts(source)}, {counted(source['bytes'], 'byte')}{copies}"


def _document_line(row: Mapping[str, Any]) -> str:
    facts = f"{row['type']} in {', '.join(row['collections'])}, {counted(row['chunks'], 'chunk')}"
    return f"{row['path']}: {facts}, {counted(row['characters'], 'character')}"


def _job_line(job: Mapping[str, Any]) -> str:
    """A job in one line: number, state, when, what, and what came of it."""
    at = job["ended"] or job["started"] or job["queued"]
    text = f"{job['number']}. {job['state']} {at:%Y-%m-%d %H:%M:%S} UTC, {job['kind']} {' '.join(job['paths'])}"
    if job["found"] is not None:
        parts = ("indexed", "unchanged", "skipped", "failed", "removed")
        counts = ", ".join(f"{job[name]:,} {name}" for name in parts if job[name])
        text += f": {counted(job['found'], 'file')}{': ' if counts else ''}{counts}; {_counts(job)}"
    if job["reason"]:
        text += f": {job['reason']}" + (f". {job['remedy']}" if job["remedy"] else "")
    return text


def _counts(row: Mapping[str, Any]) -> str:
    return f"{counted(row['documents'], 'document')}, {counted(row['chunks'], 'chunk')}"


def report_dict(report: IndexReport) -> dict[str, object]:
    """An indexing report as JSON values."""
    return {
        **asdict(report),
        "found": report.found,
        "copies": report.copies,
        "kinds": [{**asdict(kind), "files_a_second": kind.rate} for kind in by_kind(report)],
        "slowest": [{"path": file.path, "seconds": file.seconds} for file in slowest(report)],
        "counts": {status.value: report.count(status) for status in FileStatus},
    }


def _print_kinds(report: IndexReport, *, every: bool) -> None:
    """The table of kinds and the slowest files, where many files were read or every file is listed."""
    kinds = by_kind(report)
    if not every and (len(kinds) < 2 or sum(kind.files - kind.unchanged for kind in kinds) < _MANY_FILES):
        return
    names = ("files", "read", "documents", "chunks", "unchanged", "skipped", "failed")
    rows: list[tuple[str, ...]] = [("kind", *names, "seconds", "files/s")]
    for kind in kinds:
        counts = (f"{getattr(kind, name):,}" for name in names)
        rate = f"{kind.rate:,.0f}" if kind.seconds else ""
        rows.append((output.plain(kind.kind), *counts, f"{kind.seconds:.2f}", rate))
    first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    for head, *cells in rows:
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        line("  " + "  ".join((head.ljust(first), *numbers)))
    for file in slowest(report):
        if file.seconds >= (0.1 if every else 1):
            line(output.one_line(f"  slow {file.seconds:.1f} s: {file.path}"), "dim")


def _print_skipped(reasons: Iterable[str]) -> None:
    for reason, number in sorted(Counter(reasons).items(), key=lambda item: (-item[1], item[0])):
        line(f"  skipped {number:,}: {reason}", "dim")


def _same_bytes(copies: int) -> str:
    return f"{copies:,} {'file holds' if copies == 1 else 'files hold'} the same bytes as another"


def print_report(report: IndexReport, *, list_files: bool) -> None:
    """The counts, and every file that was not indexed with its reason, grouped by reason where there are many."""
    shown = (FileStatus.INDEXED, FileStatus.UNCHANGED, FileStatus.SKIPPED, FileStatus.FAILED)
    counts = ", ".join(f"{report.count(s):,} {s.value}" for s in shown)
    line(f"{counted(report.found, 'file')}: {counts}; {report.count(FileStatus.REMOVED):,} removed")
    line(
        f"{counted(report.documents, 'document')}, {counted(report.chunks, 'chunk')}; {report.embedded:,} embedded, "
        f"{report.reused:,} reused; {report.seconds:.1f} s; "
        f"generation {report.generation}{'' if report.changed else ' (nothing changed)'}"
    )
    if report.embedded and report.embedding_seconds:
        share = report.embedding_seconds / max(report.seconds, report.embedding_seconds)
        rate = report.embedded / report.embedding_seconds
        line(f"embedding {report.embedding_seconds:.1f} s, {share:.0%} of the run, {rate:,.0f} texts a second")
    if len(report.encoders) > 1:
        own, *others = report.encoders
        line("encoders: " + ", ".join((f"{own} (vector)", *(f"{name} (vector:{name})" for name in others))))
    if report.copies:
        line(f"{_same_bytes(report.copies)}; results name them together")
    _print_kinds(report, every=list_files)
    output.warn(report.warnings)
    for file in report.files:
        if list_files or file.status is FileStatus.FAILED:
            why = f": {file.reason}" + (f". {file.remedy}" if file.remedy else "") if file.reason else ""
            style = "red" if file.status is FileStatus.FAILED else ""
            line(output.one_line(f"  {file.status.value} {file.path}{why}"), style)
    if list_files:
        return
    _print_skipped(f.reason for f in report.files if f.status is FileStatus.SKIPPED)
    noted = Counter(
        f"{f.reason}. {f.remedy}" if f.remedy else f.reason
        for f in report.files
        if f.status is FileStatus.INDEXED and f.reason and not f.same_as
    )
    for reason, number in noted.most_common(_SHOWN_NOTES):
        line(output.one_line(f"  note on {number:,}: {reason}"), "dim")
    if len(noted) > _SHOWN_NOTES:
        left = sum(noted.values()) - sum(number for _, number in noted.most_common(_SHOWN_NOTES))
        line(f"  note on {left:,} more: --list names them", "dim")


def _print_preview(found: IndexPreview, o: Given) -> None:
    """What a run would do: the counts, what would be read or go, and why files would be left out."""
    from workbench.indexing.preview import Action

    if o.as_json:
        counts = {action.value: found.count(action) for action in Action}
        more = {"copies": found.copies, "counts": counts, "elsewhere": found.elsewhere}
        output.print_json({**asdict(found), **more})
        return
    line(f"{counted(len(found.files), 'file')}: " + ", ".join(f"{found.count(a):,} {a.value}" for a in Action))
    size = f"{found.read_bytes / 1e6:,.1f} MB" if found.read_bytes >= 1e5 else f"{found.read_bytes:,} bytes"
    line(f"{size} would be read. Nothing was changed; leave out --dry-run to index.")
    for name, number in sorted(found.elsewhere.items()):
        left = "and would leave it" if o.move else "and would be in both; with --move they leave it"
        line(f"{counted(number, 'file')} {'is' if number == 1 else 'are'} in {name} already, {left}")
    if found.copies:
        line(_same_bytes(found.copies))
    shown = tuple(Action) if o.list_files else (Action.NEW, Action.CHANGED, Action.REMOVED, Action.FAILED)
    most = len(found.files) if o.list_files else 20
    for action in shown:
        files = [file for file in found.files if file.action is action]
        for file in files[:most]:
            why = f": {file.reason}" if file.reason else f": the same bytes as {file.copy_of}" if file.copy_of else ""
            line(output.one_line(f"  {action.value} {file.path}{why}"))
        if len(files) > most:
            line(f"  {action.value}: {len(files) - most:,} more; --list shows them", "dim")
    if not o.list_files:
        _print_skipped(file.reason for file in found.files if file.action is Action.SKIPPED)


def _check_words(o: Given) -> int:
    """Print which files differ, as each is found; how many."""
    from workbench.ingest import census

    there = census.programs()
    if not there:
        remedy = "Install one: apt-get install poppler-utils pandoc libreoffice"
        raise UsageError(
            "None of pdftotext, pandoc and soffice is installed, which the words are compared with", remedy
        )
    found = []
    for item in census.check_words(o.paths, exclude=(o.folder,), hidden=o.hidden):
        found.append(item)
        if o.as_json:
            continue
        if isinstance(item, census.Unread):
            line(output.one_line(f"  not compared {item.path}: {item.reason}"), "dim")
        elif item.share > census.ALLOWED:
            sides = ((f"only {item.program} has", item.missing), ("only the index has", item.more))
            words = "; ".join(f"{side} {', '.join(some)}" for side, some in sides if some)
            line(output.one_line(f"  {item.share:.1%} {item.path}: {words}"))
    compared = [item for item in found if isinstance(item, census.Compared)]
    differ = [item for item in compared if item.share > census.ALLOWED]
    if o.as_json:
        unread = [asdict(item) for item in found if isinstance(item, census.Unread)]
        output.print_json({"programs": there, "compared": [asdict(item) for item in compared], "not_compared": unread})
        return len(differ)
    text = f"{counted(len(compared), 'file')} compared by {', '.join(there)}: {len(differ):,} differ by more than"
    line(f"{text} {census.ALLOWED:.0%} of their words, {len(found) - len(compared):,} could not be compared")
    return len(differ)


def _watch(o: Given, first: Callable[[], int], once: Callable[[], object]) -> int:
    """Index, then after each burst of changes until Ctrl-C; how many files failed at first. A later run that fails is said,
    and the next change tries again.
    """
    from workbench.indexing import watch

    failed = 0

    def begin() -> None:
        nonlocal failed
        failed = first()
        output.say("Watching for changes; Ctrl-C ends it.", err=True)

    def run() -> None:
        try:
            once()
        except WorkbenchError as exc:
            output.say(f"workbench: {exc}", err=True)

    try:
        watch(o.paths, o.folder, run, lambda: False, begin)
    except KeyboardInterrupt:
        output.say("workbench: Stopped watching.", err=True)
    return failed


@click.command()
@takes(
    argument("name", required=False),
    option("--keep", metavar="NAME", help="Keep the corpus as it is now under this name, until it is forgotten."),
    option("--forget", metavar="NAME", help="Keep this state no longer; its space is freed by the next run."),
    options.CORPUS,
    options.JSON,
)
def rollback(o: Given) -> None:
    """Go back to the state NAME of the corpus; without a name, list the states that are kept.

    Judgments, snapshots and `corpus.yaml` stay as they are. The next `workbench index` compares with the files again.

    \b
    workbench rollback --keep before-june
    workbench rollback before-june
    """
    from workbench.indexing.repair import rollback as go_back
    from workbench.store import generations

    path = o.folder
    generations.current(path)
    if sum(value is not None for value in (o.name, o.keep, o.forget)) > 1:
        raise click.UsageError("Name one of NAME, --keep and --forget")
    text = ""
    if o.forget is not None:
        generations.state(path, o.forget)
        (generations.Layout(path).states / o.forget).unlink(missing_ok=True)
        text = f"The state {o.forget} is forgotten"
    elif o.keep is not None:
        text = f"Generation {generations.keep_state(path, o.keep)} is kept as {o.keep}"
    elif o.name is not None:
        kept = generations.state(path, o.name)
        now = go_back(path, o.name)
        text = f"The corpus answers from the state {o.name} (generation {kept}) now, as generation {now}"
    known = generations.states(path)
    nothing = "No state is kept. Keep the corpus as it is now with: workbench rollback --keep NAME"
    listed = "\n".join(f"{state}\t{generation}" for state, generation in known.items())
    output.show(o.as_json, {"generation": generations.current(path), "states": known}, text or listed or nothing)
    raise SystemExit(0 if known or text else 1)
