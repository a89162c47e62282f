"""Other programs beside the readers: text recognition and the census of words; and how the work grows with a file."""

from __future__ import annotations

import io
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import file_makers
import pytest
from click.testing import CliRunner
from corpus_files import run, write_files
from file_makers import found, mail, pdf, problems, saved, xlsx
from PIL import Image, ImageDraw

from workbench import open_corpus
from workbench.cli.main import main
from workbench.errors import SettingError
from workbench.ingest.census import words
from workbench.ingest.errors import Problem
from workbench.ingest.read import ReadDocument, read_documents
from workbench.ingest.readers.ocr import languages
from workbench.ingest.rules import FileRules


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a program on the path, a shell script, and nothing else that is looked for."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("sh", "cat"):
        (folder / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(folder))

    def add(name: str, script: str) -> None:
        file = folder / name
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    return add


TESSERACT = """if [ "$1" = --list-langs ]; then printf 'Languages (2):\\neng\\ndeu\\n'; exit; fi
cat > /dev/null
echo 'mizzenmast of the ship'"""


def scan(words: str = "") -> bytes:
    """A PDF of one page that is a picture."""
    image = Image.new("L", (900, 300), 255)
    ImageDraw.Draw(image).text((40, 80), words, fill=0, font_size=60)
    stream = io.BytesIO()
    image.save(stream, "PDF", resolution=100)
    return stream.getvalue()


def picture() -> bytes:
    stream = io.BytesIO()
    Image.new("L", (9, 9), 255).save(stream, "PNG")
    return stream.getvalue()


def recognised(file: Path) -> list[ReadDocument]:
    items = read_documents(found(file), FileRules(), ocr=languages())
    return [item for item in items if isinstance(item, ReadDocument)]


def test_words_of_scans_and_pictures_are_recognised_and_cited_as_such(tmp_path, program, monkeypatch):
    """Off by default; a run that asks for it reads the same files again, and one that does not, too."""
    program("tesseract", TESSERACT)
    docs, corpus = write_files(tmp_path / "docs", {"a.pdf": scan(), "b.png": picture()}), tmp_path / "corpus"
    report = run(docs, corpus)
    assert [file.status.value for file in report.files] == ["failed", "indexed"]
    assert "--ocr" in report.files[0].remedy
    assert run(docs, corpus, ocr=True).count(report.files[1].status) == 2
    with open_corpus(corpus) as opened:
        cited = [hit.citation for hit in opened.search("mizzenmast", plan="sources=keyword").hits]
        assert sorted(cited) == ["a.pdf#page=1&text=recognised", "b.png#text=recognised"]
    monkeypatch.setenv("WORKBENCH_OCR", "yes")
    assert not run(docs, corpus).changed
    monkeypatch.delenv("WORKBENCH_OCR")
    assert run(docs, corpus).changed


def test_a_page_with_words_keeps_them_and_gets_the_others(tmp_path, program):
    """What cannot be recognised costs its page only."""
    program("tesseract", TESSERACT)
    (document,) = recognised(saved(tmp_path, "a.pdf", scan("mizzenmast")))
    assert document.document.text == "mizzenmast of the ship"
    program("tesseract", TESSERACT.replace("echo", "exit 1 #"))
    items = list(read_documents(found(saved(tmp_path, "b.png", picture())), FileRules(), ocr="eng"))
    assert ["tesseract failed" in item.reason for item in items if isinstance(item, Problem)] == [True]


def test_what_recognition_needs_is_named(program, monkeypatch):
    with pytest.raises(SettingError, match=r"not installed.*apt-get install tesseract-ocr"):
        languages()
    program("tesseract", TESSERACT)
    monkeypatch.setenv("WORKBENCH_OCR_LANGUAGES", "deu+fra")
    with pytest.raises(SettingError, match=r"'fra'.*tesseract-ocr-fra"):
        languages()


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="needs Debian's tesseract-ocr")
def test_words_are_recognised(tmp_path):
    (document,) = recognised(saved(tmp_path, "a.pdf", scan("Nutmeg cargo")))
    assert "Nutmeg cargo" in document.document.text


