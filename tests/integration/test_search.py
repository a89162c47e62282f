"""The pipeline end to end on the sample corpus: what a search promises, assisted, for examples, and explained."""

import json
import math
import threading
from collections.abc import Callable

import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main
from workbench.errors import EncoderError, NeedsSearch, PlanError, QueryError, SourceUnavailable, UsageError

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
def test_planted_words_are_found_first(sample, query, paths, mode):
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
def test_a_plan_that_needs_more_than_was_retrieved_says_so(sample, text):
    result = sample.search("how do retries work", plan="depth.vector=5")
    with pytest.raises(NeedsSearch, match="Search again"):
        result.with_plan(text)


@pytest.mark.slow
def test_six_threads_give_the_answers_of_one(sample):
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
def test_a_query_that_keyword_cannot_read_is_answered_by_the_others(query, sample):
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
def test_nothing_found_says_why(query, plan, filters, said, sample):
    """That no document has the words only where none has; else what keeps those out that have them."""
    result = sample.search(query, mode="keyword", plan=plan, filters=filters)
    assert not result.hits
    assert said in " | ".join(result.messages)
    assert "loosen" not in " ".join(result.messages)


def test_nothing_near_is_said_where_the_nearest_lies_in_the_bulk(make_corpus):
    """Where no record is nearer to the query than one in twenty pairs of the corpus's own passages are to each other."""
    corpus = make_corpus({f"{n:03}.md": f"# Day {n}\n\nthe garden gate number {n} is shut\n" for n in range(240)})
    asked = ("quantum pelican", "the garden gate number 7 is shut")
    said = [" ".join(corpus.search(query).messages) for query in asked]
    assert "Nothing here is near by vector: the nearest passage is at angular distance" in said[0]
    assert "Nothing here is near" not in said[1]


@pytest.mark.parametrize(
    ("mode", "plan"), [("grep", "default"), ("hybrid", "passages"), ("hybrid", "grep.when=always")]
)
def test_every_answer_of_grep_says_what_it_looked_for(mode, plan, sample):
    for query in ("how do retries work", "zzqqxx"):
        assert any("grep looked for " in m for m in sample.search(query, mode=mode, plan=plan).messages)
    assert any('looked for "a b" or "c"' in m for m in sample.search("x", '"a b" c', mode=mode, plan=plan).messages)
    assert not any("looked for" in m for m in sample.search("retries", mode="vector").messages)


def test_an_answer_says_what_added_nothing(sample):
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
    warned = " ".join(sample.search("retries", plan="rrf vector.exact=no").warnings)
    assert "vector searched exactly, whatever vector.exact says. Over " in warned
    for name in ("default", "rrf", "passages", "contract", "pages"):
        assert not sample.search("retries", plan=name).warnings, name


def test_what_cannot_be_asked_is_one_sentence(sample, tmp_path):
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


def test_a_result_is_kept_and_keywords_make_grep_a_third_voice(sample):
    first = sample.search("how do  retries work")
    assert sample.search(" how do retries   work ").cached
    assert sample.search(" how do retries   work ").to_dict() == first.to_dict()
    assert not sample.search("How do retries work").cached
    assert not sample.search("how do retries work", bypass_cache=True).cached
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


QUERY = "how do retries work after a timeout"


def test_a_reranker_orders_the_top_and_leaves_scores_alone(sample):
    plain = sample.search(QUERY, plan="limit=20")
    again = sample.search(QUERY, plan="limit=20 rerank.model=overlap rerank.top=5")
    assert {h.chunk_id for h in again.hits[:5]} == {h.chunk_id for h in plain.hits[:5]}
    assert [h.chunk_id for h in again.hits[5:]] == [h.chunk_id for h in plain.hits[5:]]
    scores = [h.scores["rerank"] for h in again.hits if "rerank" in h.scores]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)
    assert all(h.score == math.fsum(h.contributions.values()) for h in again.hits)
    assert "rerank_ms" in again.timings_ms
    assert [s.step for s in again.steps][-2:] == ["rerank", "limit"]
    assert plain.with_plan("limit=20 rerank.model=overlap rerank.top=5").to_dict() == again.to_dict()


