"""`with_plan` gives what a search with that plan gives, or says that it cannot, whichever of the plan's fields move."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from corpus_files import write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import NeedsSearch, WorkbenchError
from workbench.plan import fields as plan_fields
from workbench.plan.presets import BY_NAME

WORDS = ("amber", "bridge", "cedar", "delta", "ember", "fjord", "grove")
QUERIES = (
    "amber bridge",
    '"cedar delta" ember',
    "fjord -grove",
    "Amber",
    "unheard",
    '"delta ember" "fjord grove" amber',
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


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wb.Corpus]:
    """Few words in many chunks: ties, equal texts, and documents that are found whole and in parts."""
    folder, draw = tmp_path_factory.mktemp("with_plan"), random.Random(3)
    files = {}
    for n in range(40):
        parts = []
        for section in range(draw.randint(1, 5)):
            lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 5))) for _ in range(draw.randint(1, 12))]
            lines[0] = lines[0].title() if draw.random() < 0.3 else lines[0]
            parts.append(f"## Part {section}\n\n" + "\n".join(lines) + "\n")
        files[f"{'docs' if n % 3 else 'parts'}/d{n:02d}.md"] = "\n".join(parts)
    files["docs/copy.md"] = files["docs/d01.md"]
    source = write_files(folder / "files", files)
    rules = "collections:\n  whole: document\n  parts: chunk\nrules:\n  - path: 'parts/**'\n    collection: [whole, parts]\n"
    (folder / "corpus").mkdir()
    (folder / "corpus" / "corpus.yaml").write_text(rules, encoding="utf-8")
    wb.index([source], corpus=folder / "corpus", encoder="hashing")
    with wb.open_corpus(folder / "corpus") as opened:
        yield opened


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


def drawn_pair(draw: random.Random) -> tuple[dict[str, Any], wb.Plan, wb.Plan]:
    """A question and two plans; the second one differs from the first in few fields, or in many."""
    asked = {"query": draw.choice(QUERIES), "keywords": draw.choice(KEYWORDS), "mode": draw.choice(MODES)}
    base = wb.preset(draw.choice(sorted(BY_NAME))).replace({"cache_seconds": 0})

    def changed(plan: wb.Plan, most: int) -> wb.Plan:
        for name in draw.sample(sorted(DRAWN), draw.randint(0, most)):
            try:
                plan = plan.replace({name: draw.choice(DRAWN[name])})
            except WorkbenchError:
                continue  # a limit beyond limit.max, convex with grep: no plan
        return plan

    first = changed(base, 8)
    return asked, first, changed(first, draw.choice((1, 2, 3, 12)))


def difference(corpus: wb.Corpus, seed: int) -> tuple[str, str]:
    """What became of a drawn pair (`same`, `error` or `search`), and where `with_plan` and `search` differ."""
    draw = random.Random(seed)
    asked, first, second = drawn_pair(draw)
    depths = dict.fromkeys(("grep", "keyword", "vector"), 1000) if draw.random() < 0.5 else None
    try:
        result = corpus.search(**asked, plan=first, depths=depths)
        if draw.random() < 0.5:
            result.hits  # noqa: B018 - what was read for the first plan is used for the second
    except WorkbenchError:
        return "refused", ""
    moved = outcome(lambda: result.with_plan(second))
    if isinstance(moved, NeedsSearch):
        return "search", ""
    fresh = outcome(lambda: corpus.search(**asked, plan=second))
    found = apart(moved, fresh)
    if not isinstance(moved, Exception):
        back = outcome(lambda: result.with_plan(second).with_plan(first))
        found = found or apart(back, outcome(lambda: result), "back")
    return ("error" if isinstance(moved, Exception) else "same"), found and f"{asked} | {first} | {second}: {found}"


def test_every_field_is_drawn() -> None:
    assert {plan_fields.locate(name)[0].name for name in DRAWN} == {f.name for f in plan_fields.FIELDS}


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**9))
def test_with_plan_is_search(corpus: wb.Corpus, seed: int) -> None:
    """Hits, ranks, contributions, counts, funnel, messages and warnings are equal, or another search is asked for."""
    _, found = difference(corpus, seed)
    assert not found
