"""History, saved searches and saved plans: shown, opened, kept, deleted, and deletions taken back."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.plan.plan import Plan
from workbench.ui import resources, undo
from workbench.ui import state as app_state
from workbench.ui.controls import PREFIX, lazy
from workbench.ui.state import AppState, from_params
from workbench.ui.text import plain

if TYPE_CHECKING:
    from workbench.saved.searches import Kept

SHOWN = 30
_LAST, _FAILED = "wb.asked", "wb.history-failed"


def asked(state: AppState) -> None:
    """Put a search into the history, once for each that is asked; where that cannot be, the box says why."""
    what = (state.query, state.keywords, state.filters, state.context)
    if st.session_state.get(_LAST) == what:
        return
    st.session_state[_LAST] = what
    try:
        resources.searches().asked(state.to_params())
        st.session_state.pop(_FAILED, None)
    except WorkbenchError as exc:
        st.session_state[_FAILED] = str(exc)


def popover(state: AppState) -> None:
    """The box of what was asked and what is saved."""
    with lazy("Saved", "saved", "Searches you asked and saved.") as opened:
        if not opened.open:
            return
        if _FAILED in st.session_state:
            st.caption(f"History is not kept. {plain(st.session_state[_FAILED], 400)}")
        try:
            _draw(state)
        except WorkbenchError as exc:
            st.caption(plain(str(exc), 400))


def _draw(state: AppState) -> None:
    from workbench.saved.searches import HISTORY, PLAN, SEARCH

    kept = resources.searches()
    st.text_input(
        "Save this search as", key=PREFIX + "save.search", on_change=_save_search, max_chars=200,
        placeholder="a name, and Enter", help="Keeps query, columns, plan and filter: opening it restores this page.",
    )  # fmt: skip
    saved, plans, history = kept.kept(SEARCH), kept.kept(PLAN), kept.kept(HISTORY, SHOWN)
    if saved:
        st.markdown("**Saved searches**")
        _list(saved, lambda e: e.name, _open)
    if plans:
        st.markdown("**Saved plans**")
        _list(plans, lambda e: f"{e.name}: {e.value}", _take_plan)
    st.markdown("**History**")
    if history:
        _list(history, _told, _open)
        st.button("Forget the history", key=PREFIX + "history.clear", type="tertiary", on_click=_clear,
                  help="Deletes every entry; Undo puts them back.")  # fmt: skip
    else:
        st.caption("What you search for appears here.")


def _told(entry: Kept) -> str:
    params = entry.params
    when = datetime.datetime.fromtimestamp(entry.at).astimezone().strftime("%d %b %H:%M")
    more = [params[name] for name in ("keywords", "filters", "plan") if params.get(name)]
    return f"{params.get('q') or params.get('keywords', '')}  ({', '.join([when, *more])})"


def _list(entries: Sequence[Kept], name: Callable[[Kept], str], open_it: Callable[[int], None]) -> None:
    rows = st.container(gap=None)
    for entry in entries:
        what, away = rows.columns([9, 1], gap="small", vertical_alignment="center", width=440)
        with what:
            st.button(_literal(plain(name(entry), 110)), key=f"{PREFIX}kept.{entry.number}", type="tertiary",
                      on_click=open_it, args=(entry.number,))  # fmt: skip
        with away:
            st.button("", key=f"{PREFIX}kept.{entry.number}.away", icon=":material/delete:", type="tertiary",
                      on_click=_delete, args=(entry.number,), help="Delete; Undo puts it back")  # fmt: skip


def _literal(text: str) -> str:
    """A button's label is Markdown: the text with every sign of it taken literally."""
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|~$:<>" else c for c in text)


def _safely(step: Callable[[], None]) -> None:
    try:
        step()
    except WorkbenchError as exc:
        app_state.notice(str(exc))


def _find(number: int) -> Kept | None:
    from workbench.saved.searches import HISTORY, PLAN, SEARCH

    kept = resources.searches()
    for kind in (HISTORY, SEARCH, PLAN):
        for entry in kept.kept(kind):
            if entry.number == number:
                return entry
    app_state.notice("It was deleted meanwhile.")
    return None


def _open(number: int) -> None:
    def step() -> None:
        entry = _find(number)
        if entry is not None:
            state, said = from_params(entry.params)
            app_state.become(state, "the opened search")
            for sentence in said:
                app_state.notice(sentence)

    _safely(step)


def _take_plan(number: int) -> None:
    def step() -> None:
        entry = _find(number)
        if entry is not None:
            app_state.become(app_state.current().with_moved(Plan.parse(entry.value)), f"the plan {entry.name}")

    _safely(step)


def _delete(number: int) -> None:
    def step() -> None:
        entry = resources.searches().delete(number)
        if entry is not None:
            undo.remember("the deletion", lambda: resources.searches().restore([entry]))

    _safely(step)


def _clear() -> None:
    def step() -> None:
        gone = resources.searches().clear_history()
        undo.remember("the deletion of the history", lambda: resources.searches().restore(gone))

    _safely(step)


def _remember_saving(kind: str, name: str, old: Kept | None) -> None:
    """Undo of a saving: what had the name before is there again, or nothing."""

    def back() -> None:
        kept = resources.searches()
        for entry in kept.kept(kind):
            if entry.name == " ".join(name.split()):
                kept.delete(entry.number)
        if old is not None:
            kept.restore([old])

    undo.remember(f"the saving of {name}", back)


def _save_search() -> None:
    from workbench.saved.searches import SEARCH

    name = str(st.session_state[PREFIX + "save.search"] or "")
    st.session_state[PREFIX + "save.search"] = ""

    def step() -> None:
        old = resources.searches().save_search(name, app_state.current().to_params())
        _remember_saving(SEARCH, name, old)
        app_state.tell(f"Saved as {name.strip()}.")

    if name.strip():
        _safely(step)


def save_plan(plan: Plan) -> None:
    """A box that keeps the plan under a name: it can then be a column."""
    st.text_input(
        "Save this plan as", key=PREFIX + "save.plan", on_change=_save_plan, args=(str(plan),), max_chars=200,
        placeholder="a name, and Enter", help="A saved plan can be chosen for a column, and opened again under Saved.",
    )  # fmt: skip


def _save_plan(text: str) -> None:
    from workbench.saved.searches import PLAN

    name = str(st.session_state[PREFIX + "save.plan"] or "")
    st.session_state[PREFIX + "save.plan"] = ""

    def step() -> None:
        old = resources.searches().save_plan(name, text)
        _remember_saving(PLAN, name, old)
        app_state.tell(f"Saved as {name.strip()}.")

    if name.strip():
        _safely(step)
