"""Several encoders on the pages: each is a source with its own control, badge and colour."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from app_for_tests import TEXTS, all_text, column, draw_scores, go, run
from small_models import make_static
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.charts import source_colour

Open = Callable[..., AppTest]
PLAN = "default sources=keyword,vector,vector:table vector.threshold=off"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A corpus whose own encoder is the hashing one; `table`, a static embedding, is the other."""
    folder = tmp_path_factory.mktemp("encoders")
    st.get_option("server.address")  # the configuration is that of the folder where it is first asked for
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_static(folder / "table", TEXTS.values())
        (folder / "source").mkdir()
        for name, text in TEXTS.items():
            if "/" not in name and name != "long.txt":
                (folder / "source" / name).write_text(text, encoding="utf-8")
        wb.index(["source"], corpus="corpus", encoder=["hashing", "table"], workers=0)
        yield folder / "corpus"


def test_the_search_page_has_a_slider_and_a_badge_for_each_encoder(open_app: Open, both: Path) -> None:
    at = open_app(both, q="retry request", plan=PLAN)
    sources = at.button_group(key="wb.w.sources")
    assert sources.options == ["grep", "keyword", "vector", "vector:table"]
    assert sources.value == ["keyword", "vector", "vector:table"]
    hybrid = column(at, "hybrid")
    assert "vector:table" in hybrid
    assert source_colour("vector:table").lower() in hybrid.lower()
    assert source_colour("vector:table") != source_colour("vector")
    at.slider(key="wb.w.fusion.weights.vector:table").set_value(0.0)
    assert column(run(at), "hybrid") != hybrid
    assert "vector:table" in column(at, "vector")


def cuts(at: AppTest) -> list[str]:
    """What is said under each threshold slider, from the top."""
    return [c.value for c in at.caption if c.value.startswith(("Drops ", "Keeps "))]


def test_each_encoder_has_its_own_threshold_in_any_metric(open_app: Open, both: Path) -> None:
    at = open_app(both, q="retry request", plan="default sources=keyword,vector,vector:table vector.threshold=0.6")
    assert [at.slider(key=f"wb.w.threshold.{s}").value for s in ("vector", "vector:table")] == [0.6, 0.6]
    drawn = [e.proto.body for e in at.get("html") if 'class="wb-histogram"' in e.proto.body]
    assert [f"by {s}, cut at 0.6" in body for s, body in zip(("vector", "vector:table"), drawn, strict=True)] == [
        True
    ] * 2
    first, second = cuts(at)
    at.slider(key="wb.w.threshold.vector:table").set_value(0.1)
    at = run(at)
    assert at.query_params["plan"].endswith("vector.threshold=0.6 threshold.vector:table=0.1")
    assert cuts(at)[0] == first
    assert cuts(at)[1] != second
    assert cuts(at)[1].endswith(" 0 kept.")
    at = run(at)  # a slider draws the answers again; the button comes with the page
    at.button(key="wb.w.threshold.vector:table.auto").click()
    assert cuts(run(at)) == [first, second]
    at.toggle(key="wb.w.cut.vector").set_value(False)
    at = run(at)
    assert "threshold.vector=off" in at.query_params["plan"]
    assert cuts(at)[0].startswith("Keeps all ")
    at.toggle(key="wb.w.cut.vector").set_value(True)
    assert run(at).slider(key="wb.w.threshold.vector").value == 0.6
    at = open_app(both, q="retry request", plan=f"{PLAN} threshold.vector:table=0.25")
    before = column(at, "hybrid")
    at.selectbox(key="wb.w.vector.metric").set_value("cosine")
    at = run(at)
    assert at.slider(key="wb.w.threshold.vector:table").value == pytest.approx(0.292893)
    assert "vector.threshold=off" in at.query_params["plan"]
    assert re.findall('data-chunk="[^"]*"', column(at, "hybrid")) == re.findall('data-chunk="[^"]*"', before)


def test_the_tune_page_advises_each_encoder(open_app: Open, both: Path, tmp_path: Path) -> None:
    judged = tmp_path / "judged.csv"
    judged.write_text("query_id,query,document,grade\n1,retry request,retries.md,1\n2,kettle water,kettle.md,1\n")
    at = open_app(both, plan=PLAN)
    go(at, "tune")
    run(at)
    draw_scores(at, judged)
    at.slider(key="wb.w.tune.scores.lose").set_value(0.0)
    at.selectbox(key="wb.w.tune.scores.source").set_value("vector:table")
    run(at)
    found = at.session_state["wb.tune.scores"].result.found
    advised = {s: found[s].advised(0.0) for s in ("vector", "vector:table")}
    shown = all_text(at)
    for source, value in advised.items():
        assert "".join(f"<td><bdi>{text}</bdi></td>" for text in (source, "off", f"{value:g}")) in shown
    at.button(key="wb.w.tune.scores.use").click()
    at.run()
    plan = at.session_state["wb.state"].plan
    assert (plan.threshold("vector"), plan.threshold("vector:table")) == ("off", advised["vector:table"])
    at.button(key="wb.w.tune.scores.use_all").click()
    at.run()
    plan = at.session_state["wb.state"].plan
    assert {s: plan.threshold(s) for s in plan.vectors} == advised
    assert plan["vector.threshold"] == "off"
