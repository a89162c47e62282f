"""`passages`: grep on exact keywords beside vectors on the question, by reciprocal rank fusion."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
from corpus_files import write_files

import workbench as wb

WIDE = "passages vector.threshold=off fusion.single_source=fuse"


def lines(count: int, *at: int, word: str = "needle") -> str:
    """A file of numbered lines with a word on some of them."""
    return "\n".join(f"row {n} {word}" if n in at else f"row {n}" for n in range(1, count + 1)) + "\n"


WINDOWS = [(30, 20, 40), (3, 1, 13), (11, 1, 21), (58, 48, 60), (1, 1, 11)]
NEAR = [
    ((20, 40), [(10, 50)]),
    ((20, 41), [(10, 30), (31, 51)]),
    ((20, 40, 60), [(10, 70)]),
    ((20, 40, 61), [(10, 50), (51, 71)]),
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
    """Files of numbered lines, each with a word of its own, and two short ones with the word needle."""
    files = {f"window{at}.txt": lines(60, at, word=f"window{at}w") for at, *_ in WINDOWS}
    files |= {f"near{n}.txt": lines(90, *at, word=f"near{n}w") for n, (at, _) in enumerate(NEAR)}
    files |= {
        "a.txt": lines(9, 4),
        "b.txt": lines(9, 2, 5),
        "c.txt": "apples and pears\n",
        "d.txt": "apples and plums\n",
    }
    folder = tmp_path_factory.mktemp("rows")
    wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing")
    with wb.open_corpus(folder / "corpus") as corpus:
        yield corpus


@pytest.mark.parametrize(("at", "first", "last"), WINDOWS)
def test_a_match_is_shown_with_ten_lines_on_either_side(rows: wb.Corpus, at: int, first: int, last: int) -> None:
    """The passage starts ten lines before the match or at line 1, ends ten after or at the last, and marks the match."""
    (hit,) = rows.search("where is it", keywords=f"window{at}w", plan="passages").hits
    assert (hit.start_line, hit.end_line) == (first, last)
    assert hit.text.split("\n")[0].startswith(f"row {first}")
    assert hit.text.rstrip("\n").split("\n")[-1].startswith(f"row {last}")
    assert [hit.text[m.start : m.end] for m in hit.matches] == [f"window{at}w"]


@pytest.mark.parametrize("case", range(len(NEAR)))
def test_matches_within_twenty_lines_are_one_passage(rows: wb.Corpus, case: int) -> None:
    """Twenty lines apart is together, twenty-one is not, a chain of near ones is one passage; no line is shown twice."""
    at, passages = NEAR[case]
    found = rows.grep(f"near{case}w")
    assert sorted((p.start_line, p.end_line) for p in found) == passages
    assert sorted(n for p in found for n in p.matched_lines) == list(at)


def test_matches_of_two_files_are_two_passages(rows: wb.Corpus) -> None:
    """Nearness counts within a file only."""
    hits = rows.search("where", keywords="needle", plan="passages dedupe=no").hits
    assert sorted(h.path for h in hits) == ["a.txt", "b.txt"]


def test_both_sources_run_at_the_same_time(rows: wb.Corpus, meet: Callable[..., dict[str, int]]) -> None:
    """Grep and vectors wait for each other inside their searches, and the search still ends."""
    came = meet(rows, {"grep": 1, "vector": 1})
    assert rows.search("row", keywords="needle", plan="passages", bypass_cache=True).hits
    assert came == {"grep": 1, "vector": 1}


def test_keywords_go_to_grep_and_the_question_to_vectors(rows: wb.Corpus, embedded: list[str]) -> None:
    """Each source gets the argument meant for it; the encoder is called once."""
    result = rows.search("apples and pears", keywords="needle", plan="passages", bypass_cache=True)
    assert embedded == ["apples and pears"]
    assert [e.path for e in result.rankings["grep"].entries] == ["b.txt", "a.txt"]
    assert result.rankings["vector"].entries[0].path == "c.txt"


def test_fused_scores_are_sums_of_reciprocals_of_sixty_plus_the_rank(sample: wb.Corpus) -> None:
    """Ranks count from 1, k is 60, a source that did not find a hit adds nothing, and ten results come back."""
    result = sample.search("how do retries work", keywords="backoff", plan=WIDE)
    assert len(result.hits) == 10
    assert any(len(h.ranks) == 2 for h in result.hits)
    for hit in result.hits:
        assert hit.score == math.fsum(1 / (60 + rank) for rank in hit.ranks.values())
    assert [h.score for h in result.hits] == sorted((h.score for h in result.hits), reverse=True)


def test_grep_alone_is_returned_in_its_own_order(rows: wb.Corpus) -> None:
    """Where vectors find nothing near enough, grep's list is the answer, with its own scores."""
    result = rows.search("zebra crossing", keywords="needle", plan="passages")
    assert not result.rankings["vector"].entries
    assert [h.path for h in result.hits] == ["b.txt", "a.txt"]
    assert [h.score for h in result.hits] == [e.score for e in result.rankings["grep"].entries]
    assert [h.score for h in result.hits] == [1 + 2 / 3, 1 + 1 / 2]


