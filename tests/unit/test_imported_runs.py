"""Runs of other programs: read whole or refused by line, and measured as the plan that they were exported from."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main
from workbench.errors import JudgmentError
from workbench.evaluate.run import Run, as_judged, load_run
from workbench.judgments.exchange import import_judgments
from workbench.judgments.known_items import make_known_item_set
from workbench.judgments.qrels import Judgments, Topic, load_judgments

Make = Callable[..., wb.Corpus]
WORDS = ("gauge", "bridge", "keeper", "valley", "storm", "evening", "river", "stone")
FILES = {
    f"notes {n}.md": f"# Report {n} on the {word}\n\nThe {word} of number{n} rose while keeper{n} watched it quietly.\n"
    for n, word in enumerate(WORDS)
}


def test_the_score_decides_and_the_rank_settles_ties(tmp_path: Path) -> None:
    """The greatest score first, equal ones by rank; names with spaces, a BOM and lines of any end are read."""
    file = tmp_path / "other.run"
    file.write_bytes(
        b"\xef\xbb\xbfq1 Q0 b 2 7.5 bm25\r\nq1 Q0 a c.md 1 7.5 bm25\r\n\r\nq1 Q0 d 9 1e1 bm25\r\nq2 Q0 a 1 -3 bm25\r\n"
    )
    run = load_run(file)
    assert run.name == "bm25"
    assert run.rankings == {"q1": ("d", "a c.md", "b"), "q2": ("a",)}
    assert load_run(file, name="theirs").name == "theirs"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q1 Q0 a 2 nan x", "score 'nan'"),
        ("q1 Q0 a first 2 x", "rank 'first'"),
        ("q1 Q0 a 1_000 2 x", "rank '1_000'"),
        ("q1 Q0 a 2 ٣ x", "score '٣'"),
        ("q1 Q0 a 2 infinity x", "score 'infinity'"),
        ("q1 Q0 a 2 1e999 x", "score '1e999'"),
        ("q1 0 a 1", "fewer than 6 fields"),
        ("q 1 Q0 a 1 2 x", "the query's id has a space"),
        ("q\u00a01 b Q0 a 1 2 x", "the query's id has a space"),
        ("q1 Q0 z 3 1 x", "'z' in line 1 already"),
    ],
)
def test_a_line_that_is_none_refuses_the_whole(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "a.run"
    file.write_text(f"q1 Q0 z 1 9 x\n{line}\n", encoding="utf-8")
    with pytest.raises(JudgmentError, match=r"a\.run, line 2") as caught:
        load_run(file)
    assert said in caught.value.message


def test_an_empty_run_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("\n")
    with pytest.raises(JudgmentError, match="holds no line of a run"):
        load_run(tmp_path / "a.run")


def test_names_are_those_of_the_judgments(tmp_path: Path) -> None:
    """Spaces as `%20`, a name as it is, other names that are told; twice the same counts once; foreign queries are counted."""
    judgments = Judgments({"q 1": Topic("q 1", "x")}, {"q 1": {"a b.md": 1, "c%20d": 1}}, "set")
    (tmp_path / "a.run").write_text(
        "q%201 Q0 own-7 1 9 x\nq%201 Q0 a%20b.md 2 8 x\nq%201 Q0 c%20d 3 7 x\nq%201 Q0 e 4 6 x\nq9 Q0 a 1 1 x\n"
    )
    run = as_judged(load_run(tmp_path / "a.run"), judgments, {"own-7": "a b.md"})
    assert run.rankings == {"q 1": ("a b.md", "c%20d", "e")}
    assert run.warnings == ("1 of 2 queries of the run are not judged and were left out",)


@pytest.mark.slow
def test_a_run_may_name_documents_otherwise_than_the_judgments(make_corpus: Make) -> None:
    """Whichever of own id, path and document id judgments and run use: the document is the same."""
    corpus = make_corpus({"a b.md": "# One\n\nA stone.\n", "more.jsonl": '{"id": "r1", "text": "the river"}\n'})
    names = {
        hit.path: tuple(filter(None, (hit.path, hit.document_id, hit.metadata.get("record_id"))))
        for hit in corpus.search("stone river", mode="keyword", plan="default keyword.operator=any").hits
    }
    assert sorted(map(len, names.values())) == [2, 3]
    for group in names.values():
        for key, other in itertools.product(group, group):
            judgments = Judgments({"q": Topic("q", "x")}, {"q": {key: 1}}, "set")
            done = corpus.evaluate_run(Run({"q": ("elsewhere", other)}, "theirs"), judgments, "RR")
            assert (key, other, done.mean("RR")) == (key, other, 0.5)


@pytest.mark.slow
def test_an_exported_run_has_the_figures_of_its_plan(make_corpus: Make, tmp_path: Path) -> None:
    """Of documents, of passages, and of records that are known by their own id: no difference, and a verdict that says so."""
    records = "".join(json.dumps({"id": f"r{n}", "text": text}) + "\n" for n, text in enumerate(FILES.values()))
    corpus = make_corpus(FILES | {"more.jsonl": records})
    make_known_item_set(corpus.judging, corpus.engine, "known", 12)
    at = ["--corpus", str(corpus.path)]
    target = str(tmp_path / "their run.txt")
    export = ["run", "export", "known", target, "--depth", "50", "--name", "theirs", *at]
    assert CliRunner().invoke(main, export).exit_code == 0
    words = ["eval", "known", "--with-run", target, "--depth", "50", "--plan", "default limit=50", "--json", *at]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    plan, run = json.loads(done.stdout)
    assert run["plan"] == "theirs"
    assert run["measures"] == plan["measures"]
    assert plan["measures"][0]["mean"] > 0
    assert run["latency_ms"] == {"p50": None, "p95": None}
    assert run["against"]["verdict"].startswith("nDCG@10 is the same for theirs and default")
    assert "theirs" in CliRunner().invoke(main, [w for w in words if w != "--json"]).output


@pytest.mark.slow
def test_answers_of_nothing_are_no_nan(make_corpus: Make, tmp_path: Path) -> None:
    """Where no query returns anything there is no share of judged documents; JSON says null."""
    corpus = make_corpus(FILES)
    make_known_item_set(corpus.judging, corpus.engine, "known", 4)
    words = ["eval", "known", "--filter", "path = 'none'", "--corpus", str(corpus.path)]
    done = CliRunner().invoke(main, [*words, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["judged@10"] is None
    assert "nan" not in CliRunner().invoke(main, words).output


@pytest.mark.slow
def test_ids_stay_as_they_are_written_and_are_found_in_either_form(make_corpus: Make, tmp_path: Path) -> None:
    """Decomposed letters: run and query set keep them, and measure the same query and the same document."""
    apart = "cafe\u0301"
    corpus = make_corpus({f"{apart}.md": "# One\n\nA stone.\n"})
    (tmp_path / "a.run").write_text(f"{apart} Q0 {apart}.md 1 2 {apart}\n", encoding="utf-8")
    run = load_run(tmp_path / "a.run")
    assert (dict(run.rankings), run.name) == ({apart: (f"{apart}.md",)}, apart)
    (tmp_path / "j.csv").write_text(f"query_id,query,document,grade\n{apart},stone,{apart}.md,1\n", encoding="utf-8")
    judgments = load_judgments(tmp_path / "j.csv")
    import_judgments(corpus.judging, tmp_path / "j.csv", "s")
    assert (*judgments.query_ids, corpus.judging.queries("s")[0].query_id) == (apart, apart)
    for query_id in (apart, "caf\u00e9"):
        judged = Judgments({query_id: Topic(query_id, "x")}, {query_id: judgments.qrels[apart]})
        assert corpus.evaluate_run(run, judged, "RR").mean("RR") == 1.0
    both = Run({apart: ("other",), "caf\u00e9": (f"{apart}.md",)}, "both")
    assert as_judged(both, judged).rankings == {"caf\u00e9": ("caf\u00e9.md",)}
