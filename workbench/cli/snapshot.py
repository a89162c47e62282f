"""`workbench snapshot`: save, list, show, verify, compare and export results as files."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from workbench import settings
from workbench.cli import options, output
from workbench.errors import UsageError
from workbench.records import Principal

if TYPE_CHECKING:
    from workbench.snapshot import Snapshot

_FORMS = ("html", "csv", "trec", "json")


def _suffixed(target: Path) -> tuple[Path, ...]:
    """Where a snapshot is written when its name has no suffix."""
    return () if target.suffix else (target.with_suffix(".snapshot"),)


@click.group()
def snapshot() -> None:
    """Keep results as files: save, list, show, verify, diff, export.

    SNAPSHOT is a file, or the id of one that the corpus keeps (`workbench snapshot list`).
    """


@snapshot.command(cls=options.Writing)
@click.argument("queries", nargs=-1, metavar="QUERY...")
@click.option(
    "--out", "-o", type=options.OutputFile(_suffixed), help="The file; by default the corpus keeps it, under its id."
)
@click.option("--note", default="", help="What to say of it; the first line is its title.")
@options.KEYWORDS
@options.ANY_MODE
@options.FILTER
@click.option("--limit", "-n", type=int, help="How many results (default: the plan's).")
@click.option("--judgments", type=click.Path(path_type=Path, exists=True), help="Evaluate the plan on these, too.")
@click.option("--measure", "measures", multiple=True, help="An ir_measures name; may be repeated.")
@click.option("--redact", is_flag=True, help="Citations in the place of passages.")
@click.option("--metadata-only", is_flag=True, help="No passages, and no names of documents.")
@options.takes_plan
@options.takes_asker
@options.JSON
@click.pass_context
def save(
    ctx: click.Context,
    queries: tuple[str, ...],
    out: Path | None,
    note: str,
    keywords: str | None,
    mode: str,
    filters: str | None,
    limit: int | None,
    judgments: Path | None,
    measures: tuple[str, ...],
    redact: bool,
    metadata_only: bool,
    plan: options.OnePlan,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Search for each QUERY and save the results as one snapshot."""
    from workbench.snapshot import Snapshot
    from workbench.snapshot.snapshot import Library

    if not queries and judgments is None:
        raise UsageError("There is nothing to save", "Give one or more queries, or --judgments")
    chosen = plan.read()
    with asker.open() as opened:
        items: list[Any] = [
            opened.search(q, keywords=keywords, mode=mode, plan=chosen, filters=filters, limit=limit) for q in queries
        ]
        if judgments is not None:
            from workbench.judgments.qrels import load_judgments

            asked = measures or ("nDCG@10", "R@100", "RR")
            with output.progress_bar(enabled=not as_json) as progress:
                loaded = load_judgments(judgments)
                items.append(opened.evaluate(loaded, chosen, asked, mode=mode, filters=filters, progress=progress))
        made = _cut(Snapshot.of(items, note=note, corpus=opened), redact, metadata_only)
        path = made.save(out) if out is not None else Library(opened.path).keep(made)
    if as_json:
        output.print_json({"id": made.id, "path": str(path), "bytes": path.stat().st_size})
    else:
        _say(f"Saved {made.id}, {path.stat().st_size / 1e6:.1f} MB: {path}")
    ctx.exit(0)


@snapshot.command(name="list")
@options.CORPUS
@options.JSON
@click.pass_context
def listed(ctx: click.Context, corpus: Path | None, as_json: bool) -> None:
    """List the snapshots that the corpus keeps, newest first."""
    from workbench.snapshot.snapshot import Library

    rows: list[dict[str, Any]] = []
    for one in Library(_corpus(corpus)).all():
        if one.snapshot is None:
            rows.append({"id": one.path.name, "created": "", "by": "", "title": str(one.error)})
        else:
            about = one.snapshot.about
            rows.append({"id": one.snapshot.id, "created": about.created, "by": about.by, "title": one.snapshot.title})
    if as_json:
        output.print_json(rows)
    elif rows:
        import polars as pl

        output.console().print(output.frame_table(pl.DataFrame(rows)))
    else:
        _say("No snapshots yet. Make one with: workbench snapshot save QUERY")
    ctx.exit(0 if rows else 1)


