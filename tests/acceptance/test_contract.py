"""`contract`: keyword and vector over whole documents, labelled and in an order that never moves."""

import json
import math
from collections.abc import Callable

import pytest

import workbench as wb
from workbench.errors import SourceUnavailable
from workbench.records import Label

Make = Callable[..., wb.Corpus]
FILES = {
    "a.md": "apples apples apples",
    "b.md": "apples and pears in a basket",
    "c.md": "plums in a basket",
    "d.md": "---\ntype: note\n---\napples somewhere far below in a long text about roofs and rain and roads",
}


@pytest.fixture(scope="module")
def fruit(corpus_of: Make) -> wb.Corpus:
    return corpus_of(FILES)


def test_each_source_gives_at_most_a_hundred_documents(make_corpus):
    plan = wb.preset("contract")
    assert (plan.depth("keyword"), plan.depth("vector")) == (100, 100)
    assert (plan["fusion.k"], plan["fusion.rank_base"]) == (60, 1)
    long = "\n\n".join(f"# Part {n}\n\n" + "apples and roofs " * 60 for n in range(6))
    corpus = make_corpus({"a.md": long, "b.md": "apples", "c.md": "apples and rain"})
    result = corpus.search("apples", plan="contract depth.keyword=3 depth.vector=3", mode="keyword")
    assert {h.path for h in result.hits} == {"a.md", "b.md", "c.md"}


def test_filters_hold_in_both_sources_before_their_top_at_the_same_time(fruit, meet):
    came = meet(fruit, {"keyword": 1, "vector": 1})
    assert fruit.search("apples", plan="contract", bypass_cache=True).hits
    assert min(came.values()) == 1
    plan = "contract depth.keyword=1 depth.vector=1"
    assert [h.path for h in fruit.search("apples", plan=plan).hits][:1] == ["a.md"]
    result = fruit.search("apples", plan=plan, filters="type = 'note'")
    assert [[e.path for e in r.entries] for r in result.rankings.values()] == [["d.md"], ["d.md"]]
    assert [h.path for h in result.hits] == ["d.md"]


def test_a_path_scores_the_sum_over_the_lists_that_hold_it_and_says_which(fruit):
    result = fruit.search("apples in a basket", plan="contract")
    assert len({h.path for h in result.hits}) == len(result.hits)
    for hit in result.hits:
        assert hit.score == math.fsum(1 / (60 + rank) for rank in hit.ranks.values())
    assert [str(x) for x in (Label.EXACT, Label.SEMANTIC, Label.HYBRID)] == ["Exact match", "Semantic match", "Hybrid"]
    found = {h.path: h.label for h in fruit.search("apples", plan="contract depth.vector=1 depth.keyword=2").hits}
    assert found["a.md"] is Label.HYBRID
    assert Label.EXACT in found.values()
    every = fruit.search("apples", plan="contract")
    assert {h.path: h.label for h in every.hits}["c.md"] is Label.SEMANTIC
    # A program reads exact, semantic or hybrid.
    named = {Label.EXACT: "exact", Label.SEMANTIC: "semantic", Label.HYBRID: "hybrid"}
    assert [h["match"] for h in every.to_dict()["hits"]] == [named[h.label] for h in every.hits]


def test_equal_scores_go_by_coverage_and_then_by_path():
    """Twice 1/122 is 1/61: found by both comes before found by one; and with equal coverage the lower path is first."""
    filler = [(f"m{n:02d}", 100.0 - n) for n in range(61)]
    other = [(f"n{n:02d}", 100.0 - n) for n in range(61)]
    fused = wb.fuse(
        {"keyword": [("a", 200.0), *filler[1:], ("z", 1.0)], "vector": [("b", 200.0), *other[1:], ("z", 1.0)]},
        wb.preset("contract").fusion,
    )
    assert fused.scores[:3].tolist() == [1 / 61] * 3
    assert fused.chunk_ids[:3] == ("z", "a", "b")


@pytest.mark.slow
def test_the_order_is_the_same_in_every_index_and_messages_count_documents(make_corpus):
    files = {f"{name}.md": "apples and pears" + "\n" * blank for blank, name in enumerate("dbca")}
    answers = []
    for turn in (files, dict(reversed(files.items()))):
        result = make_corpus(turn).search("apples", plan="contract")
        answers.append(json.dumps([(h.path, h.score, h.ranks) for h in result.hits]))
    assert answers[0] == answers[1]
    assert [path for path, *_ in json.loads(answers[0])] == ["a.md", "b.md", "c.md", "d.md"]
    long = "\n\n".join(f"# Part {n}\n\n" + "apples and roofs " * 60 for n in range(6))
    corpus = make_corpus({"a.md": long, "b.md": "apples"})
    for mode in ("hybrid", "keyword", "vector"):
        said = corpus.search("apples", plan="contract", mode=mode).messages[0]
        assert said.startswith("2 results, ")
        assert said.endswith("from 2 documents found")
    one = corpus.search("roofs", plan="contract", mode="keyword").messages[0]
    assert one.startswith("1 result, ")
    assert one.endswith("from 1 document found")
    assert corpus.search("quagga", plan="contract", mode="keyword").messages[0].endswith("from 0 documents found")


def test_an_empty_list_returns_the_other_unchanged(fruit):
    lone, alone = fruit.search("zeppelin", plan="contract"), fruit.search("zeppelin", plan="contract", mode="vector")
    assert [(h.path, h.score) for h in lone.hits] == [(h.path, h.score) for h in alone.hits]
    assert [h.path for h in lone.hits] == [e.path for e in alone.rankings["vector"].entries]
    assert "Only vector found anything" in " ".join(lone.messages)
    lone = fruit.search("apples", plan="contract vector.threshold=0")
    alone = fruit.search("apples", plan="contract", mode="keyword")
    assert [(h.path, h.score) for h in lone.hits] == [(h.path, h.score) for h in alone.hits]
    assert all(h.label is Label.EXACT for h in lone.hits)
    tips = {}
    for mode in ("hybrid", "keyword", "semantic"):
        result = fruit.search("zeppelin", plan="contract vector.threshold=0", mode=mode)
        assert result.hits == ()
        tips[mode] = result.messages[1]
    assert len(set(tips.values())) == 3
    assert "vector.threshold" in tips["semantic"]
    assert "spelling" in tips["keyword"]


def test_the_keyword_mode_needs_no_vectors_and_hybrid_goes_on_as_it(fruit, embedded, no_vectors):
    fruit.search("apples", plan="contract", mode="keyword", bypass_cache=True)
    assert embedded == []
    result = fruit.search("apples", plan="contract", bypass_cache=True)
    alone = fruit.search("apples", plan="contract", mode="keyword")
    assert [(h.path, h.score) for h in result.hits] == [(h.path, h.score) for h in alone.hits]
    assert "The model is gone. Bring it back" in " ".join(result.warnings)
    assert not alone.warnings
    with pytest.raises(SourceUnavailable, match="Bring it back"):
        fruit.search("apples", plan="contract", mode="semantic", bypass_cache=True)
