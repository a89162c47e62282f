"""What a corpus says of its text: forms of Unicode and dates in filters, words split by older rules, text beyond the encoder."""

from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path

import pytest

import workbench as wb
from workbench.store.lexical import tokens

NOTE = "---\nauthor: José\nvillé: Orléans\nwhen: 2025-02-03T12:45:46Z\n---\n\nDer Raum ist zurückgebaut.\n"
FILES = {
    "composed.md": NOTE,
    "decomposed.md": unicodedata.normalize("NFD", NOTE),
    "other.md": "---\nauthor: Jose\nwhen: 2024-01-01\n---\n\nEin Raum.\n",
    "long.md": "the engine of a car needs oil every year " * 40,
}
BOTH = {"composed.md", "decomposed.md"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, and their corpus with one chunk a document."""
    base = tmp_path_factory.mktemp("forms")
    (base / "src").mkdir()
    for name, text in FILES.items():
        (base / "src" / name).write_text(text, encoding="utf-8")
    return base


@pytest.fixture(scope="module")
def report(folder: Path) -> wb.IndexReport:
    return wb.index([folder / "src"], corpus=folder / "k", encoder="hashing", one_chunk_per_document=True)


@pytest.fixture(scope="module")
def corpus(folder: Path, report: wb.IndexReport) -> wb.Corpus:
    return wb.open_corpus(folder / "k")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_filters_and_lines_match_whatever_the_form(corpus: wb.Corpus, form: str) -> None:
    """Values, keys and patterns; what is marked is the text as it is stored."""
    for where in (
        "author = 'José'",
        "author like 'J%é'",
        "author contains 'JOSÉ'",
        "villé in ('Orléans')",
        "author glob 'Jos?'",
    ):
        result = corpus.search("raum", mode="keyword", filters=unicodedata.normalize(form, where))
        found = {hit.path for hit in result.hits}
        assert found - {"other.md"} == BOTH, where
    word = unicodedata.normalize(form, "zurückgebaut")
    for result in (corpus.search(word, mode="grep"), corpus.search("raum", keywords=word, mode="grep")):
        assert {hit.path for hit in result.hits} == BOTH
        for hit in result.hits:
            shown = [hit.text[m.start : m.end] for m in hit.matches]
            assert unicodedata.normalize("NFC", "".join(shown)) == "zurückgebaut"
    assert {passage.path for passage in corpus.grep(word)} == BOTH


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("when = '2025-02-03T12:45:46Z'", BOTH),
        ("when = '2025-02-03 12:45'", BOTH),
        ("when = '2025-02-03T13:45:46+01:00'", BOTH),
        ("when in ('2025-02-03', '1999-01-01')", BOTH),
        ("when != '2025-02-03T12:45:46Z'", {"other.md"}),
        ("not when in ('2025-02')", {"other.md"}),
        ("when >= '2025-02-03T12:45:46Z' and when <= '2025-02-03T12:45:46Z'", BOTH),
        ("when < '2024-01-02'", {"other.md"}),
        ("when > '2024-01-01'", BOTH),
        ("when like '2025-02-%'", BOTH),
        ("when >= 2025", BOTH),
        ("when = 2025", BOTH),
        ("when < 2025", {"other.md"}),
    ],
)
def test_a_quoted_date_is_a_date(corpus: wb.Corpus, where: str, found: set[str]) -> None:
    """For every comparison, as one without quotes is."""
    assert {hit.path for hit in corpus.search("raum", mode="keyword", filters=where).hits} == found


def test_text_beyond_the_encoder_is_said(corpus: wb.Corpus, report: wb.IndexReport) -> None:
    """Of chunks by the run and `info`, of a query by the search that asked a vector source."""
    (warning,) = report.warnings
    assert warning.startswith("1 of 4 chunks is longer than the encoder reads: hashing embeds the first 256 tokens")
    assert corpus.info()["cut"] == 1
    long = "engine oil " * 150
    said = "The query has 300 tokens, and hashing read only the first 256; shorten it to search by all of it"
    assert said in corpus.search(long, mode="vector").warnings
    assert said in corpus.search(long).warnings
    assert said not in corpus.search(long, mode="keyword").warnings
    assert not corpus.search("engine oil", mode="vector").warnings


@pytest.mark.slow
def test_words_of_older_rules_are_said_and_split_again(
    report: wb.IndexReport, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search says that they are older; the next run splits every text again though no file changed, and once only."""
    kept = shutil.copytree(folder / "k", tmp_path / "k")
    monkeypatch.setattr(tokens, "WORDS_VERSION", tokens.WORDS_VERSION + 1)
    with wb.open_corpus(kept) as older:
        (said,) = older.search("raum", mode="keyword").warnings
        assert "older rules" in said
        assert not older.search("raum", mode="grep").warnings
    again = wb.index([folder / "src"], corpus=kept, encoder="hashing")
    assert again.changed
    assert again.count("unchanged") == 4
    assert again.embedded == 0
    assert any("split again" in warning for warning in again.warnings)
    with wb.open_corpus(kept) as newer:
        assert not newer.search("raum", mode="keyword").warnings
    assert not wb.index([folder / "src"], corpus=kept, encoder="hashing").changed
