"""What is exported is imported: query sets and runs in every form, whatever signs their names have."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.evaluate.run import Run, load_run
from workbench.judgments import exchange
from workbench.judgments.formats import spoken, words
from workbench.judgments.log import Anchor
from workbench.judgments.query_sets import JUDGING, Query, checked

NAMES = (
    "plain.md", "my notes.md", " first and last ", "100% sure.md", "a%20b.md", "a%2520b.md", "it's \"said\".md", "naïve-café.md",
    "日本語 の.md", "tab\there.md", "line\nend.md", "back\r\nend.md", "a,b;c.md", "#1.md", "-1 0 x 1", "\ufeffmark.md",
    "two  spaces.md", "%", "de\u0301compose\u0301.md", "emoji 🙂.md", "wide\u3000space.md",
)  # fmt: skip
WORDS = "%20 %25 <top> Q0 relevant e\u0301 \u0301 \u212b \u110b\u1169".split()
SIGNS = st.sampled_from([*"aZ0 %,;#\"'\\\t\n\r\x07<>&é日🙂\ufeff\u00a0\u2028", *WORDS, "  "])
TEXTS = st.lists(SIGNS, min_size=1, max_size=8).map("".join)
EXACT = ("jsonl", "csv")


@pytest.fixture(scope="module")
def corpus(corpus_of: Callable[..., wb.Corpus]) -> wb.Corpus:
    """A document of each name, and a file of records with names of their own."""
    files = {name: f"# Part {n}\n\nkettle number {n}\n\n# Other\n\nwater {n}\n" for n, name in enumerate(NAMES)}
    records = [{"_id": name, "text": f"record of a kettle, the {n}"} for n, name in enumerate(("r 1", "r%201", "r,2"))]
    return corpus_of(files | {"corpus.jsonl": "".join(json.dumps(r) + "\n" for r in records)})


sets = st.fixed_dictionaries(
    {
        "queries": st.lists(st.tuples(TEXTS, TEXTS, st.none() | TEXTS), min_size=1, max_size=4),
        "judged": st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 99), st.integers(-1, 3), TEXTS, st.just("") | TEXTS),
            min_size=1,
            max_size=8,
        ),
    }
)


def made_set(corpus: wb.Corpus, drawn: dict[str, Any]) -> bool:
    """Whether the set `drawn` has a judgment."""
    judging = corpus.judging
    for name in judging.sets.names():
        judging.sets.remove(name)
    queries: dict[str, Query] = {}
    for query_id, text, keywords in drawn["queries"]:
        try:
            query = checked(Query(query_id, text, keywords))
        except wb.WorkbenchError:
            continue
        queries.setdefault(query.query_id, query)
    if not queries:
        return False
    judging.sets.create("drawn", queries.values())
    chunks = corpus.search("kettle water record", mode="keyword", limit=100).hits
    with judging.sets.database.writing(JUDGING) as db:
        number = judging.sets.number(db, "drawn")
        for q, at, grade, judge, note in drawn["judged"]:
            query = list(queries.values())[q % len(queries)]
            hit = chunks[at % len(chunks)]
            anchor = judging.anchor(hit)
            if at % 3 == 0:
                anchor = Anchor(anchor.path, anchor.root, anchor.tenant)
            if judge.split():
                judging.log.write(db, number, query.query_id, anchor, grade, judge, note)
    return bool(judging.log.valid("drawn"))


def said(corpus: wb.Corpus, name: str) -> list[tuple[object, ...]]:
    made = []
    for one in corpus.judging.located(name):
        j = one.judgment
        made.append((j.query_id, j.anchor.key, j.anchor.root, j.anchor.quote, j.grade, j.judge, j.time, j.note))
    return sorted(made, key=repr)


@pytest.mark.slow
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sets)
@example({"queries": [("a\r\x07\ra", "a", None)], "judged": [(0, 0, 0, "a", "\ra")]})
def test_a_query_set_comes_back_from_every_form(corpus: wb.Corpus, tmp_path: Path, drawn: dict[str, Any]) -> None:
    if not made_set(corpus, drawn):
        return
    judging = corpus.judging
    named = judging.judgments("drawn", documents=True).document_keys
    for form in (f for f in exchange.FORMATS if f != "quepid"):  # which names queries by their texts alone
        target = tmp_path / {"beir": f"{form}-set"}.get(form, f"set 1.{form}")
        if form == "beir" and any(key != key.strip() or set("\t\r\n") & set(key) for key in named):
            with pytest.raises(wb.WorkbenchError, match="cannot hold the name"):
                exchange.export_judgments(judging, "drawn", target, form)
            continue
        exchange.export_judgments(judging, "drawn", target, form)
        exchange.import_judgments(judging, target, "back")
        assert judging.queries("back") == judging.queries("drawn"), form
        if form in EXACT:
            assert said(corpus, "back") == said(corpus, "drawn"), form
        else:
            before, after = (judging.judgments(name, documents=True).qrels for name in ("drawn", "back"))
            assert after == before, form
        judging.sets.remove("back")


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(TEXTS.filter(str.strip), st.lists(TEXTS, min_size=1, max_size=4, unique=True), min_size=1), TEXTS
)
def test_a_run_comes_back(tmp_path: Path, rankings: dict[str, list[str]], name: str) -> None:
    made = Run({i: tuple(keys) for i, keys in rankings.items()}, name)
    read = load_run(made.save_trec(tmp_path / "run.trec"))
    assert (dict(read.rankings), read.name) == (dict(made.rankings), name)


@given(st.text(), TEXTS)
def test_a_name_is_one_word_that_can_be_read_back(text: str, signs: str) -> None:
    for name in (text, signs):
        assert spoken(words(name)) == name
        assert len(words(name).split()) <= 1
    for foreign in ("100%", "%zz", "caf%C3%A9", "%E9"):
        assert spoken(foreign) == foreign
