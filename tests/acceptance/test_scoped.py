"""`scoped`: two sides weighed for one tenant's roles, cached for three minutes, strong exact hits kept."""

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from cachetools import TLRUCache
from click.testing import CliRunner
from corpus_files import write_files
from endpoint_server import hangs, serving

import workbench as wb
from workbench.cli.main import main
from workbench.corpus import _until
from workbench.errors import CorpusLocked, IndexingStopped, PrincipalRequired
from workbench.plan.plan import Plan
from workbench.records import Label, Principal
from workbench.retrieve.request import cache_key, make_request
from workbench.saved.jobs import list_jobs
from workbench.store import locks

Make = Callable[..., wb.Corpus]
ALL_ACME = 'rules:\n  - path: "**"\n    tenant: acme\n'
ADMIN, SUPPORT = Principal("acme", ("admin",)), Principal("acme", ("support",))
# Grep alone has a weight and finds the same word once in each, so that results stand by path.
BY_PATH = "scoped limit=2 keyword.operator=any grep.when=always fusion.weights.keyword=0 fusion.weights.vector=0"


@pytest.fixture(scope="module")
def path(corpus_of: Make) -> Path:
    """Documents of one tenant, one of them for admins, and one of another tenant."""
    files = {f"all/{n:02d}.md": f"retries and queues number{n}" for n in range(12)}
    files["all/long.md"] = "retries and queues " * 3 + "ACME-INV-49302 " + "roofs and rain and roads " * 40
    files["admin/pay.md"] = "retries of pay, for admins: salaries"
    files["other/a.md"] = "retries of another tenant"
    rules = '  - path: "admin/**"\n    roles: [admin]\n  - path: "other/**"\n    tenant: birch\n'
    return corpus_of(files, SUPPORT, ALL_ACME + rules).path


@pytest.fixture
def desk(path: Path) -> Iterator[wb.Corpus]:
    with wb.open_corpus(path, SUPPORT) as corpus:
        yield corpus


def test_both_sides_run_at_the_same_time_and_the_question_is_embedded_once(desk, meet, embedded):
    came = meet(desk, {"keyword": 1, "vector": 1})
    assert desk.search("retries", plan="scoped").hits
    assert min(came.values()) == 1
    desk.search("retries and queues", plan="scoped")
    desk.search("retries and queues", plan="scoped", bypass_cache=True)
    assert embedded == ["retries", "retries and queues"]


def test_sixty_five_to_thirty_five_over_each_list_from_0_to_1(desk):
    result = desk.search("retries queues number3", plan="scoped keyword.operator=any keyword.keep_strongest=no")
    assert len(result.hits) == 8
    spans = {}
    for source, ranking in result.rankings.items():
        scores = [e.score for e in ranking.entries]
        spans[source] = (min(scores), max(scores))
    for hit in result.hits:
        for source, weight in (("vector", 0.65), ("keyword", 0.35)):
            low, high = spans[source]
            own = hit.scores.get(source)
            expected = 0.0 if own is None else weight * (own - low) / (high - low)
            assert hit.contributions[source] == pytest.approx(expected)
    fusion = wb.preset("scoped").fusion
    one = wb.fuse({"keyword": [("a", 7.0)], "vector": [("b", 0.2), ("c", 0.2)]}, fusion)
    assert dict(zip(one.chunk_ids, one.scores.tolist(), strict=True)) == {"b": 0.65, "c": 0.65, "a": 0.35}
    assert one.chunk_ids == ("b", "c", "a")


