"""The pipeline end to end on the sample corpus: what a search promises."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import FilterError, NeedsSearch, PlanError, QueryError
from workbench.records import Label

MODES = ("grep", "keyword", "vector", "hybrid")

# Query, and the documents that hold it: one of them comes first in the modes that read words.
PLANTED = [
    ("ACME-INV-49302", {"kb/invoice-lookup.md", "history.jsonl#turn-5"}),
    ("snake_case_name", {"kb/naming-rules.md", "src/import_keys.py"}),
    ("Zürich", {"kb/zurich-office.md"}),
    ("数据", {"kb/data-residency-zh.md"}),
    ("C++", {"kb/sdk-cpp.md"}),
]


@pytest.mark.parametrize(("query", "paths"), PLANTED)
@pytest.mark.parametrize("mode", ["grep", "keyword", "hybrid"])
def test_planted_words_are_found_first(sample: wb.Corpus, query: str, paths: set[str], mode: str) -> None:
    """Codes, identifiers, accents, words inside a longer run and C++ find their document first.

    In the mix words weigh most for a script without spaces, of whose words the hashing encoder's vectors know nothing.
    """
    unknown = mode == "hybrid" and query == "数据"
    result = sample.search(query, mode=mode, plan="default fusion.alpha=0.2" if unknown else "default")
    assert result.hits
    assert result.hits[0].path in paths


def test_accents_may_be_left_out(sample: wb.Corpus) -> None:
    assert sample.search("zurich", mode="keyword").hits[0].path == "kb/zurich-office.md"


def test_a_phrase_a_prefix_and_an_exclusion(sample: wb.Corpus) -> None:
    """`"exact phrase"` finds it in order only, `prefix*` any ending, `-word` drops what has it."""
    phrase = sample.search('"the kettle is never the cause"', mode="keyword")
    assert phrase.hits
    assert all("the kettle is never the cause" in " ".join(h.text.lower().split()) for h in phrase.hits)
    assert not sample.search('"cause the never is kettle"', mode="keyword").hits
    prefix = sample.search("calibrat*", mode="keyword")
    assert {"kb/calibration.md", "kb/calibrator.md"} <= {h.path for h in prefix.hits}
    everything = {h.path for h in sample.search("mercury", mode="keyword").hits}
    without = {h.path for h in sample.search("mercury -planet", mode="keyword").hits}
    assert without < everything


@pytest.mark.parametrize("mode", MODES)
def test_every_fused_score_is_the_sum_of_its_contributions(sample: wb.Corpus, mode: str) -> None:
    for plan in ("default", "tmm", "fusion.method=weighted fusion.missing=zero", "fusion.single_source=fuse"):
        result = sample.search("how do retries work after a timeout", keywords="backoff", mode=mode, plan=plan)
        for hit in result.hits:
            assert hit.score == math.fsum(hit.contributions.values())


def test_labels_say_which_kinds_of_source_found_a_hit(sample: wb.Corpus) -> None:
    result = sample.search("how do retries work", plan="limit=50")
    for hit in result.hits:
        expected = {(True, False): Label.EXACT, (False, True): Label.SEMANTIC, (True, True): Label.HYBRID}
        assert hit.label is expected[("keyword" in hit.ranks, "vector" in hit.ranks)]


def test_citations_open_where_the_words_are(sample: wb.Corpus) -> None:
    """The cited lines of the file hold the hit's text."""
    for hit in sample.search("retries timeout invoice", plan="limit=30").hits:
        lines = sample.read_file(hit.path).split("\n")[hit.start_line - 1 : hit.end_line]
        assert hit.text.strip() in "\n".join(lines)


