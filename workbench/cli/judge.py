"""`workbench judge`: query sets and judgments from the command line."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli import options, output
from workbench.cli.options import Given, argument, bounded, flag, option, several, takes
from workbench.errors import JudgmentError, counted

if TYPE_CHECKING:
    from workbench.corpus import Corpus

POOLED = ("default", "default sources=keyword", "default sources=vector")
_NAME = argument("name")


@click.group(name="judge")
def judge() -> None:
    """Query sets and judgments: list, show, import, export, make, and how far judges agree.

    Grades are given on the Judge page of `workbench app`; they are kept in the corpus folder and survive indexing again.
    """


@judge.command(name="list")
@takes(*options.ASKER)
def list_sets(o: Given) -> None:
    """List the query sets."""
    with o.open() as opened:
        found = opened.judging.overview()
    if o.as_json:
        names = {"name": "name", "queries": "queries", "judgments": "judgments", "note": "note", "by": "made_by"}
        rows = [{**{k: getattr(s, n) for k, n in names.items()}, "made": s.made.isoformat()} for s in found]
        output.print_json(rows)
    else:
        for one in found:
            output.say(f"{one.name}: {one.queries} queries, {one.judgments} judgments ({one.note or one.made_by})")
        if not found:
            output.say("There are no query sets yet; make one with workbench judge make, or import one.", err=True)
    raise SystemExit(0 if found else 1)


@judge.command()
@takes(_NAME, argument("queries", nargs=-1, required=True, metavar="QUERY..."), *options.ASKER)
def add(o: Given) -> None:
    """Add queries to the set NAME, which is made where it is not there. `judge import --queries` adds those of a file."""
    with o.open() as opened:
        new = opened.judging.sets.add(o.name, o.queries, make=True, by=opened.judging.judge)
        total = len(opened.judging.sets.queries(o.name))
    _show_queries(o, o.name, total, new)


@judge.command()
@takes(_NAME, *options.ASKER)
def show(o: Given) -> None:
    """Show the set NAME: its queries, how far each is judged, by whom, what is stale, and how far its judges agree."""
    from workbench.judgments.report import report_of

    with o.open() as opened:
        found, texts = report_of(opened.judging, o.name), opened.judging.sets.grade_texts(o.name)
    rows = [
        {
            "query_id": q.query.query_id,
            "query": q.query.text,
            "judged": q.judged,
            "relevant": q.relevant,
            "stale": q.stale,
        }
        | ({"need": q.query.need} if q.query.need else {})
        for q in found.queries
    ]
    agreed = None if found.agreement is None else found.agreement.words
    if o.as_json:
        output.print_json(
            {"set": o.name, "judges": found.judges, "agreement": agreed, "grades": texts, "queries": rows}
        )
        return
    for row in rows:
        stale = f", {row['stale']} stale" if row["stale"] else ""
        output.say(f"{row['query_id']}: {row['query']} ({row['judged']} judged, {row['relevant']} relevant{stale})")
        if "need" in row:
            output.say(f"    {row['need']}")
    judges = ", ".join(f"{judge} {count:,}" for judge, count in found.judges.items())
    output.say(f"{found.judged} of {len(rows)} queries are judged" + (f" ({judges})" if judges else ""))
    output.say("Grades: " + "; ".join(f"{n} {text}" for n, text in enumerate(texts)))
    if agreed is not None:
        output.say(f"{agreed}.")


def _id_of(opened: Corpus, name: str, given: str) -> str:
    """The id of a set's query, by its words or its id, among those that the principal may see. Raises JudgmentError."""
    judging = opened.judging
    by_id = (q for q in judging.queries(name) if q.query_id == given.strip())
    found = judging.query(name, given) or next(by_id, None)
    if found is None:
        raise JudgmentError(f"The set {name!r} has no query {given!r}", "Its queries are on the Query sets page")
    return found.query_id


@judge.command()
@takes(_NAME, argument("query"), argument("text"), *options.ASKER)
def describe(o: Given) -> None:
    """Say in TEXT what counts as an answer to QUERY (its words, or its id) of the set NAME. The Judge page shows it."""
    with o.open() as opened:
        opened.judging.sets.describe(o.name, _id_of(opened, o.name, o.query), o.text)
    if o.as_json:
        output.print_json({"set": o.name, "query": o.query, "need": o.text.strip()})


@judge.command()
@takes(_NAME, argument("texts", nargs=-1, required=True, metavar="TEXT..."), *options.ASKER)
def grades(o: Given) -> None:
    """Say what the grades of the set NAME mean: a TEXT for each from 0 on, such as "relevant: a part of the answer"."""
    with o.open() as opened:
        opened.judging.sets.set_grade_texts(o.name, o.texts)
        texts = opened.judging.sets.grade_texts(o.name)
    output.show(o.as_json, {"set": o.name, "grades": texts}, "; ".join(f"{n} {text}" for n, text in enumerate(texts)))


