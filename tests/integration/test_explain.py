"""Explain says where a document stands, and its remedy is tried before it is given."""

from collections.abc import Iterator

import pytest
from corpus_files import write_files

import workbench as wb

QUERY = "how do retries work"


@pytest.mark.parametrize("asked", ["default limit=1", "default limit=1 collections=artifacts", "collections limit=1"])
@pytest.mark.parametrize("filters", [None, "type = 'code'"])
def test_what_else_keeps_a_filtered_document_out_is_told_too(
    asked: str, filters: str | None, sample: wb.Corpus
) -> None:
    """Without the filter and with the changes the document is a result; where that cannot be, nothing is promised."""
    result = sample.search(QUERY, plan=asked, filters=filters)
    promised = 0
    for path in ("kb/timeouts.md", "kb/winter.txt", "artifacts/letter-archive.md"):
        found = sample.explain(result, path)
        if found.dropped_by != "filters":
            continue
        changed = result.plan.replace(found.changes or {})
        again = sample.search(QUERY, plan=changed)
        assert found.verified == (path in {h.path for h in again.hits})
        assert all(f"{field}={value}" in found.remedy for field, value in (found.changes or {}).items())
        assert found.remedy.startswith("Take the filter away" if filters else "Set collections=all")
        assert ("collections" in (found.changes or {})) == ("collection" in asked and not path.startswith("artifacts"))
        promised += found.verified
    assert promised or not filters


def test_a_source_of_one_collection_ranks_within_it(sample: wb.Corpus) -> None:
    deep = sample.search(QUERY, plan="collections limit=50")
    paths = [entry.path for entry in deep.rankings["vector@artifacts"].entries]
    assert len(paths) == len(deep.distances("vector@artifacts")) == 4
    short = sample.search(
        QUERY, plan="collections limit=1 depth.vector=1 sources=keyword@docs,vector@artifacts collections=all"
    )
    for rank, path in enumerate(paths, 1):
        found = sample.explain(short, path)
        by_source = {s.source: s for s in found.standings}
        assert by_source["vector@artifacts"].rank == rank
        assert by_source["keyword@docs"].state == "not asked"
        assert found.dropped_by == ("" if rank == 1 else "depth")
        assert found.verified or rank == 1
    assert {s.source: s.state for s in sample.explain(short, "kb/kettle.md").standings}[
        "vector@artifacts"
    ] == "not asked"
    wide = sample.search(QUERY, plan="vector.threshold=off limit=40")
    result = sample.search(QUERY, plan="vector.threshold=off limit=3 limit.max=5")
    found = sample.explain(result, wide.hits[-1])
    assert (found.rank, found.verified, found.dropped_by) == (None, False, "limit")
    assert "beyond limit.max 5" in found.remedy
    result = sample.search(QUERY, plan="vector.threshold=off limit=1")
    paths = [path for _, path in result.documents(12)]
    for path in paths[1:]:
        found = sample.explain(result, path)
        if found.dropped_by == "limit":
            assert found.reason.startswith(f"It is number {paths.index(path) + 1} of ")


@pytest.mark.parametrize("hidden", ["kb/warranty.md", "archive/warranty-2.md"])
def test_a_duplicate_names_the_better_one(sample: wb.Corpus, hidden: str) -> None:
    result = sample.search("warranty", mode="keyword")
    assert [h.path for h in result.hits] == ["archive/warranty.md"]
    found = sample.explain(result, hidden)
    assert found.dropped_by == "dedupe"
    assert "archive/warranty.md" in found.reason
    assert found.changes == {"dedupe": "no"}
    assert found.verified


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
    """Two short notes, and one long one that fills a list of chunks by itself."""
    folder = tmp_path_factory.mktemp("shelf")
    files = {
        "run.md": "Start the tool with -v and an input file.\n",
        "other.md": "zebra crossing\n",
        "long.md": "\n\n".join(f"# Part {n}\n\n{'lantern ' * 150}{n}" for n in range(6)) + "\n",
        "short.md": "a lantern and " + " ".join(f"thing{n}" for n in range(30)) + "\n",
    }
    wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing", workers=0)
    with wb.open_corpus(folder / "corpus") as opened:
        yield opened


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
def test_what_keeps_the_words_of_a_document_from_counting(
    query: str, plan: str, reason: str, remedy: str, changes: dict[str, str] | None, shelf: wb.Corpus
) -> None:
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


def test_what_lifts_a_document_comes_before_more_results(shelf: wb.Corpus) -> None:
    result = shelf.search("lantern", mode="keyword", plan="rrf limit=3")
    found = shelf.explain(result, "short.md")
    assert (found.dropped_by, found.changes, found.verified) == ("limit", {"fusion.unit": "document"}, True)
