"""What one person has typed and set: a value, its form in the address bar, and the session that holds it.

The state is one frozen `AppState`. It lives in the router (Streamlit's own binding of widgets to the address is lost on a
page switch), widgets are drawn from it and write back to it through callbacks, and its address form restores the same page
anywhere. Nothing here is shared between sessions; the corpus is the only thing that is.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec

import streamlit as st
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from workbench.errors import PlanError, WorkbenchError, sentence
from workbench.plan.plan import Plan
from workbench.ui.components.cards import in_markdown

P = ParamSpec("P")
MOST_UNDONE = 100
DRAG_SECONDS = 1.5
_DONE = "wb.done"


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what it was in words, and the state before it, or what undoes it."""

    what: str
    before: AppState | Callable[[], object]
    at: float


def remember(what: str, before: AppState | Callable[[], object]) -> None:
    """Keep a change (in words: `fusion.k`, `the deletion of a saved search`) so that it can be undone: `before` is the state to
    go back to, or a function. A slider that is dragged is one change.
    """
    done: list[Change] = st.session_state.setdefault(_DONE, [])
    now = time.monotonic()
    if done and not callable(before) and done[-1].what == what and now - done[-1].at < DRAG_SECONDS:
        done[-1] = replace(done[-1], at=now)
        return
    done.append(Change(what, before, now))
    del done[:-MOST_UNDONE]


def remember_earlier(what: str, before: Callable[[], object]) -> None:
    """What undo takes back on this page where the session itself has nothing to undo: something of another day."""
    st.session_state[_EARLIER] = Change(what, before, 0.0)


MODES = ("grep", "keyword", "vector", "hybrid")
PICTURES = ("none", "ranks", "agreement", "shares", "scores", "distances", "funnel", "timings")
LONGEST = 4_000
MOST_COLUMNS = 4
OWN = "plan"
"""How the address writes a column that has a plan of its own."""
NOBODY = "-"
"""How the address writes a view without any role."""

_STATE, _VALUES, _PAGE = "wb.state", "wb.page-values", "wb.page"
_AGAIN, _PARTS, _PAGES, _EARLIER = "wb.again", "wb.parts", "wb.pages", "wb.earlier"


def default_plan() -> Plan:
    return Plan.parse("default")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a mode of the page's shared plan, or a plan of its own (then the mode is `hybrid`: all its sources)."""

    mode: str = "hybrid"
    plan: Plan | None = None


PLAIN_COLUMNS = tuple(Column(mode) for mode in MODES)


@dataclass(frozen=True, slots=True)
class AppState:
    """Everything that decides what a page shows.

    Attributes:
        query, keywords, context, filters: As typed.
        columns: One to four, from left to right.
        plan: The shared plan: every setting of the columns that have none of their own.
        moves: What the sidebar moves: 0 is the shared plan, n the plan of the nth column.
        picture: The chart above the columns, or `none`.
        roles: The roles to look with, a part of those one has; None is all of them.
        examples: Whether the page searches code examples instead of filling the columns.
        compact: Whether a result is one line that opens.
        judged, measure: Query set and measure of the figure in the bar; "" is the default one (`live.chosen`).
    """

    query: str = ""
    keywords: str = ""
    context: str = ""
    filters: str = ""
    columns: tuple[Column, ...] = PLAIN_COLUMNS
    plan: Plan = field(default_factory=default_plan)
    moves: int = 0
    picture: str = PICTURES[0]
    roles: tuple[str, ...] | None = None
    examples: bool = False
    compact: bool = False
    judged: str = ""
    measure: str = ""

    @property
    def moved(self) -> Plan:
        own = self._own
        return self.plan if own is None else own

    @property
    def _own(self) -> Plan | None:
        """The plan of the column that the sidebar moves; None where it moves the shared one."""
        return self.columns[self.moves - 1].plan if 0 < self.moves <= len(self.columns) else None

    def with_moved(self, plan: Plan) -> AppState:
        if self._own is None:
            return replace(self, plan=plan)
        columns = list(self.columns)
        columns[self.moves - 1] = Column(plan=plan)
        return replace(self, columns=tuple(columns))

    def plan_of(self, column: Column) -> Plan:
        return self.plan if column.plan is None else column.plan

    def to_params(self) -> dict[str, str]:
        """The address form: only what differs from an untouched page."""
        plain = AppState()
        params = {name: text for name, attribute in _TEXTS.items() if (text := getattr(self, attribute))}
        if self.columns != plain.columns:
            params["columns"] = ",".join(c.mode if c.plan is None else OWN for c in self.columns)
        params |= {f"column{n}": str(c.plan) for n, c in enumerate(self.columns, 1) if c.plan is not None}
        if self.plan != plain.plan or self.plan.preset != plain.plan.preset:
            params["plan"] = str(self.plan)
        if self.moves or all(column.plan is not None for column in self.columns):
            params["moves"] = str(self.moves)
        if self.picture != plain.picture:
            params["picture"] = self.picture
        params |= {name: "yes" for name in ("examples", "compact") if getattr(self, name)}
        if self.roles is not None:
            params["as"] = ",".join(self.roles) or NOBODY
        return params


