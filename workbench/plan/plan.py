"""A plan: every setting of one search, as a value whose text form parses back.

`str(plan)` is a preset's name and what differs from it (`default fusion.alpha=0.7 limit=5`); `Plan.parse` reads it, so the
same string serves as command-line argument, log line, cache key and column title. The fields are declared in `plan.fields`,
the presets in `plan.presets`; a text that is kept says under which edition of the presets it was written (`recorded`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from workbench.errors import PlanError, quoted
from workbench.plan import fields as plan_fields
from workbench.plan.fields import FUSED, OFF, FusionPlan, base_of, plain
from workbench.plan.presets import EDITION, values_of
from workbench.settings import read_yaml


class Plan:
    """Every setting of one search. Immutable; equal by value; hashable.

    Args:
        values: Dotted field names and values, as text or typed; fields that are not named have their default.
        preset: The preset that the text form is written from; it does not count in comparisons. `rrf` is the field defaults.

    Raises PlanError: An unknown field, or a value outside its bounds.
    """

    __slots__ = ("_items", "_preset", "_values")

    _items: tuple[tuple[str, Any], ...]
    _preset: str
    _values: Mapping[str, Any]

    def __init__(self, values: Mapping[str, Any] | None = None, preset: str = "rrf") -> None:
        cleaned: dict[str, Any] = {}
        for name, value in (values or {}).items():
            spec, source = plan_fields.locate(name)
            parsed = plan_fields.read(name, value)
            if parsed != spec.default or source:
                cleaned[name] = parsed
        _drop_default_families(cleaned)
        items = tuple(sorted(cleaned.items(), key=lambda item: _position(item[0])))
        object.__setattr__(self, "_items", items)
        object.__setattr__(self, "_values", dict(items))
        object.__setattr__(self, "_preset", preset)
        if self["limit"] > self["limit.max"]:
            raise PlanError(f"limit is {self['limit']}", f"It must be a whole number from 1 to {self['limit.max']}")
        if any(n.startswith("fusion.weights.") and v == 0 for n, v in self._items) or self["fusion.alpha"] in (0, 1):
            self._check_weights()

    def _check_weights(self) -> None:
        fusion = self.fusion
        sources = sorted({*self.sources, "grep"} if self["grep.when"] == "always" else self.sources)
        # A source alone is passed through with its own scores, whatever its weight.
        if len(sources) == 1 and fusion.single_source == "passthrough":
            return
        if not any(map(fusion.share, sources)):
            unequal = fusion.method == "convex" and any(map(fusion.weight, sources))
            remedy = "fusion.alpha=0.5" if unequal else f"fusion.weights.{sources[-1]}=1"
            raise PlanError(
                f"All weights are 0: {' and '.join(sources)} would give every result the score 0", f"Set {remedy}"
            )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("A plan does not change; plan.replace({...}) makes another one")

    def __getitem__(self, name: str) -> Any:
        """Value of a dotted field. Raises PlanError for an unknown name."""
        if name in self._values:
            return self._values[name]
        spec, source = plan_fields.locate(name)
        return spec.value(self._values, source, f"{spec.name}.") if source else spec.default

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The fields that differ from the field defaults, in the table's order."""
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"Plan.parse({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Plan, (dict(self._items), self._preset))

    def __str__(self) -> str:
        words = (shlex.quote(f"{name}={plan_fields.show(value)}") for name, value in self.changes().items())
        return " ".join((self._preset, *words))

    def changes(self) -> dict[str, Any]:
        """The fields in which this plan differs from its preset, in the table's order."""
        ours, theirs = self._values, preset(self._preset)._values
        differing = (n for n in {*ours, *theirs} if ours.get(n, _UNSET) != theirs.get(n, _UNSET))
        return {name: self[name] for name in sorted(differing, key=_position)}

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Read the text form: an optional preset name (else `default`), then `field=value` words. Raises PlanError."""
        name, changes = read_words(text)
        return preset(name).replace(changes)

    @classmethod
    def of(cls, plan: Plan | str) -> Plan:
        """A plan as it is, or the text form of one read."""
        return plan if isinstance(plan, Plan) else cls.parse(plan)

    @property
    def preset(self) -> str:
        """Name of the preset that the text form is written from."""
        return self._preset

    def replace(self, changes: Mapping[str, Any]) -> Plan:
        """Another plan with these dotted fields changed. Raises PlanError."""
        return Plan({**dict(self._items), **changes}, preset=self._preset)

    def named(self, preset: str) -> Plan:
        """The same plan, its text form written from that preset."""
        return Plan(dict(self._items), preset=preset)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources, sorted."""
        return tuple(self["sources"])

    def bases(self) -> tuple[str, ...]:
        """The sources without collections and encoders: `grep`, `keyword`, `vector`, sorted, each once."""
        return tuple(sorted({base_of(s) for s in self.sources}))

    def depth(self, source: str) -> int:
        """How many candidates a source gives: its own depth, some limits (`3x`), the limit and more (`+5`), or by
        default max(100, 5 x limit).
        """
        own, limit = self[f"depth.{source}"], int(self["limit"])
        if own is None:
            return max(100, 5 * limit)
        if isinstance(own, int):
            return own
        return limit * int(own[:-1]) if own.endswith("x") else limit + int(own[1:])

    @property
    def vectors(self) -> tuple[str, ...]:
        """The vector sources, sorted."""
        return tuple(s for s in self.sources if base_of(s) == "vector")

    @property
    def cuttable(self) -> tuple[str, ...]:
        """The sources that a threshold may cut: keyword and vector sources, and where the plan asks none of a kind the one that
        a search in that mode asks.
        """
        keywords = tuple(s for s in self.sources if base_of(s) == "keyword")
        return (*(keywords or ("keyword",)), *(self.vectors or ("vector",)))

    def threshold(self, source: str) -> float | str:
        """Where a source is cut, or `off`: a vector source at a distance in the plan's metric, a keyword source below a BM25
        score, and `fused`, which is fusion's list, below a fused score.
        """
        name = self.threshold_field(source)
        value: float | str | None = self[name] if name else None
        return OFF if value is None else value

    def threshold_field(self, source: str) -> str:
        """The field that a threshold comes from: `threshold.SOURCE` of the source itself or of the one that it falls back to, or
        `vector.threshold`; of `fused` `fusion.threshold`; "" of grep, which has none.
        """
        if source == FUSED:
            return "fusion.threshold"
        spec = plan_fields.BY_NAME["threshold"]
        if not spec.takes(source):
            return ""
        names = (f"threshold.{name}" for name in spec.looked_up(source))
        found = next((name for name in names if name in self._values), "")
        if base_of(source) == "vector":
            return found if found and self[found] is not None else "vector.threshold"
        return found or "threshold.keyword"

    def threshold_to_set(self, source: str) -> str:
        """The field by which the threshold of this source, and of no other that the plan asks, is moved; of `fused` too.

        Beside other sources of its kind that is its own: a distance says something of the one encoder only.
        """
        name = self.threshold_field(source)
        alone = (
            not name or source == FUSED or not {s for s in self.cuttable if base_of(s) == base_of(source)} - {source}
        )
        return name if alone else f"threshold.{source}"

    def with_threshold(self, value: float | str) -> Plan:
        """The plan with one threshold (or `off`) for every vector source: none keeps its own. Raises PlanError."""
        own = (name for name in self._values if name.startswith("threshold.vector"))
        return self.replace({"vector.threshold": value, **dict.fromkeys(own, None)})

    @property
    def fusion(self) -> FusionPlan:
        """The part that fusion reads."""
        # Grep may join without being one of the plan's sources, and then brings its own weight along.
        names = self.sources if "grep" in self.sources else (*self.sources, "grep")
        values: dict[str, Any] = {n: {s: self[f"fusion.{n}.{s}"] for s in names} for n in ("weights", "normalise")}
        return FusionPlan(**values, **{n: self[_field_of(n)] for n in FusionPlan.__slots__ if n not in values})

    def to_yaml(self) -> str:
        """The preset and the fields that differ from it, as YAML that `from_yaml` reads back."""
        import yaml

        values = {name: plan_fields.plain(value) for name, value in self.changes().items()}
        content = {"preset": self._preset, "edition": EDITION, "fields": values}
        text = str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
        # A name with a line end of Unicode (U+0085) comes back whole only where it is escaped.
        return text if yaml.safe_load(text) == content else str(yaml.safe_dump(content, sort_keys=False))

    @classmethod
    def from_yaml(cls, text: str) -> Plan:
        """Read a plan file: `preset: NAME` to start from, and `fields:` to change. Raises PlanError.

        `edition:` says under which edition of the presets it was written; without it the names mean what they mean now.
        """
        remedy = "Write `preset: default` and `fields:` below it"
        try:
            data = read_yaml(text) or {}
        except ValueError as exc:
            raise PlanError(f"The plan file is not YAML: {exc}", remedy) from exc
        if (
            not isinstance(data, dict)
            or set(data) - {"preset", "edition", "fields"}
            or not isinstance(data.get("fields") or {}, dict)
        ):
            raise PlanError("The plan file has keys other than preset, edition and fields", remedy)
        name = data.get("preset", "default")
        if not isinstance(name, str):
            raise PlanError(f"The plan file has the preset {quoted(name)}", remedy)
        changes = _flatten(data.get("fields") or {})
        return recorded(name, changes, data.get("edition", EDITION))


