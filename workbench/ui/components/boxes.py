"""The boxes over the Search page: columns, saved searches and plans with the history, synonyms and stop words of the corpus."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.markup import plain
from workbench.plan.plan import Plan
from workbench.plan.presets import PRESETS
from workbench.saved.searches import HISTORY, PLAN, SEARCH
from workbench.store.lexical.synonyms import vocabulary_of
from workbench.ui import resources
from workbench.ui import state as app_state
from workbench.ui.components import cards
from workbench.ui.components.controls import PREFIX, bound, lazy
from workbench.ui.finder import exactness as compare_exactness
from workbench.ui.state import MODES, MOST_COLUMNS, AppState, Column, callback, from_params

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.saved.searches import Kept, Searches

_COPY, _OWN = "copy", "own"


def titles(columns: Sequence[Column], names: Mapping[str, str]) -> tuple[str, ...]:
    """Headings of the columns, each another one. `names`: text form of each saved plan -> its name."""
    made: list[str] = []
    for column in columns:
        title = column.mode.capitalize()
        if column.plan is not None:
            title = names.get(str(column.plan), str(column.plan))
        again = sum(t == title or t.startswith(f"{title} (") for t in made)
        made.append(f"{title} ({again + 1})" if again else title)
    return tuple(made)


# --- the columns ----------------------------------------------------------------------------------------------------


def columns_box(state: AppState, plans: Mapping[str, str]) -> None:
    """The columns, to choose, swap, add and remove. `plans`: name of each saved plan -> its text form."""
    with lazy("Columns", "columns", "What to search with, side by side: one to four.") as opened:
        if not opened.open:
            return
        offered = _offered(plans)
        for n, column in enumerate(state.columns, 1):
            _row(n, column, len(state.columns), plans, offered)
        if len(state.columns) < MOST_COLUMNS:
            st.button("Add a column", key=f"{PREFIX}column.add", icon=":material/add:", on_click=_add)
        st.container(width=420).caption(
            "A mode answers with the shared plan. A preset or a saved plan has settings of its own: choose in the "
            "sidebar which plan it moves. [Guide](guide?page=search#modes)"
        )


def _row(n: int, column: Column, count: int, plans: Mapping[str, str], offered: Mapping[str, str]) -> None:
    chosen = _value(column, plans)
    labels = {**offered, **({_OWN: f"Its own plan: {column.plan}"} if chosen == _OWN else {})}
    what, left, right, away = st.columns([7, 1, 1, 1], gap="small", vertical_alignment="bottom", width=420)
    what.selectbox(
        f"Column {n}",
        list(labels),
        index=list(labels).index(chosen),
        format_func=lambda v: labels.get(v, v),
        **bound(f"column.{n}", chosen, _choose, n),
        help="A mode of the shared plan, or a plan of the column's own.",
    )

    def button(place: Any, name: str, icon: str, help: str, off: bool, step: Callable[..., None], *args: int) -> None:
        options: dict[str, Any] = {"icon": f":material/{icon}:", "disabled": off, "on_click": step, "args": args}
        place.button("", key=f"{PREFIX}column.{n}.{name}", help=help, **options)

    button(left, "left", "arrow_back", "Swap with the column on the left", n == 1, _swap, n, n - 1)
    button(right, "right", "arrow_forward", "Swap with the column on the right", n == count, _swap, n, n + 1)
    button(away, "away", "close", "Remove this column", count == 1, _remove, n)


def _offered(plans: Mapping[str, str]) -> dict[str, str]:
    return {
        **{mode: mode.capitalize() for mode in MODES},
        _COPY: "A copy of the shared plan",
        **{f"preset:{p.name}": f"Preset {p.name}" for p in PRESETS},
        **{f"saved:{name}": f"Saved plan {name}" for name in plans},
    }


def _value(column: Column, plans: Mapping[str, str]) -> str:
    if column.plan is None:
        return column.mode
    text = str(column.plan)
    for name, saved in plans.items():
        if saved == text:
            return f"saved:{name}"
    return f"preset:{column.plan.preset}" if text == column.plan.preset else _OWN


def _choose(chosen: str, n: int) -> None:
    state = app_state.current()
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
    moves = n if column.plan is not None else 0 if state.moves == n else state.moves
    _become([*state.columns[: n - 1], column, *state.columns[n:]], state, moves, f"column {n}")


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
    _become(columns, state, moves, "the removed column")


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
        "The sidebar moves",
        list(labels),
        index=list(labels).index(state.moves),
        format_func=lambda n: labels[n],
        **bound("moves", state.moves, lambda n: app_state.update("which plan the sidebar moves", moves=n)),
        help="The columns that it moves have a mark in their headings.",
    )


# --- whose eyes -------------------------------------------------------------------------------------------------------


def view_as(state: AppState, roles: Sequence[str]) -> None:
    """Look with a part of one's roles: never with more than one has."""
    chosen = [r for r in roles if state.roles is None or r in state.roles]
    st.pills(
        "View as",
        list(roles),
        selection_mode="multi",
        default=chosen,
        **bound("as", chosen, _set_roles, tuple(roles)),
        help="Look with these of your roles only, to see what somebody else would find. It never shows more than you may see.",
    )


