"""`with_plan` gives what a search with that plan gives, or says that it cannot, whichever of the plan's fields move."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from corpus_files import write_files
from hypothesis import given
from hypothesis import strategies as st
from small_models import make_static
from trials import trials

import workbench as wb
from workbench.errors import NeedsSearch, WorkbenchError
from workbench.evaluate.live import LiveMeasure
from workbench.evaluate.pool import Pool
from workbench.evaluate.sweep import score
from workbench.judgments.qrels import JudgedPassage, Judgments, Topic
from workbench.plan import fields as plan_fields
from workbench.plan.presets import BY_NAME
from workbench.records import Span
from workbench.retrieve import engine

WORDS = ("amber", "bridge", "cedar", "delta", "ember", "fjord", "grove")
QUERIES = (
    "amber bridge",
    '"cedar delta" ember',
    "fjord -grove",
    "Amber",
    "unheard",
    '"delta ember" "fjord grove" bridge',
)
KEYWORDS = (None, None, "cedar", '"ember fjord" grove', "amber|b.*ge")
MODES = ("hybrid", "hybrid", "hybrid", "grep", "keyword", "vector")
DEPTHS = (1, 2, 3, 7, 40, "auto", "2x", "+3")
CHOICES: dict[str, tuple[Any, ...]] = {
    "sources": (
        "keyword,vector", "keyword", "vector", "grep", "grep,vector", "grep,keyword,vector", "keyword@docs,vector@parts",
        "vector@whole,vector@parts", "grep@parts,keyword", "keyword,vector:unknown", "vector:unknown",
    ),
    "collections": ("all", "docs", "whole,parts", "none"),
    "limit": (1, 4, 10, 30),
    "limit.max": (30, 1000),
    "principal": ("optional", "optional", "optional", "required"),
    "grep.context": (0, 1, 10),
    "vector.threshold": ("off", 0.5, 0.4, 0.2),
    "threshold.vector": ("auto", "off", 0.45, 0.1),
    "threshold.keyword": ("auto", "off", 0.5, 1.5, 3),
    "fusion.threshold": ("off", 0, 0.016, 0.3, 0.9),
    "depth.grep": DEPTHS,
    "depth.keyword": DEPTHS,
    "depth.vector": DEPTHS,
    "keyword.k1": (0, 0.9),
    "keyword.b": (0.4, 1),
    "fusion.k": (1, 60),
    "fusion.alpha": (0, 0.5, 0.8),
    "fusion.weights.keyword": (0, 1, 2.5),
    "fusion.weights.vector": (0, 1, 0.3),
    "fusion.weights.grep": (0, 1, 3),
    "fusion.normalise.keyword": plan_fields.NORMALISATIONS,
    "fusion.normalise.vector": plan_fields.NORMALISATIONS,
    "neighbours": (0, 1, 2),
    "rerank.model": ("off", "off", "overlap"),
    "rerank.top": (1, 5, 50),
    "rewrite.model": ("off", "off", "keywords", "echo"),
    "cache_seconds": (0, 180),
}  # fmt: skip


def choices(field: plan_fields.Field) -> dict[str, tuple[Any, ...]]:
    """The values that are drawn for a field; of a family, for some of its sources."""
    own = {n: v for n, v in CHOICES.items() if n == field.name or (field.family and n.startswith(field.name + "."))}
    if own:
        return own
    if field.choices and not field.family:
        return {field.name: field.choices}
    if isinstance(field.default, bool):
        return {field.name: (True, False)}
    return {field.name: (int(field.low or 0), int(field.high or 0))}


DRAWN = {name: values for field in plan_fields.FIELDS for name, values in choices(field).items()}


@pytest.fixture(scope="module", autouse=True)
def any_encoder():
    """The hashing encoder is adapted to as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "NOT_ADAPTED", frozenset())
        yield


@pytest.fixture(scope="module")
def corpus(corpus_of: Callable[..., wb.Corpus]) -> wb.Corpus:
    """Few words in many chunks: ties, equal texts, and documents that are found whole and in parts."""
    files, draw = {}, random.Random(3)
    for n in range(40):
        parts = []
        for section in range(draw.randint(1, 5)):
            lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 5))) for _ in range(draw.randint(1, 12))]
            lines[0] = lines[0].title() if draw.random() < 0.3 else lines[0]
            parts.append(f"## Part {section}\n\n" + "\n".join(lines) + "\n")
        files[f"{'docs' if n % 3 else 'parts'}/d{n:02d}.md"] = "\n".join(parts)
    files["docs/copy.md"] = files["docs/d01.md"]
    rules = "collections:\n  whole: document\n  parts: chunk\nrules:\n  - path: 'parts/**'\n    collection: [whole, parts]\n"
    return corpus_of(files, None, rules)


