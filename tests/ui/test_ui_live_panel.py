"""The figure beside the sliders: which plan it is compared with, also when that is chosen while queries are retrieved."""

from __future__ import annotations

from pathlib import Path

import pytest

import workbench as wb
from workbench.errors import NeedsSearch
from workbench.plan.plan import Plan
from workbench.records import Progress
from workbench.ui import jobs
from workbench.ui.components import live

START, MOVED, HERE, DEEP = map(Plan.parse, ("default", "default fusion.alpha=0.1", "rrf", "default keyword.k1=2"))


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Three queries, of which plans answer one differently."""
    asked = {"tea kettle water": "tea.md", "rate limits": "limits.md", "wait note": "backoff.py"}
    path = tmp_path / "judged.csv"
    lines = [f"q{n},{text},{file},1" for n, (text, file) in enumerate(asked.items())]
    path.write_text("\n".join(["query_id,query,document,grade", *lines]) + "\n")
    return path


def compared(corpus: wb.Corpus, judged: Path, start: Plan, plan: Plan) -> list[float]:
    """What the figure of a plan must say against another one."""
    judgments = wb.load_judgments(judged)
    made = [corpus.evaluate(judgments, plan=p, measures=["RR"]).column("RR") for p in (start, plan)]
    return [float(made[1].mean()), float((made[1] - made[0]).mean())]


def work(corpus: wb.Corpus, kept: live._Beside, plan: Plan, pressed: Plan) -> None:
    """The retrieval for a plan; "Compare from here" is pressed at its first report."""
    told: list[Progress] = []

    def tell(report: Progress) -> None:
        told.append(report)
        if len(told) == 1:
            live._start_from(kept, pressed)

    kept.done = False
    kept.job = jobs.Job(lambda _tell, stop: live._work(corpus, kept, plan, True)(tell, stop))
    kept.job.wait(60)
    assert kept.job.error is None
    assert told


@pytest.mark.parametrize("here", [HERE, DEEP])
def test_compare_from_here_holds_when_pressed_during_the_retrieval(
    small_corpus: Path, judged: Path, here: Plan
) -> None:
    """In the first retrieval and in a later one, by a plan that is retrieved and by one that is not yet."""
    with wb.open_corpus(small_corpus) as corpus:
        kept = live._Beside((), str(judged), "RR", START)
        work(corpus, kept, MOVED, here)
        assert kept.live is not None
        figure = kept.live.figure(MOVED)
        assert [figure.mean, figure.difference] == pytest.approx(compared(corpus, judged, here, MOVED))
        assert (kept.start, kept.live.figure(here).difference) == (here, 0)
        other = Plan.parse("default keyword.b=0.9")
        work(corpus, kept, other, START)
        assert kept.live.figure(other).difference == pytest.approx(compared(corpus, judged, START, other)[1])


def test_a_plan_that_is_not_retrieved_is_no_start_where_nothing_is_on(small_corpus: Path, judged: Path) -> None:
    """The figure goes on being compared with the plan before, and says why."""
    with wb.open_corpus(small_corpus) as corpus:
        kept = live._Beside((), str(judged), "RR", START)
        work(corpus, kept, MOVED, START)
        with pytest.raises(NeedsSearch):
            live._start_from(kept, DEEP)
        assert kept.start == START
