"""Snapshots: what goes in, the same bytes out, and what `verify` says."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from corpus_files import write_files
from snapshot_cases import members, shrunk, small

import workbench as wb
from workbench.demo import sample_folder
from workbench.errors import PrincipalRequired, SnapshotError, UsageError
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


def test_an_evaluation_is_saved_with_its_run_and_judgments(sample: wb.Corpus) -> None:
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
    wrong = again.content.table("measures").with_columns(value=pl.lit(1.0))
    forged = small(again.about, replace(again.content, tables={**again.content.tables, "measures": wrong}))
    assert not forged.verify().ok


def test_a_sweep_is_saved_with_its_verdict_and_every_plan(sample: wb.Corpus) -> None:
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


def test_runs_and_judgments_follow_the_audience(sample: wb.Corpus) -> None:
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


def test_measures_are_compared_query_by_query(sample: wb.Corpus) -> None:
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
