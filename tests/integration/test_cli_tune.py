"""`workbench tune`, `check` and `threshold` on the command line, and passages that judge two ways of cutting."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from corpus_files import write_judged

import workbench as wb
from workbench.cli.main import main
from workbench.plan.plan import Plan


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of twenty files and judgments of twelve queries."""
    return write_judged(tmp_path_factory.mktemp("cli"), 12)


def run(place: Path, *arguments: str, judged: Path | None = None) -> Result:
    words = [arguments[0], str(judged or place / "judged.csv"), "--corpus", str(place / "corpus"), *arguments[1:]]
    return CliRunner().invoke(main, words, catch_exceptions=False, env={"COLUMNS": "80"})


def test_tune_prints_a_verdict_and_writes_the_plan(place, tmp_path):
    out = tmp_path / "plan.yaml"
    words = "--grid fusion.k=1,60 --grid fusion.weights.vector=0,1 --curve fusion.k --out".split()
    done = run(place, "tune", *words, str(out))
    assert done.exit_code == 0, done.output
    assert "held out over 5 folds of 12 queries" in " ".join(done.output.split())
    assert "over fusion.k" in done.output
    assert Plan.from_yaml(out.read_text()).preset == "default"
    done = run(place, "tune", "--grid", "fusion.k=1,60", "--json", "--curve", "fusion.k")
    assert done.exit_code == 0
    data = json.loads(done.output)
    assert "fusion.k has no effect with fusion.method convex; add fusion.method=rrf" in data["warnings"]
    assert data["plans"] == 1
    assert len({point["mean"] for point in data["curves"]["fusion.k"]}) == 1


def test_figures_that_are_kept_are_the_history_of_a_check_and_a_report_is_one_page(place, tmp_path):
    report = tmp_path / "report.html"
    done = run(place, "eval", "--plan", "default", "--plan", "rrf", "--keep", "--html", str(report))
    assert done.exit_code == 0, done.output
    assert "Leaderboard on" in report.read_text(encoding="utf-8")
    checked = run(place, "check", "--history", "--json")
    history = json.loads(checked.output)["history"]
    assert checked.exit_code == 0
    last = [(row["kind"], row["plan"], row["measure"]) for row in history[-2:]]
    assert last == [("check", "default", "nDCG@10"), ("check", "default", "R@100")]
    assert {row["plan"] for row in history if row["kind"] == "evaluation"} == {"default", "rrf"}
    refused = run(place, "eval", "--against", str(place / "corpus"), "--keep")
    assert (refused.exit_code, "--html and --keep are of one corpus" in refused.stderr) == (2, True)


def test_check_against_a_baseline_or_a_floor(place, tmp_path):
    saved = tmp_path / "good.json"
    assert run(place, "check", "--save", str(saved)).exit_code == 0
    same = run(place, "check", "--baseline", str(saved))
    assert (same.exit_code, "passed" in same.output) == (0, True), same.output
    worse = run(
        place, "check", "--baseline", str(saved), "--json", "--set", "sources=vector", "--set", "vector.threshold=0"
    )
    data = json.loads(worse.output)
    assert worse.exit_code == 1
    assert not data["passed"]
    assert data["fallen"][0]["before"] > data["fallen"][0]["after"]
    assert run(place, "check", "--baseline", str(saved), "--tolerance", "1", "--set", "sources=vector").exit_code == 0
    before = saved.read_bytes()
    failing = run(place, "check", "--baseline", str(saved), "--save", str(saved), "--filter", "path = 'none.md'")
    assert failing.exit_code == 1
    assert "was not replaced" in failing.output
    assert saved.read_bytes() == before
    passing = run(place, "check", "--baseline", str(saved), "--save", str(saved), "--measure", "RR")
    assert passing.exit_code == 0
    assert "RR" in json.loads(saved.read_text())["measures"]
    assert run(place, "check", "--min", "R@100=0.5").exit_code == 0
    low = run(place, "check", "--min", "nDCG@10=1.01")
    assert low.exit_code == 1
    assert "below the minimum of 1.01" in low.output
    assert run(place, "check").exit_code == 2
    assert run(place, "check", "--min", "nDCG@10").exit_code == 2


