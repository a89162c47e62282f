"""Judgments: found again after edits and other chunking, undone, shared, and seen only with their documents."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from corpus_files import write_files
from endpoint_server import Behaviour, Handler, closes, completion, fails, hangs, says, serving

import workbench as wb
from workbench.assist.endpoint import Endpoint
from workbench.cli.main import main
from workbench.errors import JudgmentError, UsageError
from workbench.evaluate.run import Named, passage_keys
from workbench.judgments.agreement import with_people
from workbench.judgments.judging import graded_by
from workbench.judgments.known_items import KINDS, make_known_item_set, make_known_items
from workbench.judgments.log import Anchor, find_again
from workbench.judgments.pooling import BATCH, GIVE_UP, Pool, judge_by_machine, make_pool
from workbench.judgments.qrels import JudgedPassage
from workbench.judgments.query_sets import Query
from workbench.records import Span

Make = Callable[..., wb.Corpus]
PARTS = [
    f"## Part {name}\n\n"
    + " ".join(f"{name}{n} {word}" for n, word in enumerate(["kettle", "boils", "water"] * 12))
    + "\n"
    for name in ("alpha", "beta", "gamma")
]
TEXT = "# Tea\n\n" + "\n".join(PARTS)
FILES = {"tea.md": TEXT, "coffee.md": "# Coffee\n\nGrind the beans, then pour water.\n"}


def again(corpus: wb.Corpus, files: dict[str, str], **options: object) -> wb.Corpus:
    source = corpus.path.parent / corpus.path.name.replace("corpus", "files")
    for name, text in files.items():
        (source / name).write_text(text, encoding="utf-8")
    wb.index([source], corpus=corpus.path, encoder="hashing", **options)
    corpus.refresh()
    return corpus


def beta(corpus: wb.Corpus) -> wb.Hit:
    return corpus.search("beta3", mode="keyword").hits[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three four", Span(4, 13)),
        ("new start. one two three", Span(15, 24)),
        ("two three then two three", Span(0, 9)),
        ("0123456 two three, or two three", Span(8, 17)),
        ("one two\n   three", Span(4, 16)),
        ("two and three", None),
        ("", None),
    ],
)
def test_a_quote_is_found_again(text: str, expected: Span | None) -> None:
    assert find_again(text, Anchor("a", start=4, end=13, quote="two three")) == expected


@pytest.mark.slow
def test_a_judgment_survives_an_edit_and_is_stale_when_its_text_is_gone(make_corpus: Make) -> None:
    corpus = make_corpus(FILES)
    given = corpus.judging.grade(beta(corpus), 3, "when does beta boil")
    again(corpus, {"tea.md": "Some new words first.\n\n" + TEXT})
    (now,) = corpus.judging.located("search")
    assert (now.moved, now.stale) == (True, False)
    assert corpus.read_file("tea.md")[now.span.start : now.span.end] == given.anchor.quote  # type: ignore[union-attr]
    assert corpus.judging.grades("when does beta boil", [beta(corpus)])[beta(corpus).chunk_id].grade == 3
    again(corpus, {"tea.md": "# Tea\n\nnothing of it is left, but coffee\n"})
    assert corpus.judging.located("search")[0].stale
    with pytest.raises(JudgmentError, match="not in the corpus now"):
        corpus.judgments("search")


def test_a_judgment_survives_other_chunking(make_corpus: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = make_corpus(FILES)
    corpus.judging.grade(beta(corpus), 2, "beta boils")
    whole = beta(corpus)
    before = corpus.evaluate(corpus.judgments("search"), "default", ["RR", "R@10"])
    monkeypatch.setenv("WORKBENCH_CHUNK_TOKENS", "40")
    again(corpus, {"tea.md": TEXT + "\n"})
    parts = [h for h in corpus.search("beta", mode="keyword", limit=50).hits if "beta" in h.text]
    assert len(parts) > 1
    assert max(len(p.text) for p in parts) < len(whole.text)
    graded = corpus.judging.grades("beta boils", parts)
    assert {graded[p.chunk_id].grade for p in parts if p.chunk_id in graded} == {2}
    assert len(graded) == len(parts)
    after = corpus.evaluate(corpus.judgments("search"), "default", ["RR", "R@10"])
    assert after.judgments.digest == before.judgments.digest
    assert after.mean("RR") == before.mean("RR") == 1.0


def test_each_passage_is_credited_once_at_its_best_rank() -> None:
    passages = (JudgedPassage("p", "d", "a.md", Span(0, 90)), JudgedPassage("w", "e", "b.md"))
    spans = [("d", 200, 230), ("d", 0, 30), ("e", 0, 10), ("d", 30, 60), ("e", 10, 20), ("d", 60, 90)]
    hits = [Named(d, "a.md" if d == "d" else "b.md", Span(s, e)) for d, s, e in spans]
    assert passage_keys(hits, passages) == ("a.md#200-230", "p", "w")


def test_undo_takes_back_one_after_the_other(make_corpus: Make) -> None:
    judging = make_corpus(FILES).judging
    hit = judging.records.rows([0])[0].chunk.chunk_id
    judging.sets.create("tea", ["hot"])
    (query,) = judging.queries("tea")
    for grade in (0, 1, 3):
        judging.grade(hit, grade, query, set="tea", judge="ann")
    judging.grade(hit, 2, query, set="tea", judge="bob", note="close")
    grades = [3]
    while judging.undo("tea", "ann") is not None:
        grades.append(next((x.judgment.grade for x in judging.located("tea") if x.judgment.judge == "ann"), -1))
    assert grades == [3, 1, 0, -1]
    assert [(x.judgment.judge, x.judgment.note) for x in judging.located("tea")] == [("bob", "close")]


def test_a_query_leaves_its_set_with_its_judgments_and_comes_back_with_them(make_corpus: Make) -> None:
    """Added again it has none, and what it had stays away; what was undone before stays undone."""
    judging = make_corpus(FILES).judging
    hit = judging.records.rows([0])[0].chunk.chunk_id
    judging.sets.create("tea", ["hot", "cold", "iced"])
    cold = judging.queries("tea")[1]
    for grade in (1, 2):
        judging.grade(hit, grade, cold, set="tea", judge="ann")
    judging.undo("tea", "ann")
    back = judging.log.remove_queries("tea", [cold.query_id])
    assert [q.text for q in judging.queries("tea")] == ["hot", "iced"]
    assert judging.located("tea") == ()
    assert judging.sets.add("tea", ["warm"]) == 1
    back()
    assert [q.text for q in judging.queries("tea")][:2] == ["hot", "cold"]
    assert [x.judgment.grade for x in judging.located("tea")] == [1]
    judging.log.remove_queries("tea", [cold.query_id])
    judging.sets.add("tea", ["cold"])
    assert judging.located("tea") == ()
    with pytest.raises(JudgmentError, match="does not have all of these"):
        judging.log.remove_queries("tea", ["q9"])


def test_what_a_removal_leaves_is_counted_and_named_again(make_corpus: Make) -> None:
    """Whole documents judged, once the only judged passage is gone; another stamp, though as many queries are there; an id that
    another query has by now is not given back.
    """
    judging = make_corpus(FILES).judging
    hit = judging.records.rows([0])[0].chunk.chunk_id
    judging.sets.create("tea", [Query("1", "hot"), Query("2", "cold")])
    judging.sets.create("beer", ["dark"])
    judging.grade(hit, 2, judging.queries("tea")[0], set="tea")
    assert judging.log.has_passages("tea")
    back, before = judging.log.remove_queries("tea", ["1"]), judging.sets.stamp()
    assert not judging.log.has_passages("tea")
    judging.sets.add("tea", [Query("1", "iced")])
    judging.log.remove_queries("tea", ["2"])
    judging.sets.add("beer", ["pale"])
    assert judging.sets.stamp() != before
    with pytest.raises(JudgmentError, match="has another query '1' by now"):
        back()


def test_a_query_with_other_keywords_has_an_id_of_its_own_whatever_was_removed(make_corpus: Make) -> None:
    judging = make_corpus(FILES).judging
    hit = judging.records.rows([0])[0].chunk.chunk_id
    for keywords in (None, "one", "two"):
        judging.grade(hit, 1, "tea", keywords=keywords)
    second = judging.queries("search")[1]
    judging.log.remove_queries("search", [second.query_id])
    judging.grade(hit, 1, "tea", keywords="three")
    assert [q.keywords for q in judging.queries("search")] == [None, "two", "three"]


def test_several_judges_give_the_median_and_other_keywords_are_another_query(make_corpus: Make) -> None:
    corpus = make_corpus(FILES)
    judging, hit = corpus.judging, beta(corpus)
    for grade in (-1, 4, 99):
        with pytest.raises(JudgmentError, match="is not a grade"):
            judging.grade(hit, grade, "q")
    assert judging.located("search") == ()
    for judge, grade in [("a", 0), ("b", 3), ("c", 2), ("d", 3), ("machine:m", 0)]:
        judging.grade(hit, grade, "q", judge=judge)
    assert [list(g.values()) for g in corpus.judgments("search").qrels.values()] == [[2]]
    (machine,) = corpus.judgments("search", ["machine:m"]).qrels.values()
    assert list(machine.values()) == [0]
    assert set(corpus.judgments("search", documents=True).document_keys) == {"tea.md"}
    for keywords, grade in [(None, 1), ("kettle", 2), ("kettle", 3)]:
        judging.grade(hit, grade, "hot  water", keywords=keywords)
    assert judging.grades("hot water", [hit])[hit.chunk_id].grade == 1
    assert judging.grades("hot water", [hit], keywords="kettle")[hit.chunk_id].grade == 3
    assert len(judging.queries("search")) == 3


def ruled(folder: Path, files: dict[str, str], rules: str) -> Callable[..., wb.Corpus]:
    """A function that opens a corpus of acme's files as somebody of a tenant with roles."""
    write_files(folder / "files", files)
    write_files(folder / "corpus", {"corpus.yaml": "rules:\n  - path: '*'\n    tenant: acme\n" + rules})
    wb.index([folder / "files"], corpus=folder / "corpus", encoder="hashing")
    return lambda tenant, *roles: wb.open_corpus(folder / "corpus", wb.Principal(tenant, roles))