def _field_of(name: str) -> str:
    return name.replace("_", ".", 1) if name.startswith("feedback_") else f"fusion.{name}"


def preset(name: str) -> Plan:
    """The plan of that name. Raises PlanError with the known names."""
    return Plan(values_of(name), preset=name)


def assigned(word: str) -> tuple[str, str, str]:
    """Name, `=` and value of `field=value`; without an equals sign the middle one is "".

    The value begins after the first one, but in a family after the last: there the name ends with a source, whose encoder may
    be a folder with an equals sign in its path, and no value has one.
    """
    families = tuple(f"{field.name}." for field in plan_fields.FIELDS if field.family)
    return word.rpartition("=") if word.startswith(families) else word.partition("=")


def read_words(text: str) -> tuple[str, dict[str, str]]:
    """The preset's name and the fields that a plan's text form names. Raises PlanError."""
    if not isinstance(text, str):
        raise PlanError(f"The plan is {text!r:.50}, not text", "Pass a plan, or a text such as 'default limit=5'")
    try:
        words = shlex.split(text)
    except ValueError as exc:
        raise PlanError(f"The plan {text!r} has an open quote", "Close it") from exc
    preset = words.pop(0) if words and "=" not in words[0] else "default"
    changes: dict[str, str] = {}
    for word in words:
        name, equals, value = assigned(word)
        if not equals:
            raise PlanError(f"{word!r} is not field=value", "Write for example fusion.alpha=0.7")
        changes[name] = value
    return preset, changes


