"""Judgments: found again after edits and other chunking, undone, shared, and seen only with their documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import JudgmentError
from workbench.evaluate.run import passage_keys
from workbench.judgments.log import Anchor, find_again, same_passage
from workbench.judgments.qrels import JudgedPassage, inherits
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


@dataclass(frozen=True)
class Row:
    document_id: str
    path: str
    span: Span
    url: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    added: bool = False


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


def test_overlap_rules() -> None:
    assert inherits(Span(0, 100), Span(90, 110))
    assert not inherits(Span(0, 100), Span(91, 111))
    assert same_passage(Span(0, 100), Span(50, 120))
    assert not same_passage(Span(0, 100), Span(0, 49))
    assert not inherits(Span(0, 10), Span(10, 20))


@pytest.mark.slow
def test_a_judgment_survives_an_edit_and_is_stale_when_its_text_is_gone(make_corpus: Make) -> None:
    """It moves with its text, counts where it stands, and is kept but counts for nothing without it."""
    corpus = make_corpus(FILES)
    given = corpus.judging.grade(beta(corpus), 3, "when does beta boil")
    again(corpus, {"tea.md": "Some new words first.\n\n" + TEXT})
    (now,) = corpus.judging.located("search")
    assert (now.moved, now.stale) == (True, False)
    assert corpus.read_file("tea.md")[now.span.start : now.span.end] == given.anchor.quote  # type: ignore[union-attr]
    assert corpus.judging.grades("when does beta boil", [beta(corpus)])[beta(corpus).chunk_id].grade == 3
    again(corpus, {"tea.md": "# Tea\n\nnothing of it is left, but coffee\n"})
    (now,) = corpus.judging.located("search")
    assert now.stale
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
    hits = [Row(d, "a.md" if d == "d" else "b.md", Span(s, e)) for d, s, e in spans]
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


def test_several_judges_give_the_median(make_corpus: Make) -> None:
    corpus = make_corpus(FILES)
    judging = corpus.judging
    for judge, grade in [("a", 0), ("b", 3), ("c", 2), ("d", 3), ("machine:m", 0)]:
        judging.grade(beta(corpus), grade, "q", judge=judge)
    grades = list(corpus.judgments("search").qrels.values())
    assert [list(g.values()) for g in grades] == [[2]]
    (machine,) = corpus.judgments("search", ["machine:m"]).qrels.values()
    assert list(machine.values()) == [0]
    assert set(corpus.judgments("search", documents=True).document_keys) == {"tea.md"}


@pytest.mark.parametrize("grade", [-1, 4, 99])
def test_other_grades_are_refused(make_corpus: Make, grade: int) -> None:
    corpus = make_corpus(FILES)
    with pytest.raises(JudgmentError, match="is not a grade"):
        corpus.judging.grade(beta(corpus), grade, "q")
    assert corpus.judging.located("search") == ()


def test_the_same_text_with_other_keywords_is_another_query(make_corpus: Make) -> None:
    corpus = make_corpus(FILES)
    for keywords, grade in [(None, 1), ("kettle", 2), ("kettle", 3)]:
        corpus.judging.grade(beta(corpus), grade, "hot  water", keywords=keywords)
    hit = beta(corpus)
    assert corpus.judging.grades("hot water", [hit])[hit.chunk_id].grade == 1
    assert corpus.judging.grades("hot water", [hit], keywords="kettle")[hit.chunk_id].grade == 3
    assert len(corpus.judging.queries("search")) == 2


def test_who_does_not_see_the_document_does_not_see_the_judgment(tmp_path: Path) -> None:
    """Not of today's document, not of a deleted one, not the query that was made of it, not in any count."""
    (tmp_path / "files").mkdir()
    for name in ("pay.md", "open.md"):
        (tmp_path / "files" / name).write_text(f"# {name}\n\nsalary words of {name}\n")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "corpus.yaml").write_text(
        "rules:\n  - path: '*'\n    tenant: acme\n  - path: 'pay.md'\n    roles: [hr]\n"
    )
    wb.index([tmp_path / "files"], corpus=corpus, encoder="hashing")

    def judging(tenant: str, *roles: str) -> wb.Corpus:
        return wb.open_corpus(corpus, wb.Principal(tenant, roles))

    hr, staff, other = judging("acme", "hr"), judging("acme"), judging("other")
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
    (tmp_path / "files" / "pay.md").unlink()
    wb.index([tmp_path / "files"], corpus=corpus, encoder="hashing")
    for opened in (hr, staff):
        opened.refresh()
    assert [x.stale for x in hr.judging.located("search")].count(True) == 1
    assert [x.path for x in staff.judging.located("search")] == ["open.md"]


def test_masked_text_is_found_and_not_told(tmp_path: Path) -> None:
    """A judge whom a policy shows less has the same judgments, with today's masked text for quotes and no query of it."""
    source, corpus = tmp_path / "files", tmp_path / "corpus"
    source.mkdir()
    corpus.mkdir()
    (source / "card.md").write_text("# Card of the day\n\nthe number 1234-5678-9012 is on the card\n")
    (source / "open.md").write_text("# Opening hours today\n\nnothing to hide here\n")
    rules = "rules:\n  - path: '*'\n    tenant: acme\npolicy:\n  mask: ['\\d{4}-\\d{4}-\\d{4}']\n  cleared: [admin]\n"
    (corpus / "corpus.yaml").write_text(rules)
    wb.index([source], corpus=corpus, encoder="hashing")
    admin, staff = (wb.open_corpus(corpus, wb.Principal("acme", roles)) for roles in (("admin",), ()))
    for opened, grade in ((admin, 3), (staff, 1)):
        (hit,) = opened.search("number card", mode="keyword").hits
        opened.judging.grade(hit, grade, "number card", judge=f"grade {grade}")
    assert ["1234" in x.judgment.anchor.quote for x in admin.judging.located("search")] == [True, False]
    told = staff.judging.located("search")
    assert [(x.judgment.grade, x.stale, x.moved) for x in told] == [(3, False, False), (1, False, False)]
    assert not any("1234" in x.judgment.anchor.quote for x in told)
    from workbench.judgments.known_items import make_known_item_set

    assert make_known_item_set(admin.judging, admin.engine, "known", 9, ["title"]) == 2
    assert [q.text for q in staff.judging.queries("known")] == ["Opening hours today"]
    assert len(admin.judging.queries("known")) == 2
