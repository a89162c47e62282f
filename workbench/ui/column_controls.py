"""Which columns there are, which plan the sidebar moves, and with whose eyes one looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from workbench.plan.plan import Plan
from workbench.plan.presets import PRESETS
from workbench.ui import cards, resources
from workbench.ui import state as app_state
from workbench.ui.controls import PREFIX, _bind, lazy
from workbench.ui.state import MODES, MOST_COLUMNS, AppState, Column

if TYPE_CHECKING:
    from workbench.corpus import Corpus

_COPY, _OWN = "copy", "own"


def titles(columns: Sequence[Column], names: Mapping[str, str]) -> tuple[str, ...]:
    """Headings of the columns, each another one.

    Args:
        columns: From left to right.
        names: Text form of each saved plan -> its name.
    """
    made: list[str] = []
    for column in columns:
        title = column.mode.capitalize()
        if column.plan is not None:
            title = names.get(str(column.plan), str(column.plan))
        again = sum(t == title or t.startswith(f"{title} (") for t in made)
        made.append(f"{title} ({again + 1})" if again else title)
    return tuple(made)


# --- the columns ----------------------------------------------------------------------------------------------------


def popover(state: AppState, plans: Mapping[str, str]) -> None:
    """The columns, to choose, swap, add and take away.

    Args:
        state: What is set.
        plans: Name of each saved plan -> its text form.
    """
    with lazy("Columns", "columns", "What to search with, side by side: one to four.") as opened:
        if not opened.open:
            return
        offered = _offered(plans)
        for n, column in enumerate(state.columns, 1):
            _row(n, column, state, plans, offered)
        if len(state.columns) < MOST_COLUMNS:
            st.button("Add a column", key=f"{PREFIX}column.add", icon=":material/add:", on_click=_add)
        st.container(width=420).caption(
            "A mode answers with the shared plan. A preset or a saved plan has settings of its own: choose in the "
            "sidebar which plan it moves. [Guide](guide?page=search#modes)"
        )


def _row(n: int, column: Column, state: AppState, plans: Mapping[str, str], offered: Mapping[str, str]) -> None:
    chosen = _value(column, plans)
    own = {_OWN: f"Its own plan: {column.plan}"} if chosen == _OWN else {}
    labels = {**offered, **own}
    what, left, right, away = st.columns([7, 1, 1, 1], gap="small", vertical_alignment="bottom", width=420)
    with what:
        st.selectbox(
            f"Column {n}", list(labels), index=list(labels).index(chosen), key=_bind(f"column.{n}", chosen),
            format_func=lambda v: labels.get(v, v),
            on_change=_choose, args=(n,), help="A mode of the shared plan, or a plan of the column's own.",
        )  # fmt: skip
    count = len(state.columns)
    with left:
        st.button("", key=f"{PREFIX}column.{n}.left", icon=":material/arrow_back:", disabled=n == 1,
                  on_click=_swap, args=(n, n - 1), help="Swap with the column on the left")  # fmt: skip
    with right:
        st.button("", key=f"{PREFIX}column.{n}.right", icon=":material/arrow_forward:", disabled=n == count,
                  on_click=_swap, args=(n, n + 1), help="Swap with the column on the right")  # fmt: skip
    with away:
        st.button("", key=f"{PREFIX}column.{n}.away", icon=":material/close:", disabled=count == 1,
                  on_click=_remove, args=(n,), help="Take this column away")  # fmt: skip


def _offered(plans: Mapping[str, str]) -> dict[str, str]:
    return {
        **{mode: mode.capitalize() for mode in MODES},
        _COPY: "A copy of the shared plan",
        **{f"preset:{p.name}": f"Preset {p.name}" for p in PRESETS},
        **{f"saved:{name}": f"Saved plan {name}" for name in plans},
    }


def _value(column: Column, plans: Mapping[str, str]) -> str:
    """How the select box names what a column has."""
    if column.plan is None:
        return column.mode
    text = str(column.plan)
    for name, saved in plans.items():
        if saved == text:
            return f"saved:{name}"
    return f"preset:{column.plan.preset}" if text == column.plan.preset else _OWN


def _choose(n: int) -> None:
    state, chosen = app_state.current(), str(st.session_state[f"{PREFIX}column.{n}"])
    kind, _, name = chosen.partition(":")
    if chosen in MODES:
        column = Column(chosen)
    elif chosen == _COPY:
        column = Column(plan=state.plan)
    elif kind == "preset":
        column = Column(plan=Plan.parse(name))
    elif kind == "saved":
        text = resources.saved_plans().get(name)
        if text is None:
            app_state.notice(f"There is no saved plan {name} any more.")
            return
        column = Column(plan=Plan.parse(text))
    else:
        return
    columns = list(state.columns)
    columns[n - 1] = column
    _become(columns, state, n if column.plan is not None else 0 if state.moves == n else state.moves, f"column {n}")


def _add() -> None:
    state = app_state.current()
    missing = [mode for mode in MODES if Column(mode) not in state.columns]
    _become([*state.columns, Column(missing[0] if missing else "hybrid")], state, state.moves, "the added column")


def _swap(one: int, other: int) -> None:
    state = app_state.current()
    columns = list(state.columns)
    columns[one - 1], columns[other - 1] = columns[other - 1], columns[one - 1]
    moves = {one: other, other: one}.get(state.moves, state.moves)
    _become(columns, state, moves, "the swapped columns")


def _remove(n: int) -> None:
    state = app_state.current()
    columns = [c for i, c in enumerate(state.columns, 1) if i != n]
    moves = 0 if state.moves == n else state.moves - (state.moves > n)
    _become(columns, state, moves, "the column taken away")


def _become(columns: Sequence[Column], state: AppState, moves: int, what: str) -> None:
    app_state.become(replace(state, columns=tuple(columns), moves=moves), what)


# --- what the sidebar moves -------------------------------------------------------------------------------------------


def moved(state: AppState) -> None:
    """Which plan the sidebar moves; nothing to choose while all columns share one."""
    own = [n for n, column in enumerate(state.columns, 1) if column.plan is not None]
    if not own:
        return
    named = titles(state.columns, resources.plan_names())
    shared = [t for t, column in zip(named, state.columns, strict=True) if column.plan is None]
    labels = {0: "Shared plan" + (f": {', '.join(shared)}" if shared else " (no column has it)")}
    labels |= {n: f"Column {n}: {named[n - 1]}" for n in own}
    st.selectbox(
        "The sidebar moves", list(labels), index=list(labels).index(state.moves), key=_bind("moves", state.moves),
        format_func=lambda n: labels[n],
        on_change=_set_moves, help="The columns that it moves have a mark in their headings.",
    )  # fmt: skip


def _set_moves() -> None:
    app_state.update("which plan the sidebar moves", moves=int(st.session_state[PREFIX + "moves"]))


# --- whose eyes -------------------------------------------------------------------------------------------------------


def view_as(state: AppState, roles: Sequence[str]) -> None:
    """Look with a part of one's roles: never with more than one has."""
    chosen = [r for r in roles if state.roles is None or r in state.roles]
    st.pills(
        "View as", list(roles), selection_mode="multi", default=chosen, key=_bind("as", chosen),
        on_change=_set_roles, args=(tuple(roles),),
        help="Look with these of your roles only, to see what somebody else would find. It never shows more than you may see.",
    )  # fmt: skip


def _set_roles(roles: tuple[str, ...]) -> None:
    chosen = tuple(sorted(st.session_state[PREFIX + "as"]))
    app_state.update("the view", roles=None if set(chosen) == set(roles) else chosen)


# --- exact against approximate ----------------------------------------------------------------------------------------

_ASKED = "wb.exactness"


def exactness() -> None:
    """A button that asks this query exactly and approximately."""
    st.button(
        "Exact against approximate", key=PREFIX + "exactness", on_click=_ask_exactness, width="stretch",
        help="Searches this query both ways and says how much of the exact answer the approximate index found.",
    )  # fmt: skip


def _ask_exactness() -> None:
    st.session_state[_ASKED] = True


def exactness_answer(corpus: Corpus) -> None:
    """What the button asked for, once, as a sentence on the page."""
    if st.session_state.pop(_ASKED, False):
        with st.spinner("Searching exactly and approximately"):
            said = resources.exactness(corpus, app_state.current())
        st.html(cards.note(said))