def _set_roles(chosen: list[str], roles: tuple[str, ...]) -> None:
    app_state.update("the view", roles=None if set(chosen) == set(roles) else tuple(sorted(chosen)))


# --- exact against approximate ----------------------------------------------------------------------------------------

_ASKED = "wb.exactness"


def exactness() -> None:
    st.button(
        "Exact against approximate",
        key=PREFIX + "exactness",
        on_click=lambda: st.session_state.update({_ASKED: True}),
        width="stretch",
        help="Searches this query both ways and says how much of the exact answer the approximate index found.",
    )


def exactness_answer(corpus: Corpus) -> None:
    if st.session_state.pop(_ASKED, False):
        with st.spinner("Searching exactly and approximately"):
            try:
                answer = compare_exactness(corpus, app_state.current())
            except WorkbenchError as exc:
                answer = str(exc)
        st.html(cards.note(answer))


SHOWN = 30
_LAST, _FAILED = "wb.asked", "wb.history-failed"


def add_to_history(state: AppState) -> None:
    """Put a search into the history, once; where that cannot be, the box says why."""
    what = (state.query, state.keywords, state.filters, state.context)
    if st.session_state.get(_LAST) == what:
        return
    st.session_state[_LAST] = what
    try:
        resources.searches().asked(state.to_params())
        st.session_state.pop(_FAILED, None)
    except WorkbenchError as exc:
        st.session_state[_FAILED] = str(exc)


def saved_box(state: AppState) -> None:
    with lazy("Saved", "saved", "Your saved searches.") as opened:
        if not opened.open:
            return
        if _FAILED in st.session_state:
            st.caption(f"History is not kept. {plain(st.session_state[_FAILED], 400)}")
        try:
            _saved(resources.searches())
        except WorkbenchError as exc:
            st.caption(plain(str(exc), 400))


def _saved(kept: Searches) -> None:
    _name_box("Save this search as", SEARCH, "Keeps query, columns, plan and filter: opening it restores this page.")
    saved, plans, history = kept.kept(SEARCH), kept.kept(PLAN), kept.kept(HISTORY, SHOWN)
    _list("Saved searches", saved, lambda e: e.name, _open)
    _list("Saved plans", plans, lambda e: f"{e.name}: {e.value}", _use_plan)
    if not history:
        st.markdown("**History**")
        st.caption("What you search for appears here.")
        return
    _list("History", history, _described, _open)
    st.button(
        "Clear history",
        key=PREFIX + "history.clear",
        type="tertiary",
        on_click=_clear,
        help="Deletes every entry; Undo puts them back.",
    )


def _described(entry: Kept) -> str:
    params = entry.params
    when = datetime.datetime.fromtimestamp(entry.at).astimezone().strftime("%d %b %H:%M")
    more = [params[name] for name in ("keywords", "filters", "plan") if params.get(name)]
    return f"{params.get('q') or params.get('keywords', '')}  ({', '.join([when, *more])})"


def _list(title: str, entries: Sequence[Kept], name: Callable[[Kept], str], open_it: Callable[[int], None]) -> None:
    if not entries:
        return
    st.markdown(f"**{title}**")
    rows = st.container(gap=None)
    for entry in entries:
        what, away = rows.columns([9, 1], gap="small", vertical_alignment="center", width=440)
        key, args = f"{PREFIX}kept.{entry.number}", (entry.number,)
        what.button(cards.in_markdown(name(entry), 110), key=key, type="tertiary", on_click=open_it, args=args)
        away.button(
            "",
            key=f"{key}.away",
            icon=":material/delete:",
            type="tertiary",
            on_click=_delete,
            args=args,
            help="Delete; Undo puts it back",
        )