def test_check_compares_the_queries_that_are_judged_as_they_were(place, tmp_path):
    saved, other = tmp_path / "good.json", tmp_path / "judged.csv"
    assert run(place, "check", "--save", str(saved)).exit_code == 0
    lines = (place / "judged.csv").read_text().splitlines()
    other.write_text("\n".join([*lines[:3], lines[3].replace(",1", ",2"), *lines[5:]]) + "\n")
    done = run(place, "check", "--baseline", str(saved), "--json", judged=other)
    data = json.loads(done.stdout)
    assert (done.exit_code, data["not_compared"]) == (0, ["q2", "q3"])
    assert any(
        "2 of the baseline's 12 queries were not compared" in w and "q2 (word2 alpha)" in w for w in data["warnings"]
    )
    old = {name: value for name, value in json.loads(saved.read_text()).items() if name != "judged"}
    saved.write_text(json.dumps(old))
    assert run(place, "check", "--baseline", str(saved)).exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check", "--min", "nDCG@10=nan"), "is not MEASURE=VALUE"),
        (("check", "--min", "nDCG@10=0.9", "--min", "ndcg@10=0.1"), "names nDCG@10 twice"),
        (("check", "--min", "nix=0.9"), "no measure called 'nix'"),
        (("tune", "--grid", "fusion.q=1"), "no plan field called"),
        (("tune", "--grid", "fusion.k=1,60", "--curve", "fusion.alpha"), "it does not vary"),
        (("tune", "--grid", "fusion.k=1,60", "--seed", "-1"), "Invalid value for '--seed'"),
    ],
)
def test_what_cannot_be_is_refused_before_the_work(place, words, said, monkeypatch):
    """A minimum that nothing is below, two minimums of one measure, a curve over what does not vary: exit 2 at once."""
    monkeypatch.setattr("workbench.cli.options.Given.open", lambda *_, **__: pytest.fail("the corpus was opened"))
    done = run(place, *words)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "change",
    [
        {"queries": {}}, {"queries": None}, {"measures": []}, {"measures": ["nix"]}, {"format": 9}, {"queries": {"q0": [0.5]}},
        {"queries": {"q0": ["x", "y"]}}, {"queries": {"q0": [float("nan")] * 2}}, {"queries": {"q0": [0.5, 0.5]}},
    ],
    ids=str,
)  # fmt: skip
def test_a_baseline_that_was_changed_is_refused(place, tmp_path, change):
    """A figure, a query or a measure that is missing or no number would pass whatever the plan does."""
    saved = tmp_path / "base.json"
    assert run(place, "check", "--save", str(saved)).exit_code == 0
    saved.write_text(json.dumps({**json.loads(saved.read_text()), **change}))
    done = run(place, "check", "--baseline", str(saved))
    assert done.exit_code == 2
    assert "The baseline" in done.stderr
    assert "Make one with: workbench check" in done.stderr


@pytest.mark.slow
def test_check_warns_of_figures_that_say_little(tmp_path):
    few = write_judged(tmp_path, 4)
    saved = tmp_path / "base.json"
    assert run(few, "check", "--save", str(saved)).exit_code == 0
    before = json.loads(saved.read_text())
    saved.write_text(json.dumps({**before, "queries": {i: [2.0, 2.0] for i in before["queries"]}}))
    done = run(few, "check", "--baseline", str(saved), "--json")
    found = json.loads(done.stdout)
    assert found["fallen"]
    assert found["passed"]
    assert done.exit_code == 0
    assert any("too few queries for any test" in warning for warning in found["warnings"])
    (tmp_path / "other.csv").write_text("query_id,query,document,grade\n1,rain,elsewhere.md,1\n")
    done = run(few, "check", "--min", "nDCG@10=0", judged=tmp_path / "other.csv")
    assert "do they belong to this corpus?" in " ".join(done.output.split())


def test_a_threshold_loses_no_more_than_was_allowed(place):
    done = run(place, "threshold", "--lose", "0", "--lose", "25", "--json")
    rows = json.loads(done.output)
    assert [(r["source"], r["lose"]) for r in rows] == [
        (source, lose) for source in ("keyword", "vector", "fused") for lose in (0, 25)
    ]
    assert all(r["relevant"] + r["not_found"] == 12 for r in rows if r["source"] != "fused")
    assert all(r["loses"] <= r["lose"] for r in rows)
    assert all(a["drops"] <= b["drops"] for a, b in zip(rows[::2], rows[1::2], strict=True))
    done = run(place, "threshold")
    assert done.exit_code == 0
    assert "vector: angular distance" in done.output
    said = " ".join(done.output.split())
    for field in ("vector.threshold", "threshold.keyword", "fusion.threshold"):
        assert f"--set {field}=VALUE" in said
    refused = run(place, "threshold", "--source", "grep")
    assert refused.exit_code == 2
    assert "keyword, vector, fused" in refused.output