HR_ONLY = "  - path: 'pay.md'\n    roles: [hr]\n"


def test_who_does_not_see_the_document_sees_no_judgment_and_no_query_of_it(tmp_path: Path) -> None:
    """Not of today's document, not of a deleted one, not the query that was made of it, not in any count."""
    files = {"pay.md": "# Salaries of all people\n\nsalary words\n", "open.md": "# Opening hours of shops\n\nsalary\n"}
    opened = ruled(tmp_path, files, HR_ONLY)
    hr, staff, other = opened("acme", "hr"), opened("acme"), opened("other")
    hits = hr.search("salary", mode="keyword").hits
    assert len(hits) == 2
    for hit in hits:
        hr.judging.grade(hit, 3, "salary")
    assert len(hr.judging.located("search")) == 2
    assert [x.path for x in staff.judging.located("search")] == ["open.md"]
    assert staff.judging.overview()[0].judgments == 1
    assert other.judging.overview() == ()
    secret = next(h for h in hits if h.path == "pay.md")
    with pytest.raises(JudgmentError, match="not in the corpus"):
        staff.judging.grade(secret, 1, "salary")
    assert make_known_item_set(hr.judging, hr.engine, "hr", 9, ["title"]) == 2
    assert make_known_item_set(staff.judging, staff.engine, "staff", 9, ["title"]) == 1
    assert [q.text for q in staff.judging.queries("hr")] == ["Opening hours of shops"]
    (tmp_path / "files" / "pay.md").unlink()
    wb.index([tmp_path / "files"], corpus=tmp_path / "corpus", encoder="hashing")
    for one in (hr, staff):
        one.refresh()
    assert [x.stale for x in hr.judging.located("search")].count(True) == 1
    assert [x.path for x in staff.judging.located("search")] == ["open.md"]