def test_the_census_names_files_whose_words_differ(tmp_path, program):
    """By 2 % of the words; without a program there is a sentence."""
    docs = write_files(
        tmp_path / "docs",
        {"same.pdf": pdf(["fairlead hawser"]), "other.pdf": pdf(["fairlead"]), "bad.pdf": b"%PDF-", "a.md": "text"},
    )
    asked = ["index", str(docs), "--corpus", str(tmp_path / "corpus"), "--check-words"]
    refused = CliRunner().invoke(main, asked)
    assert refused.exit_code == 2
    assert "apt-get install" in refused.output
    program("pdftotext", "echo 'Fair\u00adlead hawser'")
    answer = CliRunner().invoke(main, [*asked, "--strict"])
    assert answer.exit_code == 1
    assert "33.3% other.pdf: only pdftotext has hawser" in answer.output
    assert "not compared bad.pdf" in answer.output
    assert "2 files compared by pdftotext: 1 differ" in answer.output
    assert "same.pdf" not in answer.output
    assert not (tmp_path / "corpus").exists()


def test_words_are_compared_whatever_form_they_are_written_in():
    assert words("Ｆairlead ﬁn 東京") == Counter({"fairlead": 1, "fin": 1, "東": 1, "京": 1})


class Counted(bytes):
    """Bytes that count how many of them are copied."""

    copied = 0

    def __getitem__(self, key: object) -> bytes:
        part = super().__getitem__(key)
        Counted.copied += len(part) if isinstance(part, bytes) else 1
        return part


def operations(read: Callable[[], object]) -> int:
    """How many functions are called, Python's and those of its libraries."""
    count = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        read()
    finally:
        sys.setprofile(before)
    return count


def labels(number: int) -> bytes:
    return pdf(["\n".join(f"label {n}" for n in range(10 * number))])


GROWING: dict[str, Callable[[int], bytes | str]] = {
    "a.mbox": lambda n: (b"From a@b Tue Oct  1 12:34:56 2024\n" + mail("S", "words") + b"\n") * n,
    "a.pdf": labels,
    "a.csv": lambda n: "name,what\n" + 'a,"open\nb,c\n' * n,
    "a.html": lambda n: "<table>" + "<tr><td>a<td>b" * n + "</table>" + "<ul><li>x</ul>" * n,
    "a.xlsx": lambda n: xlsx({"S": [["a", "b"]] * n}),
    "a.ods": lambda n: file_makers.ods({"S": [["a", "b"]] * n}),
    "a.docx": lambda n: file_makers.docx([("", "words")] * n, [["a", "b"]] * (n // 4)),
    "a.rtf": lambda n: "{\\rtf1 " + "words\\par {\\b x}" * n + "}",
    "a.xml": lambda n: "<r>" + "<p>a <e>b</e> c</p>" * n + "</r>",
    "a.txt": lambda n: "Title\n=====\n\nwords\n\n" * n,
    "a.md": lambda n: "# Title\n\n| a | b |\n|---|---|\n| c | d |\n\n" * n,
    "a.ics": lambda n: "BEGIN:VCALENDAR\n" + "SUMMARY:a\n b\n" * n + "END:VCALENDAR\n",
    "a.srt": lambda n: "00:00:01,000 --> 00:00:02,000\nword\n\n" * n,
}


@pytest.mark.parametrize("name", GROWING)
def test_twice_the_file_is_twice_the_work(tmp_path, name):
    """Operations are counted, not seconds."""
    counts = []
    for number in (40, 40, 80):  # what is loaded once is loaded before
        file = saved(tmp_path, name, GROWING[name](number))
        file = file.rename(tmp_path / f"{number}{name}")
        counts.append(operations(lambda: problems(file)))  # noqa: B023
    assert counts[2] < 2.3 * counts[1] + 500


def test_a_mailbox_is_copied_once(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "workbench.ingest.readers.base._read", lambda f, size=-1: Counted(Path(f.absolute).read_bytes())
    )
    for number in (20, 200):
        file = saved(tmp_path, f"{number}.mbox", GROWING["a.mbox"](number))
        Counted.copied = 0
        problems(file)
        assert 0 < Counted.copied < 3 * file.stat().st_size
