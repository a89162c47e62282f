"""Folders as people have them: pages that cite lines, texts in every form, files that cannot be read."""

import json
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import file_makers as make
import pytest
from click.testing import CliRunner
from file_makers import docx, mail, pptx, xlsx, zipped

import workbench as wb
from workbench import index, open_corpus
from workbench.cli.main import main
from workbench.records import FileStatus, by_kind
from workbench.store.lexical import tokens

PAGE = """<!doctype html>
<html>
<head><title>Otters</title>
<style>
p { color: green }
</style></head>
<body>
<h1>Where otters live</h1>
<p>An otter builds
its holt
<em>under</em> the bank.</p>
</body></html>
"""
CITED = "8-11"
WORDS = "# Where otters live\n\nAn otter builds its holt under the bank."


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
    """A page, a copy of it, and others inside an archive and behind front matter."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "files").mkdir()
    for name in ("a.html", "copy.html"):
        (folder / "files" / name).write_text(PAGE, encoding="utf-8")
    (folder / "files" / "in.zip").write_bytes(make.zipped({"d/b.html": "\n\n" + PAGE.replace("tter", "heron")}))
    wb.index([folder / "files"], corpus=folder / "corpus", encoder="hashing", workers=0)
    with wb.open_corpus(folder / "corpus") as corpus:
        yield corpus


def test_results_passages_and_tables_carry_the_lines_of_the_file(pages):
    result = pages.search("otter", mode="keyword", plan="contract")
    hit = result.hits[0]
    assert (hit.citation, hit.locator, hit.copies) == (f"a.html#line={CITED}", f"line={CITED}", ("copy.html",))
    assert (hit.text, hit.start_line, hit.end_line) == (WORDS, 1, 3)
    (passage, _) = pages.grep("its holt under")
    assert (passage.citation, passage.copies) == ("a.html#line=10-11", ("copy.html",))
    (inner,) = pages.search("oherons", mode="keyword", plan="contract").hits
    assert inner.citation == "in.zip!/d/b.html#line=10-13"
    assert result.to_dict()["hits"][0]["citation"] == f"a.html#line={CITED}"
    kept = result.snapshot().hits()[0]
    assert kept.citation == hit.citation
    for path, words in ((f"copy.html#line={CITED}", WORDS), ("in.zip!/d/b.html#line=10", "# Where oherons live")):
        assert pages.read_file(path) == words
    made = CliRunner().invoke(main, ["read", "a.html", "--at", "9-10", "--corpus", str(pages.path), "--json"])
    assert re.search("An otter builds its holt", json.loads(made.output)["text"])


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
def test_filters_and_lines_match_whatever_the_form(corpus, form):
    conditions = "author = 'José'|author like 'J%é'|author contains 'JOSÉ'|villé in ('Orléans')|author glob 'Jos?'"
    for where in conditions.split("|"):
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
def test_a_quoted_date_is_a_date(corpus, where, found):
    assert {hit.path for hit in corpus.search("raum", mode="keyword", filters=where).hits} == found


def test_text_beyond_the_encoder_is_said(corpus, report):
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
def test_words_of_older_rules_are_said_and_split_again(report, folder, tmp_path, monkeypatch):
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


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names with quotes and line ends, deep folders, circles of links, copies, blanks, and files under wrong names."""
    base = tmp_path_factory.mktemp("messy") / "files"
    deep = base.joinpath(*[f"level{n}" for n in range(30)])
    deep.mkdir(parents=True)
    (deep / "deep.txt").write_text("thirty folders down lies the aardvark", encoding="utf-8")
    (base / 'it\'s a "quoted"\nname.txt').write_text("words under a badger name", encoding="utf-8")
    (base / "cafe\u0301.txt").write_text("a decomposed capybara name", encoding="utf-8")
    (base / "circle").symlink_to(base)
    (base / "empty.txt").write_bytes(b"")
    (base / "blank.txt").write_bytes(b" \n\t\n")
    (base / "long.txt").write_bytes(b"dromedary " * (2 << 20 // 10))
    (base / "app.min.js").write_text("var a=1;" * 40_000, encoding="utf-8")
    (base / "binary.txt").write_bytes(bytes(range(256)) * 10)
    (base / "text.docx").write_text("plain elephant words", encoding="utf-8")
    (base / "nul.txt").write_bytes(b"before\x00after the ferret")
    (base / "rtl.txt").write_text("שלום עולם gazelle e\u0301", encoding="utf-8")
    (base / "copy1.txt").write_text("the same hedgehog twice", encoding="utf-8")
    (base / "copy2.txt").write_text("the same hedgehog twice", encoding="utf-8")
    (base / "report.docx").write_bytes(docx([("Heading 1", "Report"), ("", "an iguana in Word")]))
    (base / "deck.pptx").write_bytes(pptx([("One", "x", ""), ("Two", "a jackal on a slide", "")]))
    (base / "book.xlsx").write_bytes(xlsx({"Sales": [["Animal", "Sold"], ["kangaroo", 3], ["lemur", 5]]}))
    (base / "mail.eml").write_bytes(mail("Hi", "see the meerkat\n", {"in.docx": docx([("", "a narwhal attached")])}))
    (base / "all.zip").write_bytes(zipped({"a/b.txt": "an ocelot inside", "../evil.txt": "no", "x.mp3": "no"}))
    (base / "broken.docx").write_bytes(docx([("", "x")])[:500])
    if hasattr(os, "geteuid") and os.geteuid():
        (base / "secret.txt").write_text("x", encoding="utf-8")
        (base / "secret.txt").chmod(0)
    return base


@pytest.fixture(scope="module")
def messy_corpus(messy: Path) -> Path:
    return messy.parent / "my.corpus"


@pytest.mark.slow
def test_every_file_is_accounted_for_with_a_reason(messy, messy_corpus):
    report = index([messy], messy_corpus, encoder="hashing")
    told = {f.path: f for f in report.files}
    names = [os.path.relpath(os.path.join(at, n), messy) for at, _, inside in os.walk(messy) for n in inside]
    assert {unicodedata.normalize("NFC", n) for n in names} <= set(told)
    for file in report.files:
        assert file.documents or file.reason, file
        assert not file.reason or file.status is FileStatus.INDEXED or file.remedy, file
    left = {path: f.reason for path, f in told.items() if f.status in (FileStatus.SKIPPED, FileStatus.FAILED)}
    left.pop("secret.txt", None)
    assert left == {
        "circle": "It is a link to what is read under its own name",
        "empty.txt": "It is empty",
        "blank.txt": "It has no text",
        "binary.txt": "It is a binary file, not text",
        "broken.docx": "It is broken: it ends too early, or its table of contents is damaged",
    }
    assert told["text.docx"].reason == "It is not .docx, despite its name: it was read as text"
    assert told["all.zip"].reason.startswith("Left out: ../evil.txt: The member")
    assert sum(kind.files for kind in by_kind(report)) == report.found


@pytest.mark.parametrize(
    ("word", "citation"),
    [
        ("aardvark", "/".join(f"level{n}" for n in range(30)) + "/deep.txt:1-1"),
        ("badger", "it's a \"quoted\"\nname.txt:1-1"), ("capybara", "café.txt:1-1"), ("elephant", "text.docx:1-1"),
        ("ferret", "nul.txt:1-1"), ("gazelle", "rtl.txt:1-1"), ("iguana", "report.docx#paragraph=1-2"),
        ("jackal", "deck.pptx#slide=2"), ("kangaroo", "book.xlsx#sheet=Sales&row=1-3"), ("meerkat", "mail.eml#part=0-1"),
        ("narwhal", "mail.eml!/in.docx#paragraph=1"), ("ocelot", "all.zip!/a/b.txt:1-1"),
    ],
)  # fmt: skip
def test_a_word_is_found_and_cited_where_it_is(messy, messy_corpus, word, citation):
    if not messy_corpus.exists():
        index([messy], messy_corpus, encoder="hashing")
    with open_corpus(messy_corpus) as opened:
        assert opened.search(word, mode="keyword").hits[0].citation == citation
        (passage,) = opened.grep(word)
        assert passage.citation.startswith(citation.partition("#")[0].partition(":")[0])
        assert opened.read_file(passage.path).count(word)