def test_a_chunk_is_a_result_once_in_the_same_order_every_time(desk):
    hits = desk.search("retries and queues", plan="scoped").hits
    assert len({(h.document_id, h.chunk_index) for h in hits}) == len(hits) == 8
    runs = [
        [(h.path, h.score) for h in desk.search("retries", plan="scoped", limit=50, bypass_cache=True).hits]
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_the_keyword_side_reads_codes_and_the_syntax_of_web_search(desk):
    found = {}
    queries = ("retries number7", "retries OR salaries", '"queues retries"', "retries -number7", "number7 OR number8")
    for query in queries:
        entries = desk.search(query, plan="scoped").rankings["keyword"].entries
        found[query] = sorted(e.path.removeprefix("all/").removesuffix(".md") for e in entries)
    every = [f"{n:02d}" for n in range(12)]
    assert found["retries number7"] == ["07"]
    assert found["retries OR salaries"] == [*every, "long"]
    assert found['"queues retries"'] == ["long"]
    assert found["retries -number7"] == [n for n in (*every, "long") if n != "07"]
    assert found["number7 OR number8"] == ["07", "08"]
    assert "all/long.md" in {h.path for h in desk.search("ACME-INV-49302", plan="scoped").hits}
    found = [desk.search(f"number7 {word} number8", plan="scoped", mode="keyword").hits for word in ("OR", "or")]
    assert [h.chunk_id for h in found[0]] == [h.chunk_id for h in found[1]]
    assert {h.path for h in found[1]} == {"all/07.md", "all/08.md"}


@pytest.mark.parametrize(
    ("query", "kept"), [("retries number7", True), ("retries number7 number8 number9 number10 number11", False)]
)
def test_the_strongest_exact_hit_is_kept_if_it_is_strong(desk, query, kept):
    """Not among the first k, it replaces the k-th if its score is at least half of what the query could give."""
    strongest = desk.search(query, mode="keyword").hits[0]
    bound = desk.engine.lexical.upper_bound(
        query, desk.engine.records.scope(SUPPORT, None, ()), k1=wb.preset("scoped")["keyword.k1"]
    )
    assert strongest.path == "all/07.md"
    assert (strongest.scores["keyword"] >= bound / 2) is kept
    without = [h.path for h in desk.search(query, "retries", plan=BY_PATH + " keyword.keep_strongest=no").hits]
    assert without == ["all/00.md", "all/01.md"]
    result = desk.search(query, "retries", plan=BY_PATH)
    assert [h.path for h in result.hits] == ([without[0], strongest.path] if kept else without)
    # That it was put in is in the message, the label, the table, the funnel and the explanation of what it replaced.
    assert any("all/07.md, the strongest keyword hit, is number 8" in m for m in result.messages) is kept
    assert (result.hits[1].label is Label.STRONGEST) is kept
    assert ("Strongest keyword hit" in result.frame()["label"].to_list()) is kept
    assert (result.steps[-1].step == "strongest" and "in place of all/01.md" in result.steps[-1].reason) is kept
    assert (desk.explain(result, "all/01.md").dropped_by == "strongest") is kept
    # It never takes the first place.
    assert [h.path for h in desk.search(query, "retries", plan=BY_PATH, limit=1).hits] == ["all/00.md"]


def test_the_strongest_hit_keeps_its_document_and_equal_texts_their_places(make_corpus):
    files = {f"{n}.md": f"retries and queues number{n}" for n in range(4)}
    files["z.md"] = "# One\n\nretries and queues " + "roofs and rain and roads " * 150 + "\n\n# Two\n\nzebra7 number"
    plan = "default fusion.method=rrf fusion.weights.keyword=0 fusion.weights.vector=0 grep.when=always limit=2"
    plan += " fusion.unit=document"
    desk = make_corpus(files)
    assert [h.path for h in desk.search("zebra7", "retries", plan=plan).hits] == ["0.md", "1.md"]
    last = desk.search("zebra7", "retries", plan=plan + " keyword.keep_strongest=yes").hits[-1]
    assert (last.path, last.label) == ("z.md", Label.STRONGEST)
    assert "zebra7" not in last.text
    corpus = make_corpus({"a.md": "retries\n", "b.md": "retries\n\n"})
    with wb.open_corpus(corpus.path, Principal(None)) as opened:
        for plan in ("scoped", "contract"):
            assert len(opened.search("retries", plan=plan).hits) == 2
            assert len(opened.search("retries", plan=f"{plan} dedupe=yes").hits) == 1


def test_roles_and_tenants_see_their_own_and_an_anonymous_call_is_refused(path, make_corpus):
    seen = {}
    for who in (ADMIN, SUPPORT):
        with wb.open_corpus(path, who) as corpus:
            seen[who.roles] = {h.path for h in corpus.search("retries", plan="scoped", limit=50).hits}
    assert seen[("admin",)] - seen[("support",)] == {"admin/pay.md"}
    assert not any(p.startswith("other/") for paths in seen.values() for p in paths)
    with pytest.raises(PrincipalRequired, match="principal"):
        make_corpus({"a.md": "apples"}).search("apples", plan="scoped")


def test_stats_name_the_milliseconds_and_a_result_is_kept_for_180_seconds(desk):
    plan = wb.preset("scoped")
    first = desk.search("retries and queues", plan=plan)
    assert list(first.stats) == ["vectorMs", "keywordMs", "rerankMs"]
    assert first.stats["vectorMs"] > 0
    assert first.stats["keywordMs"] == first.timings_ms["keyword_ms"] > 0
    assert first.stats["rerankMs"] == 0
    assert desk.search("retries and queues", plan=plan.replace({"rerank.model": "overlap"})).stats["rerankMs"] > 0
    kept = desk.search("retries and queues", plan=plan)
    assert dict(kept.stats) == {"vectorMs": 0, "keywordMs": 0, "rerankMs": 0}
    assert kept.timings_ms.keys() == first.timings_ms.keys()
    assert kept.to_dict(timings=True)["stats"] == dict(kept.stats)
    assert "stats" not in kept.to_dict()
    first = desk.search("retries", plan="scoped")
    assert not desk.search("retries", plan="scoped", bypass_cache=True).cached
    kept = desk.search("retries", plan="scoped")
    assert kept.cached
    assert kept.fused is first.fused
    now = [1000.0]
    desk._cache = TLRUCache(8, ttu=_until, timer=lambda: now[0])
    first = desk.search("retries", plan="scoped")
    now[0] += 179.999
    kept = desk.search("retries", plan="scoped")
    assert (first.cached, kept.cached) == (False, True)
    assert kept.to_dict() == first.to_dict()
    now[0] = 1180.0
    assert not desk.search("retries", plan="scoped").cached


def test_the_cache_key_is_everything_that_decides_a_result():
    """Tenant, roles, query, number of results, reranking, filters, mode, generation and policy each make another key."""

    def key(query: str = "a b", generation: str = "1", policy: str = "", **other: object) -> object:
        asked = {"keywords": None, "context": None, "mode": "hybrid", "filters": None, "limit": None}
        asked |= {"plan": Plan.of("scoped"), "principal": ADMIN} | other
        return cache_key(make_request(query, **asked), f"{generation} {policy}")

    same = [key(), key(query="  a   b "), key(limit=8)]
    assert len(set(same)) == 1
    others = [
        key(query="A b"),
        key(query='"a b"'),
        key(limit=9),
        key(plan=wb.preset("scoped").replace({"rerank.model": "overlap"})),
        key(filters="type = 'note'"),
        key(mode="keyword"),
        key(keywords="a"),
        key(context="f(x)"),
        key(generation="2"),
        key(policy="hide"),
        key(principal=SUPPORT),
        key(principal=replace(ADMIN, tenant="birch")),
        key(principal=None),
    ]
    assert len({*same, *others}) == 1 + len(others)


def test_reranking_is_off_unless_asked(desk):
    plan = wb.preset("scoped")
    assert (plan["rerank.model"], plan["rerank.top"], plan["cache_seconds"]) == ("off", 50, 180)
    plain = desk.search("retries", plan="scoped")
    assert {"vector_ms", "keyword_ms"} <= set(plain.timings_ms)
    assert "rerank_ms" not in plain.timings_ms
    assert "rerank_ms" in desk.search("retries", plan=plan.replace({"rerank.model": "overlap"})).timings_ms


@pytest.mark.slow
def test_a_reranking_that_takes_too_long_leaves_the_fused_order(desk, monkeypatch):
    """A model that never answers: the same results in the same order, a warning with the reason, and the time it took."""
    plain = desk.search("retries number7", plan="scoped")
    importlib.import_module("openai")  # takes longer on a busy machine than the model has, and then nothing is asked
    with serving(hangs) as server:
        monkeypatch.setenv("WORKBENCH_ENDPOINT_URL", server.url)
        monkeypatch.setenv("WORKBENCH_ENDPOINT_TIMEOUT_SECONDS", "1.5")
        plan = wb.preset("scoped").replace({"rerank.model": "endpoint:slow"})
        result = desk.search("retries number7", plan=plan)
    assert server.requests
    assert [(h.chunk_id, h.score, h.scores) for h in result.hits] == [
        (h.chunk_id, h.score, h.scores) for h in plain.hits
    ]
    (warning,) = [w for w in result.warnings if w.startswith("Reranking was left out")]
    assert "1.5" in warning
    assert "The order is the fused one" in warning
    assert result.stats["rerankMs"] > 0


@pytest.mark.slow
def test_sources_and_ingest_jobs_are_listed(tmp_path):
    """A run is queued while another writes, then running, then done with its counts; one that cannot go on is failed."""
    corpus, files = tmp_path / "corpus", write_files(tmp_path / "files", {"a.md": "apples", "b.md": "pears"})
    wb.index([files], corpus=corpus, encoder="hashing")
    seen: list[str] = []

    def state(number: int) -> str:
        with wb.open_corpus(corpus) as opened:
            return str(opened.jobs().filter(pl.col("number") == number)["state"].item())

    with ThreadPoolExecutor(1) as pool:
        with locks.writer(corpus / "writer.lock", corpus):
            (files / "c.md").write_text("plums")
            waiting = pool.submit(wb.index, [files], corpus, wait=True, progress=lambda p: seen.append(state(2)))
            while len(list_jobs(corpus)) < 2:
                time.sleep(0.01)
            assert state(2) == "queued"
            with pytest.raises(CorpusLocked):
                wb.index([files], corpus=corpus)
        report = waiting.result()
    assert set(seen) == {"running"}
    with wb.open_corpus(corpus) as opened:
        jobs, sources = opened.jobs(), opened.sources()
    assert jobs["state"].to_list() == ["failed", "done", "done"]
    assert "is being written" in jobs["reason"][0]
    newest = jobs.row(1, named=True)
    assert newest["paths"] == [str(files)]
    assert (newest["found"], newest["indexed"], newest["unchanged"], newest["documents"]) == (3, 1, 2, 3)
    assert newest["generation"] == report.generation
    assert newest["queued"] <= newest["started"] <= newest["ended"]
    assert sources.drop("modified").rows() == [(str(files), "folder", 3, 3, 16, 0)]


def test_a_job_whose_process_died_is_failed(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    program = (
        "import os, sys; from pathlib import Path; from workbench.saved.jobs import recording\n"
        "with recording(Path(sys.argv[1]), 'index', ['/files'], ['docs'], {}) as job:\n    job.running(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, str(corpus)], check=False)
    (died,) = list_jobs(corpus)
    assert (died.state, died.counts) == ("failed", None)
    assert "process ended" in died.reason
    wb.index([write_files(tmp_path / "files", {"a.md": "apples"})], corpus=corpus, encoder="hashing")
    assert [job.state for job in list_jobs(corpus)] == ["done", "failed"]
    assert not list((corpus / "jobs").iterdir())


def test_a_stopped_run_is_failed_with_its_reason(tmp_path):
    files = write_files(tmp_path / "files", {"a.md": "apples"})
    with pytest.raises(IndexingStopped):
        wb.index([files], corpus=tmp_path / "corpus", encoder="hashing", abort=lambda: True)
    (job,) = list_jobs(tmp_path / "corpus")
    assert job.state == "failed"
    assert job.reason


@pytest.mark.slow
def test_jobs_and_sources_name_no_paths_of_others(tmp_path):
    """Who sees a part sees the jobs of his sources, without counts; who sees nothing there sees none."""
    corpus = tmp_path / "corpus"
    ours, theirs = (write_files(tmp_path / name, {"a.md": f"{name} apples"}) for name in ("ours", "theirs"))
    wb.index([ours], corpus=corpus, encoder="hashing", tenant="acme")
    wb.index([ours, theirs], corpus=corpus, tenant="birch")
    wb.index([ours], corpus=corpus, tenant="acme")
    wb.index([theirs], corpus=corpus, tenant="birch")
    seen = {}
    for tenant in ("acme", "birch", "nobody"):
        with wb.open_corpus(corpus, Principal(tenant)) as opened:
            jobs = opened.jobs()
            seen[tenant] = (jobs["paths"].to_list(), opened.sources()["path"].to_list())
            assert jobs["found"].null_count() == len(jobs)
            assert set(jobs["reason"]) <= {""}
    assert seen["acme"] == ([[str(ours)]] * 3, [str(ours)])
    assert seen["birch"] == ([[str(theirs)]] * 2, [str(theirs)])
    assert seen["nobody"] == ([], [])


def test_the_command_line_lists_sources_and_jobs(tmp_path):
    files = write_files(tmp_path / "files", {"a.md": "apples"})
    wb.index([files], corpus=tmp_path / "corpus", encoder="hashing")
    said = CliRunner().invoke(main, ["info", "--sources", "--jobs", "-c", str(tmp_path / "corpus")])
    assert f"{files}: folder, 1 document, 1 chunk, 6 bytes" in said.output
    assert "1. done " in said.output
    data = json.loads(
        CliRunner().invoke(main, ["info", "--sources", "--jobs", "--json", "-c", str(tmp_path / "corpus")]).output
    )
    assert [s["path"] for s in data["sources"]] == [str(files)]
    assert [(j["state"], j["indexed"]) for j in data["jobs"]] == [("done", 1)]


IDS = {
    "ACME-INV-49302": "What is the status of ACME-INV-49302?",
    "ACME-INV-49303": "please find invoice ACME-INV-49303 for me",
    "TCK_20481": "Who closed ticket TCK_20481 last week?",
    "ORD-2024-118": "has ORD-2024-118 been shipped or returned",
    "ERR4042": "customers report ERR4042 when they pay, why?",
    "PO-77120": "Is PO-77120 still open",
    "7349021": "Show me everything about order 7349021",
    "SKU-0093-XL": "how many pieces of SKU-0093-XL are left in the warehouse",
    "v2024.118-rc": "did we announce v2024.118-rc to customers",
    "CVE-2021-44228": "are our servers affected by CVE-2021-44228",
}


@pytest.fixture(scope="module")
def records(corpus_of: Make) -> wb.Corpus:
    """One short record for each identifier, and pages that hold the words of the questions and no identifier."""
    files = {f"records/{n}.md": f"{code}: handled by the Bergen desk" for n, code in enumerate(IDS)}
    files |= {
        f"pages/{n}.md": f"{question.replace(code, 'the number')} " * 3
        for n, (code, question) in enumerate(IDS.items())
    }
    return corpus_of(files, SUPPORT, ALL_ACME)


def test_an_identifier_inside_a_sentence_is_found_first_and_explained(records):
    for number, question in enumerate(IDS.values()):
        result = records.search(question, plan="scoped")
        assert result.hits[0].path == f"records/{number}.md", question
        assert len(result.hits) == len({h.chunk_id for h in result.hits}) == 8
        assert [h.rank for h in result.hits] == list(range(1, 9))
    question = "customers report ERR4042 when they pay, why?"
    result = records.search(question, plan="scoped limit=1")
    assert (result.hits[0].label, result.hits[0].match) == (Label.STRONGEST, "hybrid")
    assert any("was put first, because it has the identifier" in m for m in result.messages)
    assert result.steps[-1].reason.endswith("has the identifier of the query and was put first")
    assert not records.search('ERR4042 "quagga"', plan="scoped", mode="keyword").hits
    assert records.search("ERR4042 quagga", plan="scoped", mode="keyword").hits
