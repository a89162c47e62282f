"""What is asked: one search as a value, and which sources it runs.

`Request` is made once from the caller's words (Unicode NFC, trimmed) and is half of the cache key; `sources_of` decides
what runs, from mode, plan, keywords and quoted phrases.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from workbench.errors import SAY_WHO, FilterError, PrincipalRequired, QueryError
from workbench.plan.fields import base_of, collection_of
from workbench.plan.plan import Plan
from workbench.records import Kind, Principal, principal_key
from workbench.retrieve.keywords import quoted_phrases
from workbench.store.access.filters import COMPARISONS, show_field, show_value

MODES = ("hybrid", "grep", "keyword", "vector")
MEMORY = "memory"
"""The collection of an assistant's memories."""
LONGEST_QUERY = 100_000


@dataclass(frozen=True, slots=True)
class Request:
    """One search, as asked: texts are NFC and trimmed; `keywords` and `context` are "" where not given."""

    query: str
    keywords: str
    context: str
    mode: str
    filters: str
    plan: Plan
    principal: Principal | None


def make_request(
    query: str,
    principal: Principal | None,
    plan: Plan | str,
    *,
    keywords: str | None = None,
    context: str | None = None,
    mode: str = "hybrid",
    filters: str | Mapping[str, Any] | None = None,
    limit: int | None = None,
    include_memory: bool = False,
    expand_neighbors: bool = False,
    sensitivity: str | None = None,
) -> Request:
    """A request from the caller's words, as `Corpus.search` takes them: texts in NFC, trimmed, the mode by its own name.

    Raises:
        QueryError: A mode that there is not, or a text that is too long or none.
        FilterError: A filter whose values cannot be.
        PlanError: A plan that cannot be read, or a limit outside its bounds.
    """
    value = Plan.of(plan)
    if include_memory:
        value = with_memory(value)
    if expand_neighbors:
        value = value.replace({"neighbours": max(1, int(value["neighbours"]))})
    if limit is not None:
        value = value.replace({"limit": limit})
    name = clean(mode, "mode").lower()
    name = "vector" if name == "semantic" else name
    if name not in MODES:
        known = f"The modes are {', '.join(MODES)} (semantic is vector)"
        raise QueryError(f"There is no mode called {mode!r}", known)
    where = clean(filter_text(filters, sensitivity), "filter")
    words = clean(query, "query"), clean(keywords, "keywords"), clean(context, "context")
    return Request(*words, name, where, value, principal)


def with_memory(plan: Plan) -> Plan:
    """The plan with the collection `memory` beside those that it names; one that names none searches memories already."""
    sources, collections = plan.sources, plan["collections"]
    values: dict[str, Any] = {}
    if collections and MEMORY not in collections:
        values["collections"] = (*collections, MEMORY)
    if any(map(collection_of, sources)):
        # One more list for each kind of source that is asked collection by collection.
        own = dict.fromkeys(source.partition("@")[0] for source in sources if collection_of(source))
        values["sources"] = (*sources, *(f"{kind}@{MEMORY}" for kind in own))
    return plan.replace(values)


def filter_text(filters: str | Mapping[str, Any] | None, sensitivity: str | None = None) -> str | None:
    """A filter in the filter language from a mapping of field to value, and a sensitivity that is asked for beside it.

    A value is one that the field must have, a list of which it must have one, or a mapping of comparisons to values, such as
    `{">=": "2024-01-01"}`; None asks nothing. Raises FilterError.
    """
    lines = [] if filters is None else [filters] if isinstance(filters, str) else _conditions(filters)
    lines = [part for part in lines if part.strip()]
    if sensitivity:
        lines = [*(f"({part})" for part in lines), f"sensitivity = {show_value(sensitivity)}"]
    return " and ".join(lines) or None


