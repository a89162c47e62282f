"""Widgets bound to the state: drawn from it, and writing back to it through callbacks.

Each control of a plan field takes its help from `plan_fields`, where the field is declared, and adds a link to its line in
the guide. A widget's value is set only when it differs from the state: setting it in every run would send each value back
to the browser, and a slider that is being dragged would jump.
"""

from __future__ import annotations

import functools
import mimetypes
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec

import streamlit as st
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer
from streamlit.elements.lib.mutable_popover_container import PopoverContainer

from workbench import guide
from workbench.assist.models import offered
from workbench.errors import WorkbenchError
from workbench.plan import fields as plan_fields
from workbench.plan.controls import Slot
from workbench.plan.plan import Plan
from workbench.plan.plan import preset as read_preset
from workbench.plan.presets import PRESETS
from workbench.ui import state as app_state
from workbench.ui.components import cards

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PREFIX = "wb.w."
PLOT = {"displayModeBar": False, "responsive": True}
_ENDS = "wb.end."
_RENEWED = "wb.renewed"
_AGREED = "wb.agreed"
_MISSING = object()
MOST_PILLS = 6
_P = ParamSpec("_P")
preset_of = functools.cache(read_preset)
"""Of a name; the help of every control asks for it."""


def help_of(name: str) -> str:
    """Help of a plan field in Markdown: its line, its bounds, its spelling, and a link to the guide."""
    field, source = plan_fields.locate(name)
    named = app_state.current().moved.preset
    value = plan_fields.show(preset_of(named)[name])
    spelling = f"{field.name}.{source}" if source else field.name
    row = guide.address("reference", guide.anchor(field.name))
    return f"{field.help} The preset {named} has {value}; {field.bounds}.\n\n`{spelling}` · [Guide]({row})"


