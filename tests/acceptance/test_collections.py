"""`collections`: one query over several collections of artifacts, one result an artifact."""

import json
from collections.abc import Callable
from datetime import date

import pytest
from click.testing import CliRunner, Result
from corpus_files import write_files

import workbench as wb
from workbench.cli.main import main
from workbench.errors import FilterError, PlanError, SettingError, SourceUnavailable, UsageError
from workbench.retrieve.messages import format_text
from workbench.retrieve.request import filter_text

Make = Callable[..., wb.Corpus]
QUERY = "storm gauges report"
FOUR = (
    "collections collections=artifact_chunks,artifacts,memory,history "
    "sources=vector@artifact_chunks,vector@artifacts,vector@memory,vector@history"
)


def six(topic: str) -> str:
    """A text of six chunks: each section alone is near the most that a chunk may hold."""
    return "\n\n".join(f"## Part {n}\n\n{topic} number{n} " + f"filler{n} " * 150 for n in range(1, 7))


@pytest.fixture(scope="module")
def artifacts(corpus_of: Make) -> wb.Corpus:
    """Artifacts in both collections, a memory and a turn of a conversation."""
    files = {f"artifacts/{n:02d}.md": f"# Note {n}\n\nwords about topic{n} and storms" for n in range(12)}
    files["artifacts/six.md"] = six("marker")
    files["artifacts/report.md"] = (
        "---\nartifact_type: report\nsensitivity: internal\nsource_system: drive\n"
        "source_url: https://files.example/report\ntitle: The storm\n---\nstorm gauges report\n"
    )
    files["memory/a.md"] = "prefers storm gauges report on Fridays"
    files["history/a.md"] = "asked for the storm gauges report"
    rules = (
        '  - path: "artifacts/**"\n    collection: [artifacts, artifact_chunks]\n'
        '  - path: "memory/**"\n    collection: memory\n  - path: "history/**"\n    collection: history\n'
    )
    return corpus_of(files, None, f"collections:\n  artifacts: document\n  artifact_chunks: chunk\nrules:\n{rules}")


def test_ranks_two_and_five_from_zero_give_0_0315():
    filler = iter(range(100))

    def ranking(at: int) -> list[tuple[str, float]]:
        ids = [f"other{next(filler)}" for _ in range(at)]
        return [(i, 1.0 - n / 100) for n, i in enumerate([*ids, "wanted"])]

    plan = wb.Plan.parse("rrf fusion.rank_base=0 fusion.unit=document fusion.renumber=no")
    for fusion in (plan.fusion, wb.preset("collections").fusion):
        fused = wb.fuse({"vector@artifacts": ranking(2), "vector@artifact_chunks": ranking(5)}, fusion)
        at = fused.document_ids.index("wanted")
        assert fused.scores[at] == 1 / 62 + 1 / 65
        assert f"{fused.scores[at]:.4f}" == "0.0315"
    top = wb.fuse({"vector@artifacts": ranking(10)}, plan.fusion)
    assert [f"{s:.4f}" for s in (top.scores[0], top.scores[10])] == ["0.0167", "0.0143"]


def test_the_query_is_embedded_once_for_all_collections_at_the_same_time(artifacts, embedded, meet):
    result = artifacts.search("a question of its own", plan=FOUR, limit=5)
    assert len(result.rankings) == 4
    assert embedded == ["a question of its own"]
    came = meet(artifacts, {"vector": 4})
    assert artifacts.search(QUERY, plan=FOUR, bypass_cache=True).hits
    assert came["vector"] >= 4


def test_each_collection_gives_three_times_the_limit_and_memory_when_asked(artifacts, monkeypatch):
    result = artifacts.search(QUERY, plan="collections", limit=2)
    assert [len(r.entries) for r in result.rankings.values()] == [6, 6]
    assert len(result.hits) == 2
    assert len(artifacts.search(QUERY, plan="collections").hits) == 5
    plain = artifacts.search(QUERY, plan="collections", limit=50)
    assert set(plain.rankings) == {"vector@artifact_chunks", "vector@artifacts"}
    assert {c for h in plain.hits for c in h.collections} == {"artifact_chunks", "artifacts"}
    every = artifacts.search(QUERY, plan=FOUR, limit=50)
    assert {"memory", "history"} <= {c for h in every.hits for c in h.collections}
    monkeypatch.setenv("RRF_CONSTANT", "10")
    monkeypatch.setenv("OVERFETCH_MULTIPLIER", "2")
    result = artifacts.search(QUERY, plan=wb.preset("collections"), limit=3)
    assert max(result.hits[0].contributions.values()) == 1 / 10
    assert [len(r.entries) for r in result.rankings.values()] == [6, 6]