_UNSET = object()


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested YAML (`fusion: {k: 20}`) to dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, dict):
            flat |= _flatten(value, dotted + ".")
        else:
            flat[dotted] = value
    return flat


def _position(name: str) -> tuple[int, str]:
    spec, source = plan_fields.locate(name)
    return plan_fields.ORDER[spec.name], source


def _drop_default_families(values: dict[str, Any]) -> None:
    """Forget `family.source` values that say what the fallback would say anyway, so that equal plans compare equal."""
    for name in sorted(values, key=lambda n: (n.count("@") + n.count(":"), n)):
        spec, source = plan_fields.locate(name)
        others = {n: v for n, v in values.items() if n != name}
        if source and values[name] == spec.value(others, source, f"{spec.name}."):
            del values[name]


_BEFORE_3: Mapping[str, Mapping[str, Any]] = {
    "contract": {"dedupe": True},
    "scoped": {"dedupe": True},
    "pages": {"rewrite.model": OFF},
}
_BEFORE_4: Mapping[str, Any] = {"vector.adapt": OFF, "vector.hubness": 0.0, "feedback.weight": 0.0}


def recorded(name: str, changes: Mapping[str, Any], edition: int) -> Plan:
    """The plan that a preset's name and changes meant under an edition. Raises PlanError."""
    if isinstance(edition, bool) or not isinstance(edition, int) or not 1 <= edition <= EDITION:
        raise PlanError(
            f"The plan is of edition {quoted(edition)}", f"This version reads 1 to {EDITION}; a newer one may read it"
        )
    if edition == EDITION:
        return preset(name).replace(changes)
    before = {} if edition > 2 else _BEFORE_3.get(name, {})
    if name == "default":
        before = _BEFORE_4
    plan = preset("rrf" if name == "default" and edition < 2 else name).replace({**before, **changes})
    if edition >= 2:
        return plan
    if name == "tmm" and plan["fusion.method"] != "convex" and "fusion.normalise.grep" not in changes:
        plan = plan.replace({"fusion.normalise.grep": "minmax"})
    return _from_first(plan)