def _show_queries(o: Given, name: str, total: int, new: int) -> None:
    data = {"set": name, "queries": total, "new_queries": new}
    output.show(o.as_json, data, f"{name}: {total} queries, {new} of them new")


@judge.command()
@takes(_NAME, argument("new"), *options.ASKER)
def rename(o: Given) -> None:
    """Give the set NAME the name NEW; its queries and judgments stay."""
    with o.open() as opened:
        kept = opened.judging.sets.rename(o.name, o.new)
    output.show(o.as_json, {"renamed": o.name, "to": kept}, f"{o.name} is {kept} now")


@judge.command(name="import")
@takes(
    argument("source", type=click.Path(path_type=Path, exists=True)),
    option("--set", "name", help="The query set; made where it is not there. Default: the file's name."),
    option("--judge", "who", help="Whose judgments they are, where the file does not say. Default: imported."),
    flag("--queries", "only_queries", help="SOURCE holds queries only: JSONL, CSV, or a query a line."),
    options.SPLIT,
    option("--topics", type=click.Path(path_type=Path, exists=True), help="Texts of the queries, for TREC qrels."),
    *options.ASKER,
)
def import_(o: Given) -> None:
    """Import queries and judgments from SOURCE: a BEIR folder (or a ZIP of one), TREC qrels, CSV (also Quepid's) or JSONL.

    A file with a malformed line is refused with its number, and nothing of it is imported.
    """
    from workbench.judgments import exchange

    with o.open() as opened:
        if o.only_queries:
            name = o.name or o.source.stem
            return _show_queries(o, name, *exchange.import_queries(opened.judging, o.source, name))
        report = exchange.import_judgments(
            opened.judging, o.source, o.name, judge=o.who, split=o.split, topics=o.topics
        )
    data = {"set": report.name, "new_queries": report.queries, "unknown_documents": list(report.unknown)}
    data |= {"judgments": report.judgments, "new": report.new, "unchanged": report.unchanged}
    counts = f"{report.judgments:,} judgments, {report.new:,} new, {report.unchanged:,} there before"
    output.show(o.as_json, data, f"{report.name}: {counts}; {report.queries:,} new queries")
    if report.unknown and not o.as_json:
        some = ", ".join(report.unknown[:3]) + (", …" if len(report.unknown) > 3 else "")
        gone = f"{len(report.unknown):,} documents are not in this corpus: {some}"
        output.say(f"{gone}. Their judgments are kept, and count when they are.", err=True)


def _with(target: Path) -> tuple[Path, ...]:
    """What an export writes beside or in its target."""
    from workbench.judgments.formats import TOPICS

    return target.with_suffix(TOPICS), target / "qrels" / "test.tsv", target / "queries.jsonl"


@judge.command(name="export", cls=options.Writing)
@takes(
    argument("name", type=options.Name()),
    argument("target", type=options.OutputFile(also=_with, folder=True)),
    option(
        "--format",
        "form",
        type=click.Choice(("jsonl", "csv", "quepid", "trec", "beir")),
        help="Default: by the ending of TARGET.",
    ),
    several("--judge", "judges", help="Whose judgments; may be repeated."),
    *options.ASKER,
)
def export(o: Given) -> None:
    """Export the judgments of the set NAME to TARGET.

    jsonl and csv keep passages, judges, times and notes; quepid (query,docid,rating, as Quepid imports it), trec (with
    TARGET.topics.tsv beside it) and beir (a folder) hold documents, each with the highest grade of its passages.
    """
    from workbench.judgments import exchange

    form = o.form or {".jsonl": "jsonl", ".csv": "csv", "": "beir"}.get(o.target.suffix.lower(), "trec")
    with o.open() as opened:
        count = exchange.export_judgments(opened.judging, o.name, o.target, form, o.judges or None)
    data = {"set": o.name, "target": str(o.target), "format": form, "judgments": count}
    output.show(o.as_json, data, f"{count:,} judgments of {o.name} written to {o.target} ({form})")


@judge.command()
@takes(_NAME, several("--judge", "judges", help="Compare these judges only; may be repeated."), *options.ASKER)
def agree(o: Given) -> None:
    """Say how far the judges of the set NAME agree: Cohen's kappa for two, Fleiss' for more."""
    from workbench.evaluate.statistics import finite
    from workbench.judgments.agreement import agreement
    from workbench.judgments.judging import graded_by

    with o.open() as opened:
        items = graded_by(opened.judging.located(o.name))
    known = sorted({j for grades in items for j in grades})
    unknown = [j for j in o.judges if j not in known]
    if unknown:
        raise JudgmentError(f"{unknown[0]!r} has judged nothing in {o.name!r}", "Its judges are: " + ", ".join(known))
    found = agreement(items, o.judges or None)
    values = {"observed": found.observed, "kappa": found.kappa, "weighted_kappa": found.weighted}
    data = {"judges": list(found.judges), "items": found.items, "method": found.method}
    output.show(o.as_json, {**data, **{n: finite(v) for n, v in values.items()}}, found.words + ".")


