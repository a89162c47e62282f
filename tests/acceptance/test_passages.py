"""`passages`: grep on exact keywords beside vectors on the question, by reciprocal rank fusion."""

import math
from collections.abc import Callable

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.retrieve.readfile import find_cited

WIDE = "passages vector.threshold=off fusion.single_source=fuse"


def lines(count: int, *at: int, word: str = "needle") -> str:
    return "\n".join(f"row {n} {word}" if n in at else f"row {n}" for n in range(1, count + 1)) + "\n"


WINDOWS = [(30, 20, 40), (3, 1, 13), (11, 1, 21), (58, 48, 60), (1, 1, 11)]
NEAR = [
    ((20, 40), [(10, 50)]),
    ((20, 41), [(10, 30), (31, 51)]),
    ((20, 40, 60), [(10, 70)]),
    ((20, 40, 61), [(10, 50), (51, 71)]),
]


@pytest.fixture(scope="module")
def rows(corpus_of: Callable[..., wb.Corpus]) -> wb.Corpus:
    """Files of numbered lines, each with a word of its own, and two short ones with the word needle."""
    files = {f"window{at}.txt": lines(60, at, word=f"window{at}w") for at, *_ in WINDOWS}
    files |= {f"near{n}.txt": lines(90, *at, word=f"near{n}w") for n, (at, _) in enumerate(NEAR)}
    files |= {
        "a.txt": lines(9, 4),
        "b.txt": lines(9, 2, 5),
        "c.txt": "apples and pears\n",
        "d.txt": "apples and plums\n",
    }
    return corpus_of(files)


@pytest.mark.parametrize(("at", "first", "last"), WINDOWS)
def test_a_match_is_shown_with_ten_lines_on_either_side(rows, at, first, last):
    """The passage starts ten lines before the match or at line 1, ends ten after or at the last, and marks the match."""
    (hit,) = rows.search("where is it", keywords=f"window{at}w", plan="passages").hits
    assert (hit.start_line, hit.end_line) == (first, last)
    assert hit.text.split("\n")[0].startswith(f"row {first}")
    assert hit.text.rstrip("\n").split("\n")[-1].startswith(f"row {last}")
    assert [hit.text[m.start : m.end] for m in hit.matches] == [f"window{at}w"]


@pytest.mark.parametrize("case", range(len(NEAR)))
def test_matches_within_twenty_lines_are_one_passage(rows, case):
    """Twenty lines apart is together, twenty-one is not, a chain of near ones is one passage; no line is shown twice."""
    at, passages = NEAR[case]
    found = rows.grep(f"near{case}w")
    assert sorted((p.start_line, p.end_line) for p in found) == passages
    assert sorted(n for p in found for n in p.matched_lines) == list(at)


def test_both_sources_run_at_the_same_time_on_keywords_and_question(rows, meet, embedded):
    came = meet(rows, {"grep": 1, "vector": 1})
    assert rows.search("row", keywords="needle", plan="passages", bypass_cache=True).hits
    assert came == {"grep": 1, "vector": 1}
    result = rows.search("apples and pears", keywords="needle", plan="passages", bypass_cache=True)
    assert embedded == ["row", "apples and pears"]
    assert [e.path for e in result.rankings["grep"].entries] == ["b.txt", "a.txt"]
    assert result.rankings["vector"].entries[0].path == "c.txt"


def test_one_source_alone_is_returned_in_its_own_order(rows):
    result = rows.search("zebra crossing", keywords="needle", plan="passages")
    assert not result.rankings["vector"].entries
    assert [h.path for h in result.hits] == ["b.txt", "a.txt"]
    assert [h.score for h in result.hits] == [e.score for e in result.rankings["grep"].entries]
    assert [h.score for h in result.hits] == [1 + 2 / 3, 1 + 1 / 2]
    result = rows.search("apples and pears", keywords="absentword", plan="passages")
    assert not result.rankings["grep"].entries
    assert result.hits
    assert [h.chunk_id for h in result.hits] == [e.chunk_id for e in result.rankings["vector"].entries]
    assert [h.score for h in result.hits] == [e.score for e in result.rankings["vector"].entries]
    plan = wb.preset("passages").replace({"vector.threshold": 0.01})
    result = rows.search("pears", plan=plan)
    (said,) = [m for m in result.messages if m.startswith("vector found")]
    nearest = min(result.distances())
    assert f"vector.threshold=0.01 dropped all of them: the nearest is at l2sq distance {nearest:.3f}" in said
    keeping = said.rpartition("vector.threshold=")[2].split()[0]
    again = rows.search("pears", plan=plan.replace({"vector.threshold": keeping}))
    assert len(again.rankings["vector"].entries) == 10
    assert said.endswith("would keep 10")
    assert any(m.startswith("vector found") for m in rows.search("pears", mode="vector", plan=plan).messages)


