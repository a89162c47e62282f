"""The rows, in the order of the table, and running them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import rows_engines, rows_plans, rows_running
from bench.figures import Row, Unmeasured
from bench.ground import Ground
from workbench.errors import UsageError, WorkbenchError
from workbench.records import Progress


@dataclass(frozen=True, slots=True)
class Measure:
    """What is measured together: the rows' keys, and how."""

    keys: tuple[str, ...]
    measure: Callable[[Ground], Row | tuple[Row, ...]]


MEASURES: tuple[Measure, ...] = (
    Measure(("keyword.typed",), rows_engines.typed),
    Measure(("keyword.content",), rows_engines.content),
    Measure(("vector.exact",), rows_engines.exact),
    Measure(("vector.graph",), rows_engines.graph),
    Measure(("grep.rare",), rows_engines.rare),
    Measure(("grep.frequent",), rows_engines.frequent),
    Measure(("grep.regex",), rows_engines.regex),
    Measure(("grep.scan",), rows_engines.scan),
    Measure(("hybrid.search",), rows_plans.search),
    Measure(("hybrid.refuse",), rows_plans.refuse),
    Measure(("hybrid.slider",), rows_plans.refuse_shown),
    Measure(("presets.collections",), rows_plans.collections),
    Measure(("presets.pages", "presets.organise"), rows_plans.pages),
    Measure(("plans.top", "plans.all"), rows_plans.many),
    Measure(("plans.sweep",), rows_plans.sweep),
    Measure(("open.one",), rows_running.one),
    Measure(("open.eight",), rows_running.eight),
    Measure(("start.import", "start.help"), rows_running.start),
    Measure(("index.share", "index.memory"), rows_running.model),
    Measure(("index.again", "index.unchanged"), rows_running.again),
    Measure(("build.seconds", "build.memory"), rows_running.built),
)

KEYS: tuple[str, ...] = tuple(key for measure in MEASURES for key in measure.keys)


def choose(only: Sequence[str]) -> tuple[str, ...]:
    chosen: set[str] = set()
    for name in only:
        found = [key for key in KEYS if key == name or key.partition(".")[0] == name]
        if not found:
            raise UsageError(f"The bench has no row {name!r}", "The rows are " + ", ".join(KEYS))
        chosen.update(found)
    return tuple(key for key in KEYS if key in chosen) if only else KEYS


def run(ground: Ground, keys: Sequence[str], tell: Callable[[Progress], None]) -> Iterator[Row | Unmeasured]:
    """Measure rows, each given as soon as it is there, so that a stopped bench has those that are done."""
    done = 0
    for measure in MEASURES:
        wanted = [key for key in measure.keys if key in keys]
        if not wanted:
            continue
        tell(Progress("measure", done, len(keys), detail=wanted[0]))
        try:
            made = measure.measure(ground)
        except WorkbenchError as exc:
            # A row that cannot be had here (no model, say) leaves the others as they are.
            yield from (Unmeasured(key, str(exc)) for key in wanted)
            continue
        for row in made if isinstance(made, tuple) else (made,):
            if row.key in wanted:
                yield row
        done += len(wanted)
        tell(Progress("measure", done, len(keys), detail=wanted[-1]))
