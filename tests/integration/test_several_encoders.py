"""A corpus with the vectors of two encoders: each is a source of its own, and every part of the workbench knows it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from small_models import SIX, index_both, make_static

import workbench as wb
from workbench.cli.main import main
from workbench.encode import load, models
from workbench.errors import SourceUnavailable, UsageError
from workbench.indexing.preview import Action

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
def test_encoders_come_and_go_and_only_a_new_one_embeds(home: Path) -> None:
    """One, then two, the same two again, and one again: what the report counts, says and holds."""
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


@pytest.mark.slow
def test_an_encoder_named_in_two_ways_is_there_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own name, which also keeps the others where it is the corpus's own."""
    find = models.find
    monkeypatch.setattr(load, "find", lambda name, download: find(name.removeprefix("hub/"), download=download))
    report = wb.index(["docs"], corpus="named", encoder=["table", "hub/table"], workers=0)
    assert (report.encoders, report.embedded, report.reused) == (("table",), len(FILES), 0)
    wb.index(["docs"], corpus="named", encoder=["table", "hashing"], workers=0)
    assert wb.index(["docs"], corpus="named", encoder="hub/table", workers=0).encoders == ("table", "hashing")


def test_a_preview_says_that_a_new_encoder_reads_everything(home: Path) -> None:
    wb.index(["docs"], corpus="previewed", encoder="hashing", workers=0)
    same = wb.preview(["docs"], corpus="previewed", encoder=["hashing"])
    other = wb.preview(["docs"], corpus="previewed", encoder=["hashing", "table"])
    assert (same.count(Action.UNCHANGED), other.count(Action.UNCHANGED)) == (len(FILES), 0)


def test_info_names_the_corpus_own_encoder_first(home: Path) -> None:
    """Whatever the alphabet: here `table` is the corpus's own, and its tokenizer cut."""
    wb.index(["docs"], corpus="turned", encoder=["table", "hashing"], workers=0)
    with wb.open_corpus("turned") as opened:
        info = opened.info()
        assert (info["encoder"], [e["name"] for e in info["encoders"]]) == ("table", ["table", "hashing"])
        assert opened.search(QUERY, mode="vector", plan="sources=vector:hashing").hits
    code, said = command("info", "--corpus", "turned")
    assert code == 0
    assert "table (vector, 256 dimensions), hashing (vector:hashing, 256" in said


def test_each_encoder_gives_its_own_ranking(corpus: wb.Corpus) -> None:
    """Scores of `vector:table` are the cosines of that encoder; they add to the same fused list."""
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


def test_weight_and_depth_of_one_encoder_leave_the_other_alone(corpus: wb.Corpus) -> None:
    plan = wb.Plan.parse(TWO).replace({"vector.threshold": "off", "fusion.method": "rrf"})
    both = corpus.search(QUERY, plan=plan)
    none = both.with_plan(plan.replace({"fusion.weights.vector:table": 0}))
    without = corpus.search(QUERY, plan=plan.replace({"sources": "keyword,vector"}))
    assert [(h.chunk_id, h.score) for h in none.hits if h.score] == [(h.chunk_id, h.score) for h in without.hits]
    shallow = corpus.search(QUERY, plan=plan.replace({"depth.vector:table": 2}))
    assert len(shallow.rankings["vector:table"].entries) == 2
    assert shallow.rankings["vector"] == both.rankings["vector"]


def test_mode_vector_fuses_the_encoders(corpus: wb.Corpus) -> None:
    """Two vector sources and nothing else; one alone passes its list through."""
    result = corpus.search(QUERY, mode="vector", plan=wb.Plan.parse(TWO).replace({"vector.threshold": "off"}))
    assert set(result.rankings) == {"vector", "vector:table"}
    assert {len(hit.contributions) for hit in result.hits} == {2}
    alone = corpus.search(QUERY, mode="vector", plan="sources=vector:table")
    assert set(alone.rankings) == {"vector:table"}


