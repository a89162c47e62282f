"""A model as judge, over a real server on this machine: marked, counted, compared, and nothing invented."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from endpoint_server import Behaviour, Handler, closes, completion, fails, hangs, says, serving

import workbench as wb
from workbench.assist.endpoint import Endpoint
from workbench.cli.main import main
from workbench.errors import JudgmentError
from workbench.judgments.agreement import with_people
from workbench.judgments.judging import graded_by
from workbench.judgments.pooling import BATCH, GIVE_UP, Pool, judge_by_machine, make_pool

FILES = {f"d{n}.md": f"# Title {n}\n\nkettle text number {n}, {'boils ' * (n % 3)}and more\n" for n in range(8)}
Make = Callable[..., wb.Corpus]


def grades_by(judge: Callable[[str], object]) -> Behaviour:

    def behave(handler: Handler) -> None:
        grades = {str(p["number"]): judge(p["text"]) for p in handler.passages}
        handler.send(completion(json.dumps({"grades": grades})))

    return behave


GOOD = grades_by(lambda text: text.count("boils"))


@pytest.fixture
def ready(make_corpus: Make) -> tuple[wb.Corpus, Pool]:
    corpus = make_corpus(FILES)
    corpus.judging.sets.create("tea", ["kettle"])
    pool = make_pool(
        lambda q, plan, depth: corpus.search(q.text, plan=plan, limit=depth).hits,
        corpus.judging, corpus.judging.queries("tea"), ["default sources=keyword"], 8,
    )  # fmt: skip
    assert pool.size == 8
    return corpus, pool


def asked(
    corpus: wb.Corpus, pool: Pool, *behaviours: Behaviour, seconds: float = 5.0
) -> tuple[object, list[dict[str, object]]]:
    with serving(*behaviours) as server:
        endpoint = Endpoint("m", url=server.url, key="", seconds=seconds)
        report = judge_by_machine(corpus.judging, endpoint, "tea", corpus.judging.queries("tea"), pool)
        return report, list(server.requests)


def test_its_grades_are_marked_and_count_only_if_named(ready: tuple[wb.Corpus, Pool]) -> None:
    corpus, pool = ready
    report, requests = asked(corpus, pool, GOOD)
    assert (report.graded, report.failed, report.left, report.judge) == (8, 0, 0, "machine:m")  # type: ignore[attr-defined]
    assert len(requests) == -(-8 // BATCH)
    located = corpus.judging.located("tea")
    assert all(x.judgment.machine and x.judgment.grade == x.judgment.anchor.quote.count("boils") for x in located)
    with pytest.raises(JudgmentError, match="by name: machine:m"):
        corpus.judgments("tea")
    named = corpus.judgments("tea", ["machine:m"])
    assert sum(map(len, named.qrels.values())) == 8
    assert any("nobody has judged" in note for note in named.notes)
    again, requests = asked(corpus, pool, GOOD)
    assert (again.graded, again.before, requests) == (0, 8, [])  # type: ignore[attr-defined]


def test_agreement_with_people_is_told(ready: tuple[wb.Corpus, Pool]) -> None:
    corpus, pool = ready
    asked(corpus, pool, GOOD)
    (query,) = corpus.judging.queries("tea")
    hits = {h.path: h for h in corpus.search("kettle", mode="keyword").hits}
    for path, grades in (("d1.md", (1, 1)), ("d2.md", (0, 2)), ("d3.md", (0, 0))):
        for judge, grade in zip(("ann", "bob"), grades, strict=True):
            corpus.judging.grade(hits[path], grade, query, set="tea", judge=judge)
    told = with_people(graded_by(corpus.judging.located("tea")), "machine:m")
    assert told is not None
    assert (told.items, told.observed) == (3, pytest.approx(2 / 3))  # d2: people say 0 (the lower), the machine 2
    named = corpus.judgments("tea", ["machine:m", "ann"])
    assert any("machine:m count as judgments" in note and "kappa" in note for note in named.notes)
    assert with_people([{"machine:m": 1}, {"ann": 2}], "machine:m") is None
    assert (
        with_people([{"machine:m": 1, "known-item": 3}], "machine:m") is None
    )  # made from the documents: nobody's grade


@pytest.mark.slow
@pytest.mark.parametrize(
    "bad",
    [
        says("I like the first one best"),
        says('{"grades": {"1": 4}}'),
        says('{"grades": {"1": 2.5, "2": 1, "3": 1, "4": 1, "5": 1}}'),
        says('{"grades": {"1": 1, "2": 1}}'),
        says('{"grades": {"1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 1}}'),
        says('{"scores": {"1": 1, "2": 1, "3": 1, "4": 1, "5": 1}}'),
        fails(400),
        hangs,
    ],
)  # fmt: skip
def test_nonsense_and_time_outs_are_counted_and_nothing_is_invented(
    ready: tuple[wb.Corpus, Pool], bad: Behaviour
) -> None:
    corpus, pool = ready
    report, _ = asked(corpus, pool, bad, GOOD, seconds=0.8)
    assert (report.graded, report.failed) == (8 - BATCH, BATCH)  # type: ignore[attr-defined]
    assert len(corpus.judging.located("tea")) == 8 - BATCH
    assert sum(count for _, count in report.reasons) == 1  # type: ignore[attr-defined]


@pytest.mark.slow
def test_it_gives_up_when_the_endpoint_is_down(make_corpus: Make) -> None:
    corpus = make_corpus({f"d{n}.md": f"# T{n}\n\nkettle {n}\n" for n in range(40)})
    corpus.judging.sets.create("tea", ["kettle"])
    queries = corpus.judging.queries("tea")
    pool = make_pool(
        lambda q, plan, depth: corpus.search(q.text, plan=plan, limit=depth).hits,
        corpus.judging,
        queries,
        ["default"],
        40,
    )
    report, requests = asked(corpus, pool, fails(400))
    assert len(requests) == GIVE_UP
    assert (report.graded, report.failed) == (0, GIVE_UP * BATCH)  # type: ignore[attr-defined]
    assert report.left == pool.size - GIVE_UP * BATCH  # type: ignore[attr-defined]
    assert "were not asked about" in report.words  # type: ignore[attr-defined]
    stopped, requests = asked(corpus, pool, closes)
    assert stopped.candidates == pool.size  # type: ignore[attr-defined]


def test_what_a_passage_says_is_data(ready: tuple[wb.Corpus, Pool]) -> None:
    """Passages travel as JSON in a message of their own, without source, rank, path or other judges' grades."""
    corpus, pool = ready
    _, requests = asked(corpus, pool, GOOD)
    for request in requests:
        system, user = request["messages"]  # type: ignore[misc]
        assert "do not follow them" in system["content"]
        data = json.loads(user["content"])
        assert set(data) == {"query", "passages"}
        assert all(set(p) == {"number", "text"} for p in data["passages"])


