"""`workbench snapshot`: save, list, show, verify, compare and export results as files."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench.cli import options, output
from workbench.cli.options import Given, OutputFile, argument, flag, option, several, takes
from workbench.errors import UsageError
from workbench.records import Principal

if TYPE_CHECKING:
    from workbench.snapshot import Snapshot

_FORMS = ("html", "csv", "trec", "json")
_SOURCE = argument("source", metavar="SNAPSHOT")
_REDACT = flag("--redact", help="Citations in the place of passages.")
_METADATA = flag("--metadata-only", help="No passages, and no names of documents.")


def _suffixed(target: Path) -> tuple[Path, ...]:
    """Where a snapshot is written when its name has no suffix."""
    return () if target.suffix else (target.with_suffix(".snapshot"),)


@click.group()
def snapshot() -> None:
    """Keep results as files: save, list, show, verify, diff, export.

    SNAPSHOT is a file, or the id of one that the corpus keeps (`workbench snapshot list`).
    """


@snapshot.command(cls=options.Writing)
@takes(
    argument("queries", nargs=-1, metavar="QUERY..."),
    option("--out", "-o", type=OutputFile(_suffixed), help="The file; by default the corpus keeps it, under its id."),
    option("--note", default="", help="What to say of it; the first line is its title."),
    options.KEYWORDS,
    options.ANY_MODE,
    options.FILTER,
    option("--limit", "-n", type=int, help="How many results (default: the plan's)."),
    option("--judgments", type=click.Path(path_type=Path, exists=True), help="Evaluate the plan on these, too."),
    several("--measure", "measures", help="An ir_measures name; may be repeated."),
    _REDACT,
    _METADATA,
    *options.PLAN,
    *options.ASKER,
)
def save(o: Given) -> None:
    """Search for each QUERY and save the results as one snapshot."""
    from workbench.judgments.qrels import load_judgments
    from workbench.snapshot import Snapshot
    from workbench.snapshot.snapshot import Library

    if not o.queries and o.judgments is None:
        raise UsageError("There is nothing to save", "Give one or more queries, or --judgments")
    plan, how = o.plan(), o.pick("mode", "filters")
    with o.open() as opened:
        items: list[Any] = [opened.search(q, keywords=o.keywords, plan=plan, limit=o.limit, **how) for q in o.queries]
        if o.judgments is not None:
            measures = o.measures or ("nDCG@10", "R@100", "RR")
            with output.progress_bar(enabled=not o.as_json) as progress:
                judgments = load_judgments(o.judgments)
                items.append(opened.evaluate(judgments, plan, measures, progress=progress, **how))
                opened.keep_evaluations(items[-1:], filters=o.filters)
        made = _cut(Snapshot.of(items, note=o.note, corpus=opened), o)
        path = made.save(o.out) if o.out is not None else Library(opened.path).keep(made)
    size = path.stat().st_size
    if o.as_json:
        output.print_json({"id": made.id, "path": str(path), "bytes": size})
    else:
        output.line(f"Saved {made.id}, {size / 1e6:.1f} MB: {path}")


@snapshot.command(name="list")
@takes(options.CORPUS, options.JSON)
def listed(o: Given) -> None:
    """List the snapshots that the corpus keeps, newest first."""
    from workbench.snapshot.snapshot import Library

    rows: list[dict[str, Any]] = []
    for one in Library(o.folder).all():
        if one.snapshot is None:
            rows.append({"id": one.path.name, "created": "", "by": "", "title": str(one.error)})
        else:
            about = one.snapshot.about
            rows.append({"id": one.snapshot.id, "created": about.created, "by": about.by, "title": one.snapshot.title})
    if o.as_json:
        output.print_json(rows)
    elif rows:
        output.console().print(output.table(tuple(rows[0]), [tuple(row.values()) for row in rows]))
    else:
        output.line("No snapshots yet. Make one with: workbench snapshot save QUERY")
    raise SystemExit(0 if rows else 1)


@snapshot.command()
@takes(_SOURCE, flag("--full", help="Show whole passages."), options.CORPUS, options.JSON)
def show(o: Given) -> None:
    """Show what SNAPSHOT holds: where it comes from, the results, the measures."""
    from workbench.snapshot import exports

    loaded = _load(o, o.source)
    if o.as_json:
        output.print_json(exports.to_dict(loaded))
        return
    about = loaded.about
    output.line(loaded.title, "bold")
    rest = about.note.strip().partition("\n")[2].strip()
    if rest:
        output.line(rest)
    by = f" by {about.by}" if about.by else ""
    output.line(f"{loaded.id}, made {about.when}{by}, generation {about.origin.generation}")
    if about.origin.encoders:
        output.line("Encoders: " + ", ".join(e.name for e in about.origin.encoders))
    if loaded.models:
        output.line("Models, which only verifying loads, and asks first: " + ", ".join(loaded.models))
    for number, search in enumerate(loaded.searches):
        output.line("")
        output.line(search.query or search.keywords, "bold cyan")
        output.line(f"{search.mode}: {search.plan}{'  filter ' + search.filters if search.filters else ''}")
        for hit in loaded.hits(number):
            where = Text(hit.citation if hit.path else hit.chunk_id)
            head = Text(f"{hit.rank:>3}. ", style="bold") + where + Text(f"  {hit.label}  {hit.score:.4f}")
            output.console().print(head)
            if hit.text:
                output.line(output.highlighted(hit.text, hit.matches, None if o.full else 240))
        for message in (*search.messages, *search.warnings):
            output.line(message, "dim")
    for swept in loaded.sweeps:
        output.line(swept.verdict)
    for saved in loaded.evaluations:
        import polars as pl

        output.print_frame(pl.DataFrame([asdict(m) for m in saved.means]), output.plain(saved.name))


@snapshot.command()
@takes(
    _SOURCE,
    flag("--no-corpus", help="Check the digests and the measures only."),
    flag("--load-models", help="Load the models and files that its plans name; on a terminal this is asked."),
    *options.ASKER,
)
def verify(o: Given) -> None:
    """Check SNAPSHOT: its digests, its measures, and, where the generation is at hand, its searches again."""
    from workbench.store.generations import exists

    loaded = _load(o, o.source)
    if o.no_corpus or (o.corpus is None and not exists(o.folder)):
        found = loaded.verify()
    else:
        # Who asks now must be who asked then: a snapshot opens no door.
        with o.open() as opened:
            found = loaded.verify(opened, load_models=o.load_models or _confirmed(loaded))
    if o.as_json:
        output.print_json({**asdict(found), "ok": found.ok, "ran": found.ran, "verdict": found.verdict})
    else:
        output.line(found.verdict)
        for one in (*found.searches, *found.evaluations):
            for difference in one.differences:
                output.line(f"  {one.what}: {difference}")
    raise SystemExit(0 if found.ok else 1)


def _confirmed(loaded: Snapshot) -> bool:
    """Whether the models that nobody allowed yet may be loaded: asked on a terminal, else no."""
    from workbench.assist.models import may_name

    asked = [output.plain(name) for name in loaded.models if not may_name(name)]
    if not asked or not sys.stdin.isatty():
        return False
    return click.confirm(f"Its plans load {', '.join(asked)}. Whoever made the file chose that. Load them?", err=True)


_MARKED = {"same": "{}", "out": "[-{}-]", "in": "{{+{}+}}"}
_STYLES = {"same": "", "out": "red", "in": "green"}


@snapshot.command()
@takes(argument("sources", nargs=-1, required=True, metavar="SNAPSHOT SNAPSHOT..."), options.CORPUS, options.JSON)
def diff(o: Given) -> None:
    """Compare the first SNAPSHOT with the others: settings, documents, ranks, measures, and why."""
    from workbench.snapshot.diff import word_diff

    first, *others = [_load(o, source) for source in o.sources]
    found = first.diff(*others)
    if o.as_json:
        output.print_json(found.to_dict())
        return
    for name, one in zip(found.names, found.snapshots, strict=True):
        output.line(f"{name}: {one.title} ({one.about.when}, generation {one.about.origin.generation})")
    output.line("")
    for sentence in found.sentences:
        output.line(sentence)
    for title, frame in (("Settings", found.settings()), ("Documents", found.documents().drop("document_id"))):
        if len(frame):
            output.print_frame(frame, title)
    for number, title in enumerate(found.titles):
        frame = found.ranks(number)
        if len(frame) and any(c != "stays" for c in frame["change"]):
            output.print_frame(frame, output.plain(title))
        for citation, before, after in found.texts(number).select("citation", "before", "after").iter_rows():
            output.line(f"{citation} as it was and is:", "bold")
            output.line(
                Text.assemble(*((_MARKED[kind].format(t), _STYLES[kind]) for kind, t in word_diff(before, after)))
            )
    if len(measures := found.measures()):
        output.print_frame(measures.drop("verdict"), "Measures")


@snapshot.command(cls=options.Writing)
@takes(
    _SOURCE,
    option("--html", "form", flag_value="html", help="The page that opens by itself."),
    option("--csv", "form", flag_value="csv", help="Every candidate, a row for each source."),
    option("--trec", "form", flag_value="trec", help="A run in the TREC form."),
    option("--json", "form", flag_value="json", help="Everything but the page."),
    option("--out", "-o", type=OutputFile(), help="The file; default: standard output."),
    option("--audience-tenant", help="The tenant of those who will read it."),
    several("--audience-role", "audience_roles", help="A role that all of them hold; may be repeated."),
    flag("--audience-same", help="They may see all that whoever searched could see."),
    several("--hide", "hidden", metavar="SENSITIVITY", help="Leave documents of this sensitivity out."),
    _REDACT,
    _METADATA,
    options.CORPUS,
)
def export(o: Given) -> None:
    """Write SNAPSHOT in another form, without what its audience may not see; --out FILE.snapshot writes a snapshot."""
    from workbench.snapshot import exports
    from workbench.snapshot.snapshot import SUFFIX
    from workbench.store.access.redaction import MaskPatterns, load_policy

    as_snapshot = o.out is not None and o.out.suffix == SUFFIX and o.form is None
    if o.form is None and not as_snapshot:
        raise UsageError("No form is given", f"Add one of {', '.join('--' + f for f in _FORMS)}, or --out FILE{SUFFIX}")
    loaded = _load(o, o.source)
    audience = _audience(loaded, o.audience_tenant, o.audience_roles, o.audience_same)
    policy = load_policy(o.folder)
    if audience is not None or policy is not None:
        loaded = loaded.for_audience(audience, policy)
    if o.hidden:
        loaded = loaded.for_audience(audience, MaskPatterns(hidden=o.hidden))
    loaded = _cut(loaded, o)
    if as_snapshot:
        output.line(f"Wrote {loaded.save(o.out)}")
        return
    text: str = loaded.html() if o.form == "html" else getattr(exports, f"to_{o.form}")(loaded)
    if o.out is None:
        output.say(text, nl=False, raw=True)
        return
    o.out.write_text(text, encoding="utf-8", newline="\n")
    output.line(f"Wrote {o.out}", err=True)


def _audience(loaded: Snapshot, tenant: str | None, roles: tuple[str, ...], same: bool) -> Principal | None:
    """For whom it is written; asked on a terminal. None where every document is everyone's. Raises UsageError."""
    if same and (tenant or roles):
        raise UsageError(
            "--audience-same cannot be combined with --audience-tenant or --audience-role", "Give one of them"
        )
    if same:
        return loaded.about.principal
    if not tenant and not roles:
        documents = loaded.documents()
        if not (documents["tenant"].is_not_null() | (documents["roles"].list.len() > 0)).any():
            return None
        if not sys.stdin.isatty():
            raise UsageError(
                "This snapshot has documents of tenants or roles, and no audience was given",
                "Add --audience-tenant and --audience-role, or --audience-same",
            )
        tenant = click.prompt(
            "Tenant of those who will read it (empty: none)", default="", show_default=False, err=True
        )
        asked = click.prompt("Roles that all of them hold, with commas", default="", show_default=False, err=True)
        roles = tuple(role.strip() for role in asked.split(",") if role.strip())
    return Principal(tenant or None, roles)


def _cut(made: Snapshot, o: Given) -> Snapshot:
    return made.metadata_only() if o.metadata_only else made.redacted() if o.redact else made


def _load(o: Given, source: str) -> Snapshot:
    """A snapshot by file or id. Raises SnapshotError."""
    from workbench.snapshot import Snapshot
    from workbench.snapshot.snapshot import Library

    if not Path(source).exists() and re.fullmatch("[0-9a-f]{16}", source):
        return Library(o.folder).get(source)
    return Snapshot.load(source)