def bound(
    name: str, value: Any, changed: Callable[..., None], *args: Any, then: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Key and callback of a widget whose value is the state's, to be spread into its call; `changed` gets the new value first.
    `then` draws parts of the page where it need not be all.

    The widget gets the same value as its default too. Streamlit sends a value that came by the key once only; where that one
    message is lost (a run cut short by the next), the browser would draw the widget's first value and report it as a move.

    The widgets of a closed box are not drawn, and Streamlit forgets their values; a browser that has not yet heard of it sends
    them with its next request, which looks as if each had just been changed. So the value that both sides agreed on last is
    kept, and only another one calls back.

    A request that comes while a callback runs cuts it short, and Streamlit does not call it again: what a widget has, and
    neither the state nor both sides, is taken here.
    """
    key, agreed = key_of(name), st.session_state.setdefault(_AGREED, {})
    shown = st.session_state.get(key, _MISSING)
    if shown != value and shown is not _MISSING and shown != agreed.get(key, shown):
        _changed(key, changed, None, *args)
        st.rerun()
    if shown != value:
        st.session_state[key] = value
    agreed[key] = value
    return {"key": key, "on_change": _changed, "args": (key, changed, then, *args)}


def _changed(key: str, changed: Callable[..., None], then: Callable[[], None] | None, *args: Any) -> None:
    agreed, value = st.session_state[_AGREED], st.session_state[key]
    if agreed.get(key, _MISSING) != value:
        changed(value, *args)
        agreed[key] = value  # when all is done, and not before: see `bound`
        if then is not None:
            then()


def _set_field(value: Any, name: str) -> None:
    app_state.set_plan({name: value.strip() if isinstance(value, str) else value})


def key_of(name: str) -> str:
    """Key of a field's widget: another one each time when another part of the page has set the field (`renew`)."""
    number = st.session_state.get(_RENEWED, {}).get(name, 0)
    return f"{PREFIX}{name}.{number}" if number else PREFIX + name


def renew(names: Iterable[str]) -> None:
    """Make other widgets of the fields' sliders, which another part of the page has set.

    A browser that asks again before it has drawn the new values still sends the old ones with its question: for widgets that
    are not there any more, so that nothing is undone.
    """
    numbers = st.session_state.setdefault(_RENEWED, {})
    numbers.update({name: numbers.get(name, 0) + 1 for name in names})


def part(name: str) -> Callable[[Callable[_P, None]], Callable[_P, None]]:
    """A part of a page that a moved slider draws again by itself: Streamlit's fragment of that key, with its failures shown."""

    def made(draw: Callable[_P, None]) -> Callable[_P, None]:
        @st.fragment(key=name)
        @functools.wraps(draw)
        def drawn(*args: _P.args, **kwargs: _P.kwargs) -> None:
            app_state.part_begins(name)
            app_state.write_address()
            top = st.empty()
            try:
                draw(*args, **kwargs)
            except WorkbenchError as exc:
                top.html(cards.alert("", exc.message, exc.remedy))
            except Exception:
                top.html(cards.alert("", "This part of the page failed", "Move the setting again, or reload the page"))
                raise
            else:
                app_state.part_is_whole(name)

        return drawn

    return made


def _draw_parts() -> None:
    """Draw the parts of the page that follow a slider; the whole page where one of them is not as it should be."""
    st.rerun(app_state.whole_parts() or "app")


@st.fragment
def _following(label: str, low: float, high: float, shown: float, **options: Any) -> None:
    """A slider that the parts follow. In a fragment of its own, since Streamlit then lets a run of the page come to its end
    before it answers a move; a control of the page itself would cut that run short, and the parts with it.
    """
    st.slider(label, low, high, shown, **options)


def place() -> DeltaGenerator:
    """A place for what comes and goes above a fragment. Streamlit knows a fragment by its place on the page: one that has moved
    does not hear what was pressed in it meanwhile.
    """
    return st.container()


def section(label: str, name: str, expanded: bool = False) -> ExpanderContainer:
    """A part of the sidebar that knows whether it is open.

    A closed one draws no widgets: each widget on the page costs the browser time at every move of a slider.
    """
    return st.expander(label, expanded=expanded, key=f"{PREFIX}section.{name}", on_change="rerun")


def lazy(label: str, name: str, help: str, icon: str | None = None) -> PopoverContainer:
    """A button that opens a box; a closed one draws no widgets."""
    return st.popover(label, key=f"{PREFIX}section.{name}", on_change="rerun", help=help, icon=icon)


@contextmanager
def faults(title: str = "") -> Iterator[None]:
    """Show an error of the block as a sentence, under a title if wanted; what comes after the block goes on."""
    try:
        yield
    except WorkbenchError as exc:
        st.html(cards.alert(title, exc.message, exc.remedy))


def download(label: str, data: Any, file: str, key: str, help: str | None = None) -> None:
    """A button that downloads text or bytes, or what a function makes of them, and draws nothing again."""
    kind = mimetypes.guess_type(file)[0] or "application/octet-stream"
    st.download_button(label, data, file, kind, key=key, on_click="ignore", help=help)


def chart(figure: Any, key: str, alt: str = "", title: str = "") -> None:
    if title:
        st.html(f'<h3 class="wb-chart">{title}</h3>')
    st.plotly_chart(figure, key=key, config=PLOT, alt=alt or None)


def slider(
    plan: Plan,
    name: str,
    label: str,
    low: float,
    high: float,
    step: float,
    *,
    value: Any = None,
    whole_page: bool = False,
) -> None:
    """A slider of a number; its end moves out where the plan's value is beyond it. `value` is shown instead of the own one (the
    effective depth where it is auto). A move draws only the page's parts again, or everything with `whole_page`, where it
    changes what other controls show.
    """
    kind = int if isinstance(step, int) else float
    shown = kind(plan[name] if value is None else value)
    # An end that has moved out stays there: moving back would make another widget of it in the middle of a drag.
    kept = _ENDS + name
    low, high = min(kind(low), shown), max(kind(high), shown, st.session_state.get(kept, shown))
    st.session_state[kept] = high
    options: dict[str, Any] = {"step": kind(step), "help": help_of(name)}
    options["format"] = "%g" if kind is float and step >= 1 else None
    if whole_page:
        st.slider(label, low, high, shown, **bound(name, shown, _set_field, name), **options)
    else:
        _following(label, low, high, shown, **bound(name, shown, _set_field, name, then=_draw_parts), **options)


def apart(labels: Iterable[str]) -> list[str]:
    """Labels of options of which none is another's: Streamlit knows an option by its label, and shows the last of that label as
    the chosen one.
    """
    made, seen = [], Counter[str]()
    for label in labels:
        seen[label] += 1
        made.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return made


def choice(plan: Plan, name: str, label: str, options: Sequence[str] | None = None) -> None:
    """A select box of one of a field's names, in a row of buttons where there are at most three."""
    values = tuple(options or plan_fields.locate(name)[0].choices)
    args = {"help": help_of(name), **bound(name, plan[name], _set_field, name)}
    if len(values) <= 3:
        st.segmented_control(label, values, required=True, width="stretch", default=plan[name], **args)
    else:
        st.selectbox(label, values, index=values.index(plan[name]), **args)


def many(plan: Plan, name: str, label: str, options: Sequence[str], running: Sequence[str] = ()) -> None:
    """Several of the given names; names of the plan that are not among them are offered too. `running` are shown as chosen in
    place of the plan's: grep too, where keywords let it join.
    """
    chosen = list(running or plan[name])
    named = sorted({*options, *plan[name], *chosen})
    args = {"default": chosen, "help": help_of(name), **bound(name, chosen, _set_many, name, tuple(chosen))}
    if len(named) <= MOST_PILLS:
        st.pills(label, named, selection_mode="multi", **args)
    else:
        st.multiselect(label, named, **args)


def _set_many(chosen: list[str], name: str, before: tuple[str, ...]) -> None:
    if name != "sources":
        app_state.set_plan({name: chosen})
        return
    if not chosen:
        app_state.notice("A search needs at least one source, so the last one stays.")
        return
    plan, when = app_state.current().moved, {}
    if "grep" in before and "grep" not in plan.sources:  # it joined by the keywords, which `grep.when` says
        when = {} if "grep" in chosen else {"grep.when": "never"}
        chosen = [source for source in chosen if source != "grep"] or list(plan.sources)
    elif "grep" in chosen and plan["grep.when"] == "never":
        when = {"grep.when": "auto"}
    app_state.set_plan({name: chosen, **when})


def field(plan: Plan, slot: Slot, source: str = "") -> None:
    """The control of a plan field (of a family: for one source) by its kind: slider, select box, buttons, switch, or a box
    for its spelling in the plan (a model, a number of any size).
    """
    name = f"{slot.name}.{source}" if source else slot.name
    spec, label, value = plan_fields.BY_NAME[slot.name], slot.label.format(source=source), plan[name]
    help = help_of(name)
    if slot.name in ("rerank.model", "rewrite.model"):
        shown = str(value)
        options = list(dict.fromkeys((*offered(slot.name), shown)))
        more = " Who runs the app names other models in the setting `allowed_models`."
        chosen = bound(name, shown, _set_field, name)
        st.selectbox(label, options, index=options.index(shown), help=help + more, **chosen)
    elif slot.typed:
        shown = plan_fields.show(value)
        st.text_input(label, shown, help=help, max_chars=500, **bound(name, shown, _set_field, name))
    elif slot.name == "depth" and slot.low is not None:
        _depth(plan, name, source, label, slot)
    elif slot.low is not None and slot.high is not None and slot.step is not None:
        slider(plan, name, label, slot.low, slot.high, slot.step, whole_page=slot.whole_page)
    elif spec.choices:
        choice(plan, name, label)
    elif isinstance(spec.default, bool):
        st.toggle(label, value, help=help, **bound(name, value, _set_field, name))
    else:
        values = tuple(range(int(spec.low or 0), int(spec.high or 0) + 1))
        buttons: dict[str, Any] = {"required": True, "width": "stretch", "default": value, "help": help}
        st.segmented_control(label, values, **buttons, **bound(name, value, _set_field, name))


def _depth(plan: Plan, name: str, source: str, label: str, slot: Slot) -> None:
    ends = (int(end or 0) for end in (slot.low, slot.high, slot.step))
    slider(plan, name, label, *ends, value=plan.depth(source))
    if plan[name] is not None:
        st.button(
            f"{plan_fields.show(plan[name])}: back to auto",
            key=f"{PREFIX}{name}.auto",
            type="tertiary",
            on_click=app_state.set_plan,
            args=({name: "auto"},),
            help=help_of(name),
        )


# --- the preset and the texts --------------------------------------------------------------------------------------


def preset(plan: Plan) -> None:
    names = [known.name for known in PRESETS]
    about = "\n".join(f"- **{known.name}**: {known.summary}" for known in PRESETS)
    st.selectbox(
        "Preset",
        names,
        index=names.index(plan.preset),
        **bound("preset", plan.preset, _set_preset),
        help=f"A named plan to start from. Choosing one sets every control.\n\n{about}\n\n[Guide](guide?page=search#presets)",
    )


def _set_preset(chosen: str) -> None:
    state = app_state.current()
    app_state.become(state.with_moved(Plan.parse(chosen)), f"the preset {chosen}")


def reset(label: str = "Reset to the preset", name: str = "reset", **options: Any) -> None:
    at_preset = not app_state.current().moved.changes()
    help = "Reset every setting that differs from the preset."
    st.button(label, key=PREFIX + name, on_click=_reset, disabled=at_preset, help=help, **options)


def _reset() -> None:
    state = app_state.current()
    app_state.become(state.with_moved(Plan.parse(state.moved.preset)), "the reset to the preset")
    st.rerun("app")


def paste() -> None:
    st.text_area(
        "Paste a plan",
        key=PREFIX + "paste",
        on_change=_paste,
        height=90,
        placeholder="tmm fusion.alpha=0.7 limit=20",
        help="The text form (`tmm fusion.alpha=0.7`) or the YAML of a plan file. Press Ctrl+Enter to take it.",
    )


@app_state.callback
def _paste() -> None:
    text = str(st.session_state[PREFIX + "paste"] or "").strip()
    st.session_state[PREFIX + "paste"] = ""
    if not text:
        return
    is_yaml = text.startswith(("preset:", "fields:", "#", "---")) or "\n" in text
    plan = Plan.from_yaml(text) if is_yaml else Plan.parse(text)
    app_state.become(app_state.current().with_moved(plan), "the pasted plan")
    st.rerun("app")


def text_box(
    name: str, label: str, help: str, placeholder: str = "", *, search: bool = False, lines: bool = False
) -> None:
    """A box of one of the state's texts: `query` (a `search`), `keywords`, `filters` or `context` (of several `lines`)."""
    text = getattr(app_state.current(), name)
    options: dict[str, Any] = {"help": help, "placeholder": placeholder, "max_chars": app_state.LONGEST}
    options |= bound(name, text, _set_text, name)
    if lines:
        st.text_area(label, text, height=110, **options)
    else:
        st.text_input(label, text, type="search" if search else "default", **options)


def switch(name: str, label: str, on: bool, help: str) -> None:
    """A switch of one of the state's yes-or-no attributes."""
    words = label.lower()
    st.toggle(label, on, help=help, **bound(name, on, lambda value: app_state.update(words, **{name: value})))


def _set_text(text: str | None, name: str) -> None:
    app_state.update(f"the {name}", **{name: (text or "").strip()})


def ask(query: str) -> None:
    app_state.update("the query", query=query)


def picture(titles: dict[str, str]) -> str:
    """Which chart is drawn above the columns; made for a fragment, so it writes the address itself."""
    shown = app_state.current().picture
    st.segmented_control(
        "Picture",
        app_state.PICTURES,
        required=True,
        default=shown,
        format_func=lambda name: titles[name],
        label_visibility="collapsed",
        **bound("picture", shown, lambda name: app_state.update("the picture", picture=name)),
    )
    app_state.write_address()
    return app_state.current().picture