def test_the_funnel_adds_up(sample: wb.Corpus) -> None:
    """Each step's entrants are what the step before left, and fusion's are the sum of the sources'."""
    result = sample.search("how do retries work", keywords="backoff", filters="type != 'record'", plan="limit=3")
    steps = result.steps
    allowed = next(s.left for s in steps if s.step == "filters")
    entering_fusion = 0
    for source in ("grep", "keyword", "vector"):
        mine = [s for s in steps if s.source == source]
        assert mine[0].entered == allowed
        assert [s.entered for s in mine[1:]] == [s.left for s in mine[:-1]]
        entering_fusion += mine[-1].left
    after = [s for s in steps if s.step in {"fusion", "dedupe", "limit"}]
    assert after[0].entered == entering_fusion
    assert [s.entered for s in after[1:]] == [s.left for s in after[:-1]]
    assert after[-1].left == len(result.hits) == 3
    assert result.frame().height == after[0].left


PLANS = [
    "fusion.k=5",
    "fusion.weights.vector=0",
    "tmm fusion.alpha=0.3",
    "vector.threshold=0.45",
    "vector.threshold=off",
    "depth.keyword=3 depth.vector=2",
    "fusion.method=combmnz fusion.normalise.keyword=dbsf",
    "limit=3 dedupe=no",
    "fusion.unit=document",
]


@pytest.mark.parametrize("text", PLANS)
def test_a_slider_gives_what_a_search_gives(sample: wb.Corpus, text: str) -> None:
    """with_plan fuses again to the same bits as a new search under that plan."""
    wide = sample.search("how do retries work", depths={"keyword": 200, "vector": 200})
    moved = wide.with_plan(text)
    fresh = sample.search("how do retries work", plan=text)
    assert moved.to_dict() == fresh.to_dict()
    assert moved.frame().equals(fresh.frame())


def test_a_grep_hit_beyond_a_shallower_depth_has_no_grep_score(make_corpus: Callable[..., wb.Corpus]) -> None:
    """Grep computes no scores, so that fusing again at a depth of 3 gives what a search at that depth gives."""
    corpus = make_corpus({f"a{n:02}.md": "alpha retry\n" * (n % 4 + 1) + f"word{n}\n" for n in range(12)})
    deep, shallow = (wb.Plan.parse(f"default vector.threshold=off depth.grep={depth}") for depth in (100, 3))
    again = corpus.search("alpha word3", keywords="alpha", plan=deep).with_plan(shallow)
    fresh = corpus.search("alpha word3", keywords="alpha", plan=shallow)
    told = [[(h.chunk_id, h.score, dict(h.contributions)) for h in result.hits] for result in (again, fresh)]
    assert told[0] == told[1]


def test_fusing_the_candidates_gives_the_result_again(sample: wb.Corpus) -> None:
    """`wb.fuse(result.candidates, plan.fusion)` is what the pipeline did."""
    for text in ("default", "tmm", "vector.threshold=0.47"):
        result = sample.search("how do retries work", plan=text)
        fused = wb.fuse(result.candidates, wb.Plan.parse(text).fusion)
        assert list(fused.chunk_ids) == result.frame()["chunk_id"].to_list()
        assert fused.scores.tolist() == result.frame()["score"].to_list()


@pytest.mark.parametrize(
    "text", ["depth.vector=90", "keyword.k1=1.2", "sources=grep,keyword,vector", "collections=docs", "vector.exact=no"]
)
def test_a_plan_that_needs_more_than_was_retrieved_says_so(sample: wb.Corpus, text: str) -> None:
    result = sample.search("how do retries work", plan="depth.vector=5")
    with pytest.raises(NeedsSearch, match="Search again"):
        result.with_plan(text)


def test_the_order_of_sources_changes_no_bit(sample: wb.Corpus) -> None:
    one = sample.search(
        "how do retries work", plan="sources=keyword,vector,grep", keywords="backoff", bypass_cache=True
    )
    two = sample.search(
        "how do retries work", plan="sources=grep,vector,keyword", keywords="backoff", bypass_cache=True
    )
    assert json.dumps(one.to_dict()) == json.dumps(two.to_dict())