def _entry(number: int) -> Kept | None:
    kept = resources.searches()
    found = next((e for kind in (HISTORY, SEARCH, PLAN) for e in kept.kept(kind) if e.number == number), None)
    if found is None:
        app_state.notice("It was deleted meanwhile.")
    return found


@callback
def _open(number: int) -> None:
    entry = _entry(number)
    if entry is not None:
        state, problems = from_params(entry.params)
        app_state.become(state, "the opened search")
        for sentence in problems:
            app_state.notice(sentence)


@callback
def _use_plan(number: int) -> None:
    entry = _entry(number)
    if entry is not None:
        app_state.become(app_state.current().with_moved(Plan.parse(entry.value)), f"the plan {entry.name}")


@callback
def _delete(number: int) -> None:
    entry = resources.searches().delete(number)
    if entry is not None:
        app_state.remember("the deletion", lambda: resources.searches().restore([entry]))


@callback
def _clear() -> None:
    gone = resources.searches().clear_history()
    app_state.remember("the deletion of the history", lambda: resources.searches().restore(gone))


def _name_box(label: str, kind: str, help: str) -> None:
    st.text_input(
        label,
        key=f"{PREFIX}save.{kind}",
        on_change=_save,
        args=(kind,),
        max_chars=200,
        placeholder="a name, and Enter",
        help=help,
    )


def save_plan() -> None:
    """A box that saves the plan that the sidebar moves: it can then be a column."""
    _name_box("Save this plan as", PLAN, "A saved plan can be chosen for a column, and opened again under Saved.")


@callback
def _save(kind: str) -> None:
    key = f"{PREFIX}save.{kind}"
    name = " ".join(str(st.session_state[key] or "").split())
    st.session_state[key] = ""
    if not name:
        return
    state, kept = app_state.current(), resources.searches()
    old = kept.save_plan(name, str(state.moved)) if kind == PLAN else kept.save_search(name, state.to_params())

    def back() -> None:
        kept = resources.searches()
        for entry in kept.kept(kind):
            if entry.name == name:
                kept.delete(entry.number)
        if old is not None:
            kept.restore([old])

    app_state.remember(f"the saving of {name}", back)
    app_state.message(f"Saved as {name}.")


# --- synonyms and stop words ------------------------------------------------------------------------------------------

_SYNONYMS, _STOP = PREFIX + "synonyms", PREFIX + "stop_words"


def synonyms_box(corpus: Corpus) -> None:
    with lazy("Synonyms", "words", "Synonyms and stop words of this corpus.") as opened:
        if not opened.open:
            return
        vocabulary = corpus.vocabulary
        st.text_area(
            "Synonyms",
            value="\n".join(", ".join(group) for group in vocabulary.synonyms),
            key=_SYNONYMS,
            height=130,
            placeholder="k8s, kubernetes\nCI, continuous integration",
            help="One group a line: words or phrases that mean the same here. The keyword side searches all of a group.",
        )
        st.text_input(
            "Stop words",
            value=", ".join(vocabulary.stop_words),
            key=_STOP,
            placeholder="acme, inc",
            help="Words that say nothing in this corpus: they count only in quotes, or alone.",
        )
        if resources.may_change_words():
            st.button(
                "Save",
                key=PREFIX + "words.keep",
                type="primary",
                on_click=_save_vocabulary,
                args=(corpus,),
                help="For everybody, from the next search on; nothing is indexed again.",
            )
        st.caption("They are stored in `corpus.yaml` in the corpus folder and can be edited there too.")


@callback
def _save_vocabulary(corpus: Corpus) -> None:
    groups = [line.split(",") for line in str(st.session_state[_SYNONYMS] or "").splitlines()]
    stop = str(st.session_state[_STOP] or "").replace("\n", ",").split(",")
    before, wanted = corpus.vocabulary, vocabulary_of(groups, stop)
    if wanted == before:
        return
    corpus.set_vocabulary(wanted)

    def back() -> None:
        corpus.set_vocabulary(before)
        for key in (_SYNONYMS, _STOP):
            st.session_state.pop(key, None)

    app_state.remember("the synonyms and stop words", back)
    app_state.message("Synonyms and stop words are saved, and used from now on.")