def test_an_encoder_that_the_corpus_lacks_is_one_sentence(corpus: wb.Corpus) -> None:
    """Hybrid goes on and says which encoders there are; alone it is an error with the remedy; keywords do not move."""
    result = corpus.search(QUERY, plan="sources=keyword,vector:other")
    (said,) = result.warnings
    assert "no vectors of other" in said
    assert "hashing, table" in said
    keyword = corpus.search(QUERY, plan="sources=keyword")
    assert [(h.chunk_id, h.score) for h in result.hits] == [(h.chunk_id, h.score) for h in keyword.hits]
    with pytest.raises(SourceUnavailable, match="no vectors of other"):
        corpus.search(QUERY, plan="sources=vector:other")


@pytest.mark.slow
def test_other_weights_of_an_encoder_are_not_compared(home: Path) -> None:
    """The folder holds another table now: that source could not run, the others answer."""
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


def test_explain_funnel_and_compare_know_the_source(corpus: wb.Corpus) -> None:
    plan = wb.Plan.parse(TWO).replace({"vector.threshold": "off", "depth.vector:table": 1})
    result = corpus.search(QUERY, plan=plan)
    told = corpus.explain(result, "cats.md")
    assert {s.source for s in told.standings} == {"keyword", "vector", "vector:table"}
    assert "vector:table" in set(result.funnel()["source"].to_list())
    compared = corpus.compare(QUERY, ["sources=keyword,vector", plan])
    assert len(compared.results) == 2
    assert "vector:table" in compared.results[1].rankings


def test_a_sweep_weighs_the_encoders_as_search_does(corpus: wb.Corpus) -> None:
    """Sources and weights vary; the winner's figure is that of `evaluate`."""
    judged = judgments()
    swept = corpus.sweep(
        judged,
        {"sources": ["keyword", TWO.removeprefix("sources=")], "fusion.weights.vector:table": [0, 1, 4]},
        plan=wb.Plan.parse(TWO).replace({"vector.threshold": "off"}),
        folds=2,
    )
    best = swept.best
    assert corpus.evaluate(judged, best, "nDCG@10").mean("nDCG@10") == pytest.approx(float(swept.means().max()))


def judgments() -> object:
    path = Path("judged.jsonl")
    rows = [
        {"query_id": "1", "query": "retry after a timeout", "document": "timeouts.md", "grade": 1},
        {"query_id": "2", "query": "boiling water for tea", "document": "tea.md", "grade": 1},
        {"query_id": "3", "query": "kettle open", "document": "kettle.md", "grade": 1},
        {"query_id": "4", "query": "refused requests", "document": "limits.md", "grade": 1},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return wb.load_judgments(path)


def test_a_snapshot_keeps_both_encoders(corpus: wb.Corpus, home: Path) -> None:
    """Saved, loaded, verified against the corpus: rankings of both, identities of both."""
    snapshot = corpus.search(QUERY, plan=TWO).snapshot(note="two encoders")
    snapshot.save(home / "two.snapshot")
    loaded = wb.Snapshot.load(home / "two.snapshot")
    assert loaded == snapshot
    code, said = command("snapshot", "verify", "two.snapshot", "--corpus", "both")
    assert code == 0, said


def test_the_command_line_takes_several(home: Path) -> None:
    """`--encoder` repeated; the report and the results name the sources."""
    code, said = command("index", "docs", "--corpus", "typed", "--encoder", "hashing", "--encoder", "table")
    assert code == 0, said
    assert "encoders: hashing (vector), table (vector:table)" in said
    code, said = command("search", QUERY, "--corpus", "typed", "--set", TWO, "--set", "vector.threshold=off", "--json")
    assert code == 0, said
    assert "vector:table" in json.loads(said)["hits"][0]["contributions"]


def test_an_address_with_the_source_reads_back() -> None:
    """Names of models hold slashes and dots; a plan's text holds them all the same."""
    for name in ("intfloat/e5-small-v2", "BAAI/bge-small-en-v1.5", "./models/my-table"):
        source = f"vector:{name}"
        plan = wb.Plan.parse(f"sources=keyword,{source}").replace(
            {f"fusion.weights.{source}": 0.3, f"depth.{source}": 50, f"fusion.normalise.{source}": "minmax"}
        )
        assert wb.Plan.parse(str(plan)) == plan
        assert plan.depth(source) == 50


def test_evaluations_of_other_judgments_are_refused(corpus: wb.Corpus) -> None:
    one = corpus.evaluate(judgments(), TWO)
    with pytest.raises(UsageError, match="different judgments"):
        one.compare(corpus.evaluate(wb.demo_judgments(), TWO))
