"""One search with its settings as sliders, in a notebook.

The candidates are retrieved once, deep; a move of a slider fuses them again and redraws the picture, the list and, with
judgments, the measure of all judged queries. What a slider cannot do without searching (BM25's k1 and b) searches the one
query again at once, and the judged queries when the person says so, because that takes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import charts
from workbench.charts.layout import CUT
from workbench.errors import NeedsSearch, PlanError, UsageError, WorkbenchError
from workbench.markup import plain, visible
from workbench.plan import fields as plan_fields
from workbench.plan.controls import GROUPS, Slot, cut_words, threshold_range
from workbench.plan.plan import Plan
from workbench.records import Hit

if TYPE_CHECKING:
    from workbench.corpus import Corpus
    from workbench.evaluate.live import LiveFigure, LiveMeasure
    from workbench.judgments.qrels import Judgments
    from workbench.records import Progress
    from workbench.retrieve.result import SearchResult


DEPTH = 1_000
"""How many candidates a source gives at least, so that the depth sliders have room to move."""

PICTURES = ("ranks", "shares", "scores", "distances", "steps", "queries")

OFFERED = (
    "fusion.method", "fusion.k", "fusion.alpha", "fusion.weights", "fusion.normalise", "fusion.missing", "vector.threshold",
    "depth", "keyword.k1", "keyword.b",
)  # fmt: skip
"""The settings that have a control where nobody says which."""


class Explorer:
    """A search whose settings move; shows itself in a notebook. Made by `workbench.explore`.

    Attributes:
        start: The plan that it started from; arrows and differences are against it.
        plan: The plan that the sliders make.
        result: The search under that plan.
        live: The measure of the judged queries; None without judgments.
        measured: Its figure for the plan; None without judgments, or where they must be retrieved again first.
        figure: The plotly FigureWidget on the page.
        widget: The whole, an ipywidgets box.
    """

    def __init__(
        self, corpus: Corpus, query: str, start: Plan, settings: Sequence[str], search: Mapping[str, Any],
        live: LiveMeasure | None, questions: Sequence[str],
    ) -> None:  # fmt: skip
        import ipywidgets
        import plotly.graph_objects as go

        self.corpus, self.start, self.plan, self.live = corpus, start, start, live
        self._settings, self._search = tuple(settings), dict(search)
        self.measured: LiveFigure | None = None
        self.result: SearchResult = self._searched(query, start)
        self._before = _ranks(self.result)
        self._quiet = False

        layout, wide = ipywidgets.Layout, {"style": {"description_width": "4.5rem"}}
        self._query = ipywidgets.Combobox(
            description="Query", value=query, options=tuple(dict.fromkeys(questions)), continuous_update=False,
            layout=layout(width="38rem"), **wide,
        )  # fmt: skip
        offered = PICTURES if live is not None else PICTURES[:-1]
        self._picture = ipywidgets.Dropdown(
            description="Picture", options=offered, value=offered[0], layout=layout(width="14rem"), **wide
        )
        self._reset = ipywidgets.Button(description="Back to the start", tooltip="Undo every change")
        self._again = ipywidgets.Button(
            description="Measure again", tooltip="Retrieves the judged queries under this plan; takes seconds",
            button_style="primary",
        )  # fmt: skip
        self._bar = ipywidgets.FloatProgress(min=0.0, max=1.0, layout=layout(display="none", width="100%"))
        self._head, self._alert, self._list, self._words = (ipywidgets.HTML() for _ in range(4))
        self._controls: list[Control] = []
        self._left = ipywidgets.VBox(layout=layout(flex="0 0 auto"))
        self._lay_controls()
        self.figure = go.FigureWidget(self._drawn())
        self.figure._config = {"displayModeBar": False, "responsive": True}
        shown = [self._head, self._again, self._bar, self._alert, self.figure, self._list, self._words]
        wrapped = layout(flex_flow="row wrap")
        right = ipywidgets.VBox(shown, layout=layout(flex="1 1 32rem", min_width="0"))
        rows = ([self._query, self._picture, self._reset], [self._left, right])
        self.widget = ipywidgets.VBox([ipywidgets.HBox(row, layout=wrapped) for row in rows])
        self._query.observe(self._asked, "value")
        self._picture.observe(lambda change: self._draw(), "value")
        self._reset.on_click(lambda button: self._try(lambda: self.become(self.start)))
        self._again.on_click(lambda button: self._try(self.measure_again))
        self._draw()

    # --- what an analyst's own cells use ---------------------------------------------------------------------------

    def move(self, changes: Mapping[str, Any]) -> None:
        """Change fields of the plan, as moving sliders does. Raises PlanError, QueryError."""
        self.become(self.plan.replace(changes))

    def become(self, plan: Plan | str) -> None:
        """Take another plan; the sliders follow.

        Raises:
            PlanError: It cannot be read, or it cannot fuse what was found.
            QueryError, SourceUnavailable: As `Corpus.search`.
        """
        value = Plan.of(plan)
        result = self._fused(value)
        same = fields_for(self._settings, value) == fields_for(self._settings, self.plan)
        self.plan, self.result = value, result
        if not same:
            self._lay_controls()
        for control in self._controls:
            control.show(value)
        self._draw()

    def ask(self, query: str) -> None:
        """Search another query under the plan that is there; arrows are then against the start plan on that query.

        Raises QueryError: It cannot be read.
        """
        first = self._searched(query, self.start)
        self.result = self._searched(query, self.plan)
        self._before = _ranks(first)
        self._quiet = True
        try:
            self._query.value = query
        finally:
            self._quiet = False
        self._draw()

    def show(self, picture: str) -> None:
        """Choose the picture: ranks, shares, scores, distances, steps, and queries where there are judgments."""
        if picture not in self._picture.options:
            raise UsageError(f"There is no picture {picture!r}", "The pictures are " + ", ".join(self._picture.options))
        self._picture.value = picture

    def measure_again(self) -> None:
        """Retrieve the judged queries under the plan that is there, and show their figure."""
        if self.live is None:
            raise UsageError("There are no judged queries to measure", "Pass judgments to explore")
        self._bar.layout.display = None
        try:
            self.live.prepare(self.plan, self._progress)
        finally:
            self._bar.layout.display = "none"
        self._draw()

    def save(self, path: str | Path) -> Path:
        """Write the plan that is there as a plan file, which the app, the command line and `Plan.from_yaml` read."""
        target = Path(path)
        target.write_text(self.plan.to_yaml(), encoding="utf-8")
        return target

    # --- searching -----------------------------------------------------------------------------------------------------

    def _searched(self, query: str, plan: Plan) -> SearchResult:
        depths = {source: max(DEPTH, plan.depth(source)) for source in plan.sources}
        return self.corpus.search(query, plan=plan, depths=depths, **self._search)

    def _fused(self, plan: Plan) -> SearchResult:
        try:
            return self.result.with_plan(plan)
        except NeedsSearch:
            return self._searched(self.result.query, plan)

    # --- what is told by the page --------------------------------------------------------------------------------------

    def _moved(self, name: str, value: Any) -> None:
        self._try(lambda: self.move({name: value}))

    def _asked(self, change: Any) -> None:
        if not self._quiet and change["new"].strip():
            self._try(lambda: self.ask(change["new"]))

    def _try(self, what: Callable[[], None]) -> None:
        """Do what a control asks; what cannot be is said beside the picture, which stays as it was."""
        try:
            what()
        except WorkbenchError as error:
            for control in self._controls:  # a value that was refused does not stay on its slider
                control.show(self.plan)
            # A screen reader speaks an alert at once.
            style = f"border-left:4px solid {CUT};padding-left:8px"
            self._alert.value = f'<div role="alert" style="{style}">{visible(str(error))}</div>'

    def _progress(self, report: Progress) -> None:
        self._bar.value = report.done / max(report.total, 1)

    # --- drawing ---------------------------------------------------------------------------------------------------------

    def _lay_controls(self) -> None:
        self._controls = controls_for(self._settings, self.plan, self._moved)
        self._left.children = tuple(control.widget for control in self._controls)

    def _draw(self) -> None:
        self._alert.value = self._head.value = ""
        self._again.layout.display = "none"
        self.measured = None
        if self.live is not None and self.live.ready(self.plan):
            found = self.measured = self.live.figure(self.plan)
            text = visible(f"{found.text}, 95 % interval {found.low:.3f} to {found.high:.3f}")
            self._head.value = f'<div style="font-size:1.15em"><b>{text}</b></div>'
        elif self.live is not None:
            self._again.layout.display = None
            self._head.value = f"<div>{self.live.measure}: this setting changes what is retrieved.</div>"
        _redraw(self.figure, self._drawn())
        notes = (*self.result.warnings, *(() if self.result.hits else self.result.messages))
        self._list.value = listing(self.result.hits, self._before, self.plan.sources, notes)
        self._words.value = f'<div>Plan: <code style="white-space:normal">{visible(str(self.plan))}</code></div>'

    def _drawn(self) -> Any:
        """The picture of the result that is there, by the functions that draw the app's pages."""
        result, picture = self.result, self._picture.value
        sources = tuple(result.rankings)
        if picture == "queries" and self.live is not None and self.live.ready(self.plan):
            return charts.wins_figure(self.live.wins(self.plan), self.live.measure, ("the start", "this plan"))
        if picture == "shares":
            return charts.share_figure(result.hits, sources)
        if picture == "scores" and len(sources) > 1:
            return charts.score_figure(result.fused, *sources[:2])
        if picture == "distances":
            vector = next((s for s in sources if s.startswith("vector")), None)
            seen = np.zeros(0) if vector is None else result.distances(vector)
            name = str(self.plan["vector.metric"])
            cut = self.plan.threshold(vector or "vector")
            return charts.distance_figure(charts.histogram(seen, name), cut, height=240)
        if picture == "steps":
            return charts.funnel_figure(result.steps)
        return charts.rank_figure(result.hits, sources)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = self.widget._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": f"{self!r}: run the cell for its sliders"}

    def __repr__(self) -> str:
        return f"<Explorer {self.result.query!r} by {self.plan}>"


