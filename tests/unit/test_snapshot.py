"""Snapshots: what goes in, the same bytes out, what `verify` says; and the file, whose every fault is one sentence."""

import base64
import hashlib
import html
import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from corpus_files import write_files
from snapshot_cases import members, shrunk, small, zipped

import workbench as wb
from workbench.demo import sample_folder
from workbench.errors import PrincipalRequired, SnapshotError, SnapshotNewer, UsageError
from workbench.snapshot import archive
from workbench.snapshot import page as snapshot_page
from workbench.snapshot.boards import evaluation_of
from workbench.snapshot.diff import word_diff
from workbench.snapshot.exports import to_csv, to_json, to_trec
from workbench.snapshot.schema import Passages

QUERY = "how do retries work"


@pytest.fixture(scope="module")
def result(sample: wb.Corpus) -> wb.SearchResult:
    return sample.search(QUERY, keywords="retry backoff", plan="default limit=5 vector.threshold=off")


@pytest.fixture(scope="module")
def snapshot(result: wb.SearchResult) -> wb.Snapshot:
    return result.snapshot(note="the retry question\nasked twice a week")


def test_save_load_save_gives_the_same_bytes_or_a_sentence(snapshot: wb.Snapshot, tmp_path: Path) -> None:
    first = snapshot.save(tmp_path / "one")
    assert first.suffix == ".snapshot"
    again = wb.Snapshot.load(first)
    assert again.save(tmp_path / "two.snapshot").read_bytes() == first.read_bytes()
    assert again == snapshot
    assert again.id == snapshot.id
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.snapshot", "two.snapshot"]
    with pytest.raises(SnapshotError, match="cannot be written"):
        snapshot.save(tmp_path / "no" / "folder.snapshot")
    with pytest.raises(SnapshotError, match="There is no snapshot at"):
        wb.Snapshot.load(tmp_path / "none.snapshot")
    with pytest.raises(SnapshotError, match="cannot be read"):
        wb.Snapshot.load(tmp_path)