def recorded_text(text: str, edition: int) -> str:
    """The text form, now, of a plan's text that was written under an edition; what cannot be read stays as it is."""
    if edition >= EDITION:
        return text
    try:
        return str(recorded(*read_words(text), edition))
    except PlanError:
        return text


def recorded_fields(fields: Mapping[str, Any], edition: int) -> Mapping[str, Any]:
    """Every field's value, now, of fields written out in full under an edition; what cannot be read stays as it is."""
    if edition >= 2:  # later editions change defaults of presets, and these are written out
        return fields
    try:
        before = Plan(fields)
        after = _from_first(before)
    except PlanError:
        return fields
    return {**fields, **{name: plain(value) for name, value in after if before[name] != value}}


def _from_first(plan: Plan) -> Plan:
    changed: dict[str, Any] = {}
    if plan["fusion.method"] == "convex":
        changed = {name: 1.0 for name, _ in plan if name.startswith("fusion.weights.")}
        if plan["grep.when"] == "auto":
            changed["grep.when"] = "never"
    named = dict(plan)
    for source in plan.sources:
        own = f"fusion.normalise.{source.partition('@')[0]}"
        if ":" in own and own not in named:
            changed[own] = "minmax"
    return plan.replace(changed)


# --- fields that do nothing under a plan ------------------------------------------------------------------------------------
# A field that the fusion method does not read, or that belongs to a source which does not run, may be set all the same: plans
# are changed one field at a time. But whoever sets it expects something to move, so a search, a sweep and the sliders say it.

DECIDING = ("sources", "grep.when", "fusion.method", "fusion.unit", "rerank.model")
"""The fields that decide whether others do anything."""


def without_effect(plan: Plan, name: str) -> str:
    """Why a field does nothing under a plan, and the remedy: `fusion.k has no effect with fusion.method convex; add
    fusion.method=rrf`. "" where it does something.

    Args:
        plan: Any plan.
        name: A dotted field (`fusion.k`, `fusion.weights.vector`), or a family's name without its source. Raises PlanError
            for an unknown one.
    """
    spec = plan_fields.BY_NAME.get(name)
    source = ""
    if spec is None or not spec.family:
        spec, source = plan_fields.locate(name)
    found = _reason(plan, spec.name, source)
    return f"{name} has no effect {found[0]}; {found[1]}" if found else ""


def idle(plan: Plan, names: Iterable[str]) -> tuple[str, ...]:
    """The sentences of those of some fields that do nothing under a plan, in their order."""
    return tuple(text for name in names if (text := without_effect(plan, name)))