def test_vectors_alone_are_returned_in_their_own_order(rows: wb.Corpus) -> None:
    """Where no line has the keywords, the vector list is the answer, with its own scores."""
    result = rows.search("apples and pears", keywords="absentword", plan="passages")
    assert not result.rankings["grep"].entries
    assert result.hits
    assert [h.chunk_id for h in result.hits] == [e.chunk_id for e in result.rankings["vector"].entries]
    assert [h.score for h in result.hits] == [e.score for e in result.rankings["vector"].entries]


def test_keywords_are_taken_from_the_question_where_none_are_apart(sample: wb.Corpus) -> None:
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


def test_a_question_of_small_words_only_still_runs(sample: wb.Corpus) -> None:
    """Where nothing can be extracted, the words are used as they are."""
    result = sample.search("the", plan="passages")
    assert result.rankings["grep"].entries


def test_the_default_threshold_is_a_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """Squared Euclidean distance, cut at 0.5 unless the setting says otherwise."""
    plan = wb.preset("passages")
    assert (plan["vector.threshold"], plan["vector.metric"]) == (0.5, "l2sq")
    monkeypatch.setenv("WORKBENCH_VECTOR_SCORE_THRESHOLD", "0.25")
    assert wb.preset("passages")["vector.threshold"] == 0.25


def test_a_distance_strictly_below_the_threshold_is_kept(sample: wb.Corpus) -> None:
    """A chunk at the threshold is dropped; one just below it is kept."""
    every = sample.search("how do retries work", mode="vector", plan="passages vector.threshold=off")
    at = every.rankings["vector"].entries[3].distance
    assert at is not None
    below = every.with_plan(f"passages vector.threshold={at!r}").rankings["vector"].entries
    above = every.with_plan(f"passages vector.threshold={math.nextafter(at, 9)!r}").rankings["vector"].entries
    assert all(e.distance is not None and e.distance < at for e in below)
    assert any(e.distance == at for e in above)


def test_a_search_says_how_much_it_found(sample: wb.Corpus) -> None:
    """The characters returned, and unique files for grep or chunks for vectors and hybrid."""
    for mode, plan in (("grep", "passages"), ("vector", WIDE), ("hybrid", WIDE)):
        result = sample.search("how do retries work", mode=mode, plan=plan)
        said = result.messages[0]
        assert f"{sum(len(h.text) for h in result.hits):,} characters" in said
        if mode == "grep":
            files = {e.path for e in result.rankings["grep"].entries}
            assert f"in {len(files)} files" in said
        else:
            assert f"from {len(result.fused)} chunks found" in said


def test_citations_name_the_real_file(sample: wb.Corpus) -> None:
    """A hit cites the path of its file and its lines there, and the file can be read by that path."""
    for hit in sample.search("how do retries work", plan="passages").hits:
        in_text = f"{hit.path}:{hit.start_line}-{hit.end_line}"
        assert hit.citation == (f"{hit.path}#{hit.locator}" if hit.locator else in_text)
        assert not hit.locator or hit.path.endswith(".html")
        assert not sample.read_file(hit.path).startswith("[ERROR")
