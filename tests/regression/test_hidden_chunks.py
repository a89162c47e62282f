"""What a principal may not see changes nothing: every answer is that of a corpus that was built without it, to the byte.

The generation's id is the one exception: it names a state of the whole corpus. Two cosines of one row may differ in the seventh
digit where a histogram reads all of them at once; those are compared to 1e-6, everything else is compared exactly.
"""

import fcntl
import itertools
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from hidden_corpus import GROUPS, MIXED, POLICY, PRINCIPALS, SHARED, Group, build, hidden_from, visible_to
from mcp import Client
from trials import TRIALS

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.judgments.exchange import export_judgments
from workbench.mcp.server import CorpusServer, build_server
from workbench.ranking import adapt
from workbench.retrieve import engine
from workbench.snapshot import exports
from workbench.store.catalogue import FACETS, SORTS, Catalogue

Pair = tuple[wb.Corpus, wb.Corpus]
ADAPTED = "default vector.adapt=corpus vector.hubness=0.3 feedback.weight=0.2"
PLANS = {
    "hybrid": (
        "default",
        "tmm",
        ADAPTED,
        "passages",
        "collections",
        "pages",
        "contract",
        "scoped",
        "default neighbours=1",
    ),
    "grep": ("default", "default grep.regex=yes", "default grep.word=yes grep.context=1"),
    "keyword": ("default", "default keyword.operator=all", "contract"),
    "vector": ("default vector.threshold=off", "default", "default vector.adapt=corpus vector.hubness=0.3"),
}
QUERIES = 4 * TRIALS
"""Queries for each of the dearer comparisons; with more trials they are asked in every mode and plan."""
COMBINATIONS = [(mode, plan) for mode, plans in PLANS.items() for plan in plans]


