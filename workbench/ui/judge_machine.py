"""The part of the Judge page that lets a model grade, and shows how far it agrees with people before anybody uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from workbench import settings
from workbench.errors import WorkbenchError
from workbench.judgments.agreement import with_people
from workbench.judgments.judging import graded_by
from workbench.judgments.log import MACHINE
from workbench.judgments.machine import MachineReport, judge_by_machine
from workbench.judgments.pooling import make_pool
from workbench.records import Progress
from workbench.ui import cards
from workbench.ui.controls import PREFIX
from workbench.ui.text import plain

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_KEY = PREFIX + "judge.machine."


def draw(corpus: Corpus, name: str, plans: tuple[str, ...], depth: int) -> None:
    """Draw the closed section; what it needs is said where it is not there."""
    with st.expander("Let a model grade", key=_KEY + "section"):
        if not str(settings.get("endpoint_url")).strip():
            st.text(
                "Set endpoint_url (and endpoint_key) in the settings to an OpenAI-compatible endpoint first. Passages are "
                "sent there when you press the button, and never before."
            )
            return
        st.text(
            "Its grades are kept under the judge machine:MODEL and count only where that judge is named. Judge some of the "
            "same passages yourself, and see here how far it agrees with you."
        )
        with st.form(_KEY + "form", border=False):
            model = st.text_input("Model", key=_KEY + "model", max_chars=150)
            pressed = st.form_submit_button("Grade the pool", key=_KEY + "start", disabled=not (name and plans))
        if pressed and model.strip():
            _run(corpus, name, model.strip(), plans, depth)
        _agreement(corpus, name)


def _run(corpus: Corpus, name: str, model: str, plans: tuple[str, ...], depth: int) -> None:
    bar = st.progress(0.0, "Collecting passages")

    def show(report: Progress) -> None:
        word = "Collecting passages: query" if report.step == "pool" else "Graded or left out:"
        bar.progress(min(report.done / max(report.total, 1), 1.0), f"{word} {report.done} of {report.total}")

    try:
        report = _graded(corpus, name, model, plans, depth, show)
    except WorkbenchError as exc:
        st.html(cards.alert("The model did not grade", exc.message, exc.remedy))
        return
    finally:
        bar.empty()
    st.html(cards.alert("", report.words, "") if report.failed else cards.note(report.words + "."))


def _graded(
    corpus: Corpus, name: str, model: str, plans: tuple[str, ...], depth: int, show: Callable[[Progress], None]
) -> MachineReport:
    from workbench.assist.endpoint import PREFIX as ENDPOINT
    from workbench.assist.endpoint import Endpoint

    endpoint = Endpoint(model.removeprefix(ENDPOINT))
    judging = corpus.judging
    queries = judging.queries(name)
    pool = make_pool(
        lambda query, plan, wanted: corpus.search(query.text, query.keywords, plan=plan, limit=wanted).hits,
        judging, queries, plans, depth, show,
    )  # fmt: skip
    return judge_by_machine(judging, endpoint, name, queries, pool, progress=show)


def _agreement(corpus: Corpus, name: str) -> None:
    items = graded_by(corpus.judging.located(name)) if name else []
    for judge in sorted({j for grades in items for j in grades if j.startswith(MACHINE)}):
        told = with_people(items, judge)
        st.text(
            plain(f"{judge}: nobody has judged any of its passages too.", 300)
            if told is None
            else plain(told.words, 300)
        )