def _conditions(filters: Mapping[str, Any]) -> list[str]:
    if not isinstance(filters, Mapping):
        raise FilterError(f"The filter is {filters!r:.50}", "Pass text, or a mapping of fields to values")
    lines = []
    for name, value in filters.items():
        field = show_field(str(name))
        if isinstance(value, Mapping):
            unknown = [str(op) for op in value if op not in COMPARISONS]
            if unknown:
                by = f"Compare by {', '.join(COMPARISONS)}"
                raise FilterError(f"The filter compares {name} by {unknown[0]!r}", by)
            lines += [f"{field} {op} {_value(name, one)}" for op, one in value.items()]
        elif isinstance(value, list | tuple | set | frozenset):
            if not value:
                raise FilterError(f"The filter allows no value of {name}", "Name at least one, or leave the field out")
            lines.append(f"{field} in ({', '.join(sorted(_value(name, one) for one in value))})")
        elif value is not None:
            lines.append(f"{field} = {_value(name, value)}")
    return lines


def _value(name: str, value: Any) -> str:
    """A value as the filter language writes it; text that is a date is one, as `filters` reads dates everywhere."""
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, bool | int | float | str):
        raise FilterError(f"The filter's value of {name} is {value!r:.50}", "Use text, a number, a date, true or false")
    return show_value(value)


def clean(text: str | None, what: str) -> str:
    """NFC, trimmed, and free of characters that no text has. Raises QueryError for one that is too long."""
    if text is None:
        return ""
    if not isinstance(text, str):
        raise QueryError(f"The {what} is {text!r:.50}, not text", f"Pass the {what} as a string")
    if len(text) > LONGEST_QUERY:
        raise QueryError(f"The {what} has {len(text):,} characters", f"Use at most {LONGEST_QUERY:,}")
    # Lone surrogates come in through broken clients and cannot be encoded; a question mark keeps the rest usable.
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", " ")
    return unicodedata.normalize("NFC", text).strip()


def whole(value: int, what: str, low: int, high: int) -> int:
    """A whole number within its bounds, both included. Raises QueryError for any other, and for what is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise QueryError(f"The {what} is {value!r:.50}", f"It must be a whole number from {low:,} to {high:,}")
    return value


def folded(text: str) -> str:
    """Runs of spaces outside quotes made one: two queries that differ in nothing else share a cache entry."""
    return re.sub(r'("[^"]*")|\s+', lambda found: found[1] or " ", text).strip()


def check_principal(plan: Plan, principal: Principal | None) -> None:
    """Raise PrincipalRequired where a plan must know who asks, and nobody is named."""
    if plan["principal"] == "required" and principal is None:
        raise PrincipalRequired(f"The plan {plan.preset} needs a principal", SAY_WHO)


def kind_of(source: str) -> Kind:
    return Kind.SEMANTIC if base_of(source) == "vector" else Kind.LEXICAL


def sources_of(plan: Plan, mode: str, query: str, keywords: str) -> tuple[str, ...]:
    """Which sources a search runs, sorted.

    A mode narrows the plan to its own kind of source; where the plan has none of that kind, the plain source runs. Grep
    joins a hybrid search beside the plan's sources by `grep.when`: `auto` with keywords or a quoted phrase.
    """
    if mode != "hybrid":
        return tuple(s for s in plan.sources if base_of(s) == mode) or (mode,)
    when = plan["grep.when"]
    if when == "never":
        return tuple(s for s in plan.sources if base_of(s) != "grep")
    joins = when == "always" or keywords or quoted_phrases(query)
    return tuple(sorted({*plan.sources, "grep"})) if joins else plan.sources


def cache_key(request: Request, state: str) -> Hashable:
    """What decides a result: equal keys give equal results. `state` names the corpus's generation, policy and rules
    (`Engine.key`).
    """
    who = principal_key(request.principal)
    asked = (request.mode, folded(request.query), folded(request.keywords), request.context, request.filters)
    # A result says which plan it is of, by its preset's name too.
    return (who, asked, request.plan, request.plan.preset, state)
