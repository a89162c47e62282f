"""The difference of snapshots: exactly what was changed, and why a rank moved."""

from __future__ import annotations

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.demo import sample_folder
from workbench.errors import UsageError

QUERY = "retry request pause"
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
        first = wb.Snapshot.of([corpus.search(QUERY, plan="rrf"), corpus.search("kettles")], note="before")
        same = corpus.search(QUERY, plan="rrf").snapshot("the same")
    write_files(source, EDITED)
    wb.index([source], corpus=path, encoder="hashing")
    with wb.open_corpus(path) as corpus:
        edited = corpus.search(QUERY, plan="rrf fusion.k=5")
        second = wb.Snapshot.of([corpus.search("kettles"), edited], note="after")
    (source / "note-00.md").unlink()
    write_files(source, {"new.md": "# New\n\nretry request pause, all three and nothing else: retry request pause\n"})
    wb.index([source], corpus=path, encoder="hashing")
    with wb.open_corpus(path) as corpus:
        third = corpus.search(QUERY, plan="rrf fusion.k=5", mode="keyword").snapshot("later")
    return first, second, third, same


def test_three_edited_documents_and_one_setting_are_exactly_what_it_names(shots: tuple[wb.Snapshot, ...]) -> None:
    found = shots[0].diff(shots[1])
    assert found.settings().rows() == [(QUERY, "fusion.k", "60", "5")]
    documents = found.documents()
    assert documents["path"].to_list() == sorted(EDITED)
    assert set(documents["change"]) == {"changed"}
    assert found.sentences[0] == "fusion.k: A 60, B 5."
    assert found.sentences[1] == "A to B: 3 documents changed (note-03.md, note-04.md, note-05.md)."


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


def test_added_and_removed_documents_and_the_mode(shots: tuple[wb.Snapshot, ...]) -> None:
    found = shots[1].diff(shots[2])
    assert sorted(found.documents().select("change", "path").rows()) == [("added", "new.md"), ("removed", "note-00.md")]
    assert (QUERY, "mode", "hybrid", "keyword") in found.settings().rows()
    rows = {r["citation"]: r for r in found.ranks(1).iter_rows(named=True)}
    assert rows["new.md:1"]["change"] == "moved in"
    assert rows["new.md:1"]["why"].startswith("its document was added")
    assert rows["note-00.md:1"]["why"].startswith("its document was removed")


def test_queries_are_paired_by_their_text(shots: tuple[wb.Snapshot, ...]) -> None:
    found = shots[0].diff(shots[1])
    assert found.queries == ((QUERY, (0, 1)), ("kettles", (1, 0)))
    lacking = shots[0].diff(shots[2])
    row = lacking.results().row(1, named=True)
    assert row["why"] == "B has no such query"
    assert len(lacking.ranks(1)) == 0
    with pytest.raises(UsageError, match="no query 5"):
        lacking.ranks(5)


def test_one_query_in_two_modes_is_paired_by_mode(sample: wb.Corpus) -> None:
    keyword, hybrid, vector = (sample.search("retry", mode=m) for m in ("keyword", "hybrid", "vector"))
    found = wb.Snapshot.of([keyword, hybrid]).diff(wb.Snapshot.of([vector, keyword]))
    assert found.queries == (("retry", (0, 1)), ("retry", (1, 0)))
    assert found.settings().rows() == [("retry", "mode", "hybrid", "vector")]


def test_three_snapshots_have_a_column_each(shots: tuple[wb.Snapshot, ...]) -> None:
    found = shots[0].diff(*shots[1:3])
    assert found.ranks(0).columns == ["citation", "A", "B", "C", "change", "why"]
    assert set(found.results()["snapshot"]) == {"B", "C"}
    figure = found.figure(0)
    assert list(figure.layout.xaxis.categoryarray) == ["A", "B", "C"]
    assert sum(len(t.x) for t in figure.data) <= 200


def test_nothing_differs_is_said_in_words(shots: tuple[wb.Snapshot, ...]) -> None:
    first, same = shots[0], shots[3]
    found = same.diff(same)
    assert found.sentences == ("Nothing differs: the same settings, corpus, results and measures.",)
    assert found.results().row(0, named=True)["rbo"] == pytest.approx(1.0)
    assert first.diff(same).settings().is_empty()
    with pytest.raises(UsageError, match="nothing to compare"):
        first.diff()


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