@pytest.mark.slow
def test_six_threads_give_the_answers_of_one(sample: wb.Corpus) -> None:
    queries = [
        "how do retries work",
        "ACME-INV-49302",
        "mercury -kettle",
        "Zürich office",
        '"mercury wetted relay"',
        "C++",
    ]
    expected = [json.dumps(sample.search(q, bypass_cache=True).to_dict()) for q in queries]
    got: dict[int, list[str]] = {}
    failures: list[Exception] = []

    def work(n: int) -> None:
        try:
            got[n] = [json.dumps(sample.search(q, bypass_cache=True).to_dict()) for _ in range(5) for q in queries]
        except Exception as exc:  # noqa: BLE001 - seen by the main thread
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert all(answers == expected * 5 for answers in got.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "query", ["", "   ", '""', "-only", "'; drop table documents; --", "OR OR", "*", "\x00\x1b[31m", '"open']
)
def test_odd_queries_give_a_result_or_one_sentence(sample: wb.Corpus, query: str, mode: str) -> None:
    said: tuple[str, ...]
    try:
        said = sample.search(query, mode=mode).messages
    except QueryError as exc:
        said = (str(exc),)
    assert said
    assert all(sentence and "\n" not in sentence for sentence in said)


def test_a_very_long_query_is_answered_or_refused_in_one_sentence(sample: wb.Corpus) -> None:
    """Meaning and grep take 100,000 characters, the word index 10,000; each says its limit."""
    words = ("retries backoff timeout " * 5000)[:100_000]
    assert sample.search(words, mode="vector").hits
    assert sample.search(words[:9_000], mode="keyword").hits
    with pytest.raises(QueryError, match="10,000"):
        sample.search(words, mode="keyword")
    with pytest.raises(QueryError, match="100,000"):
        sample.search("x" * 100_001)


@pytest.mark.parametrize("query", ["-retries", "retries " * 2_000])
def test_a_query_that_keyword_cannot_read_is_answered_by_the_others(query: str, sample: wb.Corpus) -> None:
    """Only exclusions, or too long for the word index: hybrid says so and goes on, keyword alone refuses."""
    result = sample.search(query, plan="rrf grep.when=always")
    assert [u.source for u in result.unavailable] == ["keyword"]
    assert any(w.startswith("keyword could not run: The query") for w in result.warnings)
    assert set(result.rankings) == {"grep", "vector"}
    assert result.hits
    with pytest.raises(QueryError):
        sample.search(query, mode="keyword")


@pytest.mark.parametrize(
    ("query", "plan", "filters", "said"),
    [
        ("zzqqxx yyww", "default", None, "No document has zzqqxx or yyww"),
        ("kettle -kettle", "default", None, "2 chunks have these words, but the query leaves out what has kettle"),
        ("kettle backoff", "keyword.operator=all", None, "Nothing has all of kettle and backoff, but"),
        ('"trips breaker"', "default", None, "take the quotes away"),
        ("kettle", "default", "path = 'src/'", "some of these words, but none that the filter and the collections let"),
        ("kettle", "default", "type = 'novel'", "Values of type here: "),
        ("kettle", "collections=attic", None, "The corpus has no collection attic: its collections are "),
    ],
)
def test_nothing_found_says_why(query: str, plan: str, filters: str | None, said: str, sample: wb.Corpus) -> None:
    """That no document has the words only where none has; else what keeps those out that have them."""
    result = sample.search(query, mode="keyword", plan=plan, filters=filters)
    assert not result.hits
    assert said in " | ".join(result.messages)
    assert "loosen" not in " ".join(result.messages)


def test_a_collection_that_there_is_not_is_named_beside_those_there_are(sample: wb.Corpus) -> None:
    result = sample.search("retries", plan="collections=docs,attic")
    assert result.hits
    assert any(w.startswith("The corpus has no collection attic: its collections are ") for w in result.warnings)


