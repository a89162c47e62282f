"""A sweep's figures are those of searching with each plan alone, whatever the plans, ties and equal texts included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from corpus_files import write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_models import make_static

import workbench as wb
from workbench.evaluate.live import CachedPool
from workbench.evaluate.pool import Pool
from workbench.evaluate.sweep import score
from workbench.judgments.qrels import JudgedPassage, Judgments, Topic
from workbench.records import Span

WORDS = ("amber", "bridge", "cedar", "delta", "ember", "fjord", "grove")
MEASURES = ("nDCG@10", "RR", "R@5", "AP", "nDCG@2")
SLOW = (*MEASURES, "Judged@10")
CHOICES: dict[str, list[Any]] = {
    "sources": ("keyword,vector keyword vector grep,vector keyword,vector,vector:table vector,vector:table").split(),
    "fusion.method": ["rrf", "weighted", "convex", "max", "combmnz"],
    "fusion.k": [1, 60],
    "fusion.rank_base": [0, 1],
    "fusion.alpha": [0, 0.3, 1],
    "fusion.weights.vector": [0, 0.5, 2],
    "fusion.weights.grep": [0, 3],
    "fusion.normalise": ["minmax", "tmm", "zscore", "rank", "top", "clip", "none", "dbsf"],
    "fusion.missing": ["computed", "zero", "floor"],
    "fusion.unit": ["chunk", "document"],
    "fusion.renumber": [True, False],
    "fusion.single_source": ["passthrough", "fuse"],
    "vector.threshold": ["off", 0.45, 0.3],
    "threshold.vector": ["off", 0.4],
    "threshold.keyword": ["off", 0.8, 2],
    "fusion.threshold": ["off", 0, 0.017, 0.5],
    "threshold.vector:table": ["off", 0.35, 0.2],
    "keyword.k1": [0, 0.9, 3],
    "keyword.b": [0, 0.9],
    "keyword.operator": ["any", "all"],
    "depth.keyword": [3, 100],
    "depth.vector": [2, 7, 100],
    "grep.when": ["auto", "never", "always"],
    "dedupe": [True, False],
    "rerank.model": ["off", "overlap"],
    "rewrite.model": ["off", "keywords"],
}


def paragraph(random: np.random.Generator) -> str:
    return " ".join(random.choice(WORDS, size=int(random.integers(1, 6))))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
    """Twenty-four files of a few sections, many of them with equal texts, seven different words in all, of which the second
    encoder knows four.
    """
    random = np.random.default_rng(3)
    files = {
        f"{n:02}.md": "\n\n".join(f"# S{s}\n\n{paragraph(random)}" for s in range(int(random.integers(1, 4)))) + "\n"
        for n in range(24)
    }
    files |= {f"copy{n}.md": files["03.md"] for n in range(3)}
    folder = tmp_path_factory.mktemp("swept")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_static(folder / "table", WORDS[:4])
        wb.index([write_files(folder / "files", files)], corpus="corpus", encoder=["hashing", "table"], workers=0)
        with wb.open_corpus("corpus") as opened:
            yield opened


@pytest.fixture(scope="module")
def judgments() -> Judgments:
    """Queries with one hit and many, with keywords and quotes, one that finds nothing; negative grades and unknown paths."""
    queries = [
        "amber bridge",
        "cedar",
        '"delta ember" fjord',
        "nothing like it",
        "grove grove amber",
        "ember -cedar",
        "-cedar",
    ]
    topics = {f"q{n}": Topic(f"q{n}", text, "fjord" if n == 1 else None) for n, text in enumerate(queries)}
    random = np.random.default_rng(4)
    qrels = {i: {f"{n:02}.md": int(random.integers(-1, 3)) for n in random.permutation(24)[:9]} for i in topics}
    qrels["q0"]["copy1.md"] = 2
    qrels["q1"]["gone.md"] = 1
    return Judgments(topics, qrels, "drawn")


def of_documents(judgments: Judgments) -> Judgments:
    """The judgments with documents for queries, some of which have the text of others."""
    ids = dict(
        zip(judgments.query_ids, ("03.md", "05.md", "copy1.md", "08.md", "11.md", "02.md", "20.md"), strict=True)
    )
    topics = {ids[i]: Topic(ids[i], t.text, t.keywords) for i, t in judgments.topics.items()}
    return Judgments(topics, {ids[i]: q for i, q in judgments.qrels.items()}, "own", drop_identical_ids=True)


plans = st.lists(
    st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in CHOICES.items()}),
    min_size=1,
    max_size=5,
)


def plan_of(changes: dict[str, Any]) -> wb.Plan | None:
    values = dict(changes)
    normalise = values.pop("fusion.normalise", None)
    if normalise:
        values |= {f"fusion.normalise.{s}": normalise for s in ("keyword", "vector", "grep", "vector:table")}
    try:
        return wb.preset("default").replace(values)
    except wb.WorkbenchError:
        return None


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plans, st.booleans())
def test_every_plan_has_the_figures_of_a_search(
    corpus: wb.Corpus, judgments: Judgments, drawn: list[dict[str, Any]], own: bool
) -> None:
    """Many plans together, and one after another on kept candidates, equal `Corpus.evaluate` of each, query by query; also
    where queries have the names of documents, which are left out of their results.
    """
    if own:
        judgments = of_documents(judgments)
    made = [p for p in map(plan_of, drawn) if p is not None]
    if not made:
        return
    values = np.full((len(made), len(judgments), len(SLOW)), np.nan)
    score(Pool(corpus.engine, judgments), made, SLOW, 1000, values)
    kept = CachedPool(Pool(corpus.engine, judgments), MEASURES, 1000)
    short = CachedPool(Pool(corpus.engine, judgments), MEASURES[-1:], 2)
    for at, plan in enumerate(made):
        alone = corpus.evaluate(judgments, plan, SLOW).values
        assert values[at] == pytest.approx(alone, abs=1e-9, nan_ok=True), str(plan)
        kept.retrieve(plan)
        short.retrieve(plan)
        assert kept.values(plan) == pytest.approx(alone[:, : len(MEASURES)], abs=1e-9), str(plan)
        assert short.values(plan)[:, 0] == pytest.approx(alone[:, len(MEASURES) - 1], abs=1e-9), str(plan)


def test_judged_passages_have_the_figures_of_a_search(corpus: wb.Corpus) -> None:
    """Passages of chunks, one that two chunks share, and a whole document among them: the same as `Corpus.evaluate`."""
    topics = {f"q{n}": Topic(f"q{n}", text) for n, text in enumerate(["amber bridge", "cedar delta", "grove ember"])}
    qrels: dict[str, dict[str, int]] = {}
    judged: dict[str, tuple[JudgedPassage, ...]] = {}
    for query_id, topic in topics.items():
        found = corpus.search(topic.text).passages(12)
        made = [JudgedPassage(f"{p}#{s.start}-{s.end}", d, p, s) for d, p, s in found[::2]]
        document, path, span = found[1]
        made.append(JudgedPassage(f"{path}#half", document, path, Span(span.start, max(span.start + 1, span.end - 2))))
        made.append(JudgedPassage(found[3][1], found[3][0], found[3][1]))
        judged[query_id] = tuple({p.key: p for p in made}.values())
        qrels[query_id] = {p.key: n % 3 for n, p in enumerate(judged[query_id])}
    judgments = Judgments(topics, qrels, "passages", (), judged)
    plans = [
        wb.preset("default").replace(changes)
        for changes in ({}, {"fusion.k": 1, "dedupe": False}, {"fusion.unit": "document"}, {"sources": "keyword"})
    ]
    values = np.full((len(plans), len(judgments), len(MEASURES)), np.nan)
    score(Pool(corpus.engine, judgments), plans, MEASURES, 1000, values)
    for at, plan in enumerate(plans):
        assert values[at] == pytest.approx(corpus.evaluate(judgments, plan, MEASURES).values, abs=1e-9), str(plan)
    assert values.max() > 0
