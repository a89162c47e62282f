"""The Compare page: plans measured on the same queries, with and without judgments, from its address, over time."""

from collections.abc import Callable
from pathlib import Path

import pytest
from app_for_tests import all_text, bodies, finished, page, run
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.judgments.exchange import import_judgments

Open = Callable[..., AppTest]
KEY = "wb.w.compare."


@pytest.fixture
def tea(own_corpus: Path, judged: Path) -> Path:
    """The small corpus with a judged query set."""
    with wb.open_corpus(own_corpus) as corpus:
        import_judgments(corpus.judging, judged, "tea")
    return own_corpus


def board(at: AppTest) -> str:
    (table,) = (b for b in bodies(at) if "Plans and their measures" in b)
    return table


def test_a_leaderboard_opens_from_its_address_and_is_kept(open_app: Open, tea: Path) -> None:
    """Plans, measures, baseline and open query of the address; the means are those of an evaluation; what is saved is a
    snapshot and a point of the measures over time.
    """
    asked = {"plans": "default\nrrf\ndefault sources=keyword", "measures": "RR@10,P@5", "base": "2", "open": "q3"}
    at = finished(page(open_app, tea, "compare", **asked), "compare")
    with wb.open_corpus(tea) as corpus:
        expected = corpus.evaluate(corpus.judgments("tea"), "rrf", "RR@10").mean("RR@10")
    text = board(at)
    assert f"<b>{expected:.3f}</b>" in text
    assert [p in text for p in ("default", "rrf", "default sources=keyword")] == [True] * 3
    assert at.selectbox(key=KEY + "measure").options == ["RR@10", "P@5"]
    (box,) = (b for b in bodies(at) if 'class="wb-verdict' in b)
    assert "p is corrected for 2 comparisons" in box
    assert list(at.dataframe[0].value.columns) == ["query", "A", "B", "difference", "rbo", "lost", "won"]
    assert any("wb-pair-lists" in b and "A: default sources=keyword" in b for b in bodies(at))
    at.text_input(key=KEY + "note").set_value("before the move")
    at.button(key=KEY + "save").click()
    run(at)
    (saved,) = (tea / "snapshots").iterdir()
    assert wb.Snapshot.load(saved).title == "before the move"
    at.session_state["wb.w.section.compare.history"] = True
    run(at)
    assert len(at.get("plotly_chart")) == 2
    with wb.open_corpus(tea) as corpus:
        assert len(corpus.measured()) == 6
    at.button(key=KEY + "both").click()
    run(at)
    state = at.session_state["wb.state"]
    assert (state.query, state.moves) == ("kettle", 2)
    assert state.columns[0].plan == wb.Plan.parse("default sources=keyword")


def test_typed_queries_compare_lists_alone(open_app: Open, own_corpus: Path) -> None:
    at = page(open_app, own_corpus, "compare")
    at.session_state["wb.w.section.compare.typed"] = True
    run(at)
    at.text_area(key=KEY + "queries").set_value("kettle\nrate limits\n\nkettle\n")
    run(at)
    at.multiselect(key=KEY + "plans").set_value(["default", "rrf"])
    run(at)
    assert at.button(key=KEY + "run").label == "Measure 2 plans on 2 queries"
    at.button(key=KEY + "run").click()
    run(at)
    finished(at, "compare")
    assert "judged@10" not in board(at)
    assert len(at.dataframe[0].value) == 2
    assert at.query_params["plans"] == "default\nrrf"


def test_a_plan_that_cannot_be_read_is_said_and_nothing_runs(open_app: Open, tea: Path) -> None:
    at = page(open_app, tea, "compare", plans="default fusion.q=1")
    assert "no plan field called" in all_text(at)
    assert "wb.compare.job" not in at.session_state


def test_the_tune_page_says_what_it_will_try_and_its_button_follows_the_verdict(open_app: Open, tea: Path) -> None:
    at = page(open_app, tea, "tune", plan="default fusion.alpha=1")
    at.multiselect(key="wb.w.tune.fields").set_value(["fusion.alpha"])
    run(at)
    at.text_input(key="wb.w.tune.values.fusion.alpha").set_value("0,0.5,0.8,1")
    run(at)
    assert at.text_input(key="wb.w.tune.values.fusion.alpha").label == "Fusion · alpha: vector's share"
    assert any("4 plans on 8 queries, about" in c.value for c in at.caption)
    at.button(key="wb.w.tune.run").click()
    run(at)
    finished(at)
    made = at.session_state["wb.tune.job"].result
    assert not made.difference.significant
    (box,) = (b for b in bodies(at) if 'class="wb-verdict' in b)
    assert "wb-is-even" in box
    assert f"<b>{made.difference.first_mean:.3f}</b>" in box
    assert "No reason to change from" in box
    assert "wb.w.tune.use" not in {b.key for b in at.button}
    at.button(key="wb.w.tune.both").click()
    run(at)
    assert [c.plan for c in at.session_state["wb.state"].columns] == [made.baseline, made.best]
    at = page(open_app, tea, "tune")
    at.text_input(key="wb.w.tune.values.fusion.alpha").set_value("0,x")
    run(at)
    assert any("must be a number from 0 to 1" in c.value for c in at.caption)
