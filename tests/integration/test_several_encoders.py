"""A corpus with the vectors of two encoders: each is a source of its own, and every part of the workbench knows it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from small_models import SIX, index_both, make_static

import workbench as wb
from workbench.cli.main import main
from workbench.encode import load, models
from workbench.errors import SourceUnavailable
from workbench.judgments.qrels import Judgments, Topic

FILES = {f"{name}.md": f"# {name.title()}\n\n{text}\n" for name, text in SIX.items()}
QUERY = "retry after a timeout"
TWO = "sources=keyword,vector,vector:table"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working directory: `table` is a static embedding, `docs` the files, `both` a corpus of two encoders."""
    folder = tmp_path_factory.mktemp("encoders")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        index_both(folder, FILES, FILES.values())
        yield folder


@pytest.fixture(scope="module")
def corpus(home: Path) -> Iterator[wb.Corpus]:
    with wb.open_corpus(home / "both") as opened:
        yield opened


def command(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words))
    return result.exit_code, result.output


@pytest.mark.slow
def test_encoders_come_and_go_and_only_a_new_one_embeds(home, monkeypatch):
    index: Callable[..., wb.IndexReport] = lambda *names, **more: wb.index(  # noqa: E731
        ["docs"], corpus="changing", encoder=list(names), workers=0, **more
    )
    first = index("hashing")
    assert (first.embedded, first.encoders) == (len(FILES), ("hashing",))
    more = index("hashing", "table")
    assert (more.embedded, more.reused, more.encoders) == (len(FILES), len(FILES), ("hashing", "table"))
    assert any("has the encoder table too" in warning for warning in more.warnings)
    assert not index("hashing", "table").changed
    assert wb.index(["docs"], corpus="changing", encoder="hashing", workers=0).encoders == ("hashing", "table")
    fewer = index("hashing")
    assert (fewer.changed, fewer.embedded, fewer.encoders) == (True, 0, ("hashing",))
    assert any("no longer has the encoder table" in warning for warning in fewer.warnings)
    with wb.open_corpus("changing") as opened:
        assert [e["name"] for e in opened.info()["encoders"]] == ["hashing"]
    find = models.find
    monkeypatch.setattr(load, "find", lambda name, download: find(name.removeprefix("hub/"), download=download))
    report = wb.index(["docs"], corpus="named", encoder=["table", "hub/table"], workers=0)
    assert (report.encoders, report.embedded, report.reused) == (("table",), len(FILES), 0)
    wb.index(["docs"], corpus="named", encoder=["table", "hashing"], workers=0)
    assert wb.index(["docs"], corpus="named", encoder="hub/table", workers=0).encoders == ("table", "hashing")
    code, said = command("index", "docs", "--corpus", "typed", "--encoder", "hashing", "--encoder", "table")
    assert code == 0, said
    assert "encoders: hashing (vector), table (vector:table)" in said
    code, said = command("search", QUERY, "--corpus", "typed", "--set", TWO, "--set", "vector.threshold=off", "--json")
    assert code == 0, said
    assert "vector:table" in json.loads(said)["hits"][0]["contributions"]


def test_each_encoder_gives_its_own_ranking(corpus):
    from workbench.encode.load import load_encoder

    plan = wb.Plan.parse(TWO).replace({"vector.threshold": "off", "fusion.weights.vector:table": 0.5})
    result = corpus.search(QUERY, plan=plan)
    assert set(result.rankings) == {"keyword", "vector", "vector:table"}
    frame = result.frame()
    for source, name in (("vector", "hashing"), ("vector:table", "table")):
        top = frame.filter(frame[f"{source}_rank"] == 1).row(0, named=True)
        numbers = np.arange(len(FILES))
        chunk_ids = [row.chunk.chunk_id for row in corpus.engine.records.rows(numbers.tolist())]
        (row,) = (n for n, chunk in enumerate(chunk_ids) if chunk == top["chunk_id"])
        cosines = corpus.engine.vectors(name).vectors(numbers) @ load_encoder(name).encode_query(QUERY)
        assert row == int(cosines.argmax())
        assert top[f"{source}_score"] == pytest.approx(float(cosines[row]), abs=1e-6)
    for hit in result.hits:
        assert hit.score == pytest.approx(sum(hit.contributions.values()))
    assert any("vector:table" in hit.contributions for hit in result.hits)
    result = corpus.search(QUERY, mode="vector", plan=wb.Plan.parse(TWO).replace({"vector.threshold": "off"}))
    assert set(result.rankings) == {"vector", "vector:table"}
    assert {len(hit.contributions) for hit in result.hits} == {2}
    alone = corpus.search(QUERY, mode="vector", plan="sources=vector:table")
    assert set(alone.rankings) == {"vector:table"}
    result = corpus.search(QUERY, plan="sources=keyword,vector:other")
    (said,) = result.warnings
    assert "no vectors of other" in said
    assert "hashing, table" in said
    keyword = corpus.search(QUERY, plan="sources=keyword")
    assert [(h.chunk_id, h.score) for h in result.hits] == [(h.chunk_id, h.score) for h in keyword.hits]
    with pytest.raises(SourceUnavailable, match="no vectors of other"):
        corpus.search(QUERY, plan="sources=vector:other")