@pytest.mark.parametrize("source", ["keyword", "fused"])
@pytest.mark.parametrize("plan", ["default", "tmm", "default vector.threshold=0.3"])
def test_a_threshold_of_scores_loses_in_a_search_what_it_says(place, source, plan):
    """Of eight relevant files as many are lost in eight searches as the row says, of BM25 and of fused scores."""
    row = json.loads(run(place, "threshold", "--lose", "40", "--source", source, "--plan", plan, "--json").output)[0]
    assert row["now"] == "off"
    cut = wb.Plan.parse(plan).replace({row["field"]: row["threshold"], "limit": 100})
    with wb.open_corpus(place / "corpus") as corpus:
        results = {n: corpus.search(f"word{n} alpha", plan=cut) for n in range(12)}
    if source == "keyword":
        kept = sum(f"f{n:02}.md" in {e.path for e in r.rankings["keyword"].entries} for n, r in results.items())
    else:
        kept = sum(f"f{n:02}.md" in {h.path for h in r.hits} for n, r in results.items())
    assert row["relevant"] - kept == round(row["loses"] * row["relevant"] / 100)


def test_the_table_of_tune_fits_a_terminal(place):
    grid = ("--grid", "keyword.k1=0.6,1.2", "--grid", "keyword.b=0.2,0.8", "--folds", "0", "--plan", "rrf")
    done = run(place, "tune", *grid)
    head = next(line for line in done.output.splitlines() if "p (Holm)" in line)
    assert "changes" in head
    many = "--grid fusion.weights.vector=1,2 --grid fusion.normalise.vector=tmm,minmax --grid fusion.alpha=0,1".split()
    wide = run(place, "tune", *grid, *many, "--grid", "fusion.method=rrf,convex")
    for output in (done.output, wide.output):
        assert "…" not in output
    assert "changes" in wide.output
    assert "keyword.k1=1.2" in wide.output


TEXT = "\n\n".join(
    f"# Part {n}\n\nThe {animal} sleeps in its {home}. It asks for {food} when the sun comes up, and for more at night."
    for n, (animal, home, food) in enumerate(
        [("cat", "basket", "fish"), ("dog", "kennel", "bones"), ("horse", "stable", "hay"), ("mouse", "wall", "cheese")]
    )
)
ASKED = {"q1": ("who asks for hay", "hay when the sun"), "q2": ("where is the mouse", "mouse sleeps in its wall")}


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """One document as a whole and in parts, and a file that judges two passages of it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pets.md").write_text(TEXT)
    (tmp_path / "docs" / "other.md").write_text("# Other\n\nNothing to see, and no animal asks for anything here.\n")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    wb.index([tmp_path / "docs"], corpus=whole, encoder="hashing", one_chunk_per_document=True, workers=0)
    monkeypatch.setenv("WORKBENCH_CHUNK_TOKENS", "30")
    wb.index([tmp_path / "docs"], corpus=parts, encoder="hashing", workers=0)
    with (tmp_path / "passages.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["query_id", "query", "document", "start", "end", "quote", "grade"])
        for query_id, (query, quote) in ASKED.items():
            start = TEXT.index(quote)
            rows.writerow([query_id, query, "pets.md", start, start + len(quote), quote, 1])
    return whole, parts, tmp_path / "passages.csv"


def test_the_same_passages_judge_both_cuts(corpora):
    whole, parts, passages = corpora
    with wb.open_corpus(whole) as one, wb.open_corpus(parts) as other:
        assert (one.info()["records"], other.info()["records"] > 4) == (2, True)
        judgments = one.judgments(one.import_judgments(passages))
        assert other.judgments(other.import_judgments(passages)).digest == judgments.digest
        evaluations = [
            c.evaluate(judgments, "default vector.threshold=off", ["nDCG@10", "R@10"]).named(name)
            for c, name in ((one, "whole"), (other, "parts"))
        ]
    for evaluation in evaluations:
        assert evaluation.mean("R@10") == 1
    difference = evaluations[0].compare(evaluations[1])
    assert "whole" in difference.verdict
    assert "parts" in difference.verdict
    assert difference.low <= difference.difference <= difference.high
    whole, parts, passages = corpora
    with wb.open_corpus(whole) as opened:
        opened.import_judgments(passages, "passages")
    words = ["eval", "passages", "--corpus", str(whole), "--against", str(parts), "--measure", "R@10", "--json"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    first, second = json.loads(result.output)
    assert (first["plan"], second["plan"]) == (f"{whole}: default", f"{parts}: default")
    assert second["measures"][0]["mean"] == first["measures"][0]["mean"] == 1
    assert str(parts) in second["against"]["verdict"]
