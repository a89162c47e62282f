"""The Tune and Compare pages."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from app_for_tests import all_text, bodies, page, run
from streamlit.testing.v1 import AppTest

import workbench as wb
from workbench.errors import JudgmentError
from workbench.judgments.exchange import import_judgments
from workbench.records import Progress
from workbench.ui import jobs
from workbench.ui.state import from_params

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


def measured(at: AppTest) -> str:
    """The figure's line, when its retrieval is done."""
    kept = at.session_state["wb.live"]
    if kept.job is not None:
        kept.job.wait(60)
        assert kept.job.error is None, str(kept.job.error)
    run(at)
    (said,) = (b for b in bodies(at) if 'class="wb-live" role="status"' in b)
    return said


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


def compare_with_rrf(at: AppTest) -> None:
    """Choose `rrf` as the second plan, press the button, and wait."""
    at.selectbox(key="wb.w.compare.second").set_value("rrf")
    run(at)
    at.button(key="wb.w.compare.run").click()
    run(at)
    finished(at, "compare")


def test_two_plans_are_compared_with_and_without_judgments(open_app: Open, small_corpus: Path, judged: Path) -> None:
    at = page(open_app, small_corpus, "compare")
    at.text_input(key="wb.w.compare.path").set_value(str(judged))
    run(at)
    compare_with_rrf(at)
    assert "Agreement of the two lists" in all_text(at)
    assert any('href="./?q=' in body for body in bodies(at))
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


def test_a_job_says_its_faults_and_can_be_stopped(sample: wb.Corpus) -> None:
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
