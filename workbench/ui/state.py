"""What one person has asked and set: a value, its form in the address bar, and the session that holds it.

The state is one frozen `AppState`. It lives in the router (Streamlit's own binding of widgets to the address is lost on a
page switch), widgets are drawn from it and write back to it through callbacks, and its address form restores the same page
anywhere. Nothing here is shared between sessions; the corpus is the only thing that is.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from workbench.errors import PlanError
from workbench.plan import Plan

MODES = ("grep", "keyword", "vector", "hybrid")
PICTURES = ("none", "ranks", "shares", "scores", "distances", "funnel", "timings")
LONGEST = 4_000

_STATE, _WRITTEN, _TOUCHED, _PAGE, _NOTICES = "wb.state", "wb.written", "wb.touched", "wb.page", "wb.notices"


def default_plan() -> Plan:
    """The plan of a page on which nobody has set anything."""
    return Plan.parse("default")


@dataclass(frozen=True, slots=True)
class AppState:
    """Everything that decides what a page shows.

    Attributes:
        query, keywords, filters: As typed.
        modes: The columns, in the order of `MODES`, at least one.
        plan: Every setting of the search.
        picture: The chart above the columns, or `none`.
    """

    query: str = ""
    keywords: str = ""
    filters: str = ""
    modes: tuple[str, ...] = MODES
    plan: Plan = field(default_factory=default_plan)
    picture: str = PICTURES[0]

    def to_params(self) -> dict[str, str]:
        """The address form: only what differs from an untouched page."""
        plain = AppState()
        params: dict[str, str] = {}
        if self.query:
            params["q"] = self.query
        if self.keywords:
            params["keywords"] = self.keywords
        if self.modes != plain.modes:
            params["columns"] = ",".join(self.modes)
        if self.plan != plain.plan or self.plan.preset != plain.plan.preset:
            params["plan"] = str(self.plan)
        if self.filters:
            params["filters"] = self.filters
        if self.picture != plain.picture:
            params["picture"] = self.picture
        return params


PARAMS = ("q", "keywords", "columns", "plan", "filters", "picture")


def from_params(params: Mapping[str, str]) -> tuple[AppState, tuple[str, ...]]:
    """The state of an address, and a sentence for each part that could not be read (which then has its default).

    Args:
        params: Names and values; names that are not the state's are ignored.
    """
    state, said = AppState(), []
    texts = {name: params.get(name, "").strip() for name in ("q", "keywords", "filters")}
    for name, text in texts.items():
        if len(text) > LONGEST:
            said.append(f"{name} in the address has {len(text):,} characters; the first {LONGEST:,} are used.")
            texts[name] = text[:LONGEST]
    state = replace(state, query=texts["q"], keywords=texts["keywords"], filters=texts["filters"])
    if "columns" in params:
        asked = [m.strip().lower() for m in params["columns"].split(",")]
        modes = tuple(m for m in MODES if m in asked)
        unknown = [m for m in asked if m not in MODES]
        if unknown:
            said.append(
                f"The address names unknown columns ({', '.join(unknown)}); the columns are {', '.join(MODES)}."
            )
        state = replace(state, modes=modes or state.modes)
    if "plan" in params:
        try:
            state = replace(state, plan=Plan.parse(params["plan"]))
        except PlanError as exc:
            said.append(f"The plan in the address could not be read, so the default is used: {exc}")
    if "picture" in params:
        if params["picture"] in PICTURES:
            state = replace(state, picture=params["picture"])
        else:
            said.append(f"The address names an unknown picture; the pictures are {', '.join(PICTURES)}.")
    return state, tuple(said)


# --- the session --------------------------------------------------------------------------------------------------------


def _session() -> MutableMapping[Any, Any]:
    return st.session_state


def current() -> AppState:
    """The state of this session."""
    state = _session().get(_STATE)
    return state if isinstance(state, AppState) else AppState()


def update(**changes: Any) -> None:
    """Change the state from a widget's callback; the address follows in the run that comes next."""
    _session()[_STATE] = replace(current(), **changes)
    _session()[_TOUCHED] = True


def set_plan(changes: Mapping[str, Any]) -> bool:
    """Change plan fields from a widget's callback; what cannot be is said on the page and changes nothing.

    Returns:
        Whether the plan was changed.
    """
    try:
        update(plan=current().plan.replace(changes))
    except PlanError as exc:
        notice(str(exc))
        return False
    return True


def notice(sentence: str) -> None:
    """Say something once, at the top of the page."""
    _session().setdefault(_NOTICES, []).append(sentence)


def take_notices() -> tuple[str, ...]:
    """What is to be said at the top of the page, once."""
    return tuple(_session().pop(_NOTICES, ()))


def enter(page: str) -> AppState:
    """Begin a run of the router: take the state from the address where the address changed by itself, and keep both equal.

    A widget's callback wins over the address: while somebody drags a slider, the browser's address is a run behind. A page
    switch clears the address, so the state wins there too. What remains is a first visit, an edited address, or the
    browser's back button, and there the address wins.

    Args:
        page: Name of the page that will run.
    """
    session, shown = _session(), _shown()
    touched = session.pop(_TOUCHED, False)
    switched = session.get(_PAGE) not in (None, page)
    known = isinstance(session.get(_STATE), AppState)
    moved = shown != session.get(_WRITTEN) and not touched and (shown or not switched)
    if not known or moved:
        state, said = from_params(shown)
        session[_STATE] = state
        for sentence in said:
            notice(sentence)
    session[_PAGE] = page
    write_address()
    return current()


def write_address() -> None:
    """Make the address say what the state is; parameters that are not the state's stay."""
    wanted = current().to_params()
    _session()[_WRITTEN] = wanted
    if wanted != _shown():
        others = {n: st.query_params.get_all(n) for n in st.query_params if n not in PARAMS}
        st.query_params.from_dict({**others, **wanted})


def written_in_fragment() -> None:
    """After a callback inside a fragment: the router did not run, so the address is written here."""
    _session().pop(_TOUCHED, None)
    write_address()


def address_value(name: str) -> str:
    """A parameter of the address that belongs to one page only, "" where it is missing."""
    return str(st.query_params.get(name, ""))


def _shown() -> dict[str, str]:
    return {n: str(st.query_params[n]) for n in PARAMS if n in st.query_params}


def open_path(path: str) -> None:
    """Make the address of the Document page name a path (a callback)."""
    for name in ("id", "lines", "quote"):
        if name in st.query_params:
            del st.query_params[name]
    st.query_params["path"] = path
