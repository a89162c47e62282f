"""What moved between two lists of one query, and what judgments say of one list."""

from collections.abc import Callable

import numpy as np
import pytest

import workbench as wb
from workbench.errors import UsageError
from workbench.evaluate.judged import judge
from workbench.retrieve.compare import moved


def test_every_result_of_both_lists_moves_once_and_says_why(sample: wb.Corpus) -> None:
    query = "how do retries work after a timeout"
    pairs = [("default sources=keyword", "default sources=vector"), ("default", "rrf"), ("default", "default")]
    pairs += [("default", "default fusion.unit=document"), ("default limit=3", "default limit=10")]
    for plans in pairs:
        first, second = sample.compare(query, plans).results
        moves = moved(first, second)
        ranks = [(m.first, m.second) for m in moves]
        assert sorted(f for f, _ in ranks if f) == [h.rank for h in first.hits]
        assert sorted(s for _, s in ranks if s) == [h.rank for h in second.hits]
        for move in moves:
            kinds = {(True, False): "lost", (False, True): "came"}
            both = "same" if move.first == move.second else "rose" if move.second < move.first else "fell"
            assert move.kind == kinds.get((bool(move.first), bool(move.second)), both)
            assert bool(move.reason) or move.kind in ("same", "rose")
        if plans[0] == plans[1]:
            assert {m.kind for m in moves} == {"same"}


def test_a_lost_result_names_the_step_that_dropped_it_and_who_pushed_it(sample: wb.Corpus) -> None:
    query = "how do retries work after a timeout"
    first, second = sample.compare(
        query, ["default sources=vector", "default sources=vector vector.threshold=0.01"]
    ).results
    comparison = sample.compare(query, ["default sources=vector", "default sources=vector vector.threshold=0.01"])
    assert set(comparison.moves().filter(kind="lost")["step"]) == {"threshold"}
    with pytest.raises(UsageError, match="one plan"):
        sample.compare(query, ["default"]).moves()
    lost = [m for m in moved(first, second) if m.kind == "lost"]
    assert lost
    assert all(m.step == "threshold" and "vector.threshold is 0.01" in m.reason for m in lost)
    plans = [f"default limit=3 vector.threshold=off fusion.alpha={alpha}" for alpha in (1, 0)]
    first, second = sample.compare(query, plans).results
    shown, before = {h.rank: h for h in second.hits}, {h.chunk_id: h.rank for h in first.hits}
    moves = moved(first, second)
    for move in moves:
        for rank in move.by:
            assert before.get(shown[rank].chunk_id, 99) > move.first
            assert rank < (move.second or 99)
    pushed = [m for m in moves if (m.step, m.kind) == ("limit", "lost")]
    assert pushed
    assert all(m.by and "Pushed down by" in m.reason for m in pushed)


def test_the_figures_of_a_list_are_those_of_an_evaluation(make_corpus: Callable[..., wb.Corpus]) -> None:
    """Of passages judged by two people who disagree; from the judgments of the set, and of the query alone."""
    texts = {
        f"note-{n:02}.md": f"# Note {n}\n\nretry note {n}: a request, {'again ' * (n % 5)}a pause.\n" for n in range(20)
    }
    corpus = make_corpus({**texts, "tea.md": "# Tea\n\nBoil water, warm the pot, wait, then pause.\n"})
    judging = corpus.judging
    judging.sets.create("tea", ["retry pause", "boil water", "request again"])
    queries = judging.queries("tea")
    for query in queries:
        hits = corpus.search(query.text, mode="keyword").hits
        for n, hit in enumerate(hits[:7]):
            judging.grade(hit, n % 4, query, set="tea", judge="ann")
        judging.grade(hits[0], 3, query, set="tea", judge="bob")
    judged = corpus.judgments("tea")
    for plan in ("default", "rrf", "default sources=keyword limit=3", "default fusion.unit=document"):
        found = corpus.evaluate(judged, plan, ["nDCG@10", "P@10", "Judged@10"]).per_query()
        for row, query in zip(found.iter_rows(named=True), queries, strict=True):
            result = corpus.search(query.text, plan=plan)
            for given in (judged, judging.judgments("tea", query=query)):
                one = judge(result, given, query.query_id)
                figures = (np.nan_to_num(one.ndcg), np.nan_to_num(one.precision), one.judged / one.top)
                assert figures == pytest.approx((row["nDCG@10"], row["P@10"], row["Judged@10"]))
                assert set(one.grades) <= {h.chunk_id for h in result.hits}
    assert judging.query("tea", " boil  water ") == judging.query("tea", "boil water", "kettle") == queries[1]
    assert judging.query("tea", "boil") is judging.query("gone", "boil water") is None