@snapshot.command()
@click.argument("source", metavar="SNAPSHOT")
@click.option("--full", is_flag=True, help="Show whole passages.")
@options.CORPUS
@options.JSON
def show(source: str, full: bool, corpus: Path | None, as_json: bool) -> None:
    """Show what SNAPSHOT holds: where it comes from, the results, the measures."""
    from workbench.snapshot import exports

    loaded = _load(source, corpus)
    if as_json:
        output.print_json(exports.to_dict(loaded))
        return
    out = output.console()
    about = loaded.about
    out.print(Text(loaded.title, style="bold"), soft_wrap=True)
    rest = about.note.strip().partition("\n")[2].strip()
    if rest:
        _say(rest)
    _say(
        f"{loaded.id}, made {about.created}{' by ' + about.by if about.by else ''}, generation {about.origin.generation}"
    )
    if about.origin.encoders:
        _say("Encoders: " + ", ".join(e.name for e in about.origin.encoders))
    if loaded.models:
        _say("Models, which only verifying loads, and asks first: " + ", ".join(loaded.models))
    for number, search in enumerate(loaded.searches):
        out.print()
        out.print(Text(search.query or search.keywords, style="bold cyan"), soft_wrap=True)
        _say(f"{search.mode}: {search.plan}{'  filter ' + search.filters if search.filters else ''}")
        for hit in loaded.hits(number):
            where = hit.citation if hit.path else hit.chunk_id
            out.print(Text(f"{hit.rank:>3}. ", style="bold") + Text(where) + Text(f"  {hit.label}  {hit.score:.4f}"))
            if hit.text:
                out.print(output.highlighted(hit.text, hit.matches, None if full else 240), soft_wrap=True)
        for message in (*search.messages, *search.warnings):
            out.print(Text(message, style="dim"), soft_wrap=True)
    for swept in loaded.sweeps:
        _say(swept.verdict)
    for saved in loaded.evaluations:
        import polars as pl

        out.print(output.frame_table(pl.DataFrame([asdict(m) for m in saved.means]), output.plain(saved.name)))


@snapshot.command()
@click.argument("source", metavar="SNAPSHOT")
@click.option("--no-corpus", is_flag=True, help="Check the digests and the measures only.")
@click.option(
    "--load-models", is_flag=True, help="Load the models and files that its plans name; on a terminal this is asked."
)
@options.takes_asker
@options.JSON
@click.pass_context
def verify(
    ctx: click.Context, source: str, no_corpus: bool, load_models: bool, asker: options.Asker, as_json: bool
) -> None:
    """Check SNAPSHOT: its digests, its measures, and, where the generation is at hand, its searches again."""
    from workbench.store.generations import exists

    loaded = _load(source, asker.corpus)
    if no_corpus or (asker.corpus is None and not exists(_corpus(None))):
        found = loaded.verify()
    else:
        # Who asks now must be who asked then: a snapshot opens no door.
        with asker.open() as opened:
            found = loaded.verify(opened, load_models=load_models or _confirmed(loaded))
    if as_json:
        output.print_json({**asdict(found), "ok": found.ok, "ran": found.ran, "verdict": found.verdict})
    else:
        _say(found.verdict)
        for one in (*found.searches, *found.evaluations):
            for said in one.said:
                _say(f"  {one.what}: {said}")
    ctx.exit(0 if found.ok else 1)


def _confirmed(loaded: Snapshot) -> bool:
    """Whether the models that nobody allowed yet may be loaded: asked on a terminal, else no."""
    from workbench.assist.models import may_name

    asked = [output.plain(name) for name in loaded.models if not may_name(name)]
    if not asked or not sys.stdin.isatty():
        return False
    return click.confirm(f"Its plans load {', '.join(asked)}. Whoever made the file chose that. Load them?", err=True)


@snapshot.command()
@click.argument("sources", nargs=-1, required=True, metavar="SNAPSHOT SNAPSHOT...")
@options.CORPUS
@options.JSON
def diff(sources: tuple[str, ...], corpus: Path | None, as_json: bool) -> None:
    """Compare the first SNAPSHOT with the others: settings, documents, ranks, measures, and why."""
    loaded = [_load(source, corpus) for source in sources]
    found = loaded[0].diff(*loaded[1:])
    if as_json:
        output.print_json(found.to_dict())
        return
    out = output.console()
    for name, one in zip(found.names, found.snapshots, strict=True):
        _say(f"{name}: {one.title} ({one.about.created}, generation {one.about.origin.generation})")
    out.print()
    for sentence in found.sentences:
        _say(sentence)
    for title, frame in (("Settings", found.settings()), ("Documents", found.documents().drop("document_id"))):
        if len(frame):
            out.print(output.frame_table(frame, title))
    for number, (query, _) in enumerate(found.queries):
        frame = found.ranks(number)
        if len(frame) and any(c != "stays" for c in frame["change"]):
            out.print(output.frame_table(frame, output.plain(query)))
    if len(measures := found.measures()):
        out.print(output.frame_table(measures.drop("verdict"), "Measures"))


