"""The Tune and Compare pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from app_for_tests import all_text, bodies, draw_scores, page, run
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.errors import JudgmentError
from workbench.judgments.exchange import import_judgments
from workbench.records import Progress
from workbench.ui import jobs
from workbench.ui.state import from_params
from workbench.ui.views import compare

Open = Callable[..., AppTest]


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Judgments of the small corpus: eight queries, one of whose texts is hostile."""
    lines = ["query_id,query,document,grade"]
    asked = {
        "how do retries work": "retries.md",
        "timeouts": "timeouts.md",
        "rate limits": "limits.md",
        "kettle": "kettle.md",
    }
    asked |= {
        "good tea": "tea.md",
        "wait longer": "backoff.py",
        "<script>pelican</script>": "hostile.md",
        "note 3": "notes/note-03.md",
    }
    lines += [f"q{n},{text},{path},1" for n, (text, path) in enumerate(asked.items())]
    path = tmp_path / "judged.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def finished(at: AppTest, name: str = "tune") -> AppTest:
    job = at.session_state[f"wb.{name}.job"]
    job.wait(60)
    assert not job.running
    assert job.error is None, str(job.error)
    return run(at)


def test_without_judgments_the_page_says_how_to_get_some(open_app: Open, small_corpus: Path) -> None:
    for name in ("tune", "compare"):
        at = page(open_app, small_corpus, name)
        assert any("workbench judge make" in c.value for c in at.code)


def test_plans_are_tried_and_the_best_goes_to_the_search_page(open_app: Open, small_corpus: Path, judged: Path) -> None:
    """A run in a thread, its verdict, curve, bars and table; the best plan becomes the plan of the Search page."""
    at = page(open_app, small_corpus, "tune")
    at.text_input(key="wb.w.tune.path").set_value(str(judged))
    run(at)
    at.multiselect(key="wb.w.tune.fields").set_value(["fusion.alpha", "fusion.normalise"])
    run(at)
    at.text_input(key="wb.w.tune.values.fusion.alpha").set_value("0,1")
    run(at)
    at.button(key="wb.w.tune.run").click()
    run(at)
    finished(at)
    made = at.session_state["wb.tune.job"].result
    assert made.verdict in all_text(at)
    assert "<script>pelican" not in "".join(bodies(at))
    at.button(key="wb.w.tune.use").click()
    at.run()
    assert at.session_state["wb.state"].plan == made.best


def measured(at: AppTest) -> str:
    """The figure's line, when its retrieval is done."""
    kept = at.session_state["wb.live"]
    if kept.job is not None:
        kept.job.wait(60)
        assert kept.job.error is None, str(kept.job.error)
    run(at)
    (said,) = (b for b in bodies(at) if 'class="wb-live" role="status"' in b)
    return said


def test_the_figure_stands_beside_the_sliders(open_app: Open, small_corpus: Path, judged: Path) -> None:
    """Retrieved once; a slider then changes the figure without another retrieval."""
    at = page(open_app, small_corpus, "tune")
    at.text_input(key="wb.w.tune.path").set_value(str(judged))
    run(at)
    at.button(key="wb.w.live.now").click()
    run(at)
    assert "the same" in measured(at)
    job = at.session_state["wb.live"].job
    at.slider(key="wb.w.vector.threshold").set_value(0.4)
    run(at)
    with wb.open_corpus(small_corpus) as corpus:
        plan = at.session_state["wb.state"].moved
        expected = corpus.evaluate(wb.load_judgments(judged), plan, "nDCG@10").mean("nDCG@10")
    assert f"nDCG@10 {expected:.3f}" in measured(at)
    assert at.session_state["wb.live"].job is job


@pytest.mark.slow
def test_the_search_page_shows_the_figure_once_a_setting_is_moved(
    open_app: Open, own_corpus: Path, judged: Path
) -> None:
    """With a judged set: nothing is retrieved until then; the figure is that of an evaluation; `none` takes it away."""
    with wb.open_corpus(own_corpus) as corpus:
        import_judgments(corpus.judging, judged, "tea")
    at = open_app(own_corpus, q="kettle")
    at.session_state["wb.w.section.live"] = True
    run(at)
    assert any("Move a setting to see nDCG@10 over 8 judged queries" in b for b in bodies(at))
    assert at.session_state["wb.live"].job is None
    at.slider(key="wb.w.vector.threshold").set_value(0.45)
    run(at)
    said = measured(at)
    with wb.open_corpus(own_corpus) as corpus:
        plan = at.session_state["wb.state"].moved
        expected = corpus.evaluate(corpus.judgments("tea"), plan, "nDCG@10").mean("nDCG@10")
    assert f"nDCG@10 {expected:.3f}" in said
    at.slider(key="wb.w.keyword.k1").set_value(2.0)
    run(at)
    with wb.open_corpus(own_corpus) as corpus:
        plan = at.session_state["wb.state"].moved
        expected = corpus.evaluate(corpus.judgments("tea"), plan, "nDCG@10").mean("nDCG@10")
    assert f"nDCG@10 {expected:.3f}" in measured(at)
    at.selectbox(key="wb.w.live.set").set_value("none")
    run(at)
    assert not any("wb-live" in b for b in bodies(at) if "<style>" not in b)


