"""A folder as people have them: every file is accounted for with a sentence, and a bad one stops nothing."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from file_makers import docx, mail, pptx, xlsx, zipped

from workbench import index, open_corpus
from workbench.records import FileStatus, by_kind


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def corpus(folder: Path) -> Path:
    return folder.parent / "my.corpus"


@pytest.mark.slow
def test_every_file_is_accounted_for_with_a_reason(folder: Path, corpus: Path) -> None:
    report = index([folder], corpus, encoder="hashing")
    told = {f.path: f for f in report.files}
    names = [os.path.relpath(os.path.join(at, n), folder) for at, _, inside in os.walk(folder) for n in inside]
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
def test_a_word_is_found_and_cited_where_it_is(folder: Path, corpus: Path, word: str, citation: str) -> None:
    if not corpus.exists():
        index([folder], corpus, encoder="hashing")
    with open_corpus(corpus) as opened:
        assert opened.search(word, mode="keyword").hits[0].citation == citation
        (passage,) = opened.grep(word)
        assert passage.citation.startswith(citation.partition("#")[0].partition(":")[0])
        assert opened.read_file(passage.path).count(word)