def test_one_result_an_artifact_and_its_chunk_is_shown(artifacts):
    """An artifact found whole and in pieces has both contributions by raw position, and shows a piece."""
    result = artifacts.search(QUERY, plan="collections", limit=50)
    assert len({h.document_id for h in result.hits}) == len(result.hits) == 14
    lists = result.rankings
    for hit in result.hits:
        assert hit.metadata["granularity"] == "chunk"
        for source, entries in lists.items():
            first = next(e.rank - 1 for e in entries.entries if e.document_id == hit.document_id)
            assert hit.contributions[source] == 1 / (60 + first)
    assert [h.score for h in result.hits] == sorted((h.score for h in result.hits), reverse=True)
    result = artifacts.search("marker number3 filler3", plan="collections", limit=50)
    ranked = [e.path for e in result.rankings["vector@artifact_chunks"].entries]
    assert ranked[:6] == ["artifacts/six.md"] * 6
    behind = next(h for h in result.hits if h.path == ranked[6])
    assert behind.contributions["vector@artifact_chunks"] == 1 / 66
    plan = "collections collections=artifacts sources=vector@artifacts,vector@artifact_chunks"
    result = artifacts.search(QUERY, plan=plan)
    assert [h.score for h in result.hits] == [1 / (60 + n) for n in range(5)]


@pytest.mark.parametrize("limit", [1, 50])
def test_limits_from_one_to_fifty_are_served(artifacts, limit):
    assert len(artifacts.search(QUERY, plan="collections", limit=limit).hits) == min(limit, 14)


@pytest.mark.parametrize("limit", [-1, 0, 51, 1000])
def test_other_limits_are_refused(artifacts, limit):
    with pytest.raises(PlanError, match="limit"):
        artifacts.search(QUERY, plan="collections", limit=limit)


@pytest.mark.parametrize("name", ["RRF_CONSTANT", "OVERFETCH_MULTIPLIER", "MAX_HYBRID_SEARCH_RESULTS"])
@pytest.mark.parametrize("value", ["many", "0", "-3"])
def test_a_setting_that_cannot_be_used_is_refused_by_name(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingError, match=name):
        wb.preset("collections")
    assert wb.preset("contract")["fusion.k"] == 60


def test_a_chunk_stands_between_its_neighbours(artifacts):
    """The third of six chunks comes as second, third and fourth, with a boundary line between them."""
    plain = artifacts.search("marker number3 filler3", plan="collections limit=1").hits[0]
    parts: dict[int, str] = {}
    for n in range(1, 7):
        for hit in artifacts.search(f"marker number{n} filler{n}", plan="collections limit=1").hits:
            parts[hit.chunk_index] = hit.text
    assert plain.path == "artifacts/six.md"
    assert sorted(parts) == [0, 1, 2, 3, 4, 5]
    for n in (1, 3, 6):
        wide = artifacts.search(f"marker number{n} filler{n}", plan="collections limit=1 neighbours=1").hits[0]
        around = [parts[i] for i in (n - 2, n - 1, n) if i in parts]
        assert wide.text == "\n[CHUNK BOUNDARY]\n".join(around)
        assert wide.rank == 1
        assert wide.chunk_index == n - 1


def test_filters_by_kind_and_sensitivity_hold_in_every_collection(artifacts, make_corpus):
    for condition in ("artifact_type = 'report'", "sensitivity = 'internal'"):
        result = artifacts.search("words about topic3", plan="collections", filters=condition)
        assert [h.path for h in result.hits] == ["artifacts/report.md"]
        assert all({e.path for e in r.entries} == {"artifacts/report.md"} for r in result.rankings.values())
    result = artifacts.search(QUERY, plan="collections", limit=50)
    assert {"internal"} < {h.metadata["sensitivity"] or "normal" for h in result.hits} | {"normal"}
    files = {"a.md": "---\nartifact_type: note\n---\nstorm gauge", "b.md": "storm gauge, plain"}
    corpus = make_corpus(files, collection="artifact_chunks")
    text = format_text(corpus.search("storm gauge", plan="collections"))
    first, second = sorted(text.split("\n\n")[1:], key=lambda block: "Source" not in block)
    assert "Source: ? | Sensitivity: normal\n" in first
    assert "Source" not in second
    assert "Evidence:" not in text