@pytest.fixture(scope="module")
def corpora(shared_folder: Path) -> dict[str, Path]:
    """The whole corpus, and one for each principal without what it may not see; built once a run."""
    folder = shared_folder / "hidden"
    with open(shared_folder / "hidden.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            folder.mkdir()
            build(folder)
            (folder / "whole").touch()
    return {who: folder / f"corpus-{who}" for who in ("all", *PRINCIPALS)}


@pytest.fixture(params=list(PRINCIPALS))
def who(request: pytest.FixtureRequest) -> str:
    """Name of who asks."""
    return str(request.param)


@pytest.fixture
def pair(corpora: dict[str, Path], who: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """The whole corpus as the principal sees it, and the corpus without the rest; both so small that none would be adapted to."""
    monkeypatch.setattr(adapt, "LEAST", 5)
    monkeypatch.setattr(engine, "NOT_ADAPTED", frozenset())
    with (
        wb.open_corpus(corpora["all"], PRINCIPALS[who], policy=POLICY) as whole,
        wb.open_corpus(corpora[who], PRINCIPALS[who], policy=POLICY) as without,
    ):
        seen = whole.engine.records.scope(PRINCIPALS[who], None, ())
        assert 0 < np.count_nonzero(seen.visible) < len(seen.visible)
        assert whole.engine.adaptation("", seen) is not None
        yield whole, without


def queries(who: str, number: int) -> list[dict[str, str]]:
    """Queries with keywords and filter; every second one from words and phrases of hidden documents."""
    rng = random.Random(f"queries {who}")
    hidden, seen = hidden_from(who), visible_to(who)
    return [_query(rng, rng.choice(hidden if n % 2 else seen), n // 2) for n in range(number)]


def _query(rng: random.Random, group: Group, n: int) -> dict[str, str]:
    own, other, shared = *rng.sample(group.words, 2), rng.choice(SHARED)
    words = group.phrase.split()
    forms = (
        f"{own} {shared}",
        f'"{group.phrase}" {shared}',
        f"{own[:3]}* {shared}",
        f"{shared} {rng.choice(SHARED)} -{other}",
        f"{own} OR {shared}",
        f'what is "{words[1]} {words[2]}" of {other}?',
        f"{shared[:3]}* -{own[:5]}*",
        f"{group.name}_total {own}",
        f"{shared} {rng.choice(SHARED)} {rng.choice(SHARED)}",
        f"{own[:4]}\\w+|{shared}",
    )
    filters = (
        "", "", "", "team = 'red'", f"key_{group.name} >= 2", "year >= 2022 and collection = 'docs'", f"team = '{group.name}'",
        f"path glob '{group.name}/**'", "sensitivity = 'restricted'", "type = 'code' or tenant = 'acme'",
    )  # fmt: skip
    keywords = ("", "", own, f'"{group.phrase}"', f"{own} {shared}")
    return {"query": forms[n % 10], "filters": rng.choice(filters), "keywords": rng.choice(keywords)}


def told(ask: Callable[[], Any]) -> Any:
    """What a call answers, or what its error says."""
    try:
        return ask()
    except WorkbenchError as error:
        return [type(error).__name__, str(error)]


def everything(corpus: wb.Corpus, asked: dict[str, str], mode: str, plan: str) -> str:
    """All that a search says, as text: hits, snippets, scores, tables, funnel, messages, and which steps were timed."""

    def ask() -> dict[str, Any]:
        result = corpus.search(asked["query"], asked["keywords"] or None, None, mode, plan, asked["filters"] or None)
        said = result.to_dict()
        del said["generation"]
        candidates = result.candidates
        columns = [(c.source, c.rank.tolist(), c.score.tolist(), c.computed.tolist()) for c in candidates.columns]
        return {
            **said,
            "frame": result.frame().to_dicts(),
            "rankings": {s: asdict(r) for s, r in result.rankings.items()},
            "columns": columns,
            "ids": candidates.chunk_ids,
            "timed": sorted(result.timings_ms),
            "patterns": result.retrieved.patterns,
            "page": repr(result)[: repr(result).rfind(":")],
        }

    return json.dumps(told(ask), default=str)


def compare(pair: Pair, asked: dict[str, str], mode: str, plan: str) -> None:
    whole, without = pair
    first, second = everything(whole, asked, mode, plan), everything(without, asked, mode, plan)
    assert first == second, f"{mode} {plan}: {asked}"


@pytest.mark.slow
def test_a_search_is_as_if_hidden_documents_were_not_there(pair, who):
    for n, asked in enumerate(queries(who, 3 * QUERIES)):
        for mode, plan in COMBINATIONS if TRIALS > 5 else [COMBINATIONS[i * n % len(COMBINATIONS)] for i in (1, 7)]:
            compare(pair, asked, mode, plan)
    for group in GROUPS:
        own = group.words[3]
        asked = ((own, False), (group.phrase, False), (r"\d", True), (f"{own[:4]}\\w*", True), ("^$", True))
        for (pattern, regex), filters in itertools.product(asked, (None, "team = 'red'")):
            answers = [told(partial(c.grep, pattern, regex=regex, filters=filters, limit=9)) for c in pair]
            assert answers[0] == answers[1], (pattern, filters)
    whole, without = pair
    paths = [f"{g.name}/{n}" for g in GROUPS for n in ("page1.md", "same.md", "code.py", "absent.md", "art5.md")]
    paths += [f"mixed/records.jsonl#{name}" for name, _, _ in MIXED]
    for path in paths:
        assert whole.read_file(path) == without.read_file(path)
    first, second = dict(whole.info()), dict(without.info())
    assert first.pop("generation") != second.pop("generation")
    assert first == second
    said = []
    for corpus in pair:
        records, lexical = corpus.engine.records, corpus.engine.lexical
        scope = records.scope(PRINCIPALS[who], None, ())
        words = [w for g in GROUPS for w in (*g.words[::4], g.phrase)] + SHARED
        fields = records.fields(scope)
        said.append(
            [
                fields,
                lexical.frequencies(words, scope).tolist(),
                [lexical.upper_bound(w, scope, k1=0.9) for w in words],
                [corpus.search_examples(w) for w in (*words[::3], "the run of bel*")],
                told(partial(corpus.search, "x", filters="nothing = 1")),
            ]
        )
    assert repr(said[0]) == repr(said[1])
    for asked in queries(who, 2):
        for plan in ("default limit=2 depth.keyword=3 depth.vector=3", "contract limit=1"):
            first, second = (c.search(asked["query"], plan=plan) for c in pair)
            for path in [f"{g.name}/{n}" for g in GROUPS for n in ("page1.md", "absent.md", "page2.md:3")]:
                assert whole.explain(first, path) == without.explain(second, path)
        tables = [c.compare(asked["query"], ["default", "tmm", "scoped"]) for c in pair]
        assert tables[0].frame().equals(tables[1].frame())
        assert tables[0].overlap().equals(tables[1].overlap())
    servers = [caller(build_server(corpus)) for corpus in pair]
    for n, asked in enumerate(queries(who, QUERIES)):
        words = asked["query"].split()[0].strip('"*')
        said = [_beside(c, asked, words, server) for c, server in zip(pair, servers, strict=True)]
        assert said[0] == said[1], asked
        if n % 4 == 0:
            snaps = [c.search(asked["query"], plan="default neighbours=1").snapshot("n") for c in pair]
            forms = [
                [exports.to_csv(s), exports.to_trec(s).replace(s.id, ""), s.documents().rows(), str(s.hits())]
                for s in snaps
            ]
            assert forms[0] == forms[1], asked
    lists = []
    for corpus in pair:
        catalogue, scope = Catalogue(corpus.engine.opened), corpus.engine.records.scope(PRINCIPALS[who], None, ())
        jobs = corpus.jobs().select("kind", "paths", "found", "collections", "reason").rows()
        lists.append([catalogue.refused(PRINCIPALS[who]), catalogue.tokens(scope).tolist(), jobs])
        lists[-1] += [[list(catalogue.counts(scope, field).items()) for field in FACETS], corpus.sources().rows()]
        lists[-1] += [corpus.documents(sort=sort, descending=sort == "date").drop("place").rows() for sort in SORTS]
    assert lists[0] == lists[1]


@pytest.mark.slow
def test_the_queries_meet_hidden_documents_whose_ids_are_unknown(corpora, who, pair):
    everybody = (*PRINCIPALS.values(), wb.Principal("birch", ("staff",)))
    every = [wb.open_corpus(corpora["all"], principal) for principal in everybody]
    met = 0
    for asked in queries(who, 30)[1::2]:
        paths = {h.path for c in every for h in c.search(asked["query"], mode="keyword", limit=50).hits}
        met += any(path.startswith(f"{g.name}/") for g in hidden_from(who) for path in paths)
    for corpus in every:
        corpus.close()
    assert met >= 13
    whole, _ = pair
    result = whole.search("belando")
    with wb.open_corpus(corpora["all"], wb.Principal("birch", ("staff",))) as birch:
        hit = birch.search("belando").hits[0]
    for name in (hit.chunk_id, hit.document_id, hit.citation):
        found = whole.explain(result, name)
        assert not found.found
        assert asdict(found) == {**asdict(whole.explain(result, "no-such-name")), "target": name}
        assert whole.read_file(name).startswith("[ERROR: NOT_FOUND]")


def caller(server: CorpusServer) -> Callable[[dict[str, dict[str, Any]]], list[Any]]:
    """A function that calls tools by a client of the official SDK."""

    def call(asked: dict[str, dict[str, Any]]) -> list[Any]:
        async def ask() -> list[Any]:
            async with Client(server) as client:
                return [await client.call_tool(name, arguments) for name, arguments in asked.items()]

        return anyio.run(ask)

    return call


def _beside(
    corpus: wb.Corpus, asked: dict[str, str], words: str, call: Callable[[dict[str, dict[str, Any]]], list[Any]]
) -> Any:
    """What pages and tools say beside a search, without the generation's id."""
    catalogue, scope = Catalogue(corpus.engine.opened), corpus.engine.records.scope(corpus.principal, None, ())
    held = corpus.engine.records.rows(catalogue.holding(scope, words, corpus.engine.records)[:50].tolist())
    paths = catalogue.paths(scope, 50, words[:3])
    tools = call(
        {
            "hybrid_search": {"semantic_query": asked["query"]},
            "grep_search": {"query": words, "context": 2},
            "vector_search": {"query": asked["query"]},
            "read_file": {"path": f"{words[3:8]}/page1.md"},
            "corpus_info": {},
        }
    )
    said = json.dumps([[t.is_error, t.structured_content, str(t.content)] for t in tools])
    said = re.sub(r'(Ms|_ms)\\*": [\d.e-]+', "", said.replace(corpus.generation, "GENERATION"))
    return [[row.chunk for row in held], paths, corpus.search_examples(words), said]


@pytest.mark.slow
def test_judgments_are_as_if_hidden_documents_were_not_there(corpora, who, tmp_path):
    folders = [Path(shutil.copytree(corpora[name], tmp_path / name)) for name in ("all", who)]
    everybody = {**PRINCIPALS, "birch": wb.Principal("birch", ("staff",))}
    for name, principal in everybody.items():
        opened = [wb.open_corpus(folder, principal, policy=POLICY) for folder in folders]
        with opened[0] as whole, opened[1] as without:
            for asked in queries(who, QUERIES):
                for hit in whole.search(asked["query"], mode="keyword", limit=2).hits:
                    whole.judging.grade(hit, 2, asked["query"], judge=name, note=hit.path)
                    if without.engine.records.find_record(hit.chunk_id, without.judging.scope) is not None:
                        without.judging.grade(hit, 2, asked["query"], judge=name, note=hit.path)
    said = []
    for folder in folders:
        with wb.open_corpus(folder, PRINCIPALS[who], policy=POLICY) as corpus:
            judging, out = corpus.judging, tmp_path / "out.csv"
            told(partial(export_judgments, judging, "search", out, "csv"))
            rows = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "TIME", out.read_text()) if out.exists() else ""
            out.unlink(missing_ok=True)
            found = told(partial(judging.located, "search"))
            located = [(x.judgment.anchor, x.judgment.judge, x.judgment.note, x.span) for x in found]
            counts = [(s.name, s.queries, s.judgments) for s in judging.overview()]
            # Their order is that in which they were first graded, by whomever.
            asked_of = sorted(told(partial(judging.queries, "search")), key=lambda q: q.query_id)
            said.append([located, asked_of, sorted(rows.splitlines()), counts])
    assert said[0] == said[1]