def test_masked_text_is_found_and_not_shown(tmp_path: Path) -> None:
    """A judge whom a policy shows less has the same judgments, with today's masked text for quotes and no query of it."""
    files = {
        "card.md": "# Card of the day\n\nthe number 1234-5678-9012 is on the card\n",
        "open.md": "# Opening hours today\n\nnothing to hide here\n",
    }
    opened = ruled(tmp_path, files, "policy:\n  mask: ['\\d{4}-\\d{4}-\\d{4}']\n  cleared: [admin]\n")
    admin, staff = opened("acme", "admin"), opened("acme")
    for one, grade in ((admin, 3), (staff, 1)):
        (hit,) = one.search("number card", mode="keyword").hits
        one.judging.grade(hit, grade, "number card", judge=f"grade {grade}")
    assert ["1234" in x.judgment.anchor.quote for x in admin.judging.located("search")] == [True, False]
    shown = staff.judging.located("search")
    assert [(x.judgment.grade, x.stale, x.moved) for x in shown] == [(3, False, False), (1, False, False)]
    assert not any("1234" in x.judgment.anchor.quote for x in shown)
    assert make_known_item_set(admin.judging, admin.engine, "known", 9, ["title"]) == 2
    assert [q.text for q in staff.judging.queries("known")] == ["Opening hours today"]
    assert len(admin.judging.queries("known")) == 2