@pytest.mark.parametrize("model", ["no/such/model", "endpoint:gpt"])
def test_a_reranker_that_fails_leaves_the_fused_order_and_a_warning(sample, model):
    plain = sample.search(QUERY)
    again = sample.search(QUERY, plan=wb.preset("default").replace({"rerank.model": model}))
    assert [h.chunk_id for h in again.hits] == [h.chunk_id for h in plain.hits]
    assert "Reranking was left out" in " ".join(again.warnings)


def test_a_rewritten_query_goes_to_the_vector_side_only(sample):
    plain = sample.search(QUERY)
    again = sample.search(QUERY, plan="rewrite.model=keywords")
    assert again.rankings["keyword"] == plain.rankings["keyword"]
    assert again.rankings["vector"] != plain.rankings["vector"]
    assert "rewrite_ms" in again.timings_ms
    echoed = sample.search(QUERY, plan="rewrite.model=echo")
    assert echoed.rankings == plain.rankings
    plain = sample.search(QUERY)
    again = sample.search(QUERY, plan="rewrite.model=endpoint:gpt")
    assert [h.chunk_id for h in again.hits] == [h.chunk_id for h in plain.hits]
    assert "Rewriting was left out" in " ".join(again.warnings)


def test_plans_of_others_name_only_what_the_owner_lists(sample_path, monkeypatch):
    who = wb.Principal("acme", ("support",))
    monkeypatch.setenv("WORKBENCH_ALLOWED_MODELS", "/no/such/model")
    with wb.open_corpus(sample_path, who, served=True) as served:
        for field, model in [("rerank", "/etc"), ("rerank", "/no/such"), ("rewrite", "endpoint:x")]:
            said = " ".join(served.search(QUERY, plan=f"default {field}.model={model}").warnings)
            assert f"The plan names the model {model!r}, which is not allowed here" in said
        assert "Reranking was left out: There is no" in " ".join(
            served.search(QUERY, plan="rerank.model=/no/such/model").warnings
        )
        assert "rerank_ms" in served.search(QUERY, plan="rerank.model=overlap").timings_ms


def test_a_snapshot_that_names_a_model_is_run_when_it_may_be_loaded(sample, sample_path, tmp_path, monkeypatch):
    plans = ("rerank.model=/no/such/model", "rewrite.model=endpoint:x rerank.model=overlap")
    snapshot = wb.Snapshot.of([sample.search(QUERY, plan=plan) for plan in plans])
    assert snapshot.models == ("/no/such/model", "endpoint:x")
    assert all(name in snapshot._repr_html_() for name in snapshot.models)
    checked = snapshot.verify(sample)
    assert not checked.ran
    assert [name in one.differences[0] for name, one in zip(snapshot.models, checked.searches, strict=True)] == [
        True,
        True,
    ]
    assert snapshot.verify(sample, load_models=True).ran
    with wb.open_corpus(sample_path, sample.principal, served=True) as served:
        assert not snapshot.verify(served, load_models=True).ran
    file = str(snapshot.save(tmp_path / "x"))
    asker = ["--corpus", str(sample_path), "--tenant", "acme", "--role", "admin", "--role", "support"]
    shown = CliRunner().invoke(main, ["snapshot", "show", file]).output
    assert "Models, which only verifying loads, and asks first: /no/such/model, endpoint:x" in shown
    assert "its plan loads endpoint:x" in CliRunner().invoke(main, ["snapshot", "verify", file, *asker]).output
    assert "Verified" in CliRunner().invoke(main, ["snapshot", "verify", file, "--load-models", *asker]).output
    monkeypatch.setenv("WORKBENCH_ALLOWED_MODELS", ",".join(snapshot.models))
    assert snapshot.verify(sample).ran


Make = Callable[..., wb.Corpus]