def unread(plan: Plan) -> Iterator[str]:
    """Every field that does nothing under a plan; of a family those of the plan's sources and those that are set."""
    names = [f.name for f in plan_fields.FIELDS if not f.family]
    names += [f"{family.name}.{source}" for family in plan_fields.FAMILIES for source in family.of(plan.sources)]
    names += [name for name, _ in plan if plan_fields.locate(name)[0].family]
    return (name for name in dict.fromkeys(names) if without_effect(plan, name))


def greps(plan: Plan) -> bool:
    """Whether grep may run in a hybrid search: it is a source, or joins where keywords or quoted phrases are given."""
    return bool(plan["grep.when"] != "never")


_METHOD = "with fusion.method {fusion.method}"
_UNIT = "with fusion.unit {fusion.unit}", "add fusion.unit=document", lambda plan: plan["fusion.unit"] != "document"
_RANKS = _METHOD, "add fusion.method=rrf", lambda plan: plan["fusion.method"] != "rrf"
_SCORES = (
    "with fusion.method rrf, which reads ranks and no scores",
    "add fusion.method=convex or weighted",
    lambda plan: plan["fusion.method"] == "rrf",
)
_ADAPTED = "with vector.adapt off", "add vector.adapt=corpus", lambda plan: plan["vector.adapt"] == OFF
NEEDS: Mapping[str, tuple[str, str, Callable[[Plan], bool]]] = {
    "fusion.k": _RANKS,
    "fusion.rank_base": _RANKS,
    "fusion.alpha": (_METHOD, "add fusion.method=convex", lambda plan: plan["fusion.method"] != "convex"),
    "fusion.missing": _SCORES,
    "fusion.normalise": _SCORES,
    "fusion.renumber": _UNIT,
    "fusion.prefer": _UNIT,
    "vector.hubness": _ADAPTED,
    "feedback.weight": _ADAPTED,
    "feedback.top": _ADAPTED,
    "rerank.top": ("with rerank.model off", "name a reranking model", lambda plan: plan["rerank.model"] == OFF),
}
"""Field -> what is in the way, what to do, and whether it is in the way."""


def _reason(plan: Plan, field: str, source: str) -> tuple[str, str] | None:
    """What is in the way, and what to do; None where nothing is."""
    if field == "feedback.top" and not plan["feedback.weight"]:
        return "with feedback.weight 0", "add feedback.weight=0.2"
    if field in NEEDS and NEEDS[field][2](plan):
        why, remedy, _ = NEEDS[field]
        for name in ("fusion.method", "fusion.unit"):
            why = why.replace(f"{{{name}}}", plan[name])
        return why, remedy
    if source:
        running = (*plan.sources, "grep") if greps(plan) else tuple(s for s in plan.sources if base_of(s) != "grep")
        looked_up = {name for running_one in running for name in plan_fields.BY_NAME[field].looked_up(running_one)}
        return None if source in looked_up else _absent(plan, source)
    kind = field.partition(".")[0].replace("feedback", "vector")
    if kind in {"keyword", "vector"} and kind not in plan.bases():
        return _absent(plan, kind)
    if field == "vector.threshold" and all(plan.threshold_field(s) != field for s in plan.vectors):
        own = list(dict.fromkeys(plan.threshold_field(s) for s in plan.vectors))
        return f"beside {' and '.join(own)}", f"add {own[0]}=auto"
    if field == "threshold" and not plan.vectors:
        return _absent(plan, "vector")
    if field == "fusion.threshold" and plan["fusion.single_source"] == "passthrough" and _alone(plan):
        return f"with {plan.sources[0]} alone, which is passed through", "add fusion.single_source=fuse"
    if kind == "grep" and field != "grep.when" and not greps(plan):
        return _absent(plan, kind)
    return None


def _alone(plan: Plan) -> bool:
    return len(plan.sources) == 1 and (plan.bases() == ("grep",) or not greps(plan))


def _absent(plan: Plan, source: str) -> tuple[str, str]:
    if base_of(source) == "grep" and not greps(plan):
        return "with grep.when never", "add grep.when=auto"
    return f"without {source} among the sources", f"add sources={','.join(sorted({*plan.sources, source}))}"
