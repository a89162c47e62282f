"""Measures by their text form: `nDCG@10`, `RR`, `R@100`, `P(rel=2)@5`, computed by ir_measures.

This module reads the names (the library's own parser leans on parts of `ast` that newer Pythons warn about or lack), refuses
what cannot be averaged or computed here, and gives every judged query a value. The gain of `nDCG` is linear: a document adds
its grade, divided by log2(rank + 1), as in trec_eval. Another gain is a parameter of the measure:
`nDCG(gains={1: 1, 2: 3, 3: 7})@10` is the exponential one.

`Quick` computes the usual measures for many plans at once, from the ranks of judged documents alone: nDCG (linear gain), RR,
R, P, AP and Success, at any cutoff and from any grade on. They are those of ir_measures, value for value; a test holds them
equal. Any other measure is computed from whole lists.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from workbench.errors import UsageError
from workbench.ranking.candidates import Floats, Ints

DEEPEST = 1000

_PLAIN = re.compile(r"([A-Za-z_]\w*)(?:@([1-9]\d{0,8}))?", re.ASCII)
_WORD = re.compile(r"(?:\([^)]*\)?|[^(,\s])+")
_REMEDY = "Write it like nDCG@10, RR, R@100, P(rel=2)@5, AP, Success@10 or Judged@10"


def parse_measure(text: str) -> Any:
    """The ir_measures measure of a name such as `nDCG@10` or `P(rel=2)@5`; case does not matter.

    `str()` of the result is the name's one spelling.
    """
    import ir_measures

    name, parameters, cutoff = _read(text)
    registry: Mapping[str, Any] = ir_measures.measures.registry
    kind = registry.get(name) or next((m for n, m in registry.items() if n.lower() == name.lower()), None)
    if kind is None:
        near = difflib.get_close_matches(name.lower(), sorted({n.lower() for n in registry}), 1)
        spelled = next((n for n in registry if near and n.lower() == near[0]), "")
        raise UsageError(
            f"There is no measure called {name!r}", f"Did you mean {spelled}? {_REMEDY}" if spelled else _REMEDY
        )
    if cutoff is not None:
        if kind.AT_PARAM is None or kind.AT_PARAM not in kind.SUPPORTED_PARAMS:
            raise UsageError(f"The measure {name} takes no @{cutoff}", f"Write {name} alone")
        if not isinstance(cutoff, int) and kind.AT_PARAM == "cutoff":
            raise UsageError(
                f"The measure {text!r} cannot be read: after @ comes a whole number of at least 1", _REMEDY
            )
        parameters[kind.AT_PARAM] = cutoff
    known: Mapping[str, Any] = kind.SUPPORTED_PARAMS
    for parameter, value in parameters.items():
        if parameter not in known:
            raise UsageError(
                f"The measure {name} has no parameter {parameter}", f"It has: {', '.join(known) or 'none'}"
            )
        if not known[parameter].validate(value):
            raise UsageError(f"The measure {name} takes no {parameter}={value!r}", _REMEDY)
    missing = [n for n, info in known.items() if info.required and n not in parameters]
    if missing:
        raise UsageError(f"The measure {text!r} lacks its {', '.join(missing)}", _REMEDY)
    measure = kind(**parameters)
    depth = measure.params.get("cutoff")
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise UsageError(f"The measure {text!r} has no cutoff of at least 1", _REMEDY)
    if isinstance(measure.aggregator(), ir_measures.SumAgg):
        raise UsageError(f"The measure {text!r} is a count and has no mean", _REMEDY)
    if not _pipeline().supports(measure):
        raise UsageError(f"The measure {text!r} cannot be computed here, whatever its library knows of it", _REMEDY)
    return measure


def parse_measures(measures: str | Iterable[str]) -> tuple[str, ...]:
    """Names in their one spelling, each once, in the order given; a text is split at commas and spaces outside brackets."""
    words = _WORD.findall(measures) if isinstance(measures, str) else list(measures)
    names = tuple(dict.fromkeys(str(parse_measure(word)) for word in words))
    if not names:
        raise UsageError("No measure is named", _REMEDY)
    return names


def place_of(measure: str, computed: Sequence[str]) -> int:
    """Where a measure, however it is spelled, is among those that were computed. Raises UsageError where it was not."""
    (name,) = parse_measures([measure])
    if name not in computed:
        raise UsageError(f"{name} was not computed", "Computed are: " + ", ".join(computed))
    return computed.index(name)


def needed_depth(measures: Iterable[str]) -> int:
    """How many documents a ranking needs for these measures: the largest cutoff, 1,000 for a measure without one."""
    return max((parse_measure(m).params.get("cutoff") or DEEPEST) for m in measures)


def compute(
    rankings: Mapping[str, Sequence[str]],
    qrels: Mapping[str, Mapping[str, int]],
    query_ids: Sequence[str],
    measures: Sequence[str],
) -> Floats:
    """Every measure for every judged query.

    Args:
        rankings: query id -> document keys, best first, each once. Only the order counts: ties are already broken.

    Returns:
        float64 (queries, measures), each value as ir_measures gives it.
    """
    parsed = [parse_measure(m) for m in measures]
    # Whole numbers that fall by one: exact in the single precision that trec_eval sorts by, and without ties.
    run = {
        i: {key: float(len(rankings[i]) - n) for n, key in enumerate(rankings[i])} for i in query_ids if rankings.get(i)
    }
    judged = {i: dict(qrels[i]) for i in query_ids}
    for grades in judged.values():
        if all(grade < 0 for grade in grades.values()):  # trec_eval never comes back from such a query
            grades |= dict.fromkeys(grades, 0)
    values = np.zeros((len(query_ids), len(measures)))
    if not run:
        return values
    row = {i: n for n, i in enumerate(query_ids)}
    column = {measure: n for n, measure in enumerate(parsed)}
    try:
        # Measures with gains apart: in one call, ir_measures 0.4.3 gives a plain nDCG the gains of one that comes before it.
        gains = [m for m in parsed if m.params.get("gains")]
        for group in filter(None, ([m for m in parsed if m not in gains], *([m] for m in gains))):
            for metric in _pipeline().iter_calc(group, judged, run):
                values[row[metric.query_id], column[metric.measure]] = metric.value
    except (ValueError, RuntimeError, OSError) as exc:
        raise UsageError(f"The measures {', '.join(measures)} cannot be computed: {exc}", _REMEDY) from exc
    return values


@cache
def _pipeline() -> Any:
    """The parts of ir_measures that come with it: the same measures on every machine, whatever else is installed."""
    import ir_measures
    from ir_measures.providers import FallbackProvider

    lean = (ir_measures.pytrec_eval, ir_measures.judged, ir_measures.compat, ir_measures.accuracy, ir_measures.msmarco)
    return FallbackProvider(list(lean))


def _read(text: str) -> tuple[str, dict[str, Any], int | float | None]:
    """Name, named parameters and what is after @ in `Name(a=1)@10`; `IPrec@0.1` has a share there. Raises UsageError.

    Names without parameters are read without Python's parser: 3.11's fails where two threads parse at once, and a page's script
    is parsed while its thread measures.
    """
    if plain := _PLAIN.fullmatch(str(text).strip()):
        return plain[1], {}, int(plain[2]) if plain[2] else None
    try:
        node: ast.expr = ast.parse(str(text).strip(), mode="eval").body
        cutoff = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            cutoff = ast.literal_eval(node.right)
            node = node.left
        parameters: dict[str, Any] = {}
        if isinstance(node, ast.Call):
            if node.args or any(k.arg is None for k in node.keywords):
                raise ValueError("parameters are written name=value")
            parameters = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
            node = node.func
        if not isinstance(node, ast.Name):
            raise ValueError("it does not begin with a name")
        if cutoff is not None and (isinstance(cutoff, bool) or not isinstance(cutoff, int | float) or cutoff <= 0):
            raise ValueError("after @ comes a whole number of at least 1")
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as exc:
        reason = "it is not an expression" if isinstance(exc, SyntaxError) else str(exc)
        raise UsageError(f"The measure {text!r} cannot be read: {reason}", _REMEDY) from exc
    return node.id, parameters, cutoff


_KNOWN = frozenset({"nDCG", "RR", "R", "P", "AP", "Success"})


@dataclass(frozen=True, slots=True)
class Quick:
    """One measure: its name, cutoff (None: none) and least relevant grade."""

    name: str
    cutoff: int | None
    least: int

    def of(self, ranks: Ints, grades: Ints, every: Ints) -> Floats:
        """Values for p plans.

        Args:
            ranks: int64 (p, t), ranks of judged documents from 1; 0 where a plan does not return it.
            grades: int64 (t,).
            every: int64 (j,), grades of all judged documents, returned or not.

        Returns:
            float64 (p,).
        """
        within = ranks > 0 if self.cutoff is None else (ranks > 0) & (ranks <= self.cutoff)
        ranks, none = np.where(within, ranks, 0), np.zeros(len(ranks))
        if self.name == "nDCG":
            ideal = np.sort(np.maximum(every, 0))[::-1][: self.cutoff]
            best = float((ideal / np.log2(np.arange(2, len(ideal) + 2))).sum())
            gains = np.where(ranks > 0, np.maximum(grades, 0) / np.log2(np.maximum(ranks, 1) + 1.0), 0.0)
            return np.asarray(gains.sum(axis=1) / best) if best else none
        relevant = np.where(grades >= self.least, ranks, 0)
        found = np.count_nonzero(relevant, axis=1).astype(np.float64)
        total = int(np.count_nonzero(every >= self.least))
        if not total or not relevant.shape[1]:
            return none
        if self.name in ("P", "R"):
            return np.asarray(found / (total if self.name == "R" else float(self.cutoff or 1)))
        if self.name == "Success":
            return np.asarray(found > 0, np.float64)
        placed = np.where(relevant > 0, relevant.astype(np.float64), np.inf)
        if self.name == "RR":
            return np.asarray(1.0 / placed.min(axis=1))
        placed = np.sort(placed, axis=1)
        return np.asarray((np.arange(1, placed.shape[1] + 1) / placed).sum(axis=1) / total)


@cache
def quick(measure: str) -> Quick | None:
    """The measure if its values follow from ranks alone, else None."""
    parsed = parse_measure(measure)
    parameters = dict(parsed.params)
    cutoff, least = parameters.pop("cutoff", None), parameters.pop("rel", 1)
    usual = {"dcg": "log2", "judged_only": False}
    changed = [n for n, v in parameters.items() if v is not None and v != usual.get(n)]
    return None if parsed.NAME not in _KNOWN or changed or least < 1 else Quick(parsed.NAME, cutoff, int(least))


def values_of(measures: Sequence[Quick], ranks: Ints, grades: Ints, every: Ints) -> Floats:
    """Several measures at once, float64 (p, m)."""
    return np.stack([m.of(ranks, grades, every) for m in measures], axis=1)
