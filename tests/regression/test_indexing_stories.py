"""Longer stories of the indexing run: several folders, collections, encoders, processes, interruptions."""

import os
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from corpus_files import paths, run, write_texts

import workbench as wb
from workbench.cli.main import main
from workbench.errors import CorpusNotFound, EncoderMismatch, IndexingStopped, SettingError, UsageError
from workbench.indexing import remove
from workbench.indexing.preview import Action
from workbench.ingest.rules import parse_rules
from workbench.records import EncoderIdentity, FileStatus, Progress
from workbench.saved.jobs import list_jobs
from workbench.store import generations
from workbench.store.generations import Layout
from workbench.store.reader import open_generation

pytestmark = pytest.mark.slow


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of three small files."""
    return write_texts(tmp_path / "docs")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Where the corpus goes."""
    return tmp_path / "my.corpus"


def test_a_second_collection_of_the_same_files_is_added(docs, corpus):
    run(docs, corpus, collection=("artifact_chunks",))
    report = run(docs, corpus, collection=("artifacts",))
    assert report.documents == 3
    with open_generation(corpus) as opened:
        info = opened.records.info(opened.records.scope(None, None, ()))
        assert info["collections"] == {"artifact_chunks": 3, "artifacts": 3}
        assert info["granularities"] == {"artifact_chunks": "chunk", "artifacts": "document"}
    (docs / "b.md").write_text("# Backoff\n\nWait less.\n")
    assert run(docs, corpus, collection=("artifacts",)).embedded == 1
    with open_generation(corpus) as opened:
        (number,) = [n for n in range(3) if opened.records.documents([n])[0].path == "b.md"]
        rows = opened.records.rows(opened.records.records_of(number).tolist())
        assert {r.chunk.collection for r in rows} == {"artifact_chunks", "artifacts"}
        assert all("less" in r.chunk.text for r in rows)


def test_one_chunk_a_document_is_a_property_of_a_collection(docs, corpus):
    (docs / "long.md").write_text("word " * 2000)
    report = run(docs, corpus, one_chunk_per_document=True)
    assert report.chunks == report.documents == 4
    (docs / "b.md").write_text("other")
    assert run(docs, corpus).chunks == 4
    assert run(docs, corpus, collection=("more",)).chunks > 8
    with pytest.raises(UsageError, match="several chunks"):
        run(docs, corpus, collection=("more",), one_chunk_per_document=True)


def test_removed_paths_are_gone_until_their_folder_is_indexed_again(docs, corpus):
    run(docs, corpus)
    report = remove([docs / "sub"], corpus)
    assert [(f.path, f.status.value) for f in report.files] == [("sub/c.md", "removed")]
    assert report.embedded == 0
    remove(["a.md"], corpus)
    assert paths(corpus) == ["b.md"]
    with pytest.raises(UsageError, match="Nothing in the corpus"):
        remove(["nothing.md"], corpus)
    assert run(docs, corpus).embedded == 2
    with pytest.raises(CorpusNotFound):
        remove(["a.md"], corpus / "none")


def counts_and_digest(corpus: Path) -> tuple[dict[str, int], str]:
    with wb.open_corpus(corpus) as opened:
        info = opened.info()
    return info["collections"], info["digest"]


def test_documents_move_between_collections_without_a_file_or_an_embedding(docs, corpus, tmp_path):
    """A moved corpus has the digest of one that was indexed there at once; records that name their own collection keep it."""
    (docs / "r.jsonl").write_text('{"id": "1", "text": "one"}\n{"id": "2", "text": "two", "collection": "own"}\n')
    run(docs, tmp_path / "other", collection="notes")
    run(docs, corpus)
    report = run(docs, corpus, collection="notes")
    assert "4 files in docs already" in report.warnings[0]
    assert not run(docs, corpus, collection="notes").warnings
    shown = CliRunner().invoke(main, ["remove", str(docs / "sub"), "--collection", "docs", "--corpus", str(corpus)])
    assert shown.exit_code == 0, shown.output
    assert counts_and_digest(corpus)[0] == {"docs": 3, "notes": 4, "own": 1}
    (docs / "b.md").rename(tmp_path / "away.md")
    report = wb.move([docs], corpus, to="notes", source="docs")
    assert (report.embedded, report.count("indexed")) == (0, 3)
    assert counts_and_digest(corpus) == counts_and_digest(tmp_path / "other")
    (tmp_path / "away.md").rename(docs / "b.md")
    assert run(docs, corpus, collection="notes").embedded == 0
    assert run(docs, corpus, collection="notes").changed is False
    report = wb.remove(["b.md"], corpus, "notes")
    assert [(f.path, f.status.value) for f in report.files] == [("b.md", "removed")]
    with pytest.raises(UsageError, match="cuts documents in another way"):
        wb.move([docs], corpus, to="artifacts")
    with pytest.raises(UsageError, match="in the collection absent"):
        wb.remove([docs], corpus, "absent")
    args = [str(docs), "--collection", "artifacts", "--move", "--corpus", str(corpus)]
    assert "4 files" in CliRunner().invoke(main, ["index", *args, "--dry-run"]).output
    assert CliRunner().invoke(main, ["index", *args]).exit_code == 0
    assert counts_and_digest(corpus)[0] == {"artifacts": 4, "own": 1}
    args = ["move", str(docs), "--to", "notes", "--corpus", str(corpus)]
    assert "in another way" in CliRunner().invoke(main, args).output
    found = wb.preview([docs], corpus, "notes")
    assert found.elsewhere == {}  # whole documents and chunks are no doubles of each other
    run(docs, corpus, collection="plain", move=True)
    assert wb.preview([docs], corpus, "notes").elsewhere == {"plain": 4}


