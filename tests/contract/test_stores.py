"""One contract for both stores: what is found on Milvus (here milvus-lite) is what DuckDB and usearch find."""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from corpus_files import write_files

import workbench as wb
from workbench.errors import SourceUnavailable
from workbench.store.access.visibility import SeeAll
from workbench.store.lexical.query import parse

pytest.importorskip("pymilvus", reason="needs the extra [milvus]")
pytest.importorskip("milvus_lite", reason="needs the extra [milvus]")

SUPPORT, ADMIN = wb.Principal("acme", ("support",)), wb.Principal("acme", ("admin",))
TOPICS = (
    "retries and queues",
    "billing of invoices",
    "rain on the roof",
    "connection pool timeouts",
    "shipping labels",
)
FILES = {
    f"{folder}/{n:02}.md": f"---\nyear: {2018 + n % 6}\ntags: [t{n % 3}]\n---\n# {TOPICS[n % 5].title()} {n}\n\n"
    + f"{TOPICS[n % 5]} and {TOPICS[n % 3]}. " * (1 + n % 4)
    + f"\n\n## Part\n\nAbout ACME-INV-{49300 + n} and parse_query, it's 100% {'café' if n % 2 else 'naïve'}.\n"
    for folder in ("all", "admin", "other")
    for n in range(20)
} | {"all/long.md": "one line of many words " * 3000, "all/copy.md": "same text", "all/copy2.md": "same text"}
RULES = (
    'rules:\n  - path: "**"\n    tenant: acme\n  - path: "admin/**"\n    roles: [admin]\n'
    '  - path: "other/**"\n    tenant: birch\ncollections:\n  pages: document\n'
)
QUERIES = (
    "retries", "billing of invoices", '"connection pool"', '"retries and queues" -roof', "retr* rain", "ACME-INV-49304",
    "parse_query OR shipping", "café", "nothingofthekind", "words",
)  # fmt: skip
FILTERS = (None, "year >= 2020", "path = 'all/0*'", "tags contains 't1' and not path = 'admin/**'", "type = 'x'")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same files in two corpora: here, and on Milvus."""
    folder = tmp_path_factory.mktemp("stores")
    write_files(folder / "files", FILES)
    for name, store in (("here", ""), ("milvus", str(folder / "milvus.db"))):
        write_files(folder / name, {"corpus.yaml": RULES})
        wb.index([folder / "files"], corpus=folder / name, encoder="hashing", collection=["docs", "pages"], store=store)
    return folder


@pytest.fixture(scope="module")
def pairs(stores):
    with ExitStack() as stack:
        yield {
            who: tuple(stack.enter_context(wb.open_corpus(stores / name, who)) for name in ("here", "milvus"))
            for who in (SUPPORT, ADMIN)
        }


@pytest.fixture(params=(SUPPORT, ADMIN), ids=("support", "admin"))
def each(pairs, request):
    """Two open corpora for each principal: here, and on Milvus."""
    return pairs[request.param]


@pytest.fixture
def both(pairs):
    """Two open corpora: here, and on Milvus."""
    return pairs[SUPPORT]


@pytest.mark.parametrize("mode", ["keyword", "vector", "grep", "hybrid"])
def test_every_source_finds_the_same_in_the_same_order(each, mode):
    for query in QUERIES:
        here, there = (corpus.search(query, mode=mode, limit=50, bypass_cache=True) for corpus in each)
        assert not there.unavailable
        assert [(h.chunk_id, h.text, h.citation) for h in here.hits] == [
            (h.chunk_id, h.text, h.citation) for h in there.hits
        ]
        assert [h.score for h in there.hits] == pytest.approx([h.score for h in here.hits], abs=1e-6)
        assert here.funnel().equals(there.funnel())


def test_filters_collections_and_exclusions_hold_inside_the_search(both):
    for where in FILTERS:
        for plan in (
            "default",
            "default keyword.operator=all",
            "contract collections=pages",
            "rrf keyword.k1=2 keyword.b=1",
        ):
            here, there = (c.search("retries and queues -shipping", plan=plan, filters=where, limit=5) for c in both)
            assert [h.chunk_id for h in here.hits] == [h.chunk_id for h in there.hits], (where, plan)
            assert not there.unavailable


@pytest.mark.parametrize("preset", ["default", "rrf", "tmm", "passages", "collections", "pages", "contract", "scoped"])
def test_presets_answer_alike(both, preset):
    here, there = (corpus.search("connection pool timeouts", plan=preset, bypass_cache=True) for corpus in both)
    assert [(h.chunk_id, h.label, h.ranks) for h in here.hits] == [(h.chunk_id, h.label, h.ranks) for h in there.hits]
    assert here.messages == there.messages


def test_explain_says_the_same_of_what_is_there_and_what_is_missing(both):
    results = [corpus.search("retries -roof", limit=3) for corpus in both]
    for target in ("all/03.md", "all/07.md", "all/long.md", "other/01.md"):
        here, there = (corpus.explain(result, target) for corpus, result in zip(both, results, strict=True))
        assert str(here) == str(there)


def test_words_are_counted_over_what_the_principal_may_see(both):
    words = ("retries", "rain", "connection pool", "parse_query", "birch")
    here, there = (corpus.frequencies(words) for corpus in both)
    assert here == there
    assert here["retries"] < len(FILES)
    indexes = [corpus.engine.lexical for corpus in both]
    scopes = [corpus.engine.records.scope(corpus.principal, "year >= 2020", ()) for corpus in both]
    matchers = [matcher for matcher, _ in parse('retries "connection pool" ship*').scored]
    held = [index.where(matchers, scope) for index, scope in zip(indexes, scopes, strict=True)]
    for matcher in matchers:
        assert held[0][matcher].tolist() == held[1][matcher].tolist()
    bounds = [i.upper_bound("retries rain", s, k1=0.9) for i, s in zip(indexes, scopes, strict=True)]
    assert bounds[0] == bounds[1]


def test_scores_of_given_records_are_those_of_the_search(both):
    here, _ = both
    vector = here.engine.embed("retries", "")
    for corpus in both:
        engine = corpus.engine
        scope = engine.records.scope(corpus.principal, None, ())
        for found, again in (
            (
                lambda e=engine, s=scope: e.vectors("").search(vector, s, 20),
                lambda n, e=engine: e.vectors("").score(vector, n),
            ),
            (
                lambda e=engine, s=scope: e.lexical.search("retries rain", s, 20, k1=0.9, b=0.4, operator="any"),
                lambda n, e=engine, s=scope: e.lexical.score("retries rain", s, n, k1=0.9, b=0.4, operator="any"),
            ),
        ):
            scored = found()
            assert scored.scores.tolist() == again(scored.numbers).tolist()
            assert len(scored.numbers)
    numbers = np.array([5, 0, 5])
    stored = [corpus.engine.vectors("").vectors(numbers) for corpus in both]
    np.testing.assert_allclose(stored[0], stored[1], atol=1e-7)


def test_grep_reads_lines_and_whole_documents_alike(both):
    for pattern, how in (
        ("ACME-INV-4930[0-4]", {"regex": True}),
        ("it's 100%", {}),
        ("Part", {"case": "sensitive"}),
        ("CAFÉ", {}),
    ):
        here, there = (corpus.grep(pattern, 1, **how) for corpus in both)
        assert here == there
    for path in ("all/long.md", "all/03.md"):
        here, there = (corpus.read_file(path) for corpus in both)
        assert here == there
        assert here.startswith(("one line", "---"))
    for corpus in both:
        assert corpus.read_file("other/01.md").startswith("[ERROR: NOT_FOUND]")


def test_documents_with_more_of_the_patterns_are_read_first_where_not_all_are(pairs, monkeypatch):
    from workbench.store.milvus import read

    here, there = pairs[ADMIN]
    patterns = ["rain on the roof", "ACME-INV-49317", "number that nobody wrote"]
    whole = here.grep(patterns)
    monkeypatch.setattr(read, "_MOST_DOCUMENTS", 1)
    cut = there.grep(patterns)
    assert {passage.path for passage in cut} == {whole[0].path}
    assert "ACME-INV-49317" in "".join(passage.text for passage in cut)


@pytest.mark.parametrize("operator", ["any", "all"])
def test_candidates_are_looked_for_until_there_are_enough(both, monkeypatch, operator):
    from workbench.store.milvus import read

    monkeypatch.setattr(read, "_width", lambda depth: 2)
    for query in QUERIES:
        plan = f"default keyword.operator={operator}"
        here, there = (c.search(query, mode="keyword", plan=plan, limit=50, bypass_cache=True) for c in both)
        assert [(h.chunk_id, h.score) for h in here.hits] == [(h.chunk_id, h.score) for h in there.hits]


def test_a_match_that_is_not_counted_to_the_end_says_so(both, monkeypatch):
    from workbench.store.milvus import read

    monkeypatch.setattr(read, "_width", lambda depth: depth)
    found = []
    for corpus in both:
        result = corpus.search("retries rain", mode="keyword", plan="default depth.keyword=5", bypass_cache=True)
        found.append(next((step.left, step.reason) for step in result.steps if step.step == "match"))
    assert found[0][0] > 5
    assert found[0][1] == "words that match"
    assert found[1] == (5, "words that match: at least 5, the likeliest were looked at")


def test_a_hybrid_search_asks_milvus_once_a_source_and_once_for_what_is_missing(pairs, monkeypatch):
    from workbench.store.milvus.remote import Remote

    there, asked, call = pairs[ADMIN][1], [], Remote.call
    monkeypatch.setattr(
        Remote, "call", lambda self, *given, **more: asked.append(given[0]) or call(self, *given, **more)
    )
    plan = "default depth.keyword=20 depth.vector=20"
    assert there.search("shipping labels and retries", plan=plan, bypass_cache=True).hits[0].text
    assert asked.count("search") == 2
    assert len(asked) <= 3
    asked.clear()
    there.search("shipping labels and retries", plan=plan, bypass_cache=True)
    assert asked == ["search", "search"]


def test_what_a_corpus_says_of_itself_is_the_same(both):
    here, there = (dict(corpus.info()) for corpus in both)
    assert {k: v for k, v in here.items() if k != "generation"} == {k: v for k, v in there.items() if k != "generation"}


def test_a_snapshot_of_one_is_verified_on_the_other(both):
    here, there = both
    for made, asked in ((here, there), (there, here)):
        verified = made.search("retries", limit=5).snapshot().verify(asked)
        assert verified.ok
        assert verified.ran


def test_masked_texts_are_masked_there_too(stores):
    class Masked(SeeAll):
        name = "masked"

        def redacts(self, principal):
            return True

        def redact(self, principal, document):
            return replace(document, text=re.sub("queues", "██████", document.text, flags=re.IGNORECASE))

    found = []
    for name in ("here", "milvus"):
        with wb.open_corpus(stores / name, SUPPORT, policy=Masked()) as corpus:
            assert not corpus.search("queues", mode="keyword").hits
            assert not corpus.grep("queues")
            found.append([h.text for h in corpus.search("retries", mode="keyword").hits])
    assert found[0] == found[1]
    assert "██████" in "".join(found[0])


# --- runs ------------------------------------------------------------------------------------------------------------------


def test_a_run_changes_what_changed_and_the_alias_when_all_is_there(tmp_path, monkeypatch):
    files, corpus, store = tmp_path / "files", tmp_path / "corpus", str(tmp_path / "store.db")
    write_files(files, {f"{n}.md": f"# Title {n}\n\napples number{n}" for n in range(6)})
    wb.index([files], corpus=corpus, encoder="hashing", store=store)
    monkeypatch.setenv("WORKBENCH_STORE", store)
    with wb.open_corpus(tmp_path / "elsewhere", follow=True) as other:  # from the store alone
        assert len(other.search("apples", mode="keyword").hits) == 6
        from workbench.store import build

        with monkeypatch.context() as broken:
            broken.setattr(build.generations, "complete", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            write_files(files, {"0.md": "pears"})
            with pytest.raises(KeyboardInterrupt):
                wb.index([files], corpus=corpus)
        assert len(other.search("apples", mode="keyword", bypass_cache=True).hits) == 6
        (files / "5.md").unlink()
        report = wb.index([files], corpus=corpus)
        assert (report.changed, report.documents, report.embedded) == (True, 5, 0)
        assert len(other.search("apples", mode="keyword").hits) == 4
        assert other.search("pears", mode="vector").hits[0].path == "0.md"
    with pytest.raises(wb.errors.CorpusError, match="has no texts to carry over"):
        wb.index([write_files(tmp_path / "more", {"z.md": "z"})], corpus=tmp_path / "elsewhere")
    monkeypatch.delenv("WORKBENCH_STORE")
    assert not wb.index([files], corpus=corpus).changed
    assert wb.index([files], corpus=corpus, store="").embedded == 0
    with wb.open_corpus(corpus) as back:
        assert len(back.search("apples", mode="keyword").hits) == 4


def test_a_run_after_a_killed_one_writes_the_blocks_that_are_missing(tmp_path, monkeypatch):
    from workbench.store.milvus import write
    from workbench.store.milvus.remote import Remote

    files = write_files(tmp_path / "files", {f"{n}.md": f"apples number{n}" for n in range(6)})
    written, call = [], Remote.call

    def counted(self, method, *given, **more):
        if method == "upsert" and given[0] == self.name:
            if len(written) == 2:
                written.append([])
                raise KeyboardInterrupt
            written.append([row["number"] for row in given[1]])
        return call(self, method, *given, **more)

    monkeypatch.setattr(write, "BLOCK", 2)
    monkeypatch.setattr(Remote, "call", counted)
    how = {"corpus": tmp_path / "corpus", "encoder": "hashing", "store": str(tmp_path / "store.db")}
    with pytest.raises(KeyboardInterrupt):
        wb.index([files], **how)
    assert wb.index([files], **how).embedded == 0
    assert written == [[0, 1], [2, 3], [], [4, 5]]
    with wb.open_corpus(tmp_path / "corpus") as corpus:
        assert len(corpus.search("apples", mode="keyword").hits) == 6


def test_older_generations_are_dropped_and_those_of_other_corpora_stay(tmp_path, monkeypatch):
    from workbench.store.milvus.remote import Remote
    from workbench.store.milvus.write import drop_older

    own = [f"docs_00000{n}_abc{n}" for n in (1, 2, 3)]
    others = ["docs_a_000001_abc", "docs_b_000001_abc", "docs_b_000002_abc", "docs_1_000001_abc", "papers_000001_abc"]
    dropped = []

    def call(self, method, *given):
        if method == "list_collections":
            return [name + end for name in own + others for end in ("", "_lines")]
        dropped.extend(given)

    monkeypatch.setenv("WORKBENCH_STORE_NAME", "docs")
    monkeypatch.setattr(Remote, "call", call)
    drop_older(tmp_path, Remote("x.db", own[2]))
    assert sorted(dropped) == [own[0], f"{own[0]}_lines"]


def test_fusion_agrees_with_milvus_own_rankers(both):
    from pymilvus import AnnSearchRequest, RRFRanker, WeightedRanker

    from workbench.store.milvus.remote import _client
    from workbench.store.milvus.write import vector_field

    _, there = both
    engine = there.engine
    manifest = engine.opened.manifest
    scope = engine.records.scope(there.principal, None, ())
    vector = engine.embed("retries rain", "")
    scored, weights = engine.lexical, parse("retries rain").scored
    sparse = scored._weights(weights, scored.counts([m for m, _ in weights], scope), scope)
    where = scored._texts.expressions.records(scope)
    asked = [
        AnnSearchRequest([data], field, {"metric_type": "IP"}, limit=40, expr=where)
        for data, field in ((sparse, "words"), (vector, vector_field(manifest.encoder)))
    ]
    client = _client(manifest.remote["uri"])
    (found,) = client.hybrid_search(manifest.remote["name"], asked, RRFRanker(60), limit=10)
    ours = there.search(
        "retries rain", plan="rrf depth.keyword=40 depth.vector=40 sources=keyword,vector fusion.k=60 dedupe=no"
    )
    theirs = {int(hit["number"]): hit["distance"] for hit in found}
    numbers = [engine.records.find_record(h.chunk_id, scope) for h in ours.hits]
    for number, hit in zip(numbers, ours.hits, strict=True):
        if number in theirs:
            assert theirs[number] == pytest.approx(hit.score, abs=2e-3)
    assert len(theirs.keys() & set(numbers)) >= 7
    (weighted,) = client.hybrid_search(manifest.remote["name"], asked, WeightedRanker(0.0, 1.0), limit=10)
    alone = engine.vectors("").search(vector, scope, 10)
    assert {int(h["number"]) for h in weighted} >= set(alone.numbers[:5].tolist())


def test_a_server_that_goes_away_is_a_warning_and_comes_back_without_a_restart(tmp_path, monkeypatch):
    from milvus_lite.adapter.grpc.server import MilvusServicer, start_server_in_thread

    awake, search = threading.Event(), MilvusServicer.Search
    awake.set()
    monkeypatch.setattr(MilvusServicer, "Search", lambda *given: awake.wait(20) and search(*given))
    server, database, port = start_server_in_thread(str(tmp_path / "data.db"))
    store = f"http://127.0.0.1:{port}"
    files = write_files(tmp_path / "files", {"a.md": "apples", "b.md": "pears"})
    wb.index([files], corpus=tmp_path / "corpus", encoder="hashing", store=store)
    monkeypatch.setenv("WORKBENCH_STORE_TIMEOUT_SECONDS", "0.5")
    with wb.open_corpus(tmp_path / "corpus") as corpus:
        kept = corpus.search("apples", plan="default cache_seconds=180")
        assert kept.hits[0].text == "apples"
        awake.clear()
        with pytest.raises(SourceUnavailable, match=r"does not answer: nothing came within 0.5 s"):
            corpus.search("pears", mode="keyword")
        awake.set()
        server.stop(grace=0).wait()
        database.close()
        with pytest.raises(SourceUnavailable, match=r"Milvus at http://127.0.0.1:\d+ does not answer"):
            corpus.search("pears", mode="keyword")
        assert corpus.search("apples", plan="default cache_seconds=180").hits[0].text == "apples"  # from the cache
        server, database, _ = start_server_in_thread(str(tmp_path / "data.db"), port=port)
        try:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                try:
                    found = corpus.search("pears", mode="keyword", bypass_cache=True)
                    break
                except SourceUnavailable:
                    continue
            assert [h.path for h in found.hits] == ["b.md"]
        finally:
            server.stop(grace=0).wait()
            database.close()


def test_several_threads_search_at_once(pairs):
    corpus = pairs[ADMIN][1]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda q: json.dumps([h.chunk_id for h in corpus.search(q).hits]), QUERIES * 2))
    assert found[: len(QUERIES)] == found[len(QUERIES) :]