@pytest.mark.slow
def test_other_weights_of_an_encoder_are_not_compared(home):
    make_static(home / "moving", FILES.values())
    wb.index(["docs"], corpus="moved", encoder=["hashing", "moving"], workers=0)
    make_static(home / "moving", FILES.values(), shift=0.5)
    with wb.open_corpus("moved") as opened:
        result = opened.search(QUERY, plan="sources=keyword,vector,vector:moving")
        (said,) = result.warnings
        assert "other weights of moving" in said
        assert set(result.rankings) == {"keyword", "vector"}
    again = wb.index(["docs"], corpus="moved", encoder=["hashing", "moving"], workers=0)
    assert again.warnings == ("moving has other weights now: every text was embedded for it again",)
    assert again.embedded == len(FILES)


BOTH = wb.Plan.parse(f"default {TWO} vector.threshold=off")
SOURCES = ("vector", "vector:table")


def halfway(result: wb.SearchResult, source: str) -> float:
    """A threshold that keeps the three nearest of six."""
    distances = [entry.distance for entry in result.rankings[source].entries]
    assert len(distances) == len(FILES)
    assert distances[2] is not None
    return round((distances[2] + distances[3]) / 2, 4)


@pytest.mark.parametrize("method", ["rrf", "convex"])
@pytest.mark.parametrize("cut", SOURCES)
def test_one_encoder_is_cut_and_the_other_is_not(corpus, cut, method):
    plan = BOTH.replace({"fusion.method": method})
    every = corpus.search(QUERY, plan=plan)
    at = halfway(every, cut)
    moved = plan.replace({f"threshold.{cut}": at})
    fused = every.with_plan(moved)
    (other,) = set(SOURCES) - {cut}
    assert len(fused.rankings[cut].entries) == 3
    assert all(e.distance is not None and e.distance < at for e in fused.rankings[cut].entries)
    assert fused.rankings[other] == every.rankings[other]
    steps = {s.source: (s.entered, s.left, s.reason) for s in fused.steps if s.step == "threshold"}
    assert steps[cut] == (6, 3, f"angular distance below {at:g}, by threshold.{cut}")
    assert steps[other] == (6, 6, "vector.threshold is off")
    assert [c.source for c in fused.candidates.columns if c.cut.any()] == [cut]
    gone = {e.chunk_id for e in every.rankings[cut].entries[3:]}
    assert all(not hit.contributions.get(cut) for hit in fused.hits if hit.chunk_id in gone)


def test_explain_names_the_threshold_of_the_source(corpus):
    """What one encoder alone would bring is brought by its own threshold: the other's stays where it is."""
    plan = wb.Plan.parse("sources=vector,vector:table threshold.vector=0.01 threshold.vector:table=0.02")
    told = corpus.explain(corpus.search(QUERY, plan=plan), "timeouts.md")
    assert told.dropped_by == "threshold"
    assert "and threshold.vector is 0.01" in told.reason
    assert told.verified
    assert [name for name in told.changes if "threshold" in name] == ["threshold.vector"]
    shared = corpus.search(QUERY, plan="sources=vector,vector:table vector.threshold=0.01")
    told = corpus.explain(shared, "timeouts.md")
    assert "and vector.threshold is 0.01" in told.reason
    assert [name for name in told.changes if "threshold" in name] == ["threshold.vector"]
    alone = corpus.explain(corpus.search(QUERY, plan="sources=vector vector.threshold=0.01"), "timeouts.md")
    assert "vector.threshold" in (alone.changes or {})
    lone = corpus.search(QUERY, plan="threshold.vector:table=0.3")
    assert any(w.startswith("threshold.vector:table has no effect without vector:table") for w in lone.warnings)
    own = BOTH.replace({"vector.threshold": 0.3, "threshold.vector": 0.5, "threshold.vector:table": "off"})
    (said,) = [w for w in corpus.search(QUERY, plan=own).warnings if "no effect" in w]
    assert said.startswith("vector.threshold has no effect beside threshold.vector and threshold.vector:table")


@pytest.fixture(scope="module")
def judged() -> Judgments:
    relevant = {
        "retry after a timeout": "timeouts.md", "boiling water for tea": "tea.md", "kettle open": "kettle.md",
        "refused requests": "limits.md",
    }  # fmt: skip
    topics = {f"q{n}": Topic(f"q{n}", text) for n, text in enumerate(relevant)}
    return Judgments(topics, {f"q{n}": {path: 1} for n, path in enumerate(relevant.values())}, "made")


