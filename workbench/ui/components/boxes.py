"""The boxes over the Search page: columns, saved searches and plans with the history, synonyms and stop words of the corpus."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from workbench.errors import WorkbenchError
from workbench.markup import plain
from workbench.plan.plan import Plan
from workbench.plan.presets import PRESETS
from workbench.store.lexical.synonyms import vocabulary_of
from workbench.ui import resources
from workbench.ui import state as app_state
from workbench.ui.components import cards
from workbench.ui.components.controls import PREFIX, bound, lazy
from workbench.ui.state import MODES, MOST_COLUMNS, AppState, Column, from_params

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.saved.searches import Kept
    from workbench.store.lexical.synonyms import Vocabulary


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


def columns_box(state: AppState, plans: Mapping[str, str]) -> None:
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
            f"Column {n}",
            list(labels),
            index=list(labels).index(chosen),
            format_func=lambda v: labels.get(v, v),
            **bound(f"column.{n}", chosen, _choose, n),
            help="A mode of the shared plan, or a plan of the column's own.",
        )
    count = len(state.columns)
    with left:
        st.button(
            "",
            key=f"{PREFIX}column.{n}.left",
            icon=":material/arrow_back:",
            disabled=n == 1,
            on_click=_swap,
            args=(n, n - 1),
            help="Swap with the column on the left",
        )
    with right:
        st.button(
            "",
            key=f"{PREFIX}column.{n}.right",
            icon=":material/arrow_forward:",
            disabled=n == count,
            on_click=_swap,
            args=(n, n + 1),
            help="Swap with the column on the right",
        )
    with away:
        st.button(
            "",
            key=f"{PREFIX}column.{n}.away",
            icon=":material/close:",
            disabled=count == 1,
            on_click=_remove,
            args=(n,),
            help="Take this column away",
        )


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
        "The sidebar moves",
        list(labels),
        index=list(labels).index(state.moves),
        format_func=lambda n: labels[n],
        **bound("moves", state.moves, _set_moves),
        help="The columns that it moves have a mark in their headings.",
    )


def _set_moves() -> None:
    app_state.update("which plan the sidebar moves", moves=int(st.session_state[PREFIX + "moves"]))


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


def _set_roles(roles: tuple[str, ...]) -> None:
    chosen = tuple(sorted(st.session_state[PREFIX + "as"]))
    app_state.update("the view", roles=None if set(chosen) == set(roles) else chosen)


# --- exact against approximate ----------------------------------------------------------------------------------------

_ASKED = "wb.exactness"


def exactness() -> None:
    st.button(
        "Exact against approximate",
        key=PREFIX + "exactness",
        on_click=_ask_exactness,
        width="stretch",
        help="Searches this query both ways and says how much of the exact answer the approximate index found.",
    )


def _ask_exactness() -> None:
    st.session_state[_ASKED] = True


def exactness_answer(corpus: Corpus) -> None:
    if st.session_state.pop(_ASKED, False):
        with st.spinner("Searching exactly and approximately"):
            said = resources.exactness(corpus, app_state.current())
        st.html(cards.note(said))


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


def saved_box(state: AppState) -> None:
    with lazy("Saved", "saved", "Your saved searches.") as opened:
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
        "Save this search as",
        key=PREFIX + "save.search",
        on_change=_save_search,
        max_chars=200,
        placeholder="a name, and Enter",
        help="Keeps query, columns, plan and filter: opening it restores this page.",
    )
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
        st.button(
            "Forget the history",
            key=PREFIX + "history.clear",
            type="tertiary",
            on_click=_clear,
            help="Deletes every entry; Undo puts them back.",
        )
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
            st.button(
                _literal(plain(name(entry), 110)),
                key=f"{PREFIX}kept.{entry.number}",
                type="tertiary",
                on_click=open_it,
                args=(entry.number,),
            )
        with away:
            st.button(
                "",
                key=f"{PREFIX}kept.{entry.number}.away",
                icon=":material/delete:",
                type="tertiary",
                on_click=_delete,
                args=(entry.number,),
                help="Delete; Undo puts it back",
            )


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
            app_state.remember("the deletion", lambda: resources.searches().restore([entry]))

    _safely(step)


def _clear() -> None:
    def step() -> None:
        gone = resources.searches().clear_history()
        app_state.remember("the deletion of the history", lambda: resources.searches().restore(gone))

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

    app_state.remember(f"the saving of {name}", back)


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
        "Save this plan as",
        key=PREFIX + "save.plan",
        on_change=_save_plan,
        args=(str(plan),),
        max_chars=200,
        placeholder="a name, and Enter",
        help="A saved plan can be chosen for a column, and opened again under Saved.",
    )


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


_SYNONYMS, _STOP = PREFIX + "synonyms", PREFIX + "stop_words"


def words_box(corpus: Corpus) -> None:
    with lazy("Words", "words", "Synonyms and stop words of this corpus.") as opened:
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
                "Keep",
                key=PREFIX + "words.keep",
                type="primary",
                on_click=_keep,
                args=(corpus,),
                help="For everybody, from the next search on; nothing is indexed again.",
            )
        st.caption("They are stored in `corpus.yaml` in the corpus folder and can be edited there too.")


def _keep(corpus: Corpus) -> None:
    groups = [line.split(",") for line in str(st.session_state[_SYNONYMS] or "").splitlines()]
    stop = str(st.session_state[_STOP] or "").replace("\n", ",").split(",")
    before = corpus.vocabulary
    try:
        wanted = vocabulary_of(groups, stop)
        if wanted == before:
            return
        corpus.set_vocabulary(wanted)
    except WorkbenchError as exc:
        app_state.notice(str(exc))
        return
    app_state.remember("the words of the corpus", functools.partial(_put_back, corpus, before))
    app_state.tell("The words are kept, and used from now on.")


def _put_back(corpus: Corpus, before: Vocabulary) -> None:
    corpus.set_vocabulary(before)
    for key in (_SYNONYMS, _STOP):
        st.session_state.pop(key, None)