def outcome(make: Any) -> Any:
    try:
        result: wb.SearchResult = make()
        frame = result.frame()
        rankings = {s: [(e.rank, e.chunk_id, e.score) for e in r.entries] for s, r in result.rankings.items()}
        return {**result.to_dict(), "frame": frame.to_dicts(), "columns": frame.columns, "rankings": rankings}
    except WorkbenchError as exc:
        return exc


def apart(one: Any, two: Any, at: str = "") -> str:
    """Where two outcomes differ, numbers by more than 1e-9; "" where they do not."""
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        return next((found for key in one if (found := apart(one[key], two[key], f"{at}.{key}"))), "")
    if isinstance(one, (list, tuple)) and isinstance(two, (list, tuple)) and len(one) == len(two):
        pairs = enumerate(zip(one, two, strict=True))
        return next((found for n, (a, b) in pairs if (found := apart(a, b, f"{at}[{n}]"))), "")
    if isinstance(one, float) and isinstance(two, float):
        return "" if math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9) else f"{at}: {one} and {two}"
    if isinstance(one, Exception) and isinstance(two, Exception):
        return "" if str(one) == str(two) else f"{at}: {one} and {two}"
    return "" if one == two else f"{at}: {one!r:.300} and {two!r:.300}"


def changed(plan: wb.Plan, changes: dict[str, Any]) -> wb.Plan:
    for name, value in changes.items():
        try:
            plan = plan.replace({name: value})
        except WorkbenchError:
            continue  # a limit beyond limit.max, convex with grep: no plan
    return plan


def drawn_pair(draw: random.Random) -> tuple[dict[str, Any], wb.Plan, wb.Plan]:
    """A question and two plans; the second one differs from the first in few fields, or in many."""
    asked = {"query": draw.choice(QUERIES), "keywords": draw.choice(KEYWORDS), "mode": draw.choice(MODES)}
    base = wb.preset(draw.choice(sorted(BY_NAME))).replace({"cache_seconds": 0})

    def some(most: int) -> dict[str, Any]:
        return {name: draw.choice(DRAWN[name]) for name in draw.sample(sorted(DRAWN), draw.randint(0, most))}

    first = changed(base, some(8))
    return asked, first, changed(first, some(draw.choice((1, 2, 3, 12))))


def difference(corpus: wb.Corpus, seed: int) -> str:
    """Where `with_plan` and `search` differ of a drawn pair; "" where they do not, or where another search is needed."""
    draw = random.Random(seed)
    asked, first, second = drawn_pair(draw)
    depths = dict.fromkeys(("grep", "keyword", "vector"), 1000) if draw.random() < 0.5 else None
    try:
        result = corpus.search(**asked, plan=first, depths=depths)
        if draw.random() < 0.5:
            result.hits  # noqa: B018 - what was read for the first plan is used for the second
    except WorkbenchError:
        return ""
    moved = outcome(lambda: result.with_plan(second))
    if isinstance(moved, NeedsSearch):
        return ""
    fresh = outcome(lambda: corpus.search(**asked, plan=second))
    found = apart(moved, fresh)
    if not isinstance(moved, Exception):
        back = outcome(lambda: result.with_plan(second).with_plan(first))
        found = found or apart(back, outcome(lambda: result), "back")
    return found and f"{asked} | {first} | {second}: {found}"


def test_every_field_is_drawn():
    assert {plan_fields.locate(name)[0].name for name in DRAWN} == {f.name for f in plan_fields.FIELDS}


@pytest.mark.slow
@trials(30)
@given(st.integers(0, 10**9))
def test_with_plan_is_search(corpus, seed):
    """Hits, ranks, contributions, counts, funnel, messages and warnings are equal, or another search is asked for."""
    assert not difference(corpus, seed)