def test_keywords_are_taken_from_the_question_where_none_are_apart(sample):
    """No keywords, empty ones and the question again are the same: the question's own terms are looked for."""
    query = "how do retries work"
    answers = [
        [e.chunk_id for e in sample.search(query, keywords=k, plan="passages").rankings["grep"].entries]
        for k in (None, "", "   ", query, "how do  retries work")
    ]
    assert answers[0]
    assert all(a == answers[0] for a in answers)
    assert answers[0] != [
        e.chunk_id for e in sample.search(query, keywords="backoff", plan="passages").rankings["grep"].entries
    ]


def test_a_distance_strictly_below_a_half_is_kept(monkeypatch, sample):
    plan = wb.preset("passages")
    assert (plan["vector.threshold"], plan["vector.metric"]) == (0.5, "l2sq")
    monkeypatch.setenv("WORKBENCH_VECTOR_SCORE_THRESHOLD", "0.25")
    assert wb.preset("passages")["vector.threshold"] == 0.25
    every = sample.search("how do retries work", mode="vector", plan="passages vector.threshold=off")
    at = every.rankings["vector"].entries[3].distance
    below = every.with_plan(f"passages vector.threshold={at!r}").rankings["vector"].entries
    above = every.with_plan(f"passages vector.threshold={math.nextafter(at, 9)!r}").rankings["vector"].entries
    assert all(e.distance is not None and e.distance < at for e in below)
    assert any(e.distance == at for e in above)


def test_a_search_says_how_much_it_found_and_cites_the_real_file(sample):
    for mode, plan in (("grep", "passages"), ("vector", WIDE), ("hybrid", WIDE)):
        result = sample.search("how do retries work", mode=mode, plan=plan)
        said = result.messages[0]
        assert f"{sum(len(h.text) for h in result.hits):,} characters" in said
        if mode == "grep":
            files = {e.path for e in result.rankings["grep"].entries}
            assert f"in {len(files)} files" in said
        else:
            assert f"from {len(result.fused)} chunks found" in said
    for hit in sample.search("how do retries work", plan="passages").hits:
        in_text = f"{hit.path}:{hit.start_line}-{hit.end_line}"
        assert hit.citation == (f"{hit.path}#{hit.locator}" if hit.locator else in_text)
        assert not hit.locator or hit.path.endswith(".html")
        assert not sample.read_file(hit.path).startswith("[ERROR")
    result = sample.search("how do retries work", keywords="backoff", plan=WIDE)
    assert len(result.hits) == 10
    assert any(len(h.ranks) == 2 for h in result.hits)
    for hit in result.hits:
        assert hit.score == math.fsum(1 / (60 + rank) for rank in hit.ranks.values())
    assert [h.score for h in result.hits] == sorted((h.score for h in result.hits), reverse=True)


def test_a_chunk_inside_a_passage_is_one_result_with_it(make_corpus):
    """What vectors find of lines that a passage shows counts for the passage, and no line is shown twice."""
    sections = "\n\n".join(f"## Part {n}\n\n{word} stands here" for n, word in enumerate(["otter", "heron", "pike"]))
    corpus = make_corpus({"a.md": sections, "b.md": "otter and heron"})
    result = corpus.search("heron stands", keywords="otter pike", plan="passages vector.threshold=off")
    (passage,) = [h for h in result.hits if h.path == "a.md"]
    assert passage.text.rstrip("\n") == sections
    assert set(passage.ranks) == {"grep", "vector"}
    assert passage.label == "Hybrid"
    assert passage.ranks["vector"] == 1
    assert passage.score == sum(1 / (60 + rank) for rank in passage.ranks.values())
    fused = wb.fuse(result.candidates, result.plan.fusion)
    assert fused.chunk_ids[0] == result.hits[0].chunk_id
    assert corpus.explain(result, "a.md:7").rank == passage.rank