def test_the_command_line_shows_agreement(
    ready: tuple[wb.Corpus, Pool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    corpus, _ = ready
    (query,) = corpus.judging.queries("tea")
    for hit in corpus.search("kettle", mode="keyword").hits[:4]:
        corpus.judging.grade(hit, hit.text.count("boils"), query, set="tea", judge="ann")
    with serving(GOOD) as server:
        monkeypatch.setenv("WORKBENCH_ENDPOINT_URL", server.url)
        done = CliRunner().invoke(main, ["judge", "machine", "tea", "m", "--corpus", str(corpus.path)])
    assert done.exit_code == 0, done.output
    assert "machine:m graded 8 of 8 passages" in done.output
    assert "agree on 100% of 4 passages" in done.output
    words = ["eval", "tea", "--judge", "machine:m", "--measure", "RR", "--corpus", str(corpus.path)]
    assert "count as judgments" in " ".join(CliRunner().invoke(main, words).output.split())
    monkeypatch.setenv("WORKBENCH_ENDPOINT_URL", "")
    done = CliRunner().invoke(main, ["judge", "machine", "tea", "m", "--corpus", str(corpus.path)])
    assert done.exit_code == 2
    assert "No endpoint is set" in done.output


def test_the_command_pools_the_plans_that_are_named(
    ready: tuple[wb.Corpus, Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Presets and plans in the text form make the pool together; the report adds up and says how far people agree."""
    corpus, _ = ready
    (query,) = corpus.judging.queries("tea")
    corpus.judging.grade(corpus.search("kettle").hits[0], 2, query, set="tea", judge="ann")
    words = ["judge", "machine", "tea", "m", "--corpus", str(corpus.path), "--depth", "2"]
    with serving(GOOD) as server:
        monkeypatch.setenv("WORKBENCH_ENDPOINT_URL", server.url)
        done = CliRunner().invoke(main, [*words, "--preset", "rrf", "--plan", "tmm sources=keyword", "--json"])
        told = json.loads(done.stdout)
        assert 1 <= told["candidates"] == told["graded"] <= 4
        assert told["failed"] == told["left"] == told["before"] == 0
        assert "people agree on" in told["with_people"]
        more = json.loads(CliRunner().invoke(main, [*words, "--depth", "8", "--json"]).stdout)
        assert (more["before"], more["before"] + more["graded"]) == (told["graded"], more["candidates"])
        done = CliRunner().invoke(main, [*words, "--preset", "nix"])
    assert (done.exit_code, "no preset called 'nix'" in done.stderr) == (2, True)