def explore(
    corpus: Corpus,
    query: str | None = None,
    judgments: Judgments | None = None,
    *,
    plan: Plan | str = "default",
    measure: str = "nDCG@10",
    settings: Sequence[str] = OFFERED,
    keywords: str | None = None,
    context: str | None = None,
    mode: str = "hybrid",
    filters: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Explorer:
    """Sliders over one search, in a notebook: the ranks, the picture and, with judgments, the measure move together.

    Args:
        corpus: An open corpus; it stays open while the sliders are used.
        query: What to search first; None: the first judged query.
        judgments: Judged queries, retrieved once here (some seconds), whose measure every move then shows.
        plan: The plan to start from.
        measure: nDCG, RR, R, P, AP or Success, at any cutoff.
        settings: Plan fields to have a control; a family such as `fusion.weights` has one a source.
        keywords, context, mode, filters: As in `Corpus.search`; the mode and the filters hold for the judged queries too.
        progress: Called with a Progress for each judged query.

    Returns:
        The explorer: the last line of a cell shows it; `plan`, `result`, `measured` and `save` are for the next cell.

    Raises:
        UsageError: Neither a query nor judgments, or the extra `notebooks` is not installed.
        PlanError, QueryError, JudgmentError, SourceUnavailable: What was asked cannot be.
    """
    try:
        import anywidget  # noqa: F401 - plotly's FigureWidget needs it
        import ipywidgets  # noqa: F401
    except ImportError as exc:
        raise UsageError(
            "Sliders in a notebook need ipywidgets and anywidget", "pip install 'hybrid-retrieval-workbench[notebooks]'"
        ) from exc
    start = Plan.of(plan)
    questions = [] if judgments is None else [judgments.topic(i).text for i in judgments.query_ids]
    if query is None:
        if not questions:
            raise UsageError("There is nothing to search", "Pass a query, or judgments")
        query = questions[0]
    live = None
    if judgments is not None:
        deep = start.replace({f"depth.{source}": max(DEPTH, start.depth(source)) for source in start.sources})
        live = corpus.live(judgments, measure, deep, mode=mode, filters=filters, progress=progress)
        live.compare_with(start)
    search = {"keywords": keywords, "context": context, "mode": mode, "filters": filters}
    return Explorer(corpus, query, start, settings, search, live, questions)


def _ranks(result: SearchResult) -> dict[str, int]:
    return {hit.chunk_id: hit.rank for hit in result.hits if hit.rank}


_SLOTS = {slot.name: slot for group in GROUPS for slot in group.slots}

Moved = Callable[[str, Any], None]


class Control:
    """The control of one field.

    Args:
        name: The dotted field, its source included.
        slot: How the app shows it.
        plan: The plan to read first.
        moved: Told the field and its new value when a person moves it.
    """

    def __init__(self, name: str, slot: Slot, plan: Plan, moved: Moved) -> None:
        import ipywidgets

        self.name, self._slot, self._moved = name, slot, moved
        field, source = plan_fields.locate(name)
        self._quiet = False
        width: Any = ipywidgets.Layout(width="23rem")
        look: dict[str, Any] = {"tooltip": field.help, "style": {"description_width": "9.5rem"}, "layout": width}
        named = {"description": slot.label.format(source=source), **look}
        self._switch: Any = None
        self._cuts = _cut_by(name)
        if self._cuts:
            end, step = threshold_range(plan, self._cuts)
            shape = f".{max(2, -math.floor(math.log10(step)))}f"
            self.input = ipywidgets.FloatSlider(min=0.0, max=end, step=step, readout_format=shape, **named)
            cut = f"Cut {source} {cut_words(self._cuts)}".replace("  ", " ")
            self._switch = ipywidgets.Checkbox(description=cut, indent=True, **look)
            self._switch.observe(self._told, "value")
        elif slot.low is not None and slot.high is not None and slot.step is not None:
            bounds: dict[str, Any] = {"min": slot.low, "max": slot.high, "step": slot.step}
            if isinstance(slot.step, int):
                self.input = ipywidgets.IntSlider(**bounds, **named)
            else:
                self.input = ipywidgets.FloatSlider(readout_format=".2f" if slot.step < 1 else ".0f", **bounds, **named)
        elif field.choices:
            self.input = ipywidgets.Dropdown(options=field.choices, value=None, **named)
        elif isinstance(field.default, bool):
            self.input = ipywidgets.Checkbox(indent=True, **named)
        else:
            self.input = ipywidgets.Text(continuous_update=False, **named)
        self.widget: Any = self.input if self._switch is None else ipywidgets.VBox([self._switch, self.input])
        self.show(plan)
        self.input.observe(self._told, "value")

    def show(self, plan: Plan) -> None:
        """Take the plan's value, without telling anybody; hide where the plan does not read the field."""
        self._quiet = True
        try:
            self.widget.layout.display = None if self._slot.shown(plan) else "none"
            value = plan[self.name]
            if self._switch is not None:
                value = plan.threshold(self._cuts) if self.name.startswith("threshold.") else value
                off = value == plan_fields.OFF
                self._switch.value = not off
                low, high = (0.0, 0.0) if off else (min(0.0, float(value)), float(value))
                self.input.min, self.input.max = low, max(threshold_range(plan, self._cuts)[0], high)
                self.input.disabled = off
                if not off:
                    self.input.value = float(value)
            elif self.name.startswith("depth."):
                self._fit(plan.depth(self.name.removeprefix("depth.")))
            elif hasattr(self.input, "step"):
                self._fit(value)
            elif isinstance(self.input.value, bool):
                self.input.value = value
            else:
                self.input.value = plan_fields.show(value)
        finally:
            self._quiet = False

    def _fit(self, value: float) -> None:
        """Set a slider; its ends move out where the value is beyond them."""
        self.input.min, self.input.max = min(self.input.min, value), max(self.input.max, value)
        self.input.value = value

    def _told(self, change: Any) -> None:
        if self._quiet:
            return
        value = self.input.value
        if self._switch is not None and not self._switch.value:
            value = plan_fields.OFF
        self._moved(self.name, round(value, 10) if isinstance(value, float) else value)


def _cut_by(name: str) -> str:
    """The source that a field is a threshold of, or `fused`; "" where it is none."""
    field, source = plan_fields.locate(name)
    return {"vector.threshold": "vector", "threshold": source, "fusion.threshold": plan_fields.FUSED}.get(
        field.name, ""
    )


def fields_for(names: Sequence[str], plan: Plan) -> tuple[str, ...]:
    """The fields that have a control, in the order of the names, each once: a family without its source has one for each of
    the plan's sources, and `vector.threshold` where the plan asks several vector sources is the threshold of each.

    Raises PlanError: An unknown field.
    """
    made: list[str] = []
    for name in names:
        spec = plan_fields.BY_NAME.get(name)
        if name == "vector.threshold" and plan.vectors:
            made += [plan.threshold_to_set(source) for source in plan.vectors]
        elif spec is not None and spec.family:
            made += [f"{name}.{source}" for source in spec.of(plan.sources)]
        else:
            made.append(name)
    for name in made:
        if plan_fields.locate(name)[0].name not in _SLOTS:
            raise PlanError(f"{name} has no control", "Choose among " + ", ".join(_SLOTS))
    return tuple(dict.fromkeys(made))


def controls_for(names: Sequence[str], plan: Plan, moved: Moved) -> list[Control]:
    return [Control(name, _SLOTS[plan_fields.locate(name)[0].name], plan, moved) for name in fields_for(names, plan)]


def _redraw(widget: Any, figure: Any) -> None:
    """Show another figure in the same place: traces and layout take its values, and lose what it does not have."""
    new = figure.to_plotly_json()
    kept = len(
        list(takewhile(lambda pair: pair[0].type == pair[1]["type"], zip(widget.data, new["data"], strict=False)))
    )
    if kept < len(widget.data):
        widget.data = widget.data[:kept]
    with widget.batch_update():
        for old, trace in zip(widget.data, new["data"], strict=False):
            _become(old, trace, ("type", "uid"))
        _become(widget.layout, new["layout"], ("template",))
    if kept < len(new["data"]):
        widget.add_traces(new["data"][kept:])


def _become(old: Any, new: dict[str, Any], left: tuple[str, ...]) -> None:
    """Give an object of plotly the properties of a dictionary, and take away those that it does not name."""
    had = old.to_plotly_json()
    for name in (*had, *(n for n in new if n not in had)):
        if name not in left and had.get(name) != new.get(name):
            old[name] = new.get(name)


_CELL = "text-align:left;padding:1px 10px 1px 0;white-space:nowrap"


def listing(
    hits: Sequence[Hit], before: Mapping[str, int], sources: Sequence[str], messages: Sequence[str] = ()
) -> str:
    """The results as HTML: a column for each source, arrows against the rank of each chunk id `before`, and what else is said."""
    titles = ("", "", "result", *(f"{source} rank" for source in sources), "score")
    head = "".join(f'<th style="{_CELL}">{visible(title)}</th>' for title in titles)
    rows = "".join(_row(hit, before, sources) for hit in hits if hit.rank)
    lines = "".join(f"<div>{visible(line)}</div>" for line in messages)
    return f'<div style="overflow-x:auto"><table><tr>{head}</tr>{rows}</table>{lines}</div>'


def _row(hit: Hit, before: Mapping[str, int], sources: Sequence[str]) -> str:
    ranks = (str(hit.ranks.get(source, "")) for source in sources)
    move, cited = moved(before.get(hit.chunk_id), hit.rank), visible(plain(hit.citation, 90))
    cells = (str(hit.rank), move, cited, *ranks, f"{hit.score:.4f}")
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def moved(before: int | None, now: int) -> str:
    """How a result moved: ▲ or ▼ and by how many places, `new`, or nothing where it did not."""
    if before is None:
        return "new"
    return "" if before == now else f"▲{before - now}" if before > now else f"▼{now - before}"