def test_the_text_form_is_exact(artifacts):
    """Header, a block a result, empty lines between, score to three decimals, collections in the order of the search."""
    result = artifacts.search(QUERY, plan="collections", limit=1)
    (hit,) = result.hits
    assert format_text(result) == (
        "Found 1 results (searched: artifact_chunks, artifacts):\n"
        "\n"
        "[1] RRF score: 0.033 (from: artifacts, artifact_chunks)\n"
        f"Type: chunk | ID: {hit.chunk_id}\n"
        "Title: The storm\n"
        "Source: drive | Sensitivity: internal\n"
        f'Snippet: "{hit.text}"\n'
        "Evidence: https://files.example/report\n"
    )
    result = artifacts.search("marker", plan="collections collections=artifacts sources=vector@artifacts", limit=50)
    text = format_text(result)
    assert "Type: artifact | ID: " in text
    for hit in result.hits:
        snippet = hit.text[:200] + "..." if len(hit.text) > 200 else hit.text
        assert f'Snippet: "{snippet}"\n' in text
        assert f"Type: artifact | ID: {hit.document_id}" in text
    corpus = str(artifacts.path)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["search", *arguments, "--format", "text", "-c", corpus])

    said = run(QUERY, "--preset", "collections", "-n", "2")
    assert said.output == format_text(artifacts.search(QUERY, plan="collections", limit=2)) + "\n"
    assert said.exit_code == 0
    assert "[1] weighted score: " in run(QUERY, "--preset", "pages").output
    assert "[1] keyword score: " in run(QUERY, "--mode", "keyword").output
    nothing = run("quagga", "--mode", "keyword")
    assert (nothing.output, nothing.exit_code) == ("No results found.\n", 1)


def test_a_search_whose_every_source_failed_says_so(artifacts, no_vectors):
    nothing = artifacts.search("x", plan="collections collections=none sources=vector@none", mode="keyword")
    assert format_text(nothing) == "No results found."
    with pytest.raises(SourceUnavailable) as caught:
        artifacts.search("never asked before", plan="collections")
    assert "The model is gone" in caught.value.message
    arguments = ["search", "storm gauges never asked", "--format", "text", "-c", str(artifacts.path)]
    failed = CliRunner().invoke(main, [*arguments, "--preset", "collections"])
    assert failed.output.startswith("Search failed: ")
    assert "The model is gone" in failed.output
    assert failed.exit_code == 2
    half = CliRunner().invoke(main, arguments)
    assert half.stdout.startswith("Found ")
    assert "vector could not run" in half.stderr
    unreadable = CliRunner().invoke(main, [*arguments, "--filter", "colour ="])
    assert "Search failed" not in unreadable.output


MEMORIES = (
    "The aunt in Bergen is called Solveig.", "Dentist appointments are only on Tuesdays.",
    "The spare key is with the baker.", "Prefers tea without milk.", "The boat needs a new mast before May.",
    "Walks to the harbour every morning.", "Allergic to hazelnuts.", "Reads crime novels on trains.",
    "The violin teacher moved to Ghent.", "Budget for the roof is nine thousand.",
    "Cancelled the gym in March.", "Plays chess with Ruben on Fridays.", "The cat is called Mustard.",
    "Wants reminders two days ahead.", "Uses metric units only.", "The old laptop is at the repair shop.",
    "Vegetarian since the summer.", "Sings in the choir of Saint Olaf.", "The tenant upstairs pays late.",
    "Never calls before nine.",
)  # fmt: skip


@pytest.fixture(scope="module")
def assistant(corpus_of: Make) -> wb.Corpus:
    """Sixty artifacts, whole and in chunks, which all share words with the memories; and twenty memories."""
    words = [m.strip(".").split() for m in MEMORIES]
    files = {
        f"{n:02d}.md": f"# {' '.join(words[n % 20][:3])}\n\n{' '.join(words[(n + 7) % 20])} and {' '.join(words[n % 20])} {n}"
        for n in range(60)
    }
    corpus = corpus_of(files, collection=("artifacts", "artifact_chunks"))
    lines = [{"id": f"m{n}", "text": text, "created_at": f"2024-01-{n + 1:02d}"} for n, text in enumerate(MEMORIES)]
    memories = corpus.path.with_name("memories.jsonl")
    memories.write_text("\n".join(map(json.dumps, lines)))
    wb.index([memories], corpus=corpus.path, collection="memory", workers=0)
    corpus.refresh()
    return corpus


@pytest.mark.parametrize("n", range(20))
def test_the_memory_that_answers_best_ties_for_the_first_place(assistant, n):
    """Asked for in its own words it has the score of a document that is first in both collections, 2/60, and is shown."""
    hits = assistant.search(MEMORIES[n], plan="collections", include_memory=True).hits
    (memory,) = [h for h in hits if h.metadata.get("record_id") == f"m{n}"]
    assert memory.ranks == {"vector@memory": 1}
    assert memory.score == 2 / 60 >= hits[0].score
    assert memory.rank <= 2
    assert {c for h in hits for c in h.collections} >= {"memory", "artifacts", "artifact_chunks"}
    assert not any("memory" in h.collections for h in assistant.search(MEMORIES[n], plan="collections").hits)