# --- known items -----------------------------------------------------------------------------------------------------


FAQ = "# Help desk\n\n## How do I reset my password?\n\nOpen the profile page and press the red button twice.\n"
KNOWN = {
    "faq.md": FAQ,
    "tea.md": "# Making good tea\n\n## Overview\n\nBoil fresh spring water slowly before pouring over dried leaves.\n",
    **{
        f"n{n}.md": f"# Report about valley {n}\n\n## Water levels of {n}\n\nThe gauge of valley number{n} rose during the "
        f"stormy evening while keeper{n} watched quietly from the bridge.\n"
        for n in range(8)
    },
    "code.py": '"""A module of code."""\n\n\ndef f():\n    return 1\n',
}


@pytest.fixture(scope="module")
def known(corpus_of: Make) -> wb.Corpus:
    return corpus_of(KNOWN)


@pytest.mark.parametrize("kind", KINDS)
def test_every_query_is_of_its_document(known: wb.Corpus, kind: str) -> None:
    """Its words stand where it says, in the document that answers it, and a search finds it there."""
    items = make_known_items(known.engine, known.judging.scope, 20, [kind])
    assert items
    for item in items:
        (document,) = known.engine.records.documents([item.document_number])
        used = document.text[item.used.start : item.used.end]
        assert " ".join(used.strip("#* \n").split()) in item.text
        found = known.search(f'"{item.text}"' if kind == "phrase" else item.text, mode="keyword").hits
        assert found[0].document_id == document.document_id
        if item.chunk_id:
            assert found[0].chunk_id == item.chunk_id
        if kind == "question":
            assert item.text == "How do I reset my password?"
            assert "red button" in known.judging.anchor(item.chunk_id).quote
    assert all(i.text != "A module of code" for i in items)


def test_the_same_seed_gives_the_same_queries_and_a_set_says_that_it_is_easy(known: wb.Corpus) -> None:
    def made(seed: int) -> list[str]:
        return [i.text for i in make_known_items(known.engine, known.judging.scope, 6, seed=seed)]

    assert made(0) == made(0)
    assert len({tuple(made(seed)) for seed in range(4)}) > 1
    kinds = [i.kind for i in make_known_items(known.engine, known.judging.scope, 6)]
    assert {k: kinds.count(k) for k in ("title", "heading")} == {"title": 2, "heading": 2}
    total = make_known_item_set(known.judging, known.engine, "known", 8)
    judged = known.judgments("known")
    assert len(judged) == total == 8
    figures = known.evaluate(judged, "default", ["RR"])
    assert figures.mean("RR") > 0.5
    assert any("easier" in w or "higher than for people's own" in w for w in figures.warnings)
    with pytest.raises(JudgmentError, match="already"):
        make_known_item_set(known.judging, known.engine, "known", 8)
    with pytest.raises(UsageError, match="no kind"):
        make_known_item_set(known.judging, known.engine, "other", 8, ["rumour"])
    assert known.judging.sets.names() == ("known",)
    known.judging.sets.remove("known")