_TEXTS = {
    "q": "query",
    "keywords": "keywords",
    "context": "context",
    "filters": "filters",
    "judged": "judged",
    "measure": "measure",
}
PARAMS = (
    *_TEXTS,
    "columns",
    *(f"column{n}" for n in range(1, MOST_COLUMNS + 1)),
    "plan",
    "moves",
    "picture",
    "examples",
    "compact",
    "as",
)
KEPT = ("judged", "measure", "as")
"""Those that a link to another search keeps: they are of the person's work, not of the search."""


def from_params(params: Mapping[str, str]) -> tuple[AppState, tuple[str, ...]]:
    """The state of an address, and a sentence for each part that could not be read (which then has its default)."""
    state, problems = AppState(), []
    texts: dict[str, Any] = {}
    for name, attribute in _TEXTS.items():
        text = params.get(name, "").strip()
        if len(text) > LONGEST:
            problems.append(f"{name} in the address has {len(text):,} characters; the first {LONGEST:,} are used.")
        texts[attribute] = text[:LONGEST].strip()
    state = replace(state, **texts)
    if "plan" in params:
        state = replace(state, plan=_plan_of(params["plan"], "The plan", problems) or state.plan)
    if "columns" in params:
        state = replace(state, columns=_columns_of(params, state.plan, problems) or state.columns)
    if "moves" in params:
        owns = {str(n) for n, column in enumerate(state.columns, 1) if column.plan is not None}
        if params["moves"] in owns:
            state = replace(state, moves=int(params["moves"]))
        elif params["moves"] != "0":
            problems.append(
                "The address moves a column that has no plan of its own; the sidebar moves the shared plan."
            )
    elif all(column.plan is not None for column in state.columns):  # the shared plan is in no column
        state = replace(state, moves=1)
    if "picture" in params:
        if params["picture"] in PICTURES:
            state = replace(state, picture=params["picture"])
        else:
            problems.append(f"The address names an unknown picture; the pictures are {', '.join(PICTURES)}.")
    switched: dict[str, Any] = {name: params.get(name, "") == "yes" for name in ("examples", "compact")}
    state = replace(state, **switched)
    if "as" in params:
        names = {name.strip() for name in params["as"].split(",")} - {"", NOBODY}
        state = replace(state, roles=tuple(sorted(names)))
    return state, tuple(map(sentence, problems))


def _plan_of(text: str, what: str, problems: list[str]) -> Plan | None:
    try:
        return Plan.parse(text)
    except PlanError as exc:
        problems.append(f"{what} in the address could not be read, so the default is used: {exc}")
        return None


def _columns_of(params: Mapping[str, str], shared: Plan, problems: list[str]) -> tuple[Column, ...]:
    """The columns of an address; a column whose plan cannot be read has the shared one."""
    names = [m.strip().lower() for m in params["columns"].split(",")]
    columns, unknown = [], []
    for n, name in enumerate(names[:MOST_COLUMNS], 1):
        if name in MODES:
            columns.append(Column(name))
        elif name == OWN:
            columns.append(
                Column(plan=_plan_of(params.get(f"column{n}", "default"), f"Column {n}", problems) or shared)
            )
        else:
            unknown.append(name)
    if unknown:
        problems.append(
            f"The address names unknown columns ({', '.join(unknown)}); the columns are {', '.join(MODES)} and {OWN}."
        )
    if len(names) > MOST_COLUMNS:
        problems.append(f"The address has {len(names)} columns; the first {MOST_COLUMNS} are shown.")
    return tuple(columns)


# --- the session --------------------------------------------------------------------------------------------------------


def current() -> AppState:
    state = st.session_state.get(_STATE)
    return state if isinstance(state, AppState) else AppState()


def update(what: str = "the last change", **changes: Any) -> None:
    """Change attributes of the state from a widget's callback; `what` is changed, in words, for undo."""
    become(replace(current(), **changes), what)