def test_it_holds_the_candidates_the_hits_and_where_they_come_from(
    snapshot: wb.Snapshot, result: wb.SearchResult, sample: wb.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = snapshot.frame(), result.frame()
    assert ours.equals(theirs.select(ours.columns))
    assert len(snapshot.hits()) == len(result.hits) == 5
    for ours, theirs in zip(snapshot.hits(), result.hits, strict=True):
        for name in ("rank", "score", "label", "ranks", "scores", "chunk_id", "citation", "text", "matches", "title"):
            assert getattr(ours, name) == getattr(theirs, name), name
        assert {s: v for s, v in theirs.contributions.items() if v} == {
            s: v for s, v in ours.contributions.items() if v
        }
        assert ours.metadata["type"] == theirs.metadata["type"]
    about, info = snapshot.about, sample.info()
    assert (about.origin.generation, about.origin.digest) == (info["generation"], info["digest"])
    assert about.origin.documents == info["documents"] == len(snapshot.documents())
    assert about.origin.encoders[0].name == "hashing"
    assert about.principal == wb.Principal("acme", ("admin", "support"))
    assert {"python", "workbench", "numpy", "duckdb", "usearch"} <= set(about.packages)
    assert about.created.endswith("Z")
    assert snapshot.title == "the retry question"
    monkeypatch.setenv("WORKBENCH_USER", "Ada")
    assert sample.search(QUERY).snapshot().about.by == "Ada"


def test_several_searches_go_into_one_of_one_generation_and_principal(sample: wb.Corpus, sample_path: Path) -> None:
    both = sample.compare(QUERY, ["default limit=3 vector.threshold=off", "tmm limit=4"])
    made = wb.Snapshot.of([sample.search("retry", mode="keyword"), both], note="three")
    assert [s.query for s in made.searches] == ["retry", QUERY, QUERY]
    assert [s.plan for s in made.searches][1:] == ["default limit=3 vector.threshold=off", "tmm limit=4"]
    assert len(made.hits(1)) == 3
    assert made.searches[0].sources == ("keyword",)
    with pytest.raises(UsageError, match="has no search 3"):
        made.frame(3)
    with wb.open_corpus(sample_path, wb.Principal("birch", ("support",))) as other:
        theirs = other.search(QUERY)
    with pytest.raises(UsageError, match="several generations or principals"):
        wb.Snapshot.of([sample.search(QUERY), theirs])
    with pytest.raises(UsageError, match="nothing to save"):
        wb.Snapshot.of([])
    with pytest.raises(UsageError, match="cannot hold a str"):
        wb.Snapshot.of(["text"])


@pytest.mark.slow
def test_verify_runs_the_searches_again_or_says_why_not(
    snapshot: wb.Snapshot, sample: wb.Corpus, sample_path: Path, tmp_path: Path
) -> None:
    checked = snapshot.verify(sample)
    assert checked.ok
    assert checked.ran
    assert checked.verdict.startswith("Verified")
    alone = snapshot.verify()
    assert alone.ok
    assert not alone.ran
    assert "no corpus was given" in alone.verdict
    content, about = snapshot.content, snapshot.about
    for table, column, value in (
        ("passages", "text", pl.lit("The password is swordfish.")),
        ("candidates", "score", pl.col("score") + 0.5),
        ("sources", "rank", pl.col("rank") + 1),
    ):
        changed = content.table(table).with_columns(value.alias(column))
        forged = small(about, replace(content, tables={**content.tables, table: changed}))
        assert forged.verify().digests
        checked = wb.Snapshot.load(forged.to_bytes()).verify(sample)
        assert not checked.ok, column
        assert column in checked.searches[0].differences[0]
    with wb.open_corpus(sample_path, wb.Principal("birch")) as other:
        assert "the corpus is open as tenant birch" in snapshot.verify(other).asked
    (tmp_path / "a.md").write_text("# A\n\nsomething else\n")
    wb.index([tmp_path / "a.md"], corpus=tmp_path / "c", encoder="hashing")
    with wb.open_corpus(tmp_path / "c", wb.Principal("acme", ("admin", "support"))) as other:
        assert "is not at hand" in snapshot.verify(other).asked


def test_evaluations_and_sweeps_are_saved_with_all_that_they_say(sample: wb.Corpus) -> None:
    judgments = wb.load_judgments(sample_folder(), name="sample")
    evaluation = sample.evaluate(judgments, measures=["nDCG@10", "RR"])
    made = shrunk(wb.Snapshot.of(evaluation, corpus=sample))
    again = wb.Snapshot.load(made.to_bytes())
    saved = again.evaluations[0]
    assert [m.measure for m in saved.means] == ["nDCG@10", "RR"]
    assert saved.means[0].mean == evaluation.mean("nDCG@10")
    assert saved.judgments_digest == evaluation.judgments.digest
    assert evaluation.judgments.given_digest == judgments.digest  # the sample judges copies of one file
    assert again.verify().evaluations[0].same
    with pytest.raises(UsageError, match="corpus="):
        wb.Snapshot.of(evaluation)
    board = wb.Snapshot.of([evaluation, sample.evaluate(judgments, "rrf", ["nDCG@10", "RR"])], corpus=sample)
    assert "Leaderboard on sample" in board.html()
    opened = evaluation_of(again.content, 0)
    assert opened.per_query().equals(evaluation.per_query())
    assert opened.latency == evaluation.latency
    assert opened.coverage == evaluation.coverage
    wrong = again.content.table("measures").with_columns(value=pl.lit(1.0))
    forged = small(again.about, replace(again.content, tables={**again.content.tables, "measures": wrong}))
    assert not forged.verify().ok
    judgments = wb.load_judgments(sample_folder())
    swept = sample.sweep(judgments, {"fusion.k": [1, 10, 60]}, "nDCG@10", 3)
    made = wb.Snapshot.load(wb.Snapshot.of([swept], corpus=sample).to_bytes())
    (saved,) = made.sweeps
    assert saved.verdict == swept.verdict
    assert saved.best == str(swept.best)
    assert made.evaluations[saved.after].means[0].mean == swept.after.mean("nDCG@10")
    points = made.content.table("points")
    assert points["plan"].to_list() == [str(p) for p in swept.plans]
    assert points["mean"].to_list() == swept.means().tolist()
    assert swept.verdict in made.html()
    assert '"points"' in to_json(made)
    assert made.verify(sample).ok


def test_exports(snapshot: wb.Snapshot) -> None:
    rows = pl.read_csv(to_csv(snapshot).encode())
    assert rows.filter(pl.col("shown"))["path"].n_unique() >= 1
    assert set(rows["source"].drop_nulls()) == {"grep", "keyword", "vector"}
    first = to_trec(snapshot).splitlines()[0].split()
    assert first[:2] == ["1", "Q0"]
    assert first[2] == snapshot.hits()[0].path
    assert '"passages"' in to_json(snapshot)
    content = snapshot.content
    named = content.table("candidates").with_columns(path=pl.lit('=HYPERLINK("http://x")'))
    made = small(snapshot.about, replace(content, tables={**content.tables, "candidates": named}))
    assert "\"'=HYPERLINK(" in to_csv(made)


# --- snapshot audience -----------------------------------------------------------------------------------------------


BROAD = "runbook retry deploy password"
PLAN = "default vector.threshold=off limit=50"


def everything(snapshot: wb.Snapshot) -> bytes:
    """Every byte of every part, and the tables as text (Parquet packs them)."""
    tables = "".join(t.write_json() for t in snapshot.content.tables.values())
    return b"".join(members(snapshot.to_bytes()).values()) + tables.encode()


@pytest.fixture(scope="module")
def full(sample: wb.Corpus) -> wb.Snapshot:
    return sample.search(BROAD, plan=PLAN).snapshot("all of acme's")


def test_what_the_principal_could_not_see_is_nowhere(sample_path: Path, full: wb.Snapshot, sample: wb.Corpus) -> None:
    with wb.open_corpus(sample_path, wb.Principal("acme")) as corpus:
        result = corpus.search(BROAD, plan=PLAN)
        made = result.snapshot()
        assert made.about.origin.documents == corpus.info()["documents"] == len(made.documents())
    secret = full.documents().filter(full.documents()["roles"].list.len() > 0)
    assert len(secret)
    text = everything(made)
    for row in secret.iter_rows(named=True):
        assert row["path"].encode() not in text
        assert row["document_id"].encode() not in text
    made = sample.search(BROAD, context="my private draft of the quarterly numbers").snapshot()
    assert made.searches[0].context.startswith("my private draft")
    for cut in (made.redacted(), made.metadata_only()):
        assert cut.searches[0].context_left_out
        assert b"private draft" not in everything(cut)
        assert cut.verify(sample).searches[0].same is None


@pytest.mark.slow
def test_redacted_and_metadata_only_hold_no_text(full: wb.Snapshot) -> None:
    made = full.redacted()
    assert made.about.passages is Passages.REDACTED
    assert [h.citation for h in made.hits()] == [h.citation for h in full.hits()]
    text = everything(made)
    for hit in full.hits():
        assert hit.text[:40].encode() not in text
        if len(hit.title) > 12 and hit.title not in hit.path:
            assert hit.title.encode() not in text
    assert made.frame().equals(full.frame())
    assert made.redacted() == made
    made = full.metadata_only()
    assert made.frame()["score"].equals(full.frame()["score"])
    assert made.searches[0].funnel == full.searches[0].funnel
    text = everything(made)
    for row in full.documents().iter_rows(named=True):
        if len(row["path"]) > 8:
            assert row["path"].encode() not in text
    for hit in full.hits():
        assert hit.text[:40].encode() not in text
    assert wb.Snapshot.load(made.to_bytes()).about.passages is Passages.NONE


def test_an_audience_gets_what_it_may_see(full: wb.Snapshot, sample_path: Path) -> None:
    audience = wb.Principal("acme")
    made = full.for_audience(audience)
    with wb.open_corpus(sample_path, audience) as corpus:
        theirs = corpus.search(BROAD, plan=PLAN).snapshot().documents()
    assert sorted(made.documents()["document_id"]) == sorted(theirs["document_id"])
    allowed = set(theirs["document_id"])
    assert {h.document_id for h in made.hits()} == {h.document_id for h in full.hits()} & allowed
    assert set(made.frame()["document_id"]) <= allowed
    assert {h.chunk_id: h.rank for h in made.hits()}.items() <= {h.chunk_id: h.rank for h in full.hits()}.items()
    assert made.about.omitted
    assert made.searches[0].funnel == ()
    assert made.searches[0].messages == ()
    text = everything(made)
    for row in full.documents().iter_rows(named=True):
        if row["document_id"] not in allowed:
            assert row["path"].encode() not in text
            assert row["document_id"].encode() not in text
    made = full.for_audience(wb.Principal("birch", ("admin", "support")))
    assert made.hits() == ()
    assert len(made.documents()) == 0
    assert made.about.origin.documents == 0
    with pytest.raises(PrincipalRequired):
        full.for_audience(None)


def test_runs_follow_the_audience_and_measures_are_compared(sample: wb.Corpus) -> None:
    evaluation = sample.evaluate(wb.load_judgments(sample_folder()), measures=["RR"])
    made = shrunk(wb.Snapshot.of(evaluation, corpus=sample))
    cut = made.for_audience(wb.Principal("acme"))
    allowed = {*cut.documents()["path"], *cut.documents()["document_id"]}
    assert set(made.content.table("runs")["document"]) - allowed
    assert set(cut.content.table("runs")["document"]) <= allowed
    assert set(cut.content.table("judgments")["document"]) <= allowed
    assert cut.evaluations == made.evaluations
    assert cut.verify().evaluations[0].same is None
    assert len(made.metadata_only().content.table("runs")) == 0
    judgments = wb.load_judgments(sample_folder())
    made = [
        wb.Snapshot.of(sample.evaluate(judgments, plan, ["nDCG@10", "RR"]), corpus=sample)
        for plan in ("default", "default sources=keyword")
    ]
    frame = made[0].diff(made[1]).measures()
    assert frame["measure"].to_list() == ["nDCG@10", "RR"]
    for row in frame.iter_rows(named=True):
        assert row["difference"] == pytest.approx(row["second"] - row["first"])
        assert row["low"] <= row["difference"] <= row["high"]
        assert row["verdict"]
    other = wb.Snapshot.of(sample.evaluate(judgments.subset(judgments.query_ids[:5])), corpus=sample)
    assert len(made[0].diff(other).measures()) == 0


# --- snapshot diff ---------------------------------------------------------------------------------------------------


DIFFERED = "retry request pause"
NOTES = {
    f"note-{n:02}.md": f"# Note {n}\n\nretry backoff request {'again ' * (n % 5)}and a pause {n}.\n\nKettles {n}.\n"
    for n in range(14)
}
EDITED = {
    "note-03.md": "# Note 3\n\nretry request pause pause retry, said better\n",
    "note-04.md": "# Another\n\nteapots only\n",
    "note-05.md": "# Note 5\n\nretry request retry\n",
}


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> tuple[wb.Snapshot, ...]:
    """The same query before and after editing three documents and one setting, then with one removed and one added."""
    folder = tmp_path_factory.mktemp("diff")
    source, path = write_files(folder / "notes", NOTES), folder / "corpus"
    wb.index([source], corpus=path, encoder="hashing")
    with wb.open_corpus(path) as corpus:
        first = wb.Snapshot.of([corpus.search(DIFFERED, plan="rrf"), corpus.search("kettles")], note="before")
        same = corpus.search(DIFFERED, plan="rrf").snapshot("the same")
    write_files(source, EDITED)
    wb.index([source], corpus=path, encoder="hashing")
    with wb.open_corpus(path) as corpus:
        edited = corpus.search(DIFFERED, plan="rrf fusion.k=5")
        second = wb.Snapshot.of([corpus.search("kettles"), edited], note="after")
    (source / "note-00.md").unlink()
    write_files(source, {"new.md": "# New\n\nretry request pause, all three and nothing else: retry request pause\n"})
    wb.index([source], corpus=path, encoder="hashing")
    with wb.open_corpus(path) as corpus:
        third = corpus.search(DIFFERED, plan="rrf fusion.k=5", mode="keyword").snapshot("later")
    return first, second, third, same


def test_three_edited_documents_and_one_setting_are_exactly_what_it_names(shots: tuple[wb.Snapshot, ...]) -> None:
    found = shots[0].diff(shots[1])
    assert found.settings().rows() == [(DIFFERED, "fusion.k", "60", "5")]
    documents = found.documents()
    assert documents["path"].to_list() == sorted(EDITED)
    assert set(documents["change"]) == {"changed"}
    assert found.sentences[0] == "fusion.k: A 60, B 5."
    assert found.sentences[1] == "A to B: 3 documents changed (note-03.md, note-04.md, note-05.md)."
    assert found.queries == ((DIFFERED, (0, 1)), ("kettles", (1, 0)))
    assert any(s.startswith(f"hybrid: “{DIFFERED}” in B: ") for s in found.sentences)
    changed = found.texts(0).row(0, named=True)
    assert (changed["snapshot"], changed["citation"].partition(":")[0] in EDITED) == ("B", True)
    pieces = word_diff(changed["before"], changed["after"])
    assert "".join(text for kind, text in pieces if kind != "in") == changed["before"]
    assert "".join(text for kind, text in pieces if kind != "out") == changed["after"]
    assert any(kind == "in" for kind, _ in pieces)
    lacking = shots[0].diff(shots[2])
    row = lacking.results().row(1, named=True)
    assert row["why"] == "B has no such query"
    assert len(lacking.ranks(1)) == 0
    with pytest.raises(UsageError, match="no query 5"):
        lacking.ranks(5)
    found = shots[0].diff(*shots[1:3])
    assert found.ranks(0).columns == ["citation", "A", "B", "C", "change", "why"]
    assert set(found.results()["snapshot"]) == {"B", "C"}
    figure = found.figure(0)
    assert list(figure.layout.xaxis.categoryarray) == ["A", "B", "C"]
    assert sum(len(t.x) for t in figure.data) <= 200
    first, same = shots[0], shots[3]
    found = same.diff(same)
    assert found.sentences == ("Nothing differs: the same settings, corpus, results and measures.",)
    assert found.results().row(0, named=True)["rbo"] == pytest.approx(1.0)
    assert first.diff(same).settings().is_empty()
    with pytest.raises(UsageError, match="nothing to compare"):
        first.diff()


def test_ranks_moved_in_and_out_and_why(shots: tuple[wb.Snapshot, ...]) -> None:
    first, second = shots[:2]
    found = first.diff(second)
    rows = {r["citation"]: r for r in found.ranks(0).iter_rows(named=True)}
    before = {h.path: h.rank for h in first.hits(0)}
    after = {h.path: h.rank for h in second.hits(1)}
    for path in {*before, *after}:
        row = rows[f"{path}:1"]
        assert (row["A"], row["B"]) == (before.get(path), after.get(path))
    assert rows["note-03.md:1"]["why"] == "its document changed, setting fusion.k (60 to 5)"
    moved = [r for r in rows.values() if r["change"] != "stays" and r["citation"].partition(":")[0] not in EDITED]
    assert moved
    assert all("setting fusion.k (60 to 5), corpus (3 documents changed)" in r["why"] for r in moved)
    result = found.results().row(0, named=True)
    assert result["moved_in"] == len(set(after) - set(before))
    assert result["moved_out"] == len(set(before) - set(after))
    assert 0 < result["rbo"] < 1
    assert result["shared"] == len(set(before) & set(after))
    found = shots[1].diff(shots[2])
    assert sorted(found.documents().select("change", "path").rows()) == [("added", "new.md"), ("removed", "note-00.md")]
    assert (DIFFERED, "mode", "hybrid", "keyword") in found.settings().rows()
    rows = {r["citation"]: r for r in found.ranks(1).iter_rows(named=True)}
    assert rows["new.md:1"]["change"] == "moved in"
    assert rows["new.md:1"]["why"].startswith("its document was added")
    assert rows["note-00.md:1"]["why"].startswith("its document was removed")


@pytest.fixture(scope="module")
def packed(sample: wb.Corpus) -> wb.Snapshot:
    return shrunk(sample.search("how do retries work", keywords="retry").snapshot("for its faults"))


@pytest.fixture(scope="module")
def files(packed: wb.Snapshot) -> dict[str, bytes]:
    return members(packed.to_bytes())


def refused(data: bytes) -> SnapshotError:
    """The error of a file; its message is one sentence with a remedy."""
    with pytest.raises(SnapshotError) as caught:
        wb.Snapshot.load(data)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_part_that_is_changed_missing_or_too_many_is_named(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        at = len(data) // 2
        changed = {**files, name: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]}
        assert name in refused(zipped(changed)).message
    for name in files:
        assert name in refused(zipped({n: d for n, d in files.items() if n != name})).message
    assert "extra.txt" in refused(zipped({**files, "extra.txt": b"hello"})).message
    body = json.loads(files[archive.MANIFEST])
    newer = zipped({**files, archive.MANIFEST: json.dumps({**body, "schema": 9}).encode(), "new.part": b"x"})
    error = refused(newer)
    assert isinstance(error, SnapshotNewer)
    assert "schema 9" in error.message
    assert "index.html" in error.remedy
    data = bytearray(zipped({**files, "searches.yaml": bytes(1 << 20)}))
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = data.find(signature)
        while at >= 0:
            if b"searches.yaml" in data[at : at + 70]:
                data[at + offset : at + offset + 4] = len(files["searches.yaml"]).to_bytes(4, "little")
            at = data.find(signature, at + 1)
    assert "searches.yaml" in refused(bytes(data)).message
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for name, data in files.items():
            out.writestr(name, data)
        with pytest.warns(UserWarning, match="Duplicate name"):
            out.writestr("searches.yaml", b"[]")
    assert "twice" in refused(file.getvalue()).message
    assert "no manifest.json" in refused(zipped({"word/document.xml": b"<w/>"})).message
    assert (
        "not a snapshot of the workbench" in refused(zipped({"manifest.json": b'{"schema":1,"kind":"other"}'})).message
    )


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/passwd", "..\\evil", "C:\\evil", "\\\\host\\x"])
def test_a_path_outside_the_file_is_refused(files: dict[str, bytes], name: str) -> None:
    assert "outside itself" in refused(zipped({**files, name: b"x"})).message


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_unfolds(files: dict[str, bytes]) -> None:
    bomb = zipped({**files, "searches.yaml": bytes(300 << 20)})
    assert len(bomb) < 1 << 20
    assert "unfolds" in refused(bomb).message


def test_a_table_of_one_value_is_refused_before_it_unfolds(packed: wb.Snapshot, monkeypatch: Any) -> None:
    """A value repeated a million times takes a few bytes in the file; each table is bounded, and all of them."""
    row = packed.content.table("sources").head(1)
    monkeypatch.setattr(archive, "MOST_TABLE_BYTES", 5 << 20)
    for many, size in (
        (row.sample(50_000, with_replacement=True), 50_000 * 7 * 16),
        (row.with_columns(source=pl.lit("x" * 1000)).sample(6_000, with_replacement=True), 6_000 * (7 * 16 + 1000)),
    ):
        data = _table(many)
        assert len(data) < 100_000
        forged = small(packed.about, packed.content, sources_parquet=data).to_bytes()
        assert f"sources.parquet unfolds into {size:,} bytes, more than" in refused(forged).message
    monkeypatch.setattr(archive, "MOST_TABLES_BYTES", 1_000)
    assert "tables unfold into" in refused(packed.to_bytes()).message


def test_a_text_of_too_many_values_is_refused_read_or_written(packed: wb.Snapshot, monkeypatch: Any) -> None:
    """Each takes a thousand bytes while it is read; what is written is bounded as what is read."""
    forged = small(packed.about, packed.content, searches_yaml=b"[" + b"1," * 3_000 + b"1]")
    monkeypatch.setattr(archive, "MOST_VALUES", 2_000)
    assert "searches.yaml holds more than the 2,000 values" in refused(forged.to_bytes()).message
    monkeypatch.setattr(archive, "MOST_VALUES", 100)
    with pytest.raises(SnapshotError, match=r"Save fewer searches"):
        archive.write_parts(packed.content)
    monkeypatch.setattr(archive, "MOST_YAML_BYTES", 10_000)
    long = zipped({**members(forged.to_bytes()), "searches.yaml": b"#" * 20_000})
    assert "unfolds into 20,000 bytes, more than the 10,000" in refused(long).message


@pytest.mark.parametrize("data", [b"", b"PK", b"hello", b"PK\x05\x06" + bytes(18), b"<!doctype html>" * 100])
def test_what_is_no_zip_is_no_snapshot(data: bytes) -> None:
    assert "not a snapshot" in refused(data).message


def _table(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


# --- snapshot page ---------------------------------------------------------------------------------------------------


HOSTILE = (
    "</script><script>alert(1)</script> <img src=x onerror=alert(2)> \u202egnp.exe \x00 \x1b[31m \u2066 retry "
    "${alert(3)} ⟦s0-p1⟧ <!-- --> ]]> &lt;b&gt; \" ' ` <style>*{display:none}</style> javascript:alert(4)"
)


class Page(HTMLParser):
    """The elements of a page, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append((self.elements[-1][1], data))
        elif self._inside == "style":
            self.styles.append(data)
        else:
            self.words.append(data)


@pytest.fixture(scope="module")
def hostile(corpus_of: Callable[..., wb.Corpus]) -> wb.Snapshot:
    """A corpus of hostile texts, titles and paths, and a hostile query."""
    files = {
        "<img src=x onerror=alert(9)>.md": f"# {HOSTILE}\n\n{HOSTILE}\n",
        "plain.md": "# Plain\n\nretry alert script\n",
        "a&b\u202e.md": f"# A & B\n\nretry {HOSTILE}\n",
    }
    found = corpus_of(files).search(HOSTILE.replace('"', ""), plan="default vector.threshold=off")
    return found.snapshot(note=HOSTILE)


def test_hostile_text_is_text_and_in_no_script(hostile: wb.Snapshot) -> None:
    text = hostile.html()
    found = Page(text)
    tags = {tag for tag, _ in found.elements}
    assert tags & {"img", "iframe", "object", "embed", "svg", "form", "base"} == set()
    assert not [a for _, attrs in found.elements for a in attrs if a.startswith("on")]
    assert not [
        a for _, attrs in found.elements if (a := attrs.get("href")) and not a.startswith(("#", "https://", "http://"))
    ]
    assert len(found.styles) == 1
    for character in "\x00\x1b\u202e\u2066":
        assert character not in text
    said = "".join(found.words)
    assert "<img src=x onerror=alert(2)>" in said
    assert "U+202E" in said
    found = Page(hostile.html())
    running = [data for attrs, data in found.scripts if attrs.get("type") is None]
    inert = [data for attrs, data in found.scripts if attrs.get("type") == "application/json"]
    assert len(running) == 2
    assert inert
    assert all(attrs.get("type") in (None, "application/json") for attrs, _ in found.scripts)
    for data in (*inert, running[-1]):
        for word in ("alert", "onerror", "retry", "Plain", "plain.md", "</script", "<!--"):
            assert word not in data, word
    for data in inert:
        assert "<" not in data
        json.loads(data)


def test_the_policy_allows_these_scripts_and_this_style_only(hostile: wb.Snapshot) -> None:
    text = hostile.html()
    found = Page(text)
    policy = next(
        html.unescape(a["content"] or "")
        for t, a in found.elements
        if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    digests = re.findall(r"'sha256-([^']+)'", policy)

    def digest(data: str) -> str:
        return base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()

    running = [data for attrs, data in found.scripts if attrs.get("type") is None]
    assert [digest(d) for d in running] == digests[:2]
    assert digest(found.styles[0]) == digests[2]
    script_rule = next(rule for rule in policy.split(";") if "script-src" in rule)
    assert "unsafe" not in script_rule
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    assert not re.search(r'(?:src|href)="(?!#|http)', re.sub(r"<script>.*?</script>", "", text, flags=re.S))


def test_it_reads_without_javascript(sample: wb.Corpus) -> None:
    """Every passage, score, setting and count is in the HTML; pictures are for who has JavaScript."""
    result = sample.search("how do retries work", keywords="retry", plan="default limit=4 vector.threshold=off")
    found = Page(result.snapshot("for reading").html())
    said = "".join(found.words)
    for hit in result.hits:
        assert hit.citation in said
        assert hit.text.strip()[:30] in said
        assert f"{hit.score:.4f}" in said
    assert str(result.plan) in said
    for step in result.steps:
        assert step.reason in said
    assert sum(tag == "mark" for tag, _ in found.elements) >= 1
    assert sum(tag == "article" for tag, _ in found.elements) == 4
    assert ("p", {"class": "soft nojs"}) in found.elements
    result = sample.search("retry", plan="default vector.threshold=off")
    found = Page(wb.Snapshot.of([result, sample.search("invoice")]).html())
    ids = [a["id"] for _, a in found.elements if "id" in a]
    assert len(ids) == len(set(ids))
    wanted = {
        m for attrs, d in found.scripts if attrs.get("type") for m in re.findall(r"\\u27e6([a-z0-9-]+)\\u27e7", d)
    }
    assert wanted
    assert wanted <= set(ids)
    result = sample.search("zzzzqq", mode="keyword")
    text = result.snapshot().html()
    assert "No passage was shown" in text


@pytest.mark.slow
def test_ten_long_searches_stay_under_eight_megabytes(sample: wb.Corpus) -> None:
    one = sample.search("retry", plan="default vector.threshold=off limit=10").snapshot()
    content = one.content
    text = pl.lit("\u202e<>&" * 20_000)
    many = {
        name: pl.concat([frame.with_columns(search=pl.lit(n, pl.Int64)) for n in range(10)])
        if "search" in frame.columns
        else frame
        for name, frame in content.tables.items()
    }
    many["passages"] = many["passages"].with_columns(text=text, title=text)
    many["candidates"] = pl.concat(
        [
            many["candidates"].with_columns(place=pl.col("place") + n * 1000, rank=pl.col("rank") + n * 1000)
            for n in range(12)
        ]
    )
    big = replace(content, searches=content.searches * 10, tables=many)
    made = snapshot_page.page(one.about, big)
    assert len(made.encode()) < 8_000_000
    assert "more characters" in made
    assert re.search(r"The other [\d,]+ of [\d,]+ candidates", made)