def printed(*words: str) -> str:
    done = CliRunner().invoke(main, [*words, "--corpus", "both"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_line_cuts_and_advises_by_source(corpus, judged, home):
    found = json.loads(printed("search", QUERY, "--json", "--set", f"sources={','.join(BOTH.sources)}",
                               "--set", "threshold.vector:table=0.01"))  # fmt: skip
    assert {s["left"] for s in found["funnel"] if (s["step"], s["source"]) == ("threshold", "vector:table")} == {0}
    rows = [
        {"query_id": i, "query": judged.topics[i].text, "document": path, "grade": 1}
        for i, qrels in judged.qrels.items() for path in qrels
    ]  # fmt: skip
    (home / "judged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = str(BOTH.replace({"threshold.vector": 0.45}))
    told: list[dict[str, Any]] = json.loads(
        printed("threshold", "judged.jsonl", "--plan", plan, "--lose", "0", "--json")
    )
    fields = {row["source"]: (row["now"], row["field"]) for row in told}
    assert fields["vector"] == (0.45, "threshold.vector")
    assert fields["vector:table"] == ("off", "threshold.vector:table")
    assert fields["keyword"] == ("off", "threshold.keyword")
    said = " ".join(printed("threshold", "judged.jsonl", "--plan", plan).split())
    assert "vector is cut at 0.45: take another with --set threshold.vector=VALUE" in said
    assert "vector:table is not cut: take one with --set threshold.vector:table=VALUE" in said


SCORES = wb.Plan.parse("default vector.threshold=off")


def test_a_bm25_threshold_cuts_the_keyword_list_and_says_so(corpus):
    every = corpus.search(QUERY, plan=SCORES)
    entries = every.rankings["keyword"].entries
    assert len(entries) > 1
    at, last = entries[-2].score, entries[-1]
    cut = every.with_plan(SCORES.replace({"threshold.keyword": at}))
    assert [e.chunk_id for e in cut.rankings["keyword"].entries] == [e.chunk_id for e in entries[:-1]]
    (step,) = (s for s in cut.steps if (s.step, s.source) == ("threshold", "keyword"))
    assert (step.entered, step.left) == (len(entries), len(entries) - 1)
    assert step.reason == f"BM25 score at least {at:g}, by threshold.keyword"
    (hit,) = (h for h in cut.hits if h.chunk_id == last.chunk_id)
    assert (hit.contributions["keyword"], str(hit.label)) == (0, "Semantic match")
    told = corpus.explain(corpus.search(QUERY, plan="sources=keyword threshold.keyword=900"), last.path)
    assert (told.dropped_by, told.verified) == ("threshold", True)
    assert f"BM25 score {last.score:.4f}, and threshold.keyword is 900" in told.reason
    assert last.score * 0.99 < told.changes["threshold.keyword"] <= last.score
    plan = SCORES.replace({"fusion.threshold": 900})
    alone = corpus.search(QUERY, mode="keyword", plan=plan)
    assert len(alone.hits) == len(alone.rankings["keyword"].entries)
    reason = "keyword alone has results, and its own scores are shown"
    assert f"fusion.threshold was not applied: {reason}" in alone.messages
    assert f"not applied: {reason}" in {s.reason for s in alone.steps if s.source == "fused"}
    fused = corpus.search(QUERY, mode="keyword", plan=plan.replace({"fusion.single_source": "fuse"}))
    assert not fused.hits
    best = float(fused.fused.scores[0])
    assert f"The best fused score is {best:.4g}, below fusion.threshold=900: lower it or turn it off" in fused.messages


@pytest.mark.parametrize("method", ["rrf", "convex"])
def test_results_below_the_fused_threshold_are_dropped_before_dedupe(corpus, method):
    plan = SCORES.replace({"fusion.method": method})
    every = corpus.search(QUERY, plan=plan)
    at, last = every.hits[2].score, every.hits[-1]
    assert last.score < at
    cut = every.with_plan(plan.replace({"fusion.threshold": at}))
    assert [h.chunk_id for h in cut.hits] == [h.chunk_id for h in every.hits[:3]]
    names = [(s.step, s.source) for s in cut.steps]
    assert names[names.index(("fusion", "")) :][:3] == [("fusion", ""), ("threshold", "fused"), ("dedupe", "")]
    (step,) = (s for s in cut.steps if s.source == "fused")
    assert (step.entered, step.left, step.reason) == (len(every.fused), 3, f"fused score at least {at:g}")
    told = corpus.explain(cut, last.path)
    assert (told.dropped_by, told.verified) == ("threshold", True)
    assert told.reason == f"Its fused score is {last.score:.4g}, and fusion.threshold is {at:g}"
    assert list(told.changes or {}) == ["fusion.threshold"]
    again = corpus.search(QUERY, plan=cut.plan.replace(told.changes or {}))
    assert last.path in {h.path for h in again.hits}