def test_without_judgments_the_search_page_says_where_they_come_from(open_app: Open, small_corpus: Path) -> None:
    """No figure, no retrieval, one sentence in its section."""
    at = open_app(small_corpus, q="kettle")
    at.session_state["wb.w.section.live"] = True
    run(at)
    assert "There are no judged queries yet" in all_text(at)
    assert "wb.live" not in at.session_state


def test_a_threshold_is_chosen_by_what_it_loses_and_taken_over(
    open_app: Open, small_corpus: Path, judged: Path
) -> None:
    """The scores are drawn; the share that may be lost moves the threshold; the button puts it into the shared plan."""
    at = page(open_app, small_corpus, "tune")
    draw_scores(at, judged)
    found = at.session_state["wb.tune.scores"].result.found["vector"]
    at.slider(key="wb.w.tune.scores.lose").set_value(0.0)
    run(at)
    assert f"0 of {len(found.relevant)} relevant (0.0%)" in all_text(at)
    at.button(key="wb.w.tune.scores.use").click()
    at.run()
    assert at.session_state["wb.state"].plan["vector.threshold"] == found.advised(0.0)
    at.selectbox(key="wb.w.tune.scores.source").set_value("fused")
    run(at)
    found = at.session_state["wb.tune.scores"].result.found["fused"]
    at.button(key="wb.w.tune.scores.use").click()
    at.run()
    assert at.session_state["wb.state"].plan["fusion.threshold"] == found.advised(0.0)


def compare_with_rrf(at: AppTest) -> None:
    """Choose `rrf` as the second plan, press the button, and wait."""
    at.selectbox(key="wb.w.compare.second").set_value("rrf")
    run(at)
    at.button(key="wb.w.compare.run").click()
    run(at)
    finished(at, "compare")


def test_two_plans_are_compared(open_app: Open, small_corpus: Path, judged: Path) -> None:
    """The verdict, agreement, and the queries as links."""
    at = page(open_app, small_corpus, "compare")
    at.text_input(key="wb.w.compare.path").set_value(str(judged))
    run(at)
    compare_with_rrf(at)
    assert "Agreement of the two lists" in all_text(at)
    assert any('href="./?q=' in body for body in bodies(at))


def test_plans_are_compared_without_judgments(open_app: Open, small_corpus: Path) -> None:
    """On typed queries: agreement and the queries that differ most, each a link that restores both plans; no verdict."""
    at = page(open_app, small_corpus, "compare")
    at.text_area(key="wb.w.compare.queries").set_value("kettle\nrate limits\n\nkettle\n")
    run(at)
    compare_with_rrf(at)
    assert "over 2 queries without judgments" in all_text(at)
    assert not at.dataframe
    (table,) = (b for b in bodies(at) if "only the second has" in b)
    link = unescape(re.findall(r'href="\./\?([^"]+)"', table)[0])
    state, said = from_params(dict(parse_qsl(link)))
    assert said == ()
    assert [c.plan for c in state.columns] == [wb.Plan.parse("default"), wb.Plan.parse("rrf")]


def test_what_only_one_plan_finds_is_a_link_to_the_document() -> None:
    """Two documents, each once; characters of a passage say nothing to a reader, the name of a record does."""
    shown = compare.found_only(["a.md#0-377", "a.md#380-500", "h.jsonl#turn-4#0-9", "c.md"], "rain & snow")
    assert re.findall(r"<bdi>(.*?)</bdi>", shown) == ["a.md", "h.jsonl#turn-4"]
    assert 'href="document?q=rain+%26+snow&amp;path=h.jsonl%23turn-4"' in shown


def test_a_job_says_its_faults_and_can_be_stopped(sample: wb.Corpus) -> None:
    """Errors on purpose and others become a sentence; a stop is seen by the work."""

    def fails(tell: object, stop: object) -> None:
        raise ValueError("broken")

    job = jobs.Job(fails)
    job.wait(10)
    assert job.error is not None
    assert "broken" in str(job.error)

    def waits(tell: Callable[[Progress], None], stop: Callable[[], bool]) -> str:
        while not stop():
            tell(Progress("waiting", 1, 2))
        return "stopped"

    job = jobs.Job(waits)
    assert job.running
    job.stop()
    job.wait(10)
    assert job.result == "stopped"
    with pytest.raises(JudgmentError, match="no query set"):
        jobs.read_judged(sample, "/etc/passwd", files=False)
