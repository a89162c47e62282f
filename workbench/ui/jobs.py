"""Sweeps and comparisons that run beside the page: one a session, with progress, a stop, and the result.

The page draws what a `Job` says twice a second; the work itself is a thread that calls nothing of the page.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.errors import JudgmentError, WorkbenchError
from workbench.judgments.qrels import Judgments, load_judgments
from workbench.records import Progress
from workbench.ui.components import cards

if TYPE_CHECKING:
    from workbench.corpus import Corpus

Work = Callable[[Callable[[Progress], None], Callable[[], bool]], Any]


class Job:
    """One piece of work in a thread; `work` takes a progress callback and a function that says whether to stop.

    Attributes:
        progress: The latest report.
        result: What the work returned; None while it runs.
        error: What it failed with, for the page to say.
    """

    def __init__(self, work: Work) -> None:
        self.progress = Progress("start", 0, 0)
        self.result: Any = None
        self.error: WorkbenchError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,), name="workbench-tune", daemon=True)
        self._thread.start()

    def _run(self, work: Work) -> None:
        def report(progress: Progress) -> None:
            self.progress = progress

        try:
            self.result = work(report, self._stop.is_set)
        except WorkbenchError as exc:
            self.error = exc
        except KeyboardInterrupt:
            self.error = WorkbenchError("Stopped before there was a result", "Start it again")
        except Exception as exc:  # noqa: BLE001 - a thread's fault must reach the page, in a sentence
            self.error = WorkbenchError(f"The run failed: {type(exc).__name__}: {exc}", "Run `workbench doctor`")

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)


def busy(name: str) -> bool:
    job = st.session_state.get(name)
    return isinstance(job, Job) and job.running


def watch(name: str, prefix: str) -> Any:
    """Progress and a stop while the session's job is running, its error, or its result (returned; None: none yet). The page is
    drawn once more when it ends. `prefix` is that of the keys of its widgets.
    """
    job = st.session_state.get(name)
    if not isinstance(job, Job):
        return None
    if job.running:
        _watching(job, prefix)
        return None
    if job.error is not None:
        st.html(cards.alert("", job.error.message, job.error.remedy))
    return job.result


@st.fragment(run_every=0.6)
def _watching(job: Job, prefix: str) -> None:
    """Drawn while a run is on: a page on which none is asks the server nothing."""
    if not job.running:
        st.rerun()
    report = job.progress
    share = report.done / report.total if report.total else 0.0
    left = f", {report.left}" if report.left else ""
    st.progress(min(1.0, share), f"{report.step}: {report.done:,} of {report.total:,}{left}")
    st.button("Stop", key=prefix + "stop", on_click=job.stop, help="Ends with what is done.")


def read_judged(corpus: Corpus, name: str, files: bool) -> Judgments:
    """Judgments by the name of a query set, or else, where `files` allows it, from a file or folder of this machine. Raises
    JudgmentError where there is neither.
    """
    if name in corpus.judging.sets.names():
        return corpus.judgments(name)
    if not files:
        raise JudgmentError(f"There is no query set called {name!r}", "Choose one of those that are offered")
    return load_judgments(Path(name).expanduser())