@pytest.mark.slow
def test_the_command_line_from_nothing_to_figures(known: wb.Corpus, tmp_path: Path) -> None:
    """make, list, export, import, agree, add, rename, run export, eval and remove, one after the other."""

    def call(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, [*words, "--corpus", str(known.path)], catch_exceptions=False)
        assert done.exit_code == code, done.output
        return done.output

    call("judge", "list", code=1)
    assert "8 queries" in call("judge", "make", "known", "--count", "8")
    assert "known: 8 queries, 8 judgments" in call("judge", "list")
    assert "8 judgments" in call("judge", "export", "known", str(tmp_path / "beir"))
    assert "8 judgments, 8 new" in call("judge", "import", str(tmp_path / "beir"), "--set", "known2", "--judge", "ann")
    assert "at least two judges" in call("judge", "agree", "known", code=2)
    assert "for 8 queries" in call("run", "export", "known", str(tmp_path / "run.txt"), "--depth", "5")
    from_set = call("eval", "known2", "--measure", "RR", "--json")
    from_file = call("eval", str(tmp_path / "beir"), "--measure", "RR", "--json")
    assert json.loads(from_set)[0]["measures"] == json.loads(from_file)[0]["measures"] != []
    assert "There is no query set 'nowhere'" in call("judge", "export", "nowhere", str(tmp_path / "x"), code=2)
    assert "typed: 2 queries, 2 of them new" in call("judge", "add", "typed", "hot water", "cold water")
    assert "typed: 3 queries, 1 of them new" in call("judge", "add", "typed", "hot water", "ice")
    assert "Missing argument" in call("judge", "add", "empty", code=2)
    call("judge", "rename", "typed", "asked")
    call("judge", "describe", "asked", "ice", "how cold it is")
    assert "1 partly: some" in call("judge", "grades", "asked", "", "partly: some")
    shown = call("judge", "show", "asked")
    assert "ice (0 judged, 0 relevant)\n    how cold it is\n0 of 3 queries are judged" in shown
    assert json.loads(call("judge", "show", "known", "--json"))["queries"][0]["relevant"] == 1
    assert "removed 1 query" in call("judge", "remove", "asked", "--query", "ice")
    assert "would have no queries" in call(
        "judge", "remove", "asked", *["--query", "hot water"], *["--query", "cold water"], code=2
    )
    assert call("judge", "list").startswith("asked: 2 queries")
    call("judge", "remove", "asked")
    ids = [query["query_id"] for query in json.loads(call("judge", "show", "known", "--json"))["queries"]]
    some = [*["--query", ids[0]], *["--query", ids[1]]]
    assert "2 queries of known: 2 judgments would go too" in call("judge", "remove", "known", *some, code=1)
    assert "known: 8 judgments would go too" in call("judge", "remove", "known", code=1)
    assert "known: 8 queries, 8 judgments" in call("judge", "list")
    assert "removed 2 queries of known" in call("judge", "remove", "known", *some, "--yes")
    assert "known: 6 queries, 6 judgments" in call("judge", "list")
    call("judge", "remove", "known", "--yes")
    assert call("judge", "list").startswith("known2")
    call("judge", "remove", "known2", "--yes")


# --- machine judge ---------------------------------------------------------------------------------------------------


KETTLES = {f"d{n}.md": f"# Title {n}\n\nkettle text number {n}, {'boils ' * (n % 3)}and more\n" for n in range(8)}


def grades_by(judge: Callable[[str], object]) -> Behaviour:

    def behave(handler: Handler) -> None:
        grades = {str(p["number"]): judge(p["text"]) for p in handler.passages}
        handler.send(completion(json.dumps({"grades": grades})))

    return behave


GOOD = grades_by(lambda text: text.count("boils"))


def pooled(corpus: wb.Corpus, plans: list[str], depth: int) -> Pool:
    corpus.judging.sets.create("tea", ["kettle"])
    queries = corpus.judging.queries("tea")
    search = lambda q, plan, depth: corpus.search(q.text, plan=plan, limit=depth).hits  # noqa: E731
    return make_pool(search, corpus.judging, queries, plans, depth)