def test_parameters_of_the_call_are_plan_fields_and_filters(artifacts):
    """Memory, neighbours, filters and sensitivity as arguments find what plan and filter text find; on the command line too."""
    given = artifacts.search(
        QUERY, plan="collections", include_memory=True, expand_neighbors=True, filters={"artifact_type": "report"},
        sensitivity="internal",
    )  # fmt: skip
    assert str(given.plan) == (
        "collections sources=vector@artifact_chunks,vector@artifacts,vector@memory "
        "collections=artifact_chunks,artifacts,memory neighbours=1"
    )
    assert given.filters == "(artifact_type = 'report') and sensitivity = 'internal'"
    assert [h.path for h in given.hits] == ["artifacts/report.md"]
    told = artifacts.search(QUERY, plan=given.plan, filters=given.filters)
    assert [h.text for h in told.hits] == [h.text for h in given.hits]
    words = "--preset collections --include-memory --json --expand-neighbors --sensitivity internal --filter".split()
    at = ("search", QUERY, "--corpus", str(artifacts.path))
    said = CliRunner().invoke(main, [*at, *words, '{"artifact_type": "report"}'])
    assert json.loads(said.stdout)["hits"] == given.to_dict()["hits"]
    assert str(artifacts.search(QUERY, include_memory=True).plan) == "default"


@pytest.mark.parametrize(
    ("filters", "text"),
    [
        ({"a": "x's"}, "a = 'x''s'"),
        ({"a": ["y", "x"], "b": None}, "a in ('x', 'y')"),
        ({"a b": {">=": 1, "<": 2.5}}, '"a b" >= 1 and "a b" < 2.5'),
        ({"day": date(2024, 5, 1), "on": True}, "day = 2024-05-01 and on = true"),
        ({}, None),
    ],
)
def test_a_mapping_of_fields_is_a_filter(filters, text):
    assert filter_text(filters) == text


@pytest.mark.parametrize("filters", [{"a": []}, {"a": {"~": 1}}, {"a": object()}, [1]])
def test_a_mapping_that_cannot_be_a_filter_is_refused(artifacts, filters):
    with pytest.raises(FilterError):
        artifacts.search(QUERY, filters=filters)


@pytest.mark.slow
def test_memories_are_kept_found_listed_and_removed(tmp_path):
    """Also where the corpus lies in the folder that is indexed, and after that folder is indexed again."""
    write_files(tmp_path, {"a.md": "a note on tides"})
    folder = tmp_path / ".workbench"
    wb.index([tmp_path], corpus=folder, encoder="hashing")
    with wb.open_corpus(folder) as corpus:
        old = corpus.remember("likes low tide", created_at="2020-01-01", metadata={"topic": "sea"})
        new = corpus.remember("lives in Leeds", id="home")
        assert corpus.memories()["id"].to_list() == ["home", old]
        assert corpus.search("tide", plan="collections", include_memory=True, filters={"topic": "sea"}).hits
        assert corpus.remember("lives in York", id="home") == new
        wb.index([tmp_path], corpus=folder)
        corpus.refresh()
        assert corpus.memories()["text"].to_list() == ["lives in York", "likes low tide"]
        corpus.forget("home")
        assert corpus.memories()["id"].to_list() == [old]
        with pytest.raises(UsageError, match="There is no memory 'home'"):
            corpus.forget("home")
        with pytest.raises(UsageError, match="nothing to remember"):
            corpus.remember("  ")


@pytest.mark.slow
def test_memories_belong_to_the_principal_where_documents_do(tmp_path):
    write_files(tmp_path / "files", {"a.md": "a note"})
    for tenant in ("acme", "birch"):
        wb.index([tmp_path / "files"], corpus=tmp_path / "corpus", encoder="hashing", tenant=tenant)
    wb.index([write_files(tmp_path / "more", {"b.md": "b"})], corpus=tmp_path / "corpus", tenant="acme")
    with (
        wb.open_corpus(tmp_path / "corpus", wb.Principal("acme"), follow=True) as acme,
        wb.open_corpus(tmp_path / "corpus", wb.Principal("birch"), follow=True) as birch,
    ):
        kept = acme.remember("acme's secret")
        assert acme.memories()["id"].to_list() == [kept]
        assert birch.memories().height == 0
        with pytest.raises(UsageError):
            birch.forget(kept)
