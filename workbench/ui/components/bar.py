"""The bar over every page, which never moves: the open corpus, the active query set, the plan with what differs from its
preset, the plan's figure on the judged queries, and undo.

The router draws it before the page; the plan and the figure follow every slider, so they are a part of their own, drawn when
the page's answers are there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.errors import counted
from workbench.markup import attribute, plain, visible
from workbench.plan import fields as plan_fields
from workbench.plan.plan import Plan, preset
from workbench.ui import resources
from workbench.ui import state as app_state
from workbench.ui.components import boxes, cards, controls, live, tables
from workbench.ui.components.tables import Html

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from workbench.corpus import Corpus


KEYS = '<button type="button" class="wb-copy wb-keys-hint" data-wb-keys="1" title="The keys (?)"><kbd>?</kbd> Keys</button>'


_AGAIN = "export default (component) => { window.__workbenchAgain = () => component.setTriggerValue('again', true); };"


def draw(corpus: Corpus | None) -> DeltaGenerator:
    """The bar without what follows the sliders; returns the place of that, for `follow`."""
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="small", key="wb-top"):
        st.html(corpus_html(corpus, resources.corpus_path()), width="content")
        if corpus is not None:
            live.box(corpus)
        place = st.container()
        st.html(KEYS, width="content")
        help = "Undo the last change of a setting, the query, a deletion or a grade. Key: u"
        key, icon = controls.PREFIX + "undo", ":material/undo:"
        st.button("Undo", key=key, icon=icon, on_click=app_state.undo, help=help, type="tertiary")
        _draw_again()
    return place


@functools.cache
def _again() -> Callable[..., Any]:
    """What has the page drawn again when work that it shows is done (`jobs.follow`). Not a button, which closes open boxes."""
    from streamlit.components import v2

    return v2.component("workbench_again", html="<span hidden></span>", js=_AGAIN, isolate_styles=False)


@st.fragment
def _draw_again() -> None:
    """In a fragment: a request for the whole page would cut short what a key has just begun."""
    if _again()(key="wb.again", on_again_change=lambda: None).again:
        st.rerun()


def name_of(path: Path) -> str:
    """What a corpus is called: its folder, or that around a hidden one."""
    path = path.absolute()
    return path.parent.name if path.name.startswith(".") and path.parent.name else path.name


def corpus_html(corpus: Corpus | None, path: Path) -> str:
    name = visible(plain(name_of(path), 40))
    if corpus is None:
        return f'<div class="wb-corpus"><b>{name}</b> <span class="wb-dim">not indexed yet</span></div>'
    info = resources.info(corpus)
    number, _, _ = str(info["generation"]).partition("-")
    facts = f'{info["documents"]:,} documents<span class="wb-wide"> · generation {number.lstrip("0")}</span>'
    where = attribute(f"{plain(str(path.absolute()), 300)}, generation {info['generation']}")
    return f'<div class="wb-corpus" title="{where}"><a href="corpus"><b>{name}</b></a> <span class="wb-dim">{facts}</span></div>'


def plan_label(plan: Plan, moves: int) -> str:
    """`default + 3 changes`, with the column whose plan it is where it is not the shared one."""
    count = len(plan.changes())
    changes = f" + {counted(count, 'change')}" if count else ""
    return f"{f'Column {moves}: ' if moves else ''}{plan.preset}{changes}"


@controls.part("bar")
def follow(corpus: Corpus) -> None:
    state = app_state.current()
    plan = state.moved
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="small", key="wb-plan"):
        with controls.lazy("Plan", "plan", "What differs from the preset.", ":material/tune:") as opened:
            if opened.open:
                st.html(plan_html(plan))
                plan_files(plan)
                controls.paste()
                boxes.save_plan()
        st.html(f'<span class="wb-plan-label">{visible(plan_label(plan, state.moves))}</span>', width="content")
        controls.reset("reset", "bar.reset", type="tertiary")
        live.figure(corpus)


def plan_html(plan: Plan) -> str:
    """The plan's text form with a copy button, and a table of what differs from its preset, in the fields' order."""
    text, base = str(plan), preset(plan.preset)
    rows = [
        (
            Html(f"<code>{visible(n)}</code>"),
            plan_fields.show(base[n]),
            Html(f"<b>{visible(plan_fields.show(value))}</b>"),
        )
        for n, value in plan.changes().items()
    ]
    changed = (
        tables.table(("Setting", plan.preset, "Now"), rows)
        if rows
        else "<p class=wb-msg>Nothing differs from the preset.</p>"
    )
    return (
        f'<div class="wb-plan"><div class="wb-planline"><code class="wb-plantext">{visible(text)}</code>'
        f"{cards.copy_button(text, 'Copy the plan')}</div>{changed}</div>"
    )


def plan_files(plan: Plan) -> None:
    st.code(plan.to_yaml(), language=None, wrap_lines=True)
    st.download_button(
        "Save as a file",
        plan.to_yaml(),
        f"{plan.preset}.yaml",
        "application/yaml",
        key="wb.w.plan.file",
        on_click="ignore",
        help="A plan file, for `workbench search QUERY --plan-file plan.yaml` and notebooks.",
    )
