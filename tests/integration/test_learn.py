"""`workbench learn`: a ranking from judgments, told by held-out queries, saved, and used by a plan."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from corpus_files import write_files

import workbench as wb
from workbench.assist.learned import LearnedRanker
from workbench.cli.main import main
from workbench.evaluate.learning import learn
from workbench.judgments.qrels import JudgedPassage, Judgments, load_judgments
from workbench.records import Span

QUERIES = 20


def run(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


def judged(folder: Path, queries: int) -> Path:
    """Judgments by which the longer of two documents on a topic is the right one: length is what there is to learn."""
    names = [f"topic{n}" for n in range(queries)]
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": n, "text": f"{n} storms"}) + "\n" for n in names))
    rows = "".join(f"{n}\t{n}/long.md\t1\n{n}\t{n}/short.md\t0\n" for n in names)
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
    return folder


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus of a short and a long document a topic, and judgments."""
    folder = tmp_path_factory.mktemp("learn")
    files = {}
    for n in range(QUERIES):
        files[f"topic{n}/short.md"] = f"topic{n} storms topic{n}"
        files[f"topic{n}/long.md"] = f"topic{n} storms and " + f"roofs and rain by the road {n} " * 12
    wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing")
    (folder / "judged").mkdir()
    judged(folder / "judged", QUERIES)
    return folder


@pytest.fixture
def corpus(at: Path) -> Iterator[wb.Corpus]:
    with wb.open_corpus(at / "corpus") as opened:
        yield opened


def learned_from(at: Path, *more: object) -> Result:
    return run("learn", at / "judged", "--corpus", at / "corpus", "--folds", "2", *more)


def test_a_rule_is_learned_saved_and_used(at: Path) -> None:
    """The longer document comes first on queries that were held out, and in a search that uses the file with its plan."""
    file = at / "ranking.txt"
    told = json.loads(learned_from(at, "--output", file, "--json").output)
    figures = {m["measure"]: m["mean"] for m in told["learned"]}
    plain = {m["measure"]: m["mean"] for m in told["base"]}
    assert told["plan"] == "tmm"
    assert told["queries"] == QUERIES
    assert told["better"]
    assert figures["RR"] > plain["RR"]
    assert told["trees"] > 0
    assert told["digest"] == LearnedRanker.load(file).digest
    found = run(
        "search", "topic3 storms", "--preset", "tmm", "--set", f"rerank.model=learned:{file}", "--corpus", at / "corpus", "--json"
    )  # fmt: skip
    hits = json.loads(found.output)["hits"]
    assert hits[0]["path"] == "topic3/long.md"
    assert "rerank" in hits[0]["scores"]


def test_the_file_says_where_it_comes_from(at: Path) -> None:
    """Plan, judgments and corpus are named with their digests; the same run gives the same bytes."""
    one, two = at / "one.txt", at / "two.txt"
    for file in (one, two):
        assert learned_from(at, "--output", file).exit_code == 0
    assert one.read_bytes() == two.read_bytes()
    origin = LearnedRanker.load(one).origin
    assert origin["plan"] == "tmm"
    assert origin["judgments_digest"] == load_judgments(at / "judged").digest
    with wb.open_corpus(at / "corpus") as corpus:
        assert origin["corpus_digest"] == corpus.info()["digest"]


def test_the_table_says_both_figures_and_the_verdict(at: Path) -> None:
    """The plan's own order, the held-out one, the difference in words, and what to do."""
    printed = " ".join(learned_from(at).output.split())
    for words in ("20 judged queries", "learned is better than tmm", "nDCG@10", "use it as rerank.model=learned:FILE"):
        assert words in printed


def test_only_the_top_changes_places(corpus: wb.Corpus, at: Path) -> None:
    """Held-out figures are those of a search: beyond `rerank.top` the plan's order stays."""
    made = learn(corpus.search, load_judgments(at / "judged"), "tmm rerank.top=25", folds=2)
    for query_id, plain in made.base.run.rankings.items():
        own = made.learned.run.rankings[query_id]
        assert sorted(own[:25]) == sorted(plain[:25])
        assert own[25:] == plain[25:]
    assert made.base.run.rankings != made.learned.run.rankings


