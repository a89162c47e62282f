"""Whatever explain says of a document is so: what a source knows of it, the step that dropped it, and what brings it in.

Small corpora of few words, so that ties, repeated texts, phrases, exclusions and missing words meet often. The oracle for
words reads the files; ranks, steps and remedies are checked by searching.
"""

import math
import re
from collections.abc import Iterator
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus_files import write_files
from hypothesis import example, given
from hypothesis import strategies as st
from trials import trials

import workbench as wb
from workbench.plan.fields import base_of

WORDS = ("amber", "bridge", "cedar", "delta", "ember", "fjord")
PLANS: dict[str, list[Any]] = {
    "sources": ["keyword,vector", "keyword", "vector", "grep,vector", "grep,keyword,vector", "keyword@one,vector@two"],
    "limit": [1, 2, 3, 10],
    "collections": ["all", "one", "two,three"],
    "keyword.operator": ["any", "all"],
    "keyword.keep_strongest": [True, False],
    "keyword.b": [0, 0.9],
    "vector.threshold": ["off", 0.5, 0.35, 0.2],
    "threshold.keyword": ["off", 0.8, 2],
    "fusion.threshold": ["off", 0.017, 0.6],
    "depth.keyword": [1, 3, 100],
    "depth.vector": [1, 4, 100],
    "depth.grep": [1, 100],
    "fusion.method": ["rrf", "convex", "weighted", "max"],
    "fusion.alpha": [0, 0.5, 1],
    "fusion.weights.keyword": [0, 1, 3],
    "fusion.unit": ["chunk", "document"],
    "fusion.renumber": [True, False],
    "fusion.single_source": ["passthrough", "fuse"],
    "grep.when": ["auto", "always", "never"],
    "dedupe": [True, False],
    "rerank.model": ["off", "overlap"],
    "organise": ["none", "pages"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighteen files of one to three sections in two collections, three of them with the text of another."""
    random = np.random.default_rng(11)
    made = tmp_path_factory.mktemp("explained")

    def paragraph() -> str:
        return " ".join(random.choice(WORDS, size=int(random.integers(1, 7))))

    for collection, first in (("one", 0), ("two", 9)):
        files = {
            f"{collection}/{n:02}.md": "\n\n".join(
                f"# S{s}\n\n{paragraph()}" for s in range(int(random.integers(1, 4)))
            )
            + "\n"
            for n in range(first, first + 9)
        }
        files |= {f"{collection}/{collection}{n}.md": files[f"{collection}/{first + n:02}.md"] + "\n" for n in range(3)}
        write_files(made / "files", files)
        wb.index(
            [made / "files" / collection], corpus=made / "corpus", collection=collection, encoder="hashing", workers=0
        )
    return made


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Iterator[wb.Corpus]:
    with wb.open_corpus(folder / "corpus") as opened:
        yield opened


words = st.sampled_from(WORDS)
pieces = st.one_of(
    words,
    words.map("-{}".format),
    st.tuples(words, words).map(lambda two: f'"{two[0]} {two[1]}"'),
    st.sampled_from(["OR", "zebra", "the", '-"amber bridge"', "ced*"]),
)
queries = st.lists(pieces, min_size=1, max_size=4).map(" ".join)
filters = st.sampled_from([None, None, None, "path = '*1*'", "lines < 6"])
modes = st.sampled_from(["hybrid", "hybrid", "hybrid", "keyword", "vector", "grep"])
plans = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in PLANS.items()})


def search(corpus: wb.Corpus, query: str, mode: str, plan: wb.Plan, where: str | None) -> wb.SearchResult | None:
    try:
        return corpus.search(query, mode=mode, plan=plan, filters=where, bypass_cache=True)
    except wb.WorkbenchError:
        return None


def check(corpus: wb.Corpus, result: wb.SearchResult, path: str, where: str | None) -> None:
    """Check everything that explain says of a document."""
    found, plan = corpus.explain(result, path), result.plan
    hits = [h for h in result.hits if not h.added and h.path == path]
    assert found.found
    assert found.rank == (min(h.rank for h in hits) if hits else None), found
    if found.score is not None:
        parts = [*(s.contribution for s in found.standings), *found.beside.values()]
        assert math.fsum(parts) == pytest.approx(found.score, abs=1e-12)
    number = corpus.engine.records.find_record(found.chunk_id, result.retrieved.scope)
    assert number is not None
    (row,) = corpus.engine.records.rows([number])
    for standing in found.standings:
        check_source(corpus, result, standing, row.chunk, where)
    if found.rank:
        return
    check_step(corpus, result, found, path, where)
    if found.verified:
        changed = plan.replace(found.changes or {})
        again = search(
            corpus,
            found.query or result.query,
            found.mode or result.mode,
            changed,
            None if found.without_filter else where,
        )
        assert any(h.path == path and not h.added for h in again.hits), found
        assert all(f"{name}={value}" in found.remedy for name, value in (found.changes or {}).items())
        for way in corpus.explain(result, path, every=True).ways:
            where_then = None if way.without_filter else where
            how = (way.query or result.query, way.mode or result.mode, plan.replace(way.changes or {}))
            assert way.rank == min(
                h.rank for h in search(corpus, *how, where_then).hits if h.path == path and h.rank
            ), way
    elif "beyond limit.max" not in found.remedy:
        assert "No setting that was tried" in found.remedy


def check_source(corpus: wb.Corpus, result: wb.SearchResult, standing: Any, chunk: Any, where: str | None) -> None:
    """What is said of one source against the rankings of this search and of one without depth and threshold."""
    plan, source, kind = result.plan, standing.source, base_of(standing.source)
    ranking = {e.chunk_id: e for e in result.rankings[source].entries}
    documents = {e.document_id for e in result.rankings[source].entries}
    by_document = plan["fusion.unit"] == "document"
    if kind == "keyword" and standing.score and "all" not in str(plan["keyword.operator"]):
        # Word by word the very score, to the last bit.
        assert reduce(add, (word.score for word in standing.words), 0.0) == standing.score
        assert sum(word.share for word in standing.words) == pytest.approx(1)
    if standing.state == "not asked":
        own = source.partition("@")[2] or chunk.collection
        assert chunk.collection != own or chunk.collection not in (plan["collections"] or (own,)) or where
        return
    inside = chunk.document_id in documents if by_document else chunk.chunk_id in ranking
    assert (standing.state == "retrieved") == inside, (standing, str(plan), result.query)
    if standing.state == "retrieved":
        if not by_document:
            assert standing.score == pytest.approx(ranking[chunk.chunk_id].score, abs=1e-9)
            assert standing.rank == ranking[chunk.chunk_id].rank
        return
    wide = {f"depth.{source}": 1000, "vector.threshold": "off", "threshold.keyword": "off", "fusion.unit": "chunk"}
    everything = search(corpus, result.query, result.mode, plan.replace(wide), where)
    places = {e.chunk_id: e for e in everything.rankings[source].entries}
    if standing.state == "no match":
        assert chunk.chunk_id not in places, (standing, result.query)
        if kind == "keyword":
            check_words(standing.reason, chunk, result.query, plan["keyword.operator"])
        return
    entry = places[chunk.chunk_id]
    if standing.state == "cut by threshold":
        if kind == "vector":
            assert standing.distance == pytest.approx(entry.distance, abs=1e-6)
            assert entry.distance >= plan.threshold(source)
        else:
            assert standing.score == pytest.approx(entry.score, abs=1e-9)
            assert entry.score < plan.threshold(source)
    else:
        assert standing.state == "beyond depth"
        if "renumber" not in str(plan) and by_document:
            order = list(dict.fromkeys(e.document_id for e in everything.rankings[source].entries))
            assert standing.rank == order.index(chunk.document_id) + 1
        elif not by_document:
            assert standing.rank == entry.rank
        if "stopped at its depth" not in standing.reason:
            assert standing.rank > plan.depth(source)


def check_words(reason: str, chunk: Any, query: str, operator: str) -> None:
    """Words that are said to be missing, excluded or apart, against the text."""
    text = chunk.indexed_text.lower()
    held = set(re.findall(r"\w+", text))
    if reason.endswith("no word to look for"):
        assert not re.sub(r'-"[^"]*"|-\w+|\bOR\b', "", query).strip()
        return

    def has(what: str) -> bool:
        return re.search(rf"\b{what.strip(chr(34))}\b", " ".join(re.findall(r"\w+", text))) is not None

    for listed in re.findall(r"(?:lacks|has none of) (.*?)(?:, and keyword|$)", reason):
        for item in re.split(r", | and ", listed):
            assert not has(item) if item != "ced" else not any(w.startswith("ced") for w in held), (reason, text)
    for listed in re.findall(r"(?:it|passage) has (\S+.*?), which the query leaves out", reason):
        for item in re.split(r", | and ", listed):
            assert has(item), (reason, text)
            assert f"-{item}" in query or f'-"{item}"' in query
    for first, second in re.findall(r'has the words of "(\w+) (\w+)", but not next', reason):
        assert {first, second} <= held
        assert not has(f"{first} {second}")
    assert ("keyword.operator=all" in reason) <= (operator == "all")


def check_step(corpus: wb.Corpus, result: wb.SearchResult, found: Any, path: str, where: str | None) -> None:
    """The step that dropped it, against the lists and against searches without that step."""
    plan, step = result.plan, found.dropped_by
    in_list = any(path == p for _, p in result.documents(10_000))
    if step == "limit":
        assert in_list
        assert f"limit is {plan['limit']}" in found.reason
        place = int(re.search(r"number ([\d,]+) of ([\d,]+)", found.reason)[1])
        assert result.documents(10_000)[place - 1][1] == path
        assert path in {h.path for h in result.with_plan(plan.replace({"limit": 1000} | depths(result))).hits}
    elif step == "strongest":
        without = search(corpus, result.query, result.mode, plan.replace({"keyword.keep_strongest": False}), where)
        assert path in {h.path for h in without.hits}
    elif step == "dedupe":
        assert not in_list
        other = re.search(r"that of (\S+), which is", found.reason)[1]
        assert other in {p for _, p in result.documents(10_000)}
        texts = {p: corpus.read_file(p).split() for p in (path, other)}
        assert set(texts[path]) & set(texts[other])
    elif step == "filters":
        assert where or plan["collections"]
        assert where or "the filter" not in found.reason
    elif "fused score" in found.reason:
        assert step == "threshold"
        assert not in_list
        assert result.frame()["score"][found.fused_rank - 1] < plan["fusion.threshold"]
        assert path in {p for _, p in result.with_plan(plan.replace({"fusion.threshold": "off"})).documents(10_000)}
    else:
        assert step in ("match", "depth", "threshold")
        assert found.fused_rank is None
        assert path not in result.frame()["path"].to_list()


def depths(result: wb.SearchResult) -> dict[str, int]:
    return {f"depth.{source}": result.plan.depth(source) for source in result.rankings}


EVERY = set(range(0, 24, 2))


@pytest.mark.slow
@trials(20)
@example("amber bridge", "hybrid", {"depth.keyword": 3, "depth.vector": 4}, None, EVERY)
@example("cedar", "keyword", {"depth.keyword": 1, "fusion.unit": "document"}, None, EVERY)
@example('"cedar delta" -amber', "keyword", {}, None, EVERY)
@example(
    "amber ember", "hybrid", {"limit": 2, "keyword.keep_strongest": True, "fusion.weights.keyword": 0}, None, EVERY
)
@given(queries, modes, plans, filters, st.sets(st.integers(0, 23), min_size=1, max_size=3))
def test_what_explain_says_is_so(corpus, query, mode, changes, where, targets):
    try:
        plan = wb.preset("rrf").replace(changes)
    except wb.WorkbenchError:
        return
    result = search(corpus, query, mode, plan, where)
    if result is None:
        return
    paths = [*(f"{n:02}.md" for n in range(18)), *(f"{name}{n}.md" for name in ("one", "two") for n in range(3))]
    for target in sorted(targets):
        check(corpus, result, paths[target % len(paths)], where)
