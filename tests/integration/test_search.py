"""The pipeline end to end on the sample corpus: what a search promises."""

import json
import threading
from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import NeedsSearch, PlanError, QueryError

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


@pytest.mark.parametrize(
    "text", ["depth.vector=90", "keyword.k1=1.2", "sources=grep,keyword,vector", "collections=docs", "vector.exact=no"]
)
def test_a_plan_that_needs_more_than_was_retrieved_says_so(sample: wb.Corpus, text: str) -> None:
    result = sample.search("how do retries work", plan="depth.vector=5")
    with pytest.raises(NeedsSearch, match="Search again"):
        result.with_plan(text)


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


@pytest.mark.parametrize("query", ["-retries", "retries " * 2_000])
def test_a_query_that_keyword_cannot_read_is_answered_by_the_others(query: str, sample: wb.Corpus) -> None:
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


@pytest.mark.parametrize(
    ("mode", "plan"), [("grep", "default"), ("hybrid", "passages"), ("hybrid", "grep.when=always")]
)
def test_every_answer_of_grep_says_what_it_looked_for(mode: str, plan: str, sample: wb.Corpus) -> None:
    for query in ("how do retries work", "zzqqxx"):
        assert any("grep looked for " in m for m in sample.search(query, mode=mode, plan=plan).messages)
    assert any('looked for "a b" or "c"' in m for m in sample.search("x", '"a b" c', mode=mode, plan=plan).messages)
    assert not any("looked for" in m for m in sample.search("retries", mode="vector").messages)


def test_an_answer_says_what_added_nothing(sample: wb.Corpus) -> None:
    said = sample.search("kettle -kettle", plan="rrf vector.threshold=off").messages
    assert any(m.startswith("keyword found nothing: 2 chunks have these words") for m in said)
    result = sample.search("retries", mode="keyword", plan="scoped principal=optional fusion.weights.keyword=0")
    assert {h.score for h in result.hits} == {0.0}
    assert any("keyword adds nothing" in w for w in result.warnings)
    result = sample.search("retries", keywords="backoff", plan="tmm grep.when=never")
    assert "keywords were not used" in " ".join(result.warnings)
    said = "fusion.k has no effect with fusion.method convex; add fusion.method=rrf"
    result = sample.search("retries", plan="fusion.k=20")
    assert said in result.warnings
    assert [h.chunk_id for h in result.hits] == [h.chunk_id for h in sample.search("retries").hits]
    assert said not in sample.search("retries", plan="fusion.k=20 fusion.method=rrf").warnings
    assert said not in sample.search("retries", plan="fusion.k=20", mode="keyword").warnings
    assert said in sample.search("retries").with_plan("fusion.k=20").warnings
    for name in ("default", "rrf", "passages", "contract", "pages"):
        assert not sample.search("retries", plan=name).warnings, name


def test_what_cannot_be_asked_is_one_sentence(sample: wb.Corpus, tmp_path: Path) -> None:
    with pytest.raises(QueryError) as caught:
        sample.grep("(unclosed", regex=True)
    assert "\n" not in str(caught.value)
    assert sample.grep("(a+)+$", regex=True) is not None
    with pytest.raises(QueryError, match="hybrid"):
        sample.search("x", mode="fuzzy")
    with pytest.raises(PlanError):
        sample.search("x", plan="nope")
    assert sample.search("retries", mode="semantic").mode == "vector"
    words = ("retries backoff timeout " * 5000)[:100_000]
    assert sample.search(words, mode="vector").hits
    assert sample.search(words[:9_000], mode="keyword").hits
    with pytest.raises(QueryError, match="10,000"):
        sample.search(words, mode="keyword")
    with pytest.raises(QueryError, match="100,000"):
        sample.search("x" * 100_001)
    with pytest.raises(wb.WorkbenchError, match="workbench index"):
        wb.open_corpus(tmp_path / "nothing")


def test_a_result_is_kept_until_asked_otherwise(sample: wb.Corpus) -> None:
    first = sample.search("how do  retries work")
    assert sample.search(" how do retries   work ").cached
    assert sample.search(" how do retries   work ").to_dict() == first.to_dict()
    assert not sample.search("How do retries work").cached
    assert not sample.search("how do retries work", bypass_cache=True).cached


def test_keywords_make_grep_a_third_voice_of_the_default_plan(sample: wb.Corpus) -> None:
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
