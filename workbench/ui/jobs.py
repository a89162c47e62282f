"""Sweeps and comparisons that run beside the page: one a session, with progress, a stop, and the result.

The work is a thread that calls nothing of the page. How far it is, the page's script asks the server beside the app (`routes`),
and at the end it has the page drawn again. Streamlit's own timers (`run_every`) will not do: each of their requests carries the
values of all widgets, so that one which is under way while a run changes a value brings the old one back.
"""

from __future__ import annotations

import functools
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import streamlit as st

from workbench.errors import JudgmentError, WorkbenchError
from workbench.judgments.qrels import Judgments, load_judgments
from workbench.markup import visible
from workbench.records import Progress
from workbench.ui.components import cards

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_WATCHED = "wb.watched"
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


@dataclass(frozen=True, slots=True)
class Report:
    """How far something is: in words, as a share from 0 to 1, and whether it is going on."""

    words: str
    share: float
    running: bool


class _Watched:
    """What a session's page shows the progress of, under a name that nobody can guess."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(16)
        self.report: Callable[[], Report] = lambda: Report("", 0.0, False)
        _watched[self.token] = self


_watched: WeakValueDictionary[str, _Watched] = WeakValueDictionary()


def follow(name: str, report: Callable[[], Report]) -> None:
    """Draw how far something is, under a name of the session's. The page's script keeps it up to date by `report`, which calls
    nothing of Streamlit, and has the page drawn again when it is over.
    """
    watched = st.session_state.setdefault(_WATCHED, {}).setdefault(name, _Watched())
    watched.report, now = report, report()
    st.html(
        f'<p class="wb-live" data-wb-progress="{watched.token}"><progress max="1" value="{now.share:.3f}" '
        f'aria-label="Progress"></progress> <span>{visible(now.words)}</span></p>',
        width="content",
    )


def report_of(token: str) -> Report | None:
    watched = _watched.get(token)
    return None if watched is None else watched.report()


def busy(name: str) -> bool:
    job = st.session_state.get(name)
    return isinstance(job, Job) and job.running


def watch(name: str, prefix: str) -> Any:
    """Progress and a stop while the session's job is running, its error, or its result (returned; None: none yet). `prefix` is
    that of the keys of its widgets.
    """
    job = st.session_state.get(name)
    if not isinstance(job, Job):
        return None
    if job.running:
        with st.container(horizontal=True, vertical_alignment="center"):
            follow(name, functools.partial(_report, job))
            st.button("Stop", key=prefix + "stop", on_click=job.stop, help="Ends with what is done.")
        return None
    if job.error is not None:
        st.html(cards.alert("", job.error.message, job.error.remedy))
    return job.result


def _report(job: Job) -> Report:
    now = job.progress
    counts = f": {now.done:,} of {now.total:,}" if now.total else ""
    return Report(
        f"{now.step.capitalize()}{counts}{now.left and ', '}{now.left}", share(now.done, now.total), job.running
    )


def share(done: int, total: int) -> float:
    return min(done / total, 1.0) if total else 0.0


def read_judged(corpus: Corpus, name: str, files: bool) -> Judgments:
    """Judgments by the name of a query set, or else, where `files` allows it, from a file or folder of this machine. Raises
    JudgmentError where there is neither.
    """
    if name in corpus.judging.sets.names():
        return corpus.judgments(name)
    if not files:
        raise JudgmentError(f"There is no query set called {name!r}", "Choose one of those that are offered")
    return load_judgments(Path(name).expanduser())
