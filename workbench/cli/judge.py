"""`workbench judge`: query sets and judgments from the command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from workbench.cli import options, output
from workbench.errors import JudgmentError

F = TypeVar("F", bound=Callable[..., Any])
POOLED = ("default", "default sources=keyword", "default sources=vector")


def _common(function: F) -> F:
    """`--tenant`, `--role`, `--corpus` and `--json`."""
    return options.takes_asker(options.JSON(function))


@click.group(name="judge")
def judge() -> None:
    """Query sets and judgments: list, import, export, make, and how far judges agree.

    Grades are given on the Judge page of `workbench app`; they are kept in the corpus folder and survive indexing again.
    """


@judge.command(name="list")
@_common
def list_sets(asker: options.Asker, as_json: bool) -> None:
    """List the query sets."""
    with asker.open() as opened:
        found = opened.judging.overview()
    if as_json:
        output.print_json(
            [
                {"name": s.name, "queries": s.queries, "judgments": s.judgments, "note": s.note, "by": s.made_by,
                 "made": s.made.isoformat()}
                for s in found
            ]
        )  # fmt: skip
    for one in () if as_json else found:
        output.say(f"{one.name}: {one.queries} queries, {one.judgments} judgments ({one.note or one.made_by})")
    if not found:
        if not as_json:
            output.say("There are no query sets yet; make one with workbench judge make, or import one.", err=True)
        raise SystemExit(1)


@judge.command()
@click.argument("name")
@click.argument("queries", nargs=-1, required=True, metavar="QUERY...")
@_common
def add(name: str, queries: tuple[str, ...], asker: options.Asker, as_json: bool) -> None:
    """Add queries to the set NAME, which is made where it is not there. `judge import --queries` adds those of a file."""
    with asker.open() as opened:
        sets = opened.judging.sets
        new = sets.add(name, queries, make=True, by=opened.judging.judge)
        total = len(sets.queries(name))
    output.show(
        as_json, {"set": name, "queries": total, "new_queries": new}, f"{name}: {total} queries, {new} of them new"
    )


@judge.command()
@click.argument("name")
@click.argument("new")
@_common
def rename(name: str, new: str, asker: options.Asker, as_json: bool) -> None:
    """Give the set NAME the name NEW; its queries and judgments stay."""
    with asker.open() as opened:
        kept = opened.judging.sets.rename(name, new)
    output.show(as_json, {"renamed": name, "to": kept}, f"{name} is {kept} now")


@judge.command(name="import")
@click.argument("source", type=click.Path(path_type=Path, exists=True))
@click.option("--set", "name", help="The query set; made where it is not there. Default: the file's name.")
@click.option("--judge", "who", help="Whose judgments they are, where the file does not say. Default: imported.")
@click.option(
    "--queries", "only_queries", is_flag=True, help="SOURCE holds queries only: JSONL, CSV, or a query a line."
)
@options.SPLIT
@click.option("--topics", type=click.Path(path_type=Path, exists=True), help="Texts of the queries, for TREC qrels.")
@_common
def import_(
    source: Path,
    name: str | None,
    who: str | None,
    only_queries: bool,
    split: str | None,
    topics: Path | None,
    asker: options.Asker,
    as_json: bool,
) -> None:
    """Import queries and judgments from SOURCE: a BEIR folder, TREC qrels, CSV or JSONL.

    A file with a malformed line is refused with its number, and nothing of it is imported.
    """
    from workbench.judgments import exchange

    with asker.open() as opened:
        if only_queries:
            chosen = name or source.stem
            total, new = exchange.import_queries(opened.judging, source, chosen)
            data = {"set": chosen, "queries": total, "new_queries": new}
            output.show(as_json, data, f"{chosen}: {total} queries, {new} of them new")
            return
        report = exchange.import_judgments(opened.judging, source, name, judge=who, split=split, topics=topics)
    data = {"set": report.name, "new_queries": report.queries, "unknown_documents": list(report.unknown)}
    data |= {"judgments": report.judgments, "new": report.new, "unchanged": report.unchanged}
    counts = f"{report.judgments:,} judgments, {report.new:,} new, {report.unchanged:,} there before"
    output.show(as_json, data, f"{report.name}: {counts}; {report.queries:,} new queries")
    if report.unknown and not as_json:
        some = ", ".join(report.unknown[:3]) + (", …" if len(report.unknown) > 3 else "")
        gone = f"{len(report.unknown):,} documents are not in this corpus: {some}"
        output.say(f"{gone}. Their judgments are kept, and count when they are.", err=True)


def _with(target: Path) -> tuple[Path, ...]:
    """What an export writes beside or in its target."""
    from workbench.judgments.formats import TOPICS

    return target.with_suffix(TOPICS), target / "qrels" / "test.tsv", target / "queries.jsonl"


@judge.command(name="export", cls=options.Writing)
@click.argument("name", type=options.Name())
@click.argument("target", type=options.OutputFile(also=_with, folder=True))
@click.option(
    "--format", "form", type=click.Choice(("jsonl", "csv", "trec", "beir")), help="Default: by the ending of TARGET."
)
@click.option("--judge", "judges", multiple=True, help="Whose judgments; may be repeated.")
@_common
def export(
    name: str, target: Path, form: str | None, judges: tuple[str, ...], asker: options.Asker, as_json: bool
) -> None:
    """Export the judgments of the set NAME to TARGET.

    jsonl and csv keep passages, judges, times and notes; trec (with TARGET.topics.tsv beside it) and beir (a folder) hold
    documents, each with the highest grade of its passages.
    """
    from workbench.judgments import exchange

    chosen = form or {".jsonl": "jsonl", ".csv": "csv", "": "beir"}.get(target.suffix.lower(), "trec")
    with asker.open() as opened:
        count = exchange.export_judgments(opened.judging, name, target, chosen, judges or None)
    data = {"set": name, "target": str(target), "format": chosen, "judgments": count}
    output.show(as_json, data, f"{count:,} judgments of {name} written to {target} ({chosen})")


@judge.command()
@click.argument("name")
@click.option("--judge", "judges", multiple=True, help="Compare these judges only; may be repeated.")
@_common
def agree(name: str, judges: tuple[str, ...], asker: options.Asker, as_json: bool) -> None:
    """Say how far the judges of the set NAME agree: Cohen's kappa for two, Fleiss' for more."""
    from workbench.judgments.agreement import agreement
    from workbench.judgments.judging import graded_by

    with asker.open() as opened:
        items = graded_by(opened.judging.located(name))
    found = sorted({j for grades in items for j in grades})
    unknown = [j for j in judges if j not in found]
    if unknown:
        raise JudgmentError(f"{unknown[0]!r} has judged nothing in {name!r}", "Its judges are: " + ", ".join(found))
    told = agreement(items, judges or None)
    if as_json:
        values = {"observed": told.observed, "kappa": told.kappa, "weighted_kappa": told.weighted}
        output.print_json(
            {"judges": list(told.judges), "items": told.items, "method": told.method,
             **{n: None if v != v else v for n, v in values.items()}}
        )  # fmt: skip
    else:
        output.say(told.words + ".")


@judge.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_common
def remove(name: str, yes: bool, asker: options.Asker, as_json: bool) -> None:
    """Take the set NAME and its judgments out of the lists."""
    with asker.open() as opened:
        found = {s.name: s for s in opened.judging.overview()}
        if name in found and not yes and found[name].judgments:
            click.confirm(f"{name} has {found[name].judgments} judgments. Remove it?", abort=True, err=True)
        opened.judging.sets.remove(name)
    if as_json:
        output.print_json({"removed": name})


@judge.command()
@click.argument("name", default="known-items")
@click.option("--count", default=50, show_default=True, type=click.IntRange(1, 1000), help="How many queries at most.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(("title", "heading", "phrase", "question")),
    help="Which kinds; may be repeated. Default: all.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Other seeds give other queries.")
@_common
def make(name: str, count: int, kinds: tuple[str, ...], seed: int, asker: options.Asker, as_json: bool) -> None:
    """Make the set NAME from the corpus itself: known-item queries with their judgments, to tune with at once.

    Titles, headings, rare phrases and questions become queries, and what they were made of is the answer. They are easier
    than people's questions; figures measured with them say so.
    """
    from workbench.judgments.known_items import KINDS, make_known_item_set

    with asker.open() as opened:
        total = make_known_item_set(opened.judging, opened.engine, name, count, kinds or KINDS, seed)
        queries = opened.judging.queries(name)
    if as_json:
        output.print_json({"set": name, "queries": total, "texts": {q.query_id: q.text for q in queries}})
        return
    output.say(f"{name}: {total} queries with their answers, such as:")
    for query in queries[:: max(1, total // 4)][:4]:
        output.say(f"  {query.text}  ({query.source.path if query.source else ''})")
    output.say(f"Measure with: workbench eval {shlex.quote(name)} --plan default --plan rrf")


@judge.command()
@click.argument("name")
@click.argument("model")
@options.takes_plans
@click.option("--depth", default=10, show_default=True, type=click.IntRange(1, 200), help="Results of each plan.")
@_common
def machine(name: str, model: str, plans: options.ManyPlans, depth: int, asker: options.Asker, as_json: bool) -> None:
    """Let MODEL, behind the setting endpoint_url, grade pooled passages of the set NAME.

    Pooled are the plans that are named, by default hybrid, keyword and vector.

    Its grades are kept under machine:MODEL. No figure counts them unless that judge is named, as in
    `workbench eval NAME --judge machine:MODEL`. Passages leave this machine for the endpoint.
    """
    from workbench.assist.endpoint import PREFIX, Endpoint
    from workbench.judgments.agreement import with_people
    from workbench.judgments.judging import graded_by
    from workbench.judgments.pooling import judge_by_machine, make_pool

    endpoint = Endpoint(model.removeprefix(PREFIX))
    pooled = [str(plan) for plan in plans.read()] if plans.given else list(POOLED)
    with asker.open() as opened, output.progress_bar(enabled=not as_json) as progress:
        judging = opened.judging
        queries = judging.queries(name)
        pool = make_pool(
            lambda query, plan, wanted: opened.search(query.text, query.keywords, plan=plan, limit=wanted).hits,
            judging, queries, pooled, depth, progress,
        )  # fmt: skip
        report = judge_by_machine(judging, endpoint, name, queries, pool, progress=progress)
        told = with_people(graded_by(judging.located(name)), report.judge)
    people = None if told is None else told.words
    if as_json:
        counts = {n: getattr(report, n) for n in ("judge", "candidates", "graded", "failed", "before", "left")}
        output.print_json({**counts, "reasons": dict(report.reasons), "with_people": people})
    else:
        nobody = "No person has judged any of these passages: judge some on the Judge page before using its grades"
        output.say(f"{report.words}.\n{people or nobody}.")
    if report.candidates and not report.graded and not report.before:
        raise SystemExit(1)
