"""Worked examples: what counts as one, how the two sides add up, and who sees them."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main
from workbench.errors import EncoderError, SourceUnavailable, UsageError
from workbench.store.lexical.search import LexicalIndex
from workbench.store.vectors import VectorIndex

Make = Callable[..., wb.Corpus]


def test_an_example_has_code_description_tags_and_address(sample: wb.Corpus) -> None:
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
def test_files_and_front_matter_of_type_example(make_corpus: Make) -> None:
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


def test_a_side_that_fails_leaves_the_other(sample: wb.Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise EncoderError("The model is gone", "Fetch it again")

    full = sample.search_examples("arpeggio")
    assert full.warnings == ()
    with monkeypatch.context() as patched:
        patched.setattr(LexicalIndex, "search", fail)
        alone = sample.search_examples("arpeggio")
        assert alone.warnings == (
            "keyword could not run: The model is gone. Fetch it again. The result is from vector",
        )
        assert [set(e.contributions) for e in alone] == [{"vector"}] * len(alone)
        assert {e.title: e.contributions["vector"] for e in full}["Noon bells"] == alone[0].score
    monkeypatch.setattr(VectorIndex, "search", fail)
    words = sample.search_examples("arpeggio")
    assert words.warnings[0].startswith("vector could not run: The model is gone")
    assert [e.title for e in words] == ["Noon bells", "Arpeggios"]
    monkeypatch.setattr(LexicalIndex, "search", fail)
    with pytest.raises(SourceUnavailable, match="Fetch it again"):
        sample.search_examples("arpeggio")


def test_the_command_prints_them(sample_path: Path) -> None:
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