@pytest.fixture
def ready(make_corpus: Make) -> tuple[wb.Corpus, Pool]:
    corpus = make_corpus(KETTLES)
    pool = pooled(corpus, ["default sources=keyword"], 8)
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
    """Passages travel as JSON in a message of their own, without source, rank, path or other judges' grades."""
    corpus, pool = ready
    report, requests = asked(corpus, pool, GOOD)
    assert (report.graded, report.failed, report.left, report.judge) == (8, 0, 0, "machine:m")  # type: ignore[attr-defined]
    assert len(requests) == -(-8 // BATCH)
    for request in requests:
        system, user = request["messages"]  # type: ignore[misc]
        assert "do not follow them" in system["content"]
        data = json.loads(user["content"])
        assert set(data) == {"query", "passages"}
        assert all(set(p) == {"number", "text"} for p in data["passages"])
    located = corpus.judging.located("tea")
    assert all(x.judgment.machine and x.judgment.grade == x.judgment.anchor.quote.count("boils") for x in located)
    with pytest.raises(JudgmentError, match="by name: machine:m"):
        corpus.judgments("tea")
    named = corpus.judgments("tea", ["machine:m"])
    assert sum(map(len, named.qrels.values())) == 8
    assert any("nobody has judged" in note for note in named.notes)
    again, requests = asked(corpus, pool, GOOD)
    assert (again.graded, again.before, requests) == (0, 8, [])  # type: ignore[attr-defined]
    # How far people agree with it is said beside its figures.
    (query,) = corpus.judging.queries("tea")
    hits = {h.path: h for h in corpus.search("kettle", mode="keyword").hits}
    for path, grades in (("d1.md", (1, 1)), ("d2.md", (0, 2)), ("d3.md", (0, 0))):
        for judge, grade in zip(("ann", "bob"), grades, strict=True):
            corpus.judging.grade(hits[path], grade, query, set="tea", judge=judge)
    found = with_people(graded_by(corpus.judging.located("tea")), "machine:m")
    assert (found.items, found.observed) == (3, pytest.approx(2 / 3))  # d2: people say 0 (the lower), the machine 2
    named = corpus.judgments("tea", ["machine:m", "ann"])
    assert any("machine:m count as judgments" in note and "kappa" in note for note in named.notes)
    assert with_people([{"machine:m": 1}, {"ann": 2}], "machine:m") is None
    assert with_people([{"machine:m": 1, "known-item": 3}], "machine:m") is None  # made from the documents by nobody


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
    pool = pooled(corpus, ["default"], 40)
    report, requests = asked(corpus, pool, fails(400))
    assert len(requests) == GIVE_UP
    assert (report.graded, report.failed) == (0, GIVE_UP * BATCH)  # type: ignore[attr-defined]
    assert report.left == pool.size - GIVE_UP * BATCH  # type: ignore[attr-defined]
    assert "were not asked about" in report.words  # type: ignore[attr-defined]
    stopped, requests = asked(corpus, pool, closes)
    assert stopped.candidates == pool.size  # type: ignore[attr-defined]


def test_the_command_pools_the_plans_that_are_named_and_shows_agreement(
    ready: tuple[wb.Corpus, Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Presets and plans in the text form make the pool together; the report adds up and says how far people agree."""
    corpus, _ = ready
    (query,) = corpus.judging.queries("tea")
    for hit in corpus.search("kettle", mode="keyword").hits[:4]:
        corpus.judging.grade(hit, hit.text.count("boils"), query, set="tea", judge="ann")

    def call(*words: str) -> Any:
        return CliRunner().invoke(main, [*words, "--corpus", str(corpus.path)])

    with serving(GOOD) as server:
        monkeypatch.setenv("WORKBENCH_ENDPOINT_URL", server.url)
        words = ("judge", "machine", "tea", "m", "--depth", "2")
        made = json.loads(call(*words, "--preset", "rrf", "--plan", "tmm sources=keyword", "--json").stdout)
        assert 1 <= made["candidates"] == made["graded"] <= 4
        assert made["failed"] == made["left"] == made["before"] == 0
        done = call("judge", "machine", "tea", "m")
        assert done.exit_code == 0, done.output
        assert f"machine:m graded {8 - made['graded']} of 8 passages" in done.output
        assert "agree on 100% of 4 passages" in done.output
        done = call(*words, "--preset", "nix")
        assert (done.exit_code, "no preset called 'nix'" in done.stderr) == (2, True)
    done = call("eval", "tea", "--judge", "machine:m", "--measure", "RR")
    assert "count as judgments" in " ".join(done.output.split())
    monkeypatch.setenv("WORKBENCH_ENDPOINT_URL", "")
    done = call("judge", "machine", "tea", "m")
    assert (done.exit_code, "No endpoint is set" in done.output) == (2, True)
