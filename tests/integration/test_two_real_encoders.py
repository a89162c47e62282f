"""The two encoders that come with the workbench, together on the sample corpus: search, sweep, snapshot, MCP and tune."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main
from workbench.demo import sample_folder

pytestmark = pytest.mark.slow

PAIR = ("all-MiniLM-L6-v2", "static")
SOURCES = ("keyword", "vector", "vector:static")
PLAN = f"default sources={','.join(SOURCES)}"
WEIGHT = "fusion.weights.vector:static"
QUERY = "what happens when a request fails and is sent again"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus with the vectors of both."""
    folder = tmp_path_factory.mktemp("pair") / "corpus"
    folder.mkdir()
    shutil.copy(sample_folder() / "corpus.yaml", folder)
    report = wb.index([sample_folder() / "files"], corpus=folder, encoder=list(PAIR))
    assert report.encoders == PAIR
    return folder


@pytest.fixture(scope="module")
def corpus(path: Path) -> Iterator[wb.Corpus]:
    with wb.open_corpus(path, wb.Principal("acme", ("admin", "support"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def judged() -> wb.Judgments:
    return wb.load_judgments(sample_folder())


def command(path: Path, *words: str) -> str:
    asked = [*words, "--corpus", str(path), "--tenant", "acme", "--role", "admin", "--role", "support"]
    done = CliRunner().invoke(main, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_both_rank_by_their_own_cosines_and_add_to_one_score(corpus: wb.Corpus) -> None:
    """Each encoder's best hit is its own; a hit's contributions are its score, whatever order the sources are named in."""
    from workbench.encode.load import load_encoder

    assert [e["name"] for e in corpus.info()["encoders"]] == list(PAIR)
    result = corpus.search(QUERY, plan=PLAN)
    assert tuple(sorted(result.rankings)) == SOURCES
    frame = result.frame()
    for source, name in zip(SOURCES[1:], PAIR, strict=True):
        best = frame.filter(frame[f"{source}_rank"] == 1).row(0, named=True)
        number = corpus.engine.records.find_record(
            best["chunk_id"], corpus.engine.records.scope(corpus.principal, None, ())
        )
        vector = corpus.engine.vectors(name).vectors(np.array([number], np.int64))[0]
        assert best[f"{source}_score"] == pytest.approx(
            float(vector @ load_encoder(name).encode_query(QUERY)), abs=1e-3
        )
    for hit in result.hits:
        assert hit.score == pytest.approx(sum(hit.contributions.values()), abs=1e-12)
        assert set(hit.contributions) == set(SOURCES)  # missing scores are computed
    turned = corpus.search(QUERY, plan="default sources=vector:static,vector,keyword")
    assert [(h.chunk_id, h.score, h.contributions) for h in turned.hits] == [
        (h.chunk_id, h.score, h.contributions) for h in result.hits
    ]


def test_a_source_without_weight_gives_nothing_to_what_the_others_found(corpus: wb.Corpus) -> None:
    """With weight 0 the other two give each hit what they gave it without the third."""
    off = {"vector.threshold": "off", "limit": 50}
    none = corpus.search(QUERY, plan=wb.Plan.parse(PLAN).replace({WEIGHT: 0, **off}))
    two = corpus.search(QUERY, plan=wb.Plan.parse("default").replace(off))
    scores = {hit.chunk_id: hit.score for hit in two.hits}
    both = [hit for hit in none.hits if hit.chunk_id in scores]
    assert both
    assert [hit.score for hit in both] == [scores[hit.chunk_id] for hit in both]


def test_a_sweep_of_its_weight_agrees_with_evaluate(corpus: wb.Corpus, judged: wb.Judgments) -> None:
    swept = corpus.sweep(judged, {WEIGHT: [0, 0.5, 1, 2]}, plan=PLAN, folds=2)
    assert len(swept.plans) == 4
    assert not [w for w in swept.warnings if "static" in w]
    for plan, mean in zip(swept.plans, swept.means(), strict=True):
        assert corpus.evaluate(judged, plan, "nDCG@10").mean("nDCG@10") == pytest.approx(float(np.squeeze(mean)))
    best = wb.Plan.from_yaml(swept.to_yaml())
    assert best == swept.best
    assert set(best.sources) == set(SOURCES)


def test_a_snapshot_of_both_loads_the_same_and_verifies(corpus: wb.Corpus, tmp_path: Path) -> None:
    """Rankings, contributions and plan as they were, and the search run again gives them."""
    result = corpus.search(QUERY, plan=PLAN)
    made = result.snapshot(note="two encoders")
    made.save(tmp_path / "pair.snapshot")
    loaded = wb.Snapshot.load(tmp_path / "pair.snapshot")
    assert loaded == made
    found = loaded.verify(corpus)
    assert found.ok, found.verdict
    assert found.ran


def test_an_agent_searches_with_both(corpus: wb.Corpus) -> None:
    """The plan's text names the sources; the answer has each one's rank and share, as `Corpus.search` gives them."""
    pytest.importorskip("mcp")
    import anyio
    from mcp import Client

    from workbench.mcp.server import build_server

    async def ask() -> Any:
        async with Client(build_server(corpus)) as client:
            info = await client.call_tool("corpus_info", {})
            return info, await client.call_tool("hybrid_search", {"semantic_query": QUERY, "plan": PLAN})

    info, answer = anyio.run(ask)
    assert "source vector:static" in info.content[0].text
    assert not answer.is_error, answer.content
    told = answer.structured_content
    assert not told["warnings"]
    hits = corpus.search(QUERY, plan=PLAN).hits
    assert [(h["citation"], h["score"], h["contributions"]) for h in told["hits"]] == [
        (h.citation, h.score, dict(h.contributions)) for h in hits
    ]


def test_tune_on_the_command_line_writes_a_plan_that_searches(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.yaml"
    grid = ("--grid", f"{WEIGHT}=0,1", "--grid", "fusion.alpha=0.5,0.8")
    said = command(
        path, "tune", str(sample_folder()), "--plan", PLAN, *grid, "--folds", "2", "--json", "--out", str(out)
    )
    told = json.loads(said)
    assert told["plans"] == 4
    plan = wb.Plan.from_yaml(out.read_text())
    assert set(plan.sources) == set(SOURCES)
    found = json.loads(command(path, "search", QUERY, "--plan-file", str(out), "--json"))
    assert set(found["hits"][0]["contributions"]) == set(SOURCES)


def test_each_is_cut_where_its_own_distances_say(path: Path, corpus: wb.Corpus, judged: wb.Judgments) -> None:
    """The advised thresholds are not one number; taken over, each encoder loses no more of the relevant than was allowed,
    and cutting one of them leaves the other's ranking as it was.
    """
    told = json.loads(command(path, "threshold", str(sample_folder()), "--plan", PLAN, "--lose", "5", "--json"))
    advised = {row["field"]: row["threshold"] for row in told if row["field"]}
    assert set(advised) == {"threshold.keyword", "threshold.vector", "threshold.vector:static", "fusion.threshold"}
    advised = {field: value for field, value in advised.items() if field.startswith("threshold.vector")}
    assert abs(advised["threshold.vector"] - advised["threshold.vector:static"]) > 0.01
    assert all(row["loses"] <= 5 for row in told if row["field"])
    every = corpus.search(QUERY, plan=wb.Plan.parse(PLAN).replace({"vector.threshold": "off"}))
    one = every.with_plan(every.plan.replace({"threshold.vector:static": advised["threshold.vector:static"]}))
    assert one.rankings["vector"] == every.rankings["vector"]
    assert 0 < len(one.rankings["vector:static"].entries) < len(every.rankings["vector:static"].entries)
    both = corpus.search(QUERY, plan=wb.Plan.parse(PLAN).replace(advised))
    for source in SOURCES[1:]:
        assert all(e.distance < advised[f"threshold.{source}"] for e in both.rankings[source].entries)
