"""The indexing run: what is read, carried over, removed, embedded, and what the report says of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from workbench.errors import CorpusLocked, CorpusNotFound, EncoderMismatch, IndexingStopped, UsageError
from workbench.indexing import index, remove
from workbench.records import EncoderIdentity, FileStatus, Granularity, IndexReport, Principal, Progress
from workbench.store import generations, locks
from workbench.store.generations import Layout
from workbench.store.reader import Generation, check_encoder, open_generation

TEXTS = {
    "a.md": "---\ntags: [x, y]\nyear: 2020\n---\n# Retry\n\nRetries back off.\n",
    "b.md": "# Backoff\n\nWait longer each time.\n",
    "sub/c.md": "# Cats\n\nCats sleep all day.\n",
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of three small files."""
    folder = tmp_path / "docs"
    for name, text in TEXTS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Where the corpus goes."""
    return tmp_path / "my.corpus"


def run(docs: Path, corpus: Path, **options: object) -> IndexReport:
    """Index with the hashing encoder, and check that the counts add up."""
    report = index([docs], corpus, **{"encoder": "hashing", **options})  # type: ignore[arg-type]
    counted = sum(report.count(s) for s in FileStatus if s is not FileStatus.REMOVED)
    assert report.found == counted
    return report


def paths(corpus: Path) -> list[str]:
    """Paths of the corpus's documents, in order."""
    with open_generation(corpus) as opened:
        return [d.path for d in opened.records.documents(range(opened.records.documents_total))]


@pytest.fixture
def opened(docs: Path, corpus: Path) -> Iterator[Generation]:
    """The corpus of the three files, open."""
    run(docs, corpus)
    with open_generation(corpus) as generation:
        yield generation