@snapshot.command(cls=options.Writing)
@click.argument("source", metavar="SNAPSHOT")
@click.option("--html", "form", flag_value="html", help="The page that opens by itself.")
@click.option("--csv", "form", flag_value="csv", help="Every candidate, a row for each source.")
@click.option("--trec", "form", flag_value="trec", help="A run in the TREC form.")
@click.option("--json", "form", flag_value="json", help="Everything but the page.")
@click.option("--out", "-o", type=options.OutputFile(), help="The file; default: standard output.")
@click.option("--audience-tenant", help="The tenant of those who will read it.")
@click.option("--audience-role", "audience_roles", multiple=True, help="A role that all of them hold; may be repeated.")
@click.option("--audience-same", is_flag=True, help="They may see all that whoever searched could see.")
@click.option("--hide", "hidden", multiple=True, metavar="SENSITIVITY", help="Leave documents of this sensitivity out.")
@click.option("--redact", is_flag=True, help="Citations in the place of passages.")
@click.option("--metadata-only", is_flag=True, help="No passages, and no names of documents.")
@options.CORPUS
def export(
    source: str,
    form: str | None,
    out: Path | None,
    audience_tenant: str | None,
    audience_roles: tuple[str, ...],
    audience_same: bool,
    hidden: tuple[str, ...],
    redact: bool,
    metadata_only: bool,
    corpus: Path | None,
) -> None:
    """Write SNAPSHOT in another form, without what its audience may not see; --out FILE.snapshot writes a snapshot."""
    from workbench.snapshot import exports
    from workbench.snapshot.snapshot import SUFFIX
    from workbench.store.access.mask import MaskPatterns, load_policy

    as_snapshot = out is not None and out.suffix == SUFFIX and form is None
    if form is None and not as_snapshot:
        raise UsageError("No form is given", f"Add one of {', '.join('--' + f for f in _FORMS)}, or --out FILE{SUFFIX}")
    loaded = _load(source, corpus)
    audience = _audience(loaded, audience_tenant, audience_roles, audience_same)
    policy = load_policy(_corpus(corpus))
    if audience is not None or policy is not None:
        loaded = loaded.for_audience(audience, policy)
    if hidden:
        loaded = loaded.for_audience(audience, MaskPatterns(hidden=hidden))
    loaded = _cut(loaded, redact, metadata_only)
    if as_snapshot and out is not None:
        _say(f"Wrote {loaded.save(out)}")
        return
    forms: dict[str, Callable[[Snapshot], str]] = {
        "html": exports.to_html, "csv": exports.to_csv, "trec": exports.to_trec, "json": exports.to_json,
    }  # fmt: skip
    text = forms[str(form)](loaded)
    if out is None:
        output.say(text, nl=False, raw=True)
        return
    try:
        out.write_text(text, encoding="utf-8", newline="\n")
    except OSError as exc:
        raise UsageError(f"{out} cannot be written: {exc.strerror or exc}", "Choose another place with --out") from exc
    output.console(stderr=True).print(Text(f"Wrote {out}"), soft_wrap=True)


def _audience(loaded: Snapshot, tenant: str | None, roles: tuple[str, ...], same: bool) -> Principal | None:
    """For whom it is written; asked on a terminal. None where every document is everyone's. Raises UsageError."""
    if same and (tenant or roles):
        raise UsageError(
            "--audience-same cannot be combined with --audience-tenant or --audience-role", "Give one of them"
        )
    if same:
        return loaded.about.principal
    documents = loaded.documents()
    if not tenant and not roles and not (documents["tenant"].is_not_null() | (documents["roles"].list.len() > 0)).any():
        return None
    if not tenant and not roles:
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


def _cut(made: Snapshot, redact: bool, metadata_only: bool) -> Snapshot:
    if metadata_only:
        return made.metadata_only()
    return made.redacted() if redact else made


def _corpus(corpus: Path | None) -> Path:
    return Path(str(settings.get("corpus"))) if corpus is None else corpus


def _load(source: str, corpus: Path | None) -> Snapshot:
    """A snapshot by file or id. Raises SnapshotError."""
    from workbench.snapshot import Snapshot
    from workbench.snapshot.snapshot import Library

    if not Path(source).exists() and re.fullmatch("[0-9a-f]{16}", source):
        return Library(_corpus(corpus)).get(source)
    return Snapshot.load(source)


def _say(text: str) -> None:
    output.console().print(Text(text), soft_wrap=True)