def test_judgments_of_which_nothing_can_be_learned_leave_the_fused_order(corpus: wb.Corpus, at: Path) -> None:
    """Where the plan is right already no tree is grown, and the verdict says that nothing changed."""
    loaded = load_judgments(at / "judged")
    turned = {i: {key: 1 - grade for key, grade in grades.items()} for i, grades in loaded.qrels.items()}
    made = learn(corpus.search, Judgments(loaded.topics, turned), "default", folds=2)
    assert made.training.rounds == 0
    assert made.base.run.rankings == made.learned.run.rankings
    assert "is the same for" in made.compare().verdict


def test_judged_passages_count_for_their_documents(corpus: wb.Corpus, at: Path) -> None:
    """A document has the highest grade of its passages, and the file names the judgments as they were given."""
    loaded = load_judgments(at / "judged")
    qrels = {i: {f"{key}#0-9": grade for key, grade in grades.items()} for i, grades in loaded.qrels.items()}
    passages = {
        i: tuple(JudgedPassage(f"{key}#0-9", "", key, Span(0, 9)) for key in grades)
        for i, grades in loaded.qrels.items()
    }
    given = Judgments(loaded.topics, qrels, passages=passages)
    made = learn(corpus.search, given, folds=2)
    plain = learn(corpus.search, loaded, folds=2)
    assert made.learned.mean("RR") == plain.learned.mean("RR")
    assert made.training.ranker.origin["judgments_digest"] == given.digest


def test_measuring_on_what_it_learned_from_is_told(at: Path) -> None:
    """`eval` of a learned plan on its own judgments warns; on others it does not."""
    file = at / "seen.txt"
    learned_from(at, "--output", file)
    plan = f"tmm rerank.model=learned:{file}"
    said = json.loads(run("eval", at / "judged", "--plan", plan, "--corpus", at / "corpus", "--json").output)
    assert "was trained on these judgments" in said[0]["warnings"][0]
    (at / "fewer").mkdir()
    other = judged(at / "fewer", 3)
    said = json.loads(run("eval", other, "--plan", plan, "--corpus", at / "corpus", "--json").output)
    assert "trained on" not in " ".join(said[0]["warnings"])


def test_a_file_of_other_features_leaves_the_fused_order(at: Path) -> None:
    """A plan with other sources gives other features: the search says what is missing and goes on."""
    file = at / "other.txt"
    learned_from(at, "--output", file)
    found = run("search", "topic3 storms", "--preset", "passages", "--set", f"rerank.model=learned:{file}",
                "--corpus", at / "corpus")  # fmt: skip
    said = " ".join(found.stderr.split())
    assert "it lacks keyword." in said
    assert "The order is the fused one" in said


def test_a_broken_file_is_named(at: Path) -> None:
    """A changed byte is noticed before anything is read from it; `eval` refuses, `search` goes on with a warning."""
    file = at / "broken.txt"
    learned_from(at, "--output", file)
    file.write_text(file.read_text().replace("tmm", "tmn"))
    plan = f"tmm rerank.model=learned:{file}"
    done = run("eval", at / "judged", "--plan", plan, "--corpus", at / "corpus")
    assert done.exit_code == 2
    assert "is damaged. Copy it again, or train it again" in done.stderr
    found = run("search", "topic3", "--plan", plan, "--corpus", at / "corpus")
    assert found.exit_code == 0
    assert "is damaged" in " ".join(found.stderr.split())


def test_too_few_judged_queries_are_told(at: Path, tmp_path: Path) -> None:
    """How many there are and how many are needed."""
    done = run("learn", judged(tmp_path, 4), "--corpus", at / "corpus")
    assert done.exit_code == 2
    assert "Only 4 queries have both better and worse candidates, and 15 are needed" in done.stderr


def test_without_lightgbm_the_remedy_is_told_before_any_search(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that brings it is named."""
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.setattr(wb.Corpus, "search", lambda *a, **k: pytest.fail("searched"))
    done = learned_from(at)
    assert done.exit_code == 2
    assert "pip install 'hybrid-retrieval-workbench[learn]'" in done.stderr


def test_judgments_of_another_corpus_are_told(at: Path, tmp_path: Path) -> None:
    """Where no judged document is found there is nothing to learn from."""
    judged(tmp_path, QUERIES)
    text = (tmp_path / "qrels.tsv").read_text().replace(".md", ".txt")
    (tmp_path / "qrels.tsv").write_text(text)
    done = run("learn", tmp_path, "--corpus", at / "corpus")
    assert done.exit_code == 2
    assert "Only 0 queries" in done.stderr