def become(state: AppState, what: str = "the last change") -> None:
    """Put a whole state in the place of this one, from a widget's callback; undo brings this one back."""
    before = current()
    if state == before and str(state.plan) == str(before.plan):
        return
    remember(what, before)
    st.session_state[_STATE] = state


def callback(step: Callable[P, None]) -> Callable[P, None]:
    """A widget's callback whose WorkbenchError is shown as a notice."""

    @functools.wraps(step)
    def safe(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            step(*args, **kwargs)
        except WorkbenchError as exc:
            notice(str(exc))

    return safe


@callback
def undo() -> None:
    """Undo the last change: of the state, or of something saved (a deletion, a grade)."""
    done: list[Change] = st.session_state.get(_DONE, [])
    last = done.pop() if done else st.session_state.get(_EARLIER)
    if last is None:
        message("There is nothing to undo.")
        return
    if isinstance(last.before, AppState):
        st.session_state[_STATE] = last.before
    else:
        last.before()
    message(f"Undone: {last.what}.")


@callback
def set_plan(changes: Mapping[str, Any]) -> None:
    """Change fields of the plan that the sidebar moves, from a callback; what cannot be is shown and changes nothing."""
    state = current()
    become(state.with_moved(state.moved.replace(changes)), " and ".join(sorted(changes)))


def ask_again() -> None:
    """Request, inside a fragment's callback, that the whole page runs: a run of the router grants it."""
    st.session_state[_AGAIN] = True


def asked_again() -> bool:
    return bool(st.session_state.pop(_AGAIN, False))


def notice(sentence: str) -> None:
    """Show a fault for ten seconds, however often the page runs meanwhile."""
    st.toast(in_markdown(sentence, 800), icon=":material/error:", duration="long")


def message(sentence: str) -> None:
    """Show something that is no fault, as long."""
    st.toast(in_markdown(sentence, 800), icon=":material/check:", duration="long")


def page_of(path: str) -> StreamlitPage:
    page: StreamlitPage = st.session_state[_PAGES][path]
    return page


def enter(page: str, pages: Mapping[str, StreamlitPage]) -> AppState:
    """Begin a run of the router: take state and page values from the address where somebody went there, and keep them equal.

    A first run, a page switch that carries an address, and the browser's Back and Forward are taken from it. In every other run
    it may be the address of some runs before: the browser sends the one that it shows, and what a key moves meanwhile is not in
    it yet.

    Args:
        page: Path of the page that will run.
        pages: Every page by its path.
    """
    session, address = st.session_state, st.query_params.to_dict()
    for name in (_AGAIN, _EARLIER):
        session.pop(name, None)
    session[_PAGES] = pages
    session[_PARTS] = {}
    first = not isinstance(session.get(_STATE), AppState)
    switched = session.get(_PAGE) not in (None, page)
    went = _went_back()
    if first or switched or went:
        session[_VALUES] = {name: value for name, value in address.items() if name not in PARAMS}
    of_state = {name: value for name, value in address.items() if name in PARAMS}
    if first or (of_state if switched else went):
        state, problems = from_params(of_state)
        session[_STATE] = state
        for sentence in problems:
            notice(sentence)
    session[_PAGE] = page
    write_address()
    return current()


def _went_back() -> bool:
    """Whether the browser's Back or Forward started this run."""
    ctx = get_script_run_ctx()
    return ctx is not None and ctx.is_history_navigation


def write_address() -> None:
    wanted = {**st.session_state.get(_VALUES, {}), **current().to_params()}
    if wanted != st.query_params.to_dict():
        st.query_params.from_dict(wanted)


def page_value(name: str) -> str:
    """A value in the address that belongs to this page only (the document's path, a query set), "" where it is missing."""
    return str(st.session_state.get(_VALUES, {}).get(name, ""))


def set_page_values(**values: str) -> None:
    """Change values of this page, and the address with them; "" removes one."""
    changed = {**st.session_state.get(_VALUES, {}), **values}
    st.session_state[_VALUES] = {name: value for name, value in changed.items() if value}
    write_address()


def part_begins(name: str) -> None:
    st.session_state.setdefault(_PARTS, {})[name] = False


def part_is_whole(name: str) -> None:
    st.session_state[_PARTS][name] = True


def whole_parts() -> tuple[str, ...]:
    """The page's parts, in the order they were drawn; none where one of them was cut short or failed."""
    parts: dict[str, bool] = st.session_state.get(_PARTS, {})
    return tuple(parts) if all(parts.values()) else ()