@pytest.mark.parametrize(
    ("mode", "plan"), [("grep", "default"), ("hybrid", "passages"), ("hybrid", "grep.when=always")]
)
def test_every_answer_of_grep_says_what_it_looked_for(mode: str, plan: str, sample: wb.Corpus) -> None:
    for query in ("how do retries work", "zzqqxx"):
        assert any("grep looked for " in m for m in sample.search(query, mode=mode, plan=plan).messages)
    assert any('looked for "a b" or "c"' in m for m in sample.search("x", '"a b" c', mode=mode, plan=plan).messages)
    assert not any("looked for" in m for m in sample.search("retries", mode="vector").messages)


def test_an_answer_says_why_keyword_found_nothing_beside_the_others(sample: wb.Corpus) -> None:
    said = sample.search("kettle -kettle", plan="rrf vector.threshold=off").messages
    assert any(m.startswith("keyword found nothing: 2 chunks have these words") for m in said)


def test_scores_that_are_all_0_are_said(sample: wb.Corpus) -> None:
    """The one source that found something has no weight: the order means nothing, and the answer says it."""
    result = sample.search("retries", mode="keyword", plan="scoped principal=optional fusion.weights.keyword=0")
    assert {h.score for h in result.hits} == {0.0}
    assert any("keyword adds nothing" in w for w in result.warnings)


def test_a_pattern_that_cannot_be_read_is_one_sentence(sample: wb.Corpus) -> None:
    with pytest.raises(QueryError) as caught:
        sample.grep("(unclosed", regex=True)
    assert "\n" not in str(caught.value)
    assert sample.grep("(a+)+$", regex=True) is not None


def test_nothing_found_says_what_to_try(sample: wb.Corpus) -> None:
    """Guidance fits the mode."""
    seen = set()
    for mode in ("grep", "keyword"):
        result = sample.search("qqxzzv", mode=mode)
        assert not result.hits
        seen.add(result.messages[-1])
    nothing = sample.search("retries", mode="vector", plan="vector.threshold=0.01")
    assert "vector.threshold" in " ".join(nothing.messages)
    assert len(seen) == 2
    assert "filter" in " ".join(sample.search("retries", filters="type = 'no such'").messages)


def test_one_source_empty_passes_the_other_through(sample: wb.Corpus) -> None:
    """The lone list keeps its own order and scores, and the result says so; `fuse` goes on as always."""
    lone = sample.search("retries", plan="vector.threshold=0.01")
    alone = sample.search("retries", mode="keyword")
    assert [h.chunk_id for h in lone.hits] == [h.chunk_id for h in alone.hits]
    assert lone.hits[0].score_kind == "keyword"
    assert lone.hits[0].contributions == {"keyword": lone.hits[0].scores["keyword"]}
    assert "Only keyword found anything" in " ".join(lone.messages)
    fused = sample.search("retries", plan="vector.threshold=0.01 fusion.single_source=fuse")
    assert fused.hits[0].score_kind == "fused"
    assert fused.hits[0].score == pytest.approx(0.2)  # keyword's share, 1 - alpha, of the best score on the scale
    ranked = sample.search("retries", plan="rrf vector.threshold=0.01 fusion.single_source=fuse")
    assert ranked.hits[0].score == 1 / 61


def test_the_threshold_keeps_what_is_strictly_below_it(sample: wb.Corpus) -> None:
    every = sample.search("retries", mode="vector", plan="vector.threshold=off limit=50")
    cut = every.hits[4].distance
    assert cut is not None
    kept = every.with_plan(f"vector.threshold={cut!r} limit=50")
    assert all(h.distance is not None and h.distance < cut for h in kept.hits)
    assert len(kept.rankings["vector"].entries) == sum(1 for h in every.hits if (h.distance or 0) < cut)


def test_neighbours_stand_around_a_hit(sample: wb.Corpus) -> None:
    plain = sample.search("frost alarm threshold", plan="limit=5").hits
    around = sample.search("frost alarm threshold", plan="limit=5 neighbours=1").hits
    assert [h.chunk_id for h in plain] == [h.chunk_id for h in around]
    assert any("\n[CHUNK BOUNDARY]\n" in h.text for h in around)
    for hit, bare in zip(around, plain, strict=True):
        assert bare.text in hit.text
        marked = [bare.text[m.start : m.end] for m in bare.matches]
        assert [hit.text[m.start : m.end] for m in hit.matches] == marked


