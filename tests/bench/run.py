"""The rows, in the order of the table, and running them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import (
    rows_grep,
    rows_hybrid,
    rows_indexing,
    rows_keyword,
    rows_opening,
    rows_presets,
    rows_sweep,
    rows_vectors,
)
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
    Measure(("keyword.typed",), rows_keyword.typed),
    Measure(("keyword.content",), rows_keyword.content),
    Measure(("vector.exact",), rows_vectors.exact),
    Measure(("vector.graph",), rows_vectors.graph),
    Measure(("grep.rare",), rows_grep.rare),
    Measure(("grep.frequent",), rows_grep.frequent),
    Measure(("grep.regex",), rows_grep.regex),
    Measure(("grep.scan",), rows_grep.scan),
    Measure(("hybrid.search",), rows_hybrid.search),
    Measure(("hybrid.refuse",), rows_hybrid.refuse),
    Measure(("hybrid.slider",), rows_hybrid.refuse_shown),
    Measure(("presets.collections",), rows_presets.collections),
    Measure(("presets.pages", "presets.organise"), rows_presets.pages),
    Measure(("plans.top", "plans.all"), rows_hybrid.many),
    Measure(("plans.sweep",), rows_sweep.sweep),
    Measure(("open.one",), rows_opening.one),
    Measure(("open.eight",), rows_opening.eight),
    Measure(("start.import", "start.help"), rows_opening.start),
    Measure(("index.share", "index.memory"), rows_indexing.model),
    Measure(("index.again", "index.unchanged"), rows_indexing.again),
    Measure(("build.seconds", "build.memory"), rows_indexing.built),
)

KEYS: tuple[str, ...] = tuple(key for measure in MEASURES for key in measure.keys)


def choose(only: Sequence[str]) -> tuple[str, ...]:
    """Keys of the rows that are asked for.

    Args:
        only: Keys, or their first part (`keyword`); empty is all.

    Raises:
        UsageError: A name that no row has.
    """
    chosen: set[str] = set()
    for name in only:
        found = [key for key in KEYS if key == name or key.partition(".")[0] == name]
        if not found:
            raise UsageError(f"The bench has no row {name!r}", "The rows are " + ", ".join(KEYS))
        chosen.update(found)
    return tuple(key for key in KEYS if key in chosen) if only else KEYS


def run(ground: Ground, keys: Sequence[str], tell: Callable[[Progress], None]) -> Iterator[Row | Unmeasured]:
    """Measure rows, each given as soon as it is there, so that a stopped bench has those that are done.

    Args:
        ground: What to measure on.
        keys: Rows to measure.
        tell: Called with a Progress before each.
    """
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
