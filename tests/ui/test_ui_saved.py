"""History, saved searches and plans, notes, grades, the corpus's words: kept, and taken back by undo."""

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from app_for_tests import all_text, bodies, chunks, column, open_plan, run
from corpus_files import write_files
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.saved.searches import HISTORY, PLAN, Searches
from workbench.ui import resources

Open = Callable[..., AppTest]
Send = Callable[[AppTest, Any], AppTest]
QUERY = "retry request"
OLD = "retry notes"


@pytest.fixture
def kept(own_corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Searches:
    monkeypatch.setenv("WORKBENCH_CORPUS", str(own_corpus))
    return resources.searches()


def opened(open_app: Open, corpus: Path, **params: str) -> AppTest:
    at = open_app(corpus, **params)
    at.session_state["wb.w.section.saved"] = True
    return run(at)


def undo(at: AppTest) -> AppTest:
    at.button(key="wb.w.undo").click()
    return run(at)


def test_what_is_asked_is_in_the_history(open_app: Open, own_corpus: Path, kept: Searches) -> None:
    at = opened(open_app, own_corpus, q=QUERY, columns="keyword,vector")
    at.slider(key="wb.w.limit").set_value(3)
    run(at)
    at.text_input(key="wb.w.query").set_value("kettle")
    run(at)
    history = kept.kept(HISTORY)
    assert [e.params["q"] for e in history] == ["kettle", QUERY]
    at.button(key=f"wb.w.kept.{history[1].number}").click()
    run(at)
    assert at.query_params == {"q": QUERY, "columns": "keyword,vector"}


def test_a_deleted_entry_comes_back_by_undo(open_app: Open, own_corpus: Path, kept: Searches) -> None:
    kept.asked({"q": OLD})
    at = opened(open_app, own_corpus, q=QUERY)
    first = [e.params["q"] for e in kept.kept(HISTORY)]
    assert first == [QUERY, OLD]
    at.button(key=f"wb.w.kept.{kept.kept(HISTORY)[1].number}.away").click()
    run(at)
    assert [e.params["q"] for e in kept.kept(HISTORY)] == [QUERY]
    undo(at)
    assert [e.params["q"] for e in kept.kept(HISTORY)] == first
    at.button(key="wb.w.history.clear").click()
    run(at)
    assert kept.kept(HISTORY) == []
    undo(at)
    assert [e.params["q"] for e in kept.kept(HISTORY)] == first


def test_a_plan_is_saved_and_taken(open_app: Open, own_corpus: Path, kept: Searches) -> None:
    at = open_plan(opened(open_app, own_corpus, q=QUERY, plan="tmm limit=3"))
    at.text_input(key="wb.w.save.plan").set_value("three")
    run(at)
    (saved,) = kept.kept(PLAN)
    assert (saved.name, saved.value) == ("three", "tmm limit=3")
    at.selectbox(key="wb.w.preset").set_value("default")
    run(at)
    at.button(key=f"wb.w.kept.{saved.number}").click()
    run(at)
    assert at.query_params["plan"] == "tmm limit=3"


def test_a_desk_that_cannot_be_written_stops_no_search(
    open_app: Open, own_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.errors import CorpusError

    def refuse(self: Searches, params: object) -> None:
        raise CorpusError("The desk cannot be written", "Ask for write access")

    monkeypatch.setattr(Searches, "asked", refuse)
    at = opened(open_app, own_corpus, q=QUERY)
    assert chunks(at, "hybrid")
    assert "History is not kept. The desk cannot be written. Ask for write access." in all_text(at)


def test_undo_takes_back_settings_and_queries(open_app: Open, own_corpus: Path) -> None:
    at = open_app(own_corpus, q=QUERY)
    at.selectbox(key="wb.w.fusion.method").set_value("max")
    run(at)
    at.text_input(key="wb.w.query").set_value("kettle")
    run(at)
    assert "Undone: the query." in all_text(undo(at))
    assert at.query_params == {"q": QUERY, "plan": "default fusion.method=max"}
    assert "Undone: fusion.method." in all_text(undo(at))
    assert at.query_params == {"q": QUERY}
    assert "nothing to undo" in all_text(undo(at))


# --- what cards send --------------------------------------------------------------------------------------------------


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Callable[[AppTest, Any], AppTest]:
    """Hand an event to the page as the browser's script does: a box stands for the component, which needs a browser."""

    def component() -> Callable[..., None]:
        import streamlit as st

        def drawn(key: str, data: dict[str, float], on_events_change: Callable[[], None]) -> None:
            def changed() -> None:
                st.session_state[key] = {"events": json.loads(st.session_state["sent"])}
                on_events_change()

            st.text_input("Event", key="sent", on_change=changed)

        return drawn

    monkeypatch.setattr("workbench.ui.events._component", component)
    number = itertools.count(1)
    sent: list[Any] = []

    def send(at: AppTest, event: Any) -> AppTest:
        # Also what was sent before: the page must do each event once.
        sent.append({**event, "number": next(number)})
        at.text_input(key="sent").set_value(json.dumps(sent))
        return run(at)

    return send


def test_more_like_this_shows_the_nearest_by_vector(sends: Send, open_app: Open, own_corpus: Path) -> None:
    """Neighbours by the stored vector, the passage itself left out, nothing embedded; it says what was done. Its text can be
    asked instead, and undo goes back to the question.
    """
    at = open_app(own_corpus, q="kettle", columns="keyword,vector")
    card = chunks(at, "keyword")[0]
    sends(at, {"do": "more", "chunk": card})
    (made,) = (b for b in bodies(at) if 'aria-label="Passages like this"' in b)
    with wb.open_corpus(own_corpus) as corpus:
        records, index = corpus.engine.records, corpus.engine.vectors("")
        number = records.find_record(card, records.scope(None, None, ()))
        cosines = index.cosines(index.vectors([number])[0], records.scope(None, None, ()))
        order = [n for n in np.argsort(-cosines, kind="stable").tolist() if n != number][:10]
        found = [row.chunk for row in records.rows(order)]
        paths = records.columns(np.array(order)).paths
    cited = [f"Open {path}:{c.start_line}-{c.end_line}" for path, c in zip(paths, found, strict=True)]
    assert re.findall("<bdi>(Open [^<]+)", made) == cited
    distances = re.findall(r"angular distance ([0-9.]+)", made)
    assert len(distances) == len(cited)
    assert distances == sorted(distances)
    assert "nothing was embedded" in all_text(at)
    assert at.query_params["q"] == "kettle"
    at.button(key="wb.w.like.text").click()
    run(at)
    assert at.query_params["q"].startswith("# The office kettle Fill the kettle")
    assert chunks(at, "vector")[0] == card
    undo(at)
    assert at.query_params["q"] == "kettle"


def test_whatever_is_sent_leaves_the_page_whole(sends: Send, open_app: Open, own_corpus: Path) -> None:
    at = open_app(own_corpus, q=QUERY)
    for event in ({}, {"do": "grade", "chunk": "nosuch", "value": 1}, {"do": "format", "chunk": 7}, {"do": "grade"}):
        sends(at, event)
        assert "not on the page any more" in all_text(at)
        assert chunks(at, "hybrid")
    for value in (4, -1, True, None, "3"):
        sends(at, {"do": "grade", "chunk": chunks(at, "keyword")[0], "value": value})
        assert "Grades are 0, 1, 2 and 3" in all_text(at)
    assert 'aria-pressed="true"' not in column(at, "keyword")


def test_a_card_is_graded_in_the_active_set_and_its_column_is_measured(
    sends: Send, open_app: Open, own_corpus: Path
) -> None:
    """Where the set holds the query: grades of everybody count, what nobody judged is marked. Else they go to `search`."""
    with wb.open_corpus(own_corpus) as corpus:
        corpus.judging.sets.create("tea", ["boil water"])
        (query,) = corpus.judging.queries("tea")
        first, *_ = corpus.search("boil water", mode="vector").hits
        corpus.judging.grade(first, 3, query, set="tea", judge="bob")
    at = open_app(own_corpus, q="boil water", columns="vector")
    assert "those of the query set <b>tea</b>" in all_text(at)
    shown = column(at, "vector")
    assert "nDCG@10 1.000 · P@10 0.10 · 1 of 10 judged" in shown
    assert "few judged" in shown
    assert shown.count(">unjudged<") == 9
    assert 'title="Judged 3: answers it"' in shown
    assert 'aria-pressed="true"' not in shown
    second = chunks(at, "vector")[1]
    sends(at, {"do": "grade", "chunk": second, "value": 2})
    run(at)
    assert "2 of 10 judged" in column(at, "vector")
    with wb.open_corpus(own_corpus) as corpus:
        assert [x.judgment.grade for x in corpus.judging.located("tea")] == [3, 2]
        assert "search" not in corpus.judging.sets.names()
    assert "in the set tea" in all_text(undo(at))
    assert "1 of 10 judged" in column(at, "vector")
    at = open_app(own_corpus, q="kettle", columns="vector")
    assert (
        'not in the query set <b>tea</b>, so grades go to the set <b>search</b>. <a href="queries?set=tea&amp;add=kettle"'
        in all_text(at)
    )
    assert "judged" not in column(at, "vector")
    sends(at, {"do": "grade", "chunk": chunks(at, "vector")[0], "value": 0})
    with wb.open_corpus(own_corpus) as corpus:
        assert [q.text for q in corpus.judging.queries("search")] == ["kettle"]


# --- words, downloads, the editor, the view ----------------------------------------------------------------------------


def test_the_words_of_the_corpus_are_changed_on_the_page(open_app: Open, own_corpus: Path) -> None:
    at = open_app(own_corpus, q="teapot", columns="keyword")
    assert not chunks(at, "keyword")
    at.session_state["wb.w.section.words"] = True
    run(at)
    at.text_area(key="wb.w.synonyms").set_value("teapot, kettle")
    at.text_input(key="wb.w.stop_words").set_value("acme")
    at.button(key="wb.w.words.keep").click()
    run(at)
    assert len(chunks(at, "keyword")) == 1
    assert "Searched also: kettle" in column(at, "keyword")
    assert "kettle" in (own_corpus / "synonyms.yaml").read_text(encoding="utf-8")
    undo(at)
    assert not chunks(at, "keyword")
    at.text_area(key="wb.w.synonyms").set_value("lonely")
    at.button(key="wb.w.words.keep").click()
    run(at)
    assert "at least two words" in all_text(at)


def test_a_column_can_be_taken_away_as_a_file_or_opened_in_the_editor(
    open_app: Open, own_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = open_app(own_corpus, q=QUERY, columns="keyword,plan", column2="tmm")
    at.session_state["wb.w.section.export"] = True
    run(at)
    assert len(at.get("download_button")) >= 4
    for slot, title in (("keyword", "Keyword"), ("own1", "tmm")):
        result = at.session_state["wb.finder"].kept(slot)
        rows = result.frame().write_csv().splitlines()
        assert rows[0].startswith("rank,")
        assert len(rows) > len(result.hits)
        (shown,) = [b for b in bodies(at) if f'aria-label="{title} results"' in b]
        told = json.loads(json.dumps(result.to_dict()))["hits"]
        assert [h["chunk_id"] for h in told] == re.findall(r'data-chunk="([^"]+)"', shown)
    at = open_app(own_corpus, q="kettle", columns="keyword")
    assert "data-wb-open" not in column(at, "keyword")
    monkeypatch.setenv("WORKBENCH_EDITOR_LINK", "vscode://file/{path}:{line}")
    run(at)
    assert 'data-wb-open="vscode://file//' in column(at, "keyword")
    assert 'source/kettle.md:1"' in column(at, "keyword")
    monkeypatch.setenv("WORKBENCH_EDITOR_LINK", "javascript:alert('{path}')")
    run(at)
    assert "which is not a link to a file" in all_text(at)
    assert "data-wb-open" not in column(at, "keyword")
    assert "javascript" not in column(at, "keyword")


@pytest.mark.slow
def test_one_looks_with_fewer_roles_never_with_more(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles = ("hr", "it", "boss")
    write_files(tmp_path / "source", {f"{name}.md": f"# {name}\n\nThe kettle of {name}.\n" for name in roles})
    rules = [{"path": f"{name}.md", "roles": [name]} for name in roles]
    write_files(tmp_path / "corpus", {"corpus.yaml": json.dumps({"rules": rules})})
    wb.index([tmp_path / "source"], corpus=tmp_path / "corpus", encoder="hashing", workers=0)
    monkeypatch.setenv("WORKBENCH_ROLES", "hr,it")

    def seen(**params: str) -> set[str]:
        at = open_app(tmp_path / "corpus", q="kettle", columns="keyword", **params)
        return {n for n in ("hr", "it", "boss") if f"{n}.md" in column(at, "keyword")}

    assert seen() == {"hr", "it"}
    assert seen(**{"as": "hr"}) == {"hr"}
    assert seen(**{"as": "hr,boss"}) == {"hr"}
    assert seen(**{"as": "boss"}) == set()
    assert seen(**{"as": "-"}) == set()
    at = open_app(tmp_path / "corpus", q="kettle", columns="keyword")
    at.button_group(key="wb.w.as").set_value(["it"])
    run(at)
    assert at.query_params["as"] == "it"
    assert "it.md" in column(at, "keyword")
    assert "hr.md" not in column(at, "keyword")
    assert any("wb-column" in b for b in bodies(at))