def test_whole_documents_keep_their_vectors_when_their_chunks_leave(docs, corpus):
    (docs / "long.md").write_text("".join(f"# Part {i}\n\n{f'word{i} ' * 150}\n\n" for i in range(4)))
    run(docs, corpus, collection=("artifacts", "artifact_chunks"))

    def vectors() -> np.ndarray:
        with open_generation(corpus) as opened:
            records = opened.records
            scope = records.scope(None, None, ("artifacts",))
            return opened.vectors().vectors(np.flatnonzero(scope.allowed))

    before = vectors()
    wb.remove([docs], corpus, "artifact_chunks")
    assert counts_and_digest(corpus)[0] == {"artifacts": 4}
    assert np.allclose(vectors(), before, atol=1e-6)
    (corpus / "corpus.yaml").write_text("collections: {whole: document}\n")
    with pytest.raises(UsageError, match="Only the files know"):
        wb.move([docs], corpus, to="whole")


def test_a_stopped_run_leaves_the_corpus_and_keeps_what_was_embedded(docs, corpus):
    run(docs, corpus)
    before = generations.current(corpus)
    (docs / "d.md").write_text("# D\n\nNew text.\n")
    embedded = threading.Event()

    def tell(progress: Progress) -> None:
        if progress.step == "embed" and progress.done == progress.total:
            embedded.set()

    with pytest.raises(IndexingStopped, match="kept"):
        run(docs, corpus, progress=tell, abort=embedded.is_set)

    def interrupt(progress: Progress) -> None:
        if progress.step == "tables":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(docs, corpus, progress=interrupt)
    assert generations.current(corpus) == before
    assert not Layout(corpus).building.exists()
    report = run(docs, corpus)
    assert (report.embedded, report.documents) == (0, 4)
    assert not Layout(corpus).embeddings.exists()