def test_a_file_that_is_not_indexed_is_read_from_disk(make_corpus, tmp_path):
    """Its text, where an indexing run would take it; a binary says so; hidden, ignored and excluded files are not there."""
    corpus = make_corpus({"a.md": "alpha", ".gitignore": "*.log\n"})
    files = tmp_path / "files0"
    for name, text in {"new.md": "ny tekst æ\r\nb", ".env": "key", "x.log": "log"}.items():
        (files / name).write_bytes(text.encode())
    (files / "b.pdf").write_bytes(b"%PDF-1.4\x00\xff")
    assert corpus.read_file("new.md") == "ny tekst æ\nb"
    assert corpus.read_file("new.md:2") == "b"
    assert corpus.read_file("b.pdf").startswith("[ERROR: NOT_TEXT] b.pdf is not indexed")
    assert corpus.read_file(".env").startswith("[ERROR: NOT_FOUND]")
    assert corpus.read_file("x.log").startswith("[ERROR: NOT_FOUND]")
    (tmp_path / "corpus0" / "corpus.yaml").write_text('exclude: ["new.*"]\n')
    with wb.open_corpus(tmp_path / "corpus0") as again:
        assert again.read_file("new.md").startswith("[ERROR: NOT_FOUND]")


@pytest.mark.slow
def test_a_changed_file_gives_its_current_text_with_a_note(make_corpus, tmp_path):
    """The text as it is now, and that it is not what was indexed; new claims of it hold at once."""
    corpus = make_corpus({"a.md": "alpha\n", "b.html": "<p>beta</p>"})
    assert find_cited(corpus.engine, "a.md").note == ""
    (tmp_path / "files0" / "a.md").write_text("alpha\ngamma\n")
    (tmp_path / "files0" / "b.html").write_text("<p>delta</p>")
    found = find_cited(corpus.engine, "a.md")
    assert found.text == corpus.read_file("a.md") == "alpha\ngamma\n"
    assert "a.md has changed since it was indexed" in found.note
    other = find_cited(corpus.engine, "b.html")
    assert other.text.strip() == "beta"
    assert "run `workbench index`" in other.note
    (tmp_path / "files0" / "a.md").write_text("---\nroles: [hr]\n---\nsecret\n")
    assert corpus.read_file("a.md").startswith("[ERROR: NOT_FOUND]")


def test_rules_hold_for_files_on_disk(tmp_path):
    """A file whose path rule, or own words, hide it from the principal is the same as one that is not there."""
    files = write_files(tmp_path / "files", {"pub/a.md": "open", "hr/a.md": "wages"})
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "corpus.yaml").write_text(
        'rules:\n  - {path: "**", tenant: acme}\n  - {path: "hr/**", roles: [hr]}\n'
    )
    wb.index([files], corpus=tmp_path / "corpus", encoder="hashing")
    write_files(files, {"pub/b.md": "new", "hr/b.md": "new wages", "pub/c.md": "---\nroles: hr\n---\nfor hr"})
    with (
        wb.open_corpus(tmp_path / "corpus", wb.Principal("acme", ("staff",))) as staff,
        wb.open_corpus(tmp_path / "corpus", wb.Principal("acme", ("hr",))) as hr,
        wb.open_corpus(tmp_path / "corpus", wb.Principal("birch")) as stranger,
    ):
        assert staff.read_file("pub/b.md") == "new"
        assert hr.read_file("hr/b.md") == "new wages"
        for name in ("hr/b.md", "pub/c.md"):
            for asked in (name, str(files / name)):
                hidden, absent = staff.read_file(asked), staff.read_file(asked.replace(".md", ".mx"))
                assert hidden.startswith("[ERROR: NOT_FOUND]")
                assert hidden.replace(".md", ".mx") == absent
        assert stranger.read_file("pub/b.md").startswith("[ERROR: ")