def test_an_example_has_code_description_tags_and_address(sample):
    record, block, *_ = sample.search_examples("arpeggio")
    assert (record.title, record.tags) == ("Noon bells", ("melody", "arpeggio", "bell"))
    assert record.description == "Three notes climb, the highest stays: an arpeggio for the front door."
    assert record.code == 'chord("c3 e3 g3").arp("up").sound("bell")'
    assert record.url == "https://chime.acme.example/s/noon"
    assert record.citation == "examples.jsonl#ex-noon:1-1"
    assert (block.title, block.description) == ("Arpeggios", "A doorbell that climbs:")
    assert block.code == 'chord("c3 e3 g3").arp("up").sound("bell")'
    assert block.tags == ("melody",)
    assert block.url == "https://chime.acme.example/learn/arpeggio"
    assert block.citation == "pages/arpeggio.md:27-27"
    line = sample.read_file("pages/arpeggio.md").splitlines()[block.start_line - 1]
    assert line.strip() == block.code
    found = sample.search_examples("arpeggio plays the notes of a chord one after the other", limit=50)
    assert {e.path.partition("#")[0] for e in found} == {
        "examples.jsonl", "pages/arpeggio.md", "pages/filters.md", "pages/rhythm.md",
    }  # fmt: skip
    assert len(sample.search_examples("arpeggio", limit=2)) == 2
    assert sample.search_examples("  ") == ()
    for limit in (0, 1001):
        with pytest.raises(UsageError):
            sample.search_examples("arpeggio", limit=limit)
    plan = "pages organise=none dedupe=no limit=50 keyword.operator=all"
    cosines = {h.chunk_id: h.scores["vector"] for h in sample.search("waltz", mode="vector", plan=plan).hits}
    lexical = sample.search("waltz", mode="keyword", plan=plan).hits
    words = {h.chunk_id: h.scores["keyword"] for h in lexical}
    chunk = {h.path: h.chunk_id for h in lexical if h.path.startswith("examples") or "Examples" in h.section}
    record, block = sample.search_examples("waltz", limit=2)
    assert (record.path, block.path) == ("examples.jsonl#ex-postman", "pages/rhythm.md")
    best = max(words[c] for c in chunk.values())
    for example in (record, block):
        own = chunk[example.path]
        assert example.contributions["keyword"] == pytest.approx(0.3 * words[own] / best, abs=1e-15)
        assert example.contributions["vector"] == pytest.approx(0.7 * max(0.0, cosines[own]), abs=1e-15)
        assert example.score == math.fsum(example.contributions.values())
    assert block.description.startswith("A waltz, three to the cycle")


@pytest.mark.slow
def test_files_and_front_matter_of_type_example(make_corpus):
    corpus = make_corpus(
        {
            "owl.md": "---\ntype: example\ntags: night, owl\n---\n# Owl\n\nTwo low notes.\n\n"
            "```js\nnote('c2')\n```\n\nThen:\n\n```\nslow(4)\n```\n",
            "hen.jsonl": json.dumps(
                {"id": "h", "type": "example", "title": "Hen", "text": "A hen.", "code": "cluck()"}
            ),
            "page.md": "# Owls\n\nThe owl hoots.\n\n```js\nhoot()\n```\n",
        }
    )
    found = {e.title: e for e in corpus.search_examples("owl night hen")}
    assert sorted(found) == ["Hen", "Owl"]
    owl = found["Owl"]
    assert (owl.code, owl.description, owl.tags) == ("note('c2')\n\nslow(4)", "Two low notes.", ("night", "owl"))
    assert found["Hen"].code == "cluck()"


def test_a_side_that_fails_leaves_the_other(sample, monkeypatch):
    def fail(*args: object, **options: object) -> None:
        raise EncoderError("The model is gone", "Fetch it again")

    full = sample.search_examples("arpeggio")
    assert full.warnings == ()
    with monkeypatch.context() as patched:
        patched.setattr(type(sample.engine.lexical), "search", fail)
        alone = sample.search_examples("arpeggio")
        assert alone.warnings == (
            "keyword could not run: The model is gone. Fetch it again. The result is from vector",
        )
        assert [set(e.contributions) for e in alone] == [{"vector"}] * len(alone)
        assert {e.title: e.contributions["vector"] for e in full}["Noon bells"] == alone[0].score
    monkeypatch.setattr(type(sample.engine.vectors("")), "search", fail)
    words = sample.search_examples("arpeggio")
    assert words.warnings[0].startswith("vector could not run: The model is gone")
    assert [e.title for e in words] == ["Noon bells", "Arpeggios"]
    monkeypatch.setattr(type(sample.engine.lexical), "search", fail)
    with pytest.raises(SourceUnavailable, match="Fetch it again"):
        sample.search_examples("arpeggio")