def test_another_encoder_embeds_everything_anew_and_several_may_be_held(docs, corpus, monkeypatch):
    import workbench.encode.load as load
    from workbench.encode.hashing import IDENTITY, HashingEncoder

    other = EncoderIdentity("other", "ff" * 32, "hashing 1", IDENTITY.dim, IDENTITY.max_tokens)

    class Other(HashingEncoder):
        identity = other

        def encode(self, texts, progress=None):
            return -super().encode(texts, progress)

    known, real = load.identity_of, load.load_encoder
    monkeypatch.setattr(load, "identity_of", lambda name=None: other if name == "other" else known(name))
    monkeypatch.setattr(
        load, "load_encoder", lambda name=None, runtime=None: Other() if name == "other" else real(name)
    )
    run(docs, corpus)
    report = run(docs / "sub", corpus, encoder=["hashing", "other"])
    assert (report.embedded, report.documents) == (3, 3)
    with open_generation(corpus) as opened:
        assert opened.vectors().identity == IDENTITY
        assert np.array_equal(opened.vectors("other").vectors(np.arange(3)), -opened.vectors().vectors(np.arange(3)))
        with pytest.raises(EncoderMismatch, match="has no vectors of third"):
            opened.vectors("third")
    (docs / "b.md").write_text("# Backoff\n\nWait less.\n")
    assert run(docs, corpus).embedded == 2


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Three files and a drafts folder."""
    folder = tmp_path / "docs"
    (folder / "drafts").mkdir(parents=True)
    for name in ("a.md", "b.md", "c.txt", "drafts/d.md"):
        (folder / name).write_text(f"# {name}\n\nWords of {name}.\n")
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_dry_run_says_what_the_run_then_does(notes, tmp_path):
    corpus = tmp_path / "c.corpus"
    wb.index([notes], corpus, encoder="hashing")
    (notes / "a.md").write_text("# a\n\nOther words.\n")
    (notes / "b.md").unlink()
    (notes / "n.md").write_text("# n\n\nNew.\n")
    (corpus / "corpus.yaml").write_text('exclude: ["drafts/**"]\n')
    before = files_below(corpus)
    found = wb.preview([notes], corpus)
    assert files_below(corpus) == before
    assert {f.path: f.action for f in found.files} == {
        "a.md": Action.CHANGED, "b.md": Action.REMOVED, "c.txt": Action.UNCHANGED, "drafts/d.md": Action.SKIPPED,
        "n.md": Action.NEW,
    }  # fmt: skip
    report = wb.index([notes], corpus)
    assert report.count(FileStatus.INDEXED) == found.count(Action.NEW) + found.count(Action.CHANGED) == 2
    for status, action in ((FileStatus.UNCHANGED, Action.UNCHANGED), (FileStatus.REMOVED, Action.REMOVED)):
        assert report.count(status) == found.count(action) == 1
    assert report.count(FileStatus.SKIPPED) == found.count(Action.SKIPPED) == 1
    with wb.open_corpus(corpus) as opened:
        assert "drafts/d.md" not in opened.search("words", mode="keyword").frame()["path"].to_list()


def test_a_dry_run_says_which_files_have_the_same_bytes(notes, tmp_path):
    """As the run then does; nothing else of them is read."""
    corpus = tmp_path / "c.corpus"
    same = {"z.md": "a.md", "y.markdown": "a.md", "x.txt": "a.md", "drafts/s.md": "b.md", "b2.md": "b.md"}
    for name, of in same.items():
        (notes / name).write_bytes((notes / of).read_bytes())
    (notes / "same-size.md").write_bytes((notes / "b.md").read_bytes().replace(b"W", b"V"))
    for name in ("empty", "empty2"):
        (notes / name).write_bytes(b"")
    corpus.mkdir()
    (corpus / "corpus.yaml").write_text("rules: [{path: 'drafts/**', roles: [hr]}]\n")
    found = wb.preview([notes], corpus, encoder="hashing")
    assert {f.path: f.copy_of for f in found.files if f.copy_of} == {
        "b2.md": "b.md",
        "drafts/s.md": "b.md",
        "x.txt": "a.md",
        "y.markdown": "a.md",
        "z.md": "a.md",
    }
    report = wb.index([notes], corpus, encoder="hashing")
    assert {f.path: f.same_as for f in report.files if f.same_as} == {
        f.path: f.copy_of for f in found.files if f.copy_of
    }
    assert (report.copies, found.copies) == (5, 5)
    (notes / "0.md").write_bytes((notes / "a.md").read_bytes())
    again = wb.preview([notes], corpus)
    assert {f.path: f.copy_of for f in again.files if f.copy_of} == {
        "a.md": "0.md", "x.txt": "0.md", "y.markdown": "0.md", "z.md": "0.md", "b2.md": "b.md", "drafts/s.md": "b.md",
    }  # fmt: skip
    done = CliRunner().invoke(main, ["index", str(notes), "--corpus", str(corpus), "--dry-run", "--list"])
    assert "6 files hold the same bytes as another\n" in done.output
    assert "  unchanged z.md: the same bytes as 0.md\n" in done.output


@pytest.mark.parametrize(
    ("data", "taken"),
    [
        ({"include": ["*.md"]}, ["a.md", "drafts/d.md"]),
        ({"include": "*.md", "exclude": "drafts/"}, ["a.md"]),
        ({"exclude": ["**/d.*", "*.txt"]}, ["a.md"]),
        ({}, ["a.md", "c.txt", "drafts/d.md"]),
    ],
)
def test_include_and_exclude_choose_files(data, taken):
    rules = parse_rules(data)
    assert [p for p in ("a.md", "c.txt", "drafts/d.md") if not rules.left_out(p)] == taken
    assert all("corpus.yaml" in rules.left_out(p) for p in ("a.md", "c.txt", "drafts/d.md") if p not in taken)


@pytest.mark.parametrize("value", [[""], ["!a"], ["#a"], [3], {"a": 1}, ["[z-a]"], ["[[:nonsense:]]"]])
def test_a_pattern_that_cannot_be_is_refused(value):
    with pytest.raises(SettingError, match="exclude in"):
        parse_rules({"exclude": value})


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_watching_follows_changes_until_ctrl_c(notes, tmp_path):
    """A new, a changed and a removed file are found, and changed rules; one that cannot be is said and does not end it."""
    corpus = tmp_path / "c.corpus"
    log = tmp_path / "log"
    # Where the tests run in the background Ctrl-C is ignored, and a process inherits that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "workbench.cli.main", "index", str(notes), "--corpus", str(corpus), "--encoder", "hashing",
                "--watch",
            ],
            stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
    signal.signal(signal.SIGINT, before or signal.SIG_DFL)

    def found(word: str) -> int:
        with wb.open_corpus(corpus) as opened:
            return len(opened.search(word, mode="keyword").hits)

    try:
        _wait(lambda: "Watching" in log.read_text())
        assert (found("words"), found("zebra")) == (4, 0)
        (notes / "new.md").write_text("# New\n\nA zebra.\n")
        _wait(lambda: found("zebra") == 1)
        (notes / "a.md").write_text("# A\n\nTwo zebras: zebra.\n")
        (notes / "b.md").unlink()
        _wait(lambda: (found("zebra"), found("words")) == (2, 2))
        (corpus / "corpus.yaml").write_text("nonsense: 1\n")
        _wait(lambda: "nonsense" in log.read_text())
        (notes / "new.md").write_text("# New\n\nA giraffe.\n")
        (corpus / "corpus.yaml").unlink()
        _wait(lambda: found("giraffe") == 1)
        (corpus / "corpus.yaml").write_text("exclude: [new.md]\n")
        _wait(lambda: found("giraffe") == 0 and list_jobs(corpus)[0].state == "done")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0, log.read_text()
        assert "Stopped watching" in log.read_text()
    finally:
        process.kill()
        process.wait()


NFD = unicodedata.normalize("NFD", "café.md")
RAW = os.fsdecode(b"caf\xe9.md")


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / NFD).write_text("# Coffee\n\nRoasted twice.\n")
    (folder / ".gitignore").write_bytes(b"*.tmp\nold\xe9*\n")
    try:
        (folder / "sub" / RAW).write_text("# Tea\n\nSteeped long.\n")
        (folder / os.fsdecode(b"old\xe9.md")).write_text("ignored\n")
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    return folder


def test_a_document_is_found_by_its_name_as_the_system_spells_it_and_taken_out(odd, tmp_path):
    run(odd, tmp_path / "corpus")
    with wb.open_corpus(tmp_path / "corpus") as corpus:
        for name in (NFD, str(odd / NFD)):
            assert "Roasted" in corpus.read_file(name)
        for name in (f"sub/{RAW}", str(odd / "sub" / RAW), "sub/caf\\xe9.md"):
            assert "Steeped" in corpus.read_file(name)
        assert corpus.explain(corpus.search("steeped"), f"sub/{RAW}").found
        assert corpus.read_file("half of a \ud800 character").startswith("[ERROR: ")
        assert not corpus.explain(corpus.search("steeped"), "half of a \ud800 character").found
    assert wb.remove([odd / NFD], tmp_path / "corpus").documents == 1
    assert wb.remove([f"sub/{RAW}"], tmp_path / "corpus").documents == 0


def test_what_vanished_from_a_folder_of_such_a_name_goes_when_that_folder_is_indexed(odd, tmp_path):
    folder = odd / unicodedata.normalize("NFD", "für")
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"# {name}\n\nwords\n")
    run(odd, tmp_path / "corpus")
    (folder / "b.md").unlink()
    report = run(folder, tmp_path / "corpus")
    assert [file.path for file in report.files if file.status.value == "removed"] == ["für/b.md"]


def test_a_folder_or_corpus_of_such_a_name_is_refused_in_words(odd, tmp_path):
    """Its path could not be stored, and the next run would index it a second time."""
    folder = tmp_path / os.fsdecode(b"fold\xe9r")
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nwords\n")
    with pytest.raises(UsageError, match=r"fold\\xe9r is not UTF-8"):
        run(folder, tmp_path / "corpus")
    answer = CliRunner().invoke(main, ["index", str(odd), "--corpus", str(folder), "--encoder", "hashing"])
    assert answer.exit_code == 2
    assert "is not UTF-8" in answer.output