MEASURES = ("nDCG@10", "RR", "R@5", "AP", "nDCG@2")
SLOW = (*MEASURES, "Judged@10")
SWEPT: dict[str, Any] = {
    name: values
    for name, values in DRAWN.items()
    if name.partition(".")[0] in ("fusion", "keyword", "depth", "dedupe", "rerank", "rewrite", "feedback")
    or name
    in ("vector.threshold", "threshold.vector", "threshold.keyword", "grep.when", "vector.adapt", "vector.hubness")
} | {
    "sources": "keyword,vector keyword vector grep,vector keyword,vector,vector:table vector,vector:table".split(),
    "threshold.vector:table": ("off", 0.35, 0.2),
}


def paragraph(random: np.random.Generator) -> str:
    return " ".join(random.choice(WORDS, size=int(random.integers(1, 6))))


@pytest.fixture(scope="module")
def swept_corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
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
    queries = 'amber bridge|cedar|"delta ember" fjord|nothing like it|grove grove amber|ember -cedar|-cedar'.split("|")
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
    st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in SWEPT.items()}),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@trials(12)
@given(plans, st.booleans())
def test_every_plan_has_the_figures_of_a_search(swept_corpus, judgments, drawn, own):
    """Many plans together, and one after another on kept candidates, equal `Corpus.evaluate` of each, query by query; also
    where queries have the names of documents, which are left out of their results.
    """
    if own:
        judgments = of_documents(judgments)
    made = [changed(wb.preset("default"), changes) for changes in drawn]
    values = np.full((len(made), len(judgments), len(SLOW)), np.nan)
    score(Pool(swept_corpus.engine, judgments), made, SLOW, 1000, values)
    kept = [LiveMeasure(swept_corpus.engine, judgments, name) for name in MEASURES]
    for at, plan in enumerate(made):
        alone = swept_corpus.evaluate(judgments, plan, SLOW).values
        assert values[at] == pytest.approx(alone, abs=1e-9, nan_ok=True), str(plan)
        for n, live in enumerate(kept):
            live.prepare(plan)
            assert live.values(plan) == pytest.approx(alone[:, n], abs=1e-9), str(plan)


def test_adapted_similarity_and_feedback_have_the_figures_of_a_search(corpus_of):
    """Where no two texts are equal, so that plans are ranked together. Feedback without adapted similarity changes nothing."""
    draw = random.Random(5)
    names = [f"{n:03}.md" for n in range(120)]
    corpus = corpus_of({name: f"{' '.join(draw.choices(WORDS, k=draw.randint(3, 9)))} {name}\n" for name in names})
    topics = {
        f"q{n}": Topic(f"q{n}", text)
        for n, text in enumerate(("amber bridge cedar", "delta ember", "fjord grove amber"))
    }
    judgments = Judgments(
        topics, {i: {name: draw.randint(0, 2) for name in draw.sample(names, 40)} for i in topics}, "drawn"
    )
    adapted = "vector.adapt=corpus"
    made = [
        wb.Plan.parse(f"{base} vector.threshold=off {changes}")
        for base in ("tmm", "rrf")
        for changes in ("feedback.weight=1", "", adapted, f"{adapted} vector.hubness=1", f"{adapted} feedback.weight=1")
    ]
    values = np.full((len(made), len(judgments), 2), np.nan)
    score(Pool(corpus.engine, judgments), made, ("AP", "nDCG@50"), 1000, values)
    for at, plan in enumerate(made):
        alone = corpus.evaluate(judgments, plan, ("AP", "nDCG@50")).values
        assert values[at] == pytest.approx(alone, abs=1e-9), str(plan)
    assert len({tuple(own.ravel().round(9)) for own in values}) == len(made) - 2


def test_judged_passages_have_the_figures_of_a_search(swept_corpus):
    topics = {f"q{n}": Topic(f"q{n}", text) for n, text in enumerate(["amber bridge", "cedar delta", "grove ember"])}
    qrels: dict[str, dict[str, int]] = {}
    judged: dict[str, tuple[JudgedPassage, ...]] = {}
    for query_id, topic in topics.items():
        found = swept_corpus.search(topic.text).passages(12)
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
    score(Pool(swept_corpus.engine, judgments), plans, MEASURES, 1000, values)
    for at, plan in enumerate(plans):
        assert values[at] == pytest.approx(swept_corpus.evaluate(judgments, plan, MEASURES).values, abs=1e-9), str(plan)
    assert values.max() > 0