def test_a_run_reports_every_file_and_the_generation_that_answers(docs: Path, corpus: Path):
    """Three files, three documents; the binary one is skipped with its reason."""
    (docs / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    report = run(docs, corpus)
    assert [(f.path, f.status.value) for f in report.files] == [
        ("a.md", "indexed"), ("b.md", "indexed"), ("image.png", "skipped"), ("sub/c.md", "indexed"),
    ]  # fmt: skip
    assert report.files[2].reason
    assert (report.documents, report.changed) == (3, True)
    assert report.embedded == report.chunks == 3
    assert report.generation == generations.current(corpus)
    assert sorted(p.name for p in corpus.iterdir()) == ["current", "generations", "writer.lock"]


def test_a_second_run_changes_nothing_and_embeds_nothing(docs: Path, corpus: Path):
    """The generation stays, byte for byte."""
    first = run(docs, corpus)
    manifest = (Layout(corpus).folder(first.generation) / "manifest.json").read_bytes()
    second = run(docs, corpus)
    assert (second.generation, second.changed, second.embedded) == (first.generation, False, 0)
    assert second.count(FileStatus.UNCHANGED) == 3
    assert second.reused == first.chunks
    assert (Layout(corpus).folder(first.generation) / "manifest.json").read_bytes() == manifest


def test_only_what_changed_is_read_and_embedded(docs: Path, corpus: Path):
    """An edit embeds one text; a new time of change embeds none; the rest is carried over."""
    run(docs, corpus)
    (docs / "b.md").write_text("# Backoff\n\nWait less.\n")
    report = run(docs, corpus)
    assert (report.count(FileStatus.INDEXED), report.count(FileStatus.UNCHANGED), report.embedded) == (1, 2, 1)
    os.utime(docs / "a.md", (1, 1))
    report = run(docs, corpus)
    assert (report.count(FileStatus.INDEXED), report.embedded, report.changed) == (1, 0, True)
    with open_generation(corpus) as opened:
        assert opened.records.documents([0])[0].modified.year == 1970  # type: ignore[union-attr]


def test_a_file_that_vanished_is_removed_and_counted(docs: Path, corpus: Path):
    """From the next generation on."""
    run(docs, corpus)
    (docs / "b.md").unlink()
    report = run(docs, corpus)
    assert (report.count(FileStatus.REMOVED), report.found, report.documents, report.embedded) == (1, 2, 2, 0)
    assert paths(corpus) == ["a.md", "sub/c.md"]


def test_a_renamed_file_embeds_nothing(docs: Path, corpus: Path):
    """Vectors are found again by the text."""
    run(docs, corpus)
    (docs / "b.md").rename(docs / "z.md")
    report = run(docs, corpus)
    assert (report.count(FileStatus.REMOVED), report.count(FileStatus.INDEXED), report.embedded) == (1, 1, 0)
    assert paths(corpus) == ["a.md", "sub/c.md", "z.md"]


def test_vectors_of_a_grown_corpus_are_those_of_one_made_at_once(docs: Path, corpus: Path, tmp_path: Path):
    """Bit for bit, and with the same digest: history leaves no trace."""
    run(docs, corpus)
    (docs / "b.md").write_text("# Backoff\n\nWait less.\n")
    (docs / "0.md").write_text("# First\n\nNew.\n")
    (docs / "sub" / "c.md").unlink()
    run(docs, corpus)
    run(docs, tmp_path / "other.corpus")
    with open_generation(corpus) as grown, open_generation(tmp_path / "other.corpus") as fresh:
        numbers = np.arange(grown.records.records_total)
        assert np.array_equal(grown.vectors().vectors(numbers), fresh.vectors().vectors(numbers))
        assert grown.records.rows(numbers.tolist()) == fresh.records.rows(numbers.tolist())
        assert grown.manifest.digest == fresh.manifest.digest


@pytest.mark.slow
def test_the_digest_does_not_depend_on_the_order_of_files_or_the_place_of_the_folder(
    docs: Path, corpus: Path, tmp_path: Path
):
    """The files one by one, last first, into a copy elsewhere."""
    run(docs, corpus)
    copy = tmp_path / "elsewhere" / "docs"
    for name in reversed(TEXTS):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(TEXTS[name])
        run(copy, tmp_path / "other.corpus")
    with open_generation(corpus) as one, open_generation(tmp_path / "other.corpus") as other:
        assert one.manifest.digest == other.manifest.digest
        assert one.id != other.id


@pytest.mark.slow
def test_another_folder_later_keeps_the_first_one(docs: Path, corpus: Path, tmp_path: Path):
    """Also where both hold the same relative path: both documents stay, with ids of their own."""
    run(docs, corpus)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Other\n\nAnother a.\n")
    report = run(tmp_path / "notes", corpus)
    assert "both hold a.md" in report.warnings[0]
    assert (report.found, report.documents) == (1, 4)
    assert paths(corpus) == ["a.md", "a.md", "b.md", "sub/c.md"]
    assert run(tmp_path / "notes", corpus).changed is False
    assert run(docs, corpus).changed is False


def test_a_part_of_a_folder_refreshes_only_that_part(docs: Path, corpus: Path):
    """What is beside it is neither read nor removed."""
    run(docs, corpus)
    (docs / "b.md").unlink()
    (docs / "sub" / "c.md").write_text("# Dogs\n")
    report = run(docs / "sub", corpus)
    assert [(f.path, f.status.value) for f in report.files] == [("sub/c.md", "indexed")]
    assert paths(corpus) == ["a.md", "b.md", "sub/c.md"]


@pytest.mark.slow
def test_a_second_collection_of_the_same_files_is_added(docs: Path, corpus: Path):
    """One document, records in both; an edit then changes both."""
    run(docs, corpus, collections=("artifact_chunks",))
    report = run(docs, corpus, collections=("artifacts",))
    assert report.documents == 3
    with open_generation(corpus) as opened:
        info = opened.records.info(opened.records.scope(None, None, ()))
        assert info["collections"] == {"artifact_chunks": 3, "artifacts": 3}
        assert info["granularities"] == {"artifact_chunks": "chunk", "artifacts": "document"}
    (docs / "b.md").write_text("# Backoff\n\nWait less.\n")
    assert run(docs, corpus, collections=("artifacts",)).embedded == 1
    with open_generation(corpus) as opened:
        (number,) = [n for n in range(3) if opened.records.documents([n])[0].path == "b.md"]
        rows = opened.records.rows(opened.records.records_of(number).tolist())
        assert {r.chunk.collection for r in rows} == {"artifact_chunks", "artifacts"}
        assert all("less" in r.chunk.text for r in rows)


def test_a_whole_document_has_the_normalised_mean_of_its_chunks_vectors(docs: Path, corpus: Path):
    """Computed here by hand from the chunks of another collection."""
    (docs / "long.md").write_text("".join(f"# Part {i}\n\n{f'word{i} ' * 150}\n\n" for i in range(4)))
    run(docs, corpus, collections=("artifacts", "artifact_chunks"))
    with open_generation(corpus) as opened:
        store = opened.records
        number = store.find_document("long.md", store.scope(None, None, ()))
        assert number is not None
        rows = store.rows(store.records_of(number).tolist())
        whole = [r.number for r in rows if r.chunk.granularity is Granularity.DOCUMENT]
        chunks = [r.number for r in rows if r.chunk.granularity is Granularity.CHUNK]
        assert len(chunks) > 2
        mean = opened.vectors().vectors(np.array(chunks)).astype(np.float64).mean(axis=0)
        expected = (mean / np.linalg.norm(mean)).astype(np.float32)
        assert np.allclose(opened.vectors().vectors(np.array(whole))[0], expected, atol=1e-7)
    (docs / "b.md").write_text("other")
    run(docs, corpus, collections=("artifacts", "artifact_chunks"))
    with open_generation(corpus) as opened:
        store = opened.records
        number = store.find_document("long.md", store.scope(None, None, ()))
        rows = store.rows(store.records_of(number or 0).tolist())
        carried = [r.number for r in rows if r.chunk.granularity is Granularity.DOCUMENT]
        assert np.allclose(opened.vectors().vectors(np.array(carried))[0], expected, atol=1e-7)


@pytest.mark.slow
def test_one_chunk_a_document_is_a_property_of_a_collection(docs: Path, corpus: Path):
    """It stays so in later runs, and an existing collection is not cut in two ways."""
    (docs / "long.md").write_text("word " * 2000)
    report = run(docs, corpus, one_chunk_per_document=True)
    assert report.chunks == report.documents == 4
    (docs / "b.md").write_text("other")
    assert run(docs, corpus).chunks == 4
    assert run(docs, corpus, collections=("more",)).chunks > 8
    with pytest.raises(UsageError, match="several chunks"):
        run(docs, corpus, collections=("more",), one_chunk_per_document=True)


@pytest.mark.slow
def test_removed_paths_are_gone_until_their_folder_is_indexed_again(docs: Path, corpus: Path):
    """By absolute path or as citations show it; an unknown path is refused."""
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


def test_everything_may_be_removed(docs: Path, corpus: Path):
    """An empty corpus opens and answers."""
    run(docs, corpus)
    assert remove([docs], corpus).documents == 0
    with open_generation(corpus) as opened:
        opened.open_all()
        assert opened.records.info(opened.records.scope(None, None, ()))["documents"] == 0


@pytest.mark.slow
def test_a_bad_file_is_reported_and_the_others_are_indexed(docs: Path, corpus: Path):
    """With its reason and remedy; when it is mended it comes in, when it breaks it leaves."""
    (docs / "bad.pdf").write_bytes(b"%PDF-1.7\nnot really")
    report = run(docs, corpus)
    (bad,) = [f for f in report.files if f.path == "bad.pdf"]
    assert bad.status is FileStatus.FAILED
    assert bad.reason
    assert bad.remedy
    assert report.documents == 3
    assert run(docs, corpus).changed is False
    (docs / "b.md").write_bytes(b"\0\1\2" * 400)
    assert run(docs, corpus).documents == 2


def test_records_with_one_id_are_not_silently_lost(docs: Path, corpus: Path):
    """The report says how many were left out."""
    (docs / "r.jsonl").write_text(
        '{"id": "1", "text": "one"}\n{"id": "1", "text": "two"}\n{"id": "2", "text": "three"}\n'
    )
    report = run(docs, corpus)
    (file,) = [f for f in report.files if f.path == "r.jsonl"]
    assert file.documents + 1 == 3
    assert file.reason


@pytest.mark.slow
def test_helpers_give_what_one_process_gives(docs: Path, corpus: Path, tmp_path: Path):
    """Whatever helper was faster."""
    for i in range(12):
        (docs / f"{i}.md").write_text(f"# {i}\n\n{'text ' * (12 - i) * 20}\n")
    one = run(docs, corpus, workers=0)
    two = run(docs, tmp_path / "other.corpus", workers=2)
    assert [(f.path, f.status, f.chunks) for f in one.files] == [(f.path, f.status, f.chunks) for f in two.files]
    with open_generation(corpus) as a, open_generation(tmp_path / "other.corpus") as b:
        assert a.manifest.digest == b.manifest.digest


def test_progress_names_every_step_and_ends_each(docs: Path, corpus: Path):
    """Steps with a known total end at it."""
    told: list[Progress] = []
    run(docs, corpus, progress=told.append)
    steps = list(dict.fromkeys(p.step for p in told))
    assert [s for s in ("walk", "compare", "read", "embed", "tables", "publish") if s not in steps] == []
    for step in ("walk", "compare", "read", "embed", "publish"):
        last = [p for p in told if p.step == step][-1]
        assert last.done == last.total > 0


@pytest.mark.slow
def test_a_stopped_run_leaves_the_corpus_and_keeps_what_was_embedded(docs: Path, corpus: Path):
    """By abort, or by any exception, KeyboardInterrupt too; the next run embeds the rest only."""
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


def test_a_second_writer_is_refused_or_waits(docs: Path, corpus: Path):
    """While readers go on."""
    run(docs, corpus)
    (docs / "d.md").write_text("new")
    with locks.writer(Layout(corpus).writer_lock, corpus):
        with pytest.raises(CorpusLocked, match=str(os.getpid())):
            run(docs, corpus)
        assert len(paths(corpus)) == 3
    assert run(docs, corpus, wait=True).documents == 4


def test_a_reader_keeps_its_generation_and_follows_when_asked(docs: Path, corpus: Path):
    """Pinned: the old one answers while and after the new one is made; then it is removed by the next run."""
    run(docs, corpus)
    old = open_generation(corpus)
    (docs / "d.md").write_text("new")
    run(docs, corpus)
    assert not old.is_current()
    assert old.records.documents_total == 3
    assert old.grep.search(
        ["Cats"], old.records.scope(None, None, ()), 5, regex=False, case="smart", word=False, context=1
    ).lines
    assert len(list(Layout(corpus).generations.iterdir())) == 2
    old.close()
    run(docs, corpus)
    assert len(list(Layout(corpus).generations.iterdir())) == 1


@pytest.mark.slow
def test_another_encoder_embeds_everything_anew_and_several_may_be_held(docs: Path, corpus: Path, monkeypatch):
    """The corpus's own is the first; naming only it keeps the others; all folders are read for a new one."""
    import workbench.encode.load as load
    from workbench.encode.hashing import IDENTITY, HashingEncoder

    other = EncoderIdentity("other", "ff" * 32, "hashing 1", IDENTITY.dim, IDENTITY.max_tokens)

    class Other(HashingEncoder):
        identity = other

        def encode(self, texts, progress=None):  # type: ignore[no-untyped-def]
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


def test_vectors_of_two_encoders_are_never_compared():
    """Digest and dimension must be equal; the runtime need not be."""
    one = EncoderIdentity("m", "ab", "torch", 4, 16)
    check_encoder(one, EncoderIdentity("m", "ab", "openvino", 4, 16))
    with pytest.raises(EncoderMismatch, match="index its folders again"):
        check_encoder(one, EncoderIdentity("m", "cd", "torch", 4, 16))


def test_front_matter_and_rules_decide_who_sees_what(docs: Path, corpus: Path):
    """Flags, then corpus.yaml; a document is unchanged only under the same rules."""
    run(docs, corpus, tenant="acme", roles=("hr",))
    with open_generation(corpus) as opened:
        assert opened.records.count(opened.records.scope(Principal("acme", ("hr",)), None, ())) == (3, 3)
        assert opened.records.count(opened.records.scope(Principal("acme"), None, ())) == (0, 0)
    report = run(docs, corpus, tenant="acme")
    assert (report.count(FileStatus.INDEXED), report.embedded) == (3, 0)
    with open_generation(corpus) as opened:
        assert opened.records.count(opened.records.scope(Principal("acme"), None, ())) == (3, 3)