def test_the_command_prints_them(sample_path):
    """`workbench examples` prints code and citation; as JSON all there is; exit code 1 where there are none."""
    who = ["--corpus", str(sample_path), "--tenant", "acme"]
    shown = CliRunner().invoke(main, ["examples", "arpeggio", *who])
    assert shown.exit_code == 0
    assert "examples.jsonl#ex-noon:1-1" in shown.output
    assert 'chord("c3 e3 g3").arp("up").sound("bell")' in shown.output
    data = json.loads(CliRunner().invoke(main, ["examples", "waltz", "--json", "-n", "1", *who]).stdout)
    assert [d["title"] for d in data] == ["The postman waltz"]
    assert data[0]["score"] == math.fsum(data[0]["contributions"].values())
    none = CliRunner().invoke(main, ["examples", "arpeggio", "--corpus", str(sample_path), "--tenant", "birch"])
    assert none.exit_code == 1


ASKED = "how do retries work"


@pytest.mark.parametrize("asked", ["default limit=1", "default limit=1 collections=artifacts", "collections limit=1"])
@pytest.mark.parametrize("filters", [None, "type = 'code'"])
def test_what_else_keeps_a_filtered_document_out_is_told_too(asked, filters, sample):
    """Without the filter and with the changes the document is a result; where that cannot be, nothing is promised."""
    result = sample.search(ASKED, plan=asked, filters=filters)
    promised = 0
    for path in ("kb/timeouts.md", "kb/winter.txt", "artifacts/letter-archive.md"):
        found = sample.explain(result, path)
        if found.dropped_by != "filters":
            continue
        changed = result.plan.replace(found.changes or {})
        again = sample.search(ASKED, plan=changed)
        assert found.verified == (path in {h.path for h in again.hits})
        assert all(f"{field}={value}" in found.remedy for field, value in (found.changes or {}).items())
        assert found.remedy.startswith("Take the filter away" if filters else "Set collections=all")
        assert ("collections" in (found.changes or {})) == ("collection" in asked and not path.startswith("artifacts"))
        promised += found.verified
    assert promised or not filters


@pytest.fixture(scope="module")
def shelf(corpus_of: Make) -> wb.Corpus:
    """Two short notes, and one long one that fills a list of chunks by itself."""
    files = {
        "run.md": "Start the tool with -v and an input file.\n",
        "other.md": "zebra crossing\n",
        "long.md": "\n\n".join(f"# Part {n}\n\n{'lantern ' * 150}{n}" for n in range(6)) + "\n",
        "short.md": "a lantern and " + " ".join(f"thing{n}" for n in range(30)) + "\n",
    }
    return corpus_of(files)


@pytest.mark.parametrize(
    ("query", "plan", "reason", "remedy", "changes"),
    [
        ("tool -v input", "rrf", "it has v, which the query leaves out with -v", "Take -v out of the query", None),
        (
            "tool zebra",
            "rrf keyword.operator=all",
            "it lacks zebra, and keyword.operator=all needs every word",
            "Set keyword.operator=any",
            {"keyword.operator": "any"},
        ),
        (
            '"file input"',
            "rrf",
            'it has the words of "file input", but not next to each other in that order',
            "Take the quotes out of the query",
            None,
        ),
        (
            "tool -v zebra",
            "rrf keyword.operator=all",
            "it has v, which the query leaves out with -v, and it lacks zebra",
            "Take -v out of the query, and set keyword.operator=any",
            {"keyword.operator": "any"},
        ),
        ("lamp oil", "rrf", "it has none of lamp and oil", "Use the mode hybrid", None),
    ],
)
def test_what_keeps_the_words_of_a_document_from_counting(query, plan, reason, remedy, changes, shelf):
    result = shelf.search(query, mode="keyword", plan=plan)
    found = shelf.explain(result, "run.md")
    assert found.dropped_by == "match"
    assert reason in found.reason
    assert found.remedy.startswith(remedy)
    assert found.changes == changes
    assert found.verified
    changed = result.plan.replace(found.changes or {})
    again = shelf.search(found.query or query, mode=found.mode or "keyword", plan=changed)
    assert "run.md" in {h.path for h in again.hits}


def test_what_lifts_a_document_comes_before_more_results(shelf):
    result = shelf.search("lantern", mode="keyword", plan="rrf limit=3")
    found = shelf.explain(result, "short.md")
    assert (found.dropped_by, found.changes, found.verified) == ("limit", {"fusion.unit": "document"}, True)