def test_the_same_text_is_shown_once(sample: wb.Corpus) -> None:
    """Of two documents with the same text the better one stays; `dedupe=no` shows both."""
    texts = [h.text for h in sample.search("warranty", mode="keyword").hits]
    assert len(texts) == len(set(texts))
    both = [h.text for h in sample.search("warranty", mode="keyword", plan="dedupe=no").hits]
    assert len(both) > len(set(both))


def test_filters_narrow_every_source(sample: wb.Corpus) -> None:
    for mode in MODES:
        hits = sample.search("retries timeout", mode=mode, filters="type = 'code' or path glob 'kb/**'").hits
        assert all(h.metadata["type"] == "code" or h.path.startswith("kb/") for h in hits)
    with pytest.raises(FilterError, match="colour"):
        sample.search("retries", filters="colour = 'red'")


def test_a_result_is_kept_until_asked_otherwise(sample: wb.Corpus) -> None:
    """Spaces outside quotes do not matter, case does; bypass searches again."""
    first = sample.search("how do  retries work")
    assert sample.search(" how do retries   work ").cached
    assert sample.search(" how do retries   work ").to_dict() == first.to_dict()
    assert not sample.search("How do retries work").cached
    assert not sample.search("how do retries work", bypass_cache=True).cached


def test_keywords_that_nobody_reads_are_named(sample: wb.Corpus) -> None:
    result = sample.search("retries", keywords="backoff", plan="tmm grep.when=never")
    assert "keywords were not used" in " ".join(result.warnings)


def test_keywords_make_grep_a_third_voice_of_the_default_plan(sample: wb.Corpus) -> None:
    """A chunk that holds them gets grep's share on top; what keyword and vector give is what they give without it."""
    plain = sample.search("how do retries work", limit=50)
    named = sample.search("how do retries work", keywords="backoff", limit=50)
    assert sorted(named.rankings) == ["grep", "keyword", "vector"]
    before = {h.chunk_id: h for h in plain.hits}
    found = [h for h in named.hits if h.contributions.get("grep", 0.0) > 0 and h.chunk_id in before]
    assert found
    for hit in found:
        assert 0 < hit.contributions["grep"] <= 0.2 + 1e-12
        assert {s: v for s, v in hit.contributions.items() if s != "grep"} == before[hit.chunk_id].contributions
    assert not named.warnings


def test_a_setting_that_does_nothing_is_told_with_the_remedy(sample: wb.Corpus) -> None:
    """In a hybrid search, of the fields that were changed; one mode alone fuses nothing and says nothing of fusion."""
    said = "fusion.k has no effect with fusion.method convex; add fusion.method=rrf"
    result = sample.search("retries", plan="fusion.k=20")
    assert said in result.warnings
    assert [h.chunk_id for h in result.hits] == [h.chunk_id for h in sample.search("retries").hits]
    assert said not in sample.search("retries", plan="fusion.k=20 fusion.method=rrf").warnings
    assert said not in sample.search("retries", plan="fusion.k=20", mode="keyword").warnings
    assert said in sample.search("retries").with_plan("fusion.k=20").warnings
    for name in ("default", "rrf", "passages", "contract", "pages"):
        assert not sample.search("retries", plan=name).warnings, name


def test_modes_and_plans_that_do_not_exist_are_refused(sample: wb.Corpus) -> None:
    with pytest.raises(QueryError, match="hybrid"):
        sample.search("x", mode="fuzzy")
    with pytest.raises(PlanError):
        sample.search("x", plan="nope")
    assert sample.search("retries", mode="semantic").mode == "vector"


def test_a_corpus_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(wb.WorkbenchError, match="workbench index"):
        wb.open_corpus(tmp_path / "nothing")