@judge.command()
@takes(
    _NAME,
    flag("--yes", help="Do not ask."),
    several("--query", "queries", help="Only this query (its words, or its id) with its judgments; may be repeated."),
    *options.ASKER,
)
def remove(o: Given) -> None:
    """Take the set NAME and its judgments out of the lists, or single queries out of it. Asks where judgments go."""
    with o.open() as opened:
        judging = opened.judging
        found = list(dict.fromkeys(_id_of(opened, o.name, query) for query in o.queries))
        if found:
            what = f"{counted(len(found), 'query|queries')} of {o.name}"
            count = sum(one.judgment.query_id in found for one in judging.located(o.name))
        else:
            what, count = o.name, next((s.judgments for s in judging.overview() if s.name == o.name), 0)
        if count and not o.yes:
            click.confirm(f"{what}: {counted(count, 'judgment')} would go too. Remove?", abort=True, err=True)
        if found:
            judging.log.remove_queries(o.name, found)
        else:
            judging.sets.remove(o.name)
    output.show(o.as_json, {"removed": o.queries or o.name}, f"removed {what}")


@judge.command()
@takes(
    argument("name", default="known-items"),
    bounded("--count", default=50, type=click.IntRange(1, 1000), help="How many queries at most."),
    several(
        "--kind",
        "kinds",
        type=click.Choice(("title", "heading", "phrase", "question")),
        help="Which kinds; may be repeated. Default: all.",
    ),
    bounded("--seed", default=0, help="Other seeds give other queries."),
    *options.ASKER,
)
def make(o: Given) -> None:
    """Make the set NAME from the corpus itself: known-item queries with their judgments, to tune with at once.

    Titles, headings, rare phrases and questions become queries, and what they were made of is the answer. They are easier
    than people's questions; figures measured with them say so.
    """
    from workbench.judgments.known_items import KINDS, make_known_item_set

    with o.open() as opened:
        total = make_known_item_set(opened.judging, opened.engine, o.name, o.count, o.kinds or KINDS, o.seed)
        queries = opened.judging.queries(o.name)
    if o.as_json:
        output.print_json({"set": o.name, "queries": total, "texts": {q.query_id: q.text for q in queries}})
        return
    output.say(f"{o.name}: {total} queries with their answers, such as:")
    for query in queries[:: max(1, total // 4)][:4]:
        output.say(f"  {query.text}  ({query.source.path if query.source else ''})")
    output.say(f"Measure with: workbench eval {shlex.quote(o.name)} --plan default --plan rrf")


@judge.command()
@takes(
    _NAME,
    argument("model"),
    *options.PLANS,
    bounded("--depth", default=10, type=click.IntRange(1, 200), help="Results of each plan."),
    *options.ASKER,
)
def machine(o: Given) -> None:
    """Let MODEL, behind the setting endpoint_url, grade pooled passages of the set NAME.

    Pooled are the plans that are named, by default hybrid, keyword and vector.

    Its grades are kept under machine:MODEL. No figure counts them unless that judge is named, as in
    `workbench eval NAME --judge machine:MODEL`. Passages leave this machine for the endpoint.
    """
    from workbench.assist.endpoint import Endpoint
    from workbench.assist.models import PREFIX
    from workbench.judgments.agreement import with_people
    from workbench.judgments.judging import graded_by
    from workbench.judgments.pooling import judge_by_machine, make_pool

    endpoint = Endpoint(o.model.removeprefix(PREFIX))
    plans = o.plans(*POOLED)
    with o.open() as opened, output.progress_bar(enabled=not o.as_json) as progress:
        judging = opened.judging
        queries = judging.queries(o.name)
        pool = make_pool(
            lambda query, plan, wanted: opened.search(query.text, query.keywords, plan=plan, limit=wanted).hits,
            judging,
            queries,
            plans,
            o.depth,
            progress,
        )
        report = judge_by_machine(judging, endpoint, o.name, queries, pool, progress=progress)
        agreed = with_people(graded_by(judging.located(o.name)), report.judge)
    people = None if agreed is None else agreed.words
    if o.as_json:
        counts = {n: getattr(report, n) for n in ("judge", "candidates", "graded", "failed", "before", "left")}
        output.print_json({**counts, "reasons": dict(report.reasons), "with_people": people})
    else:
        nobody = "No person has judged any of these passages: judge some on the Judge page before using its grades"
        output.say(f"{report.words}.\n{people or nobody}.")
    if report.candidates and not report.graded and not report.before:
        raise SystemExit(1)
