"""The rank beside a contribution is the one that it comes from, in every output, also where documents are ranked."""

from __future__ import annotations

import pytest
from shown_ranks import printed, wrong_ranks

import workbench as wb
from workbench.mcp.answers import search_answer, search_text
from workbench.plan.presets import PRESETS

QUERIES = ("how do retries work", '"storm damage" report')


@pytest.mark.parametrize("name", [p.name for p in PRESETS])
def test_every_output_shows_the_rank_that_counted(
    sample: wb.Corpus, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """For rrf the contribution is weight / (k + rank - 1 + base) of the rank beside it."""
    for query in QUERIES:
        for changes in ({}, {"fusion.unit": "document", "fusion.method": "rrf", "fusion.renumber": True}):
            result = sample.search(query, plan=wb.preset(name).replace(changes))
            assert not wrong_ranks(result, printed(result, capsys)), (query, changes)


@pytest.mark.slow
def test_the_chunk_that_counted_is_named(make_corpus: object, capsys: pytest.CaptureFixture[str]) -> None:
    """A document's first part counts by meaning and its second one by words: the shown one says where the other rank is from."""
    lines = "\n".join("grove " * 9 for _ in range(30))
    texts = {f"d{n}.md": f"# One\n\namber {'ember ' * n}\n{lines}\n\n# Two\n\ncedar\n{lines}\n" for n in range(1, 9)}
    corpus = make_corpus(texts)  # type: ignore[operator]
    result = corpus.search("amber cedar", plan="contract")
    named = [(h, s, e) for h in result.hits for s, e in h.counted.items()]
    assert named, "no document has ranks of two chunks"
    frame = {row["document_id"]: row for row in result.frame().to_dicts()}
    for hit, source, entry in named:
        assert entry.chunk_id != hit.chunk_id
        assert (entry.document_id, entry.rank, entry.score) == (hit.document_id, hit.ranks[source], hit.scores[source])
        assert frame[hit.document_id][f"{source}_chunk_id"] == entry.chunk_id
    words = f"by its chunk at line {named[0][2].start_line}"
    assert words in search_text(search_answer(result))
    assert words in " ".join(printed(result, capsys).split())
