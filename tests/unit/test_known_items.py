"""Known-item queries: from the corpus, with their answer, the same each time, and said to be easier than people's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import workbench as wb
from workbench.cli.main import main
from workbench.errors import JudgmentError, UsageError
from workbench.judgments.known_items import KINDS, make_known_item_set, make_known_items

FAQ = "# Help desk\n\n## How do I reset my password?\n\nOpen the profile page and press the red button twice.\n"
FILES = {
    "faq.md": FAQ,
    "tea.md": "# Making good tea\n\n## Overview\n\nBoil fresh spring water slowly before pouring over dried leaves.\n",
    **{
        f"n{n}.md": f"# Report about valley {n}\n\n## Water levels of {n}\n\nThe gauge of valley number{n} rose during the "
        f"stormy evening while keeper{n} watched quietly from the bridge.\n"
        for n in range(8)
    },
    "code.py": '"""A module of code."""\n\n\ndef f():\n    return 1\n',
}
Make = Callable[..., wb.Corpus]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_query_is_of_its_document(make_corpus: Make, kind: str) -> None:
    """Its words stand where it says, in the document that answers it, and a search finds it there."""
    corpus = make_corpus(FILES)
    items = make_known_items(corpus.engine, corpus.judging.scope, 20, [kind])
    assert items
    for item in items:
        (document,) = corpus.engine.records.documents([item.document_number])
        used = document.text[item.used.start : item.used.end]
        assert " ".join(used.strip("#* \n").split()) in item.text or item.used.end == 0
        found = corpus.search(f'"{item.text}"' if kind == "phrase" else item.text, mode="keyword").hits
        assert found[0].document_id == document.document_id
        if item.chunk_id:
            assert found[0].chunk_id == item.chunk_id
    assert all(i.text != "A module of code" for i in items)


@pytest.mark.slow
def test_a_question_is_answered_by_what_stands_below(make_corpus: Make) -> None:
    corpus = make_corpus(FILES)
    (item,) = make_known_items(corpus.engine, corpus.judging.scope, 20, ["question"])
    assert item.text == "How do I reset my password?"
    assert "red button" in corpus.judging.anchor(item.chunk_id).quote


def test_the_same_seed_gives_the_same_queries(make_corpus: Make) -> None:
    corpus = make_corpus(FILES)

    def made(seed: int) -> list[str]:
        return [i.text for i in make_known_items(corpus.engine, corpus.judging.scope, 6, seed=seed)]

    assert made(0) == made(0)
    assert len({tuple(made(seed)) for seed in range(4)}) > 1
    kinds = [i.kind for i in make_known_items(corpus.engine, corpus.judging.scope, 6)]
    assert {k: kinds.count(k) for k in ("title", "heading")} == {"title": 2, "heading": 2}


def test_a_set_is_judged_and_says_that_it_is_easy(make_corpus: Make) -> None:
    """It can be measured at once, its figures come with the warning, and it is made whole or not at all."""
    corpus = make_corpus(FILES)
    total = make_known_item_set(corpus.judging, corpus.engine, "known", 8)
    judged = corpus.judgments("known")
    assert len(judged) == total == 8
    figures = corpus.evaluate(judged, "default", ["RR"])
    assert figures.mean("RR") > 0.5
    assert any("easier" in w or "higher than for people's own" in w for w in figures.warnings)
    with pytest.raises(JudgmentError, match="already"):
        make_known_item_set(corpus.judging, corpus.engine, "known", 8)
    with pytest.raises(UsageError, match="no kind"):
        make_known_item_set(corpus.judging, corpus.engine, "other", 8, ["rumour"])
    assert corpus.judging.sets.names() == ("known",)


def test_nothing_is_made_of_what_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "pay.md").write_text("# Salaries of all people\n\nsecret figures here\n")
    (tmp_path / "files" / "open.md").write_text("# Opening hours of shops\n\nopen all day\n")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "corpus.yaml").write_text(
        "rules:\n  - path: '*'\n    tenant: acme\n  - path: 'pay.md'\n    roles: [hr]\n"
    )
    wb.index([tmp_path / "files"], corpus=corpus, encoder="hashing")
    hr = wb.open_corpus(corpus, wb.Principal("acme", ("hr",)))
    staff = wb.open_corpus(corpus, wb.Principal("acme"))
    assert make_known_item_set(hr.judging, hr.engine, "hr", 9, ["title"]) == 2
    assert make_known_item_set(staff.judging, staff.engine, "staff", 9, ["title"]) == 1
    assert [q.text for q in staff.judging.queries("hr")] == ["Opening hours of shops"]


@pytest.mark.slow
def test_the_command_line_from_nothing_to_figures(make_corpus: Make, tmp_path: Path) -> None:
    """make, list, export, import, agree, add, rename, run export, eval and remove, one after the other."""
    corpus = make_corpus(FILES)

    def call(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, [*words, "--corpus", str(corpus.path)], catch_exceptions=False)
        assert done.exit_code == code, done.output
        return done.output

    call("judge", "list", code=1)
    assert "8 queries" in call("judge", "make", "known", "--count", "8")
    assert "known: 8 queries, 8 judgments" in call("judge", "list")
    assert "8 judgments" in call("judge", "export", "known", str(tmp_path / "beir"))
    assert "8 judgments, 8 new" in call("judge", "import", str(tmp_path / "beir"), "--set", "known2", "--judge", "ann")
    assert "at least two judges" in call("judge", "agree", "known", code=2)
    assert "for 8 queries" in call("run", "export", "known", str(tmp_path / "run.txt"), "--depth", "5")
    from_set = call("eval", "known2", "--measure", "RR", "--json")
    from_file = call("eval", str(tmp_path / "beir"), "--measure", "RR", "--json")
    assert json.loads(from_set)[0]["measures"] == json.loads(from_file)[0]["measures"] != []
    assert "There is no query set 'nowhere'" in call("judge", "export", "nowhere", str(tmp_path / "x"), code=2)
    assert "typed: 2 queries, 2 of them new" in call("judge", "add", "typed", "hot water", "cold water")
    assert "typed: 3 queries, 1 of them new" in call("judge", "add", "typed", "hot water", "ice")
    assert "Missing argument" in call("judge", "add", "empty", code=2)
    call("judge", "rename", "typed", "asked")
    assert call("judge", "list").startswith("asked: 3 queries")
    call("judge", "remove", "asked")
    call("judge", "remove", "known", "--yes")
    assert call("judge", "list").startswith("known2")


@pytest.mark.slow
def test_the_exported_run_gives_the_figures_of_eval(make_corpus: Make, tmp_path: Path) -> None:
    import ir_measures

    corpus = make_corpus(FILES)
    make_known_item_set(corpus.judging, corpus.engine, "known", 8)
    for words in (
        ["judge", "export", "known", str(tmp_path / "qrels.txt"), "--format", "trec"],
        ["run", "export", "known", str(tmp_path / "run.txt"), "--depth", "100"],
    ):
        assert CliRunner().invoke(main, [*words, "--corpus", str(corpus.path)]).exit_code == 0
    measure = ir_measures.parse_measure("nDCG@10")
    run = list(ir_measures.read_trec_run(str(tmp_path / "run.txt")))
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt")))
    ours = corpus.evaluate(corpus.judgments("known", documents=True), "default", ["nDCG@10"]).mean("nDCG@10")
    assert ir_measures.calc_aggregate([measure], qrels, run)[measure] == pytest.approx(ours, abs=1e-9)
