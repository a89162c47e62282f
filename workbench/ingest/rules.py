"""What an indexing run gives to each file: collections, tenant, roles, sensitivity and type.

The command's flags are the base. On top come the path rules of the corpus's own settings file, `corpus.yaml`::

    collections:            # what a collection's records are: chunk (the default) or document
      artifacts: document
    exclude: ["drafts/**"]  # files that are not indexed; `include:` names the only ones that are
    rules:                  # a later rule wins, for the keys that it names
      - path: "hr/**"
        collection: [docs, personnel]
        tenant: acme
        roles: [hr]
        sensitivity: confidential
      - path: "*.pdf"
        type: report
    policy:                 # what readers see, asked at every search: see `store.access.redaction`
      mask: ['\\d{4}-\\d{4}']

A path is a pattern as in `.gitignore`, matched with the file's path relative to its root. Everything here comes from the
owner of the corpus; what a document says about itself can only narrow it.

A document is written by many people, the rules by the owner of the corpus. So front matter and records may only take away:

- `sensitivity` is the stricter of the two, and a document that asks for a less strict one is reported. The levels are
  ordered `public < normal < internal < confidential < restricted`; a word that is none of them counts as `restricted`.
- `roles` (or `allowed_roles`) is the intersection with the rules' roles; where the rules allow everyone, the document's
  own roles. An intersection that is empty would read as "everyone", so such a document is refused.
- `tenant` must be the one that the rules give. Any other value would show the document to people whom the rules do not
  name (also where the rules name no tenant), so such a document is refused.

A claim that cannot be read refuses the document too: to ignore it could show what its author meant to hide.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from workbench.errors import SettingError, quoted
from workbench.ingest.errors import Problem, ReadError
from workbench.ingest.walk import spec_of
from workbench.records import Granularity
from workbench.settings import read_yaml

SENSITIVITIES = ("public", "normal", "internal", "confidential", "restricted")
"""The levels, from the least to the most restrictive."""

_MENTIONED = re.compile(r"(?im)^[\s\"']*(tenant|(allowed[ _-])?roles|sensitivity)[\s\"']*[:=]")
FILE_NAME = "corpus.yaml"
QUERY_KEYS = ("synonyms", "stop_words")
"""Keys of `corpus.yaml` that searches read and indexing does not: changing them needs no new indexing."""
DEFAULT_COLLECTION = "docs"
DEFAULT_GRANULARITIES: Mapping[str, Granularity] = {"artifacts": Granularity.DOCUMENT}
"""Collections that hold whole documents unless `corpus.yaml` says otherwise; all others hold chunks."""

ACCESS_KEYS = ("tenant", "roles", "sensitivity")
_RULE_KEYS = ("path", "collection", "tenant", "roles", "type", "sensitivity")
_POLICY_KEYS = ("hide", "mask", "mask_sensitivities", "cleared")
_TICK = 50_000_000  # nanoseconds
_NAME = re.compile(r"[\w][\w.-]*")


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileRules:
    """What one file gets.

    Attributes:
        collections: Named parts of the corpus, at least one, sorted.
        tenant: None: no tenant.
        roles: Empty: everyone of the tenant.
        sensitivity: One of the known levels.
        type: "" leaves it to the reader.
    """

    collections: tuple[str, ...] = (DEFAULT_COLLECTION,)
    tenant: str | None = None
    roles: tuple[str, ...] = ()
    sensitivity: str = "normal"
    type: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "collections", collection_names(self.collections, "collection"))
        object.__setattr__(self, "roles", tuple(sorted(set(self.roles))))
        object.__setattr__(self, "sensitivity", _sensitivity(self.sensitivity, "sensitivity"))

    @property
    def access(self) -> str:
        return json.dumps([self.tenant, self.roles, self.sensitivity])


@dataclass(frozen=True, slots=True)
class PathRule:
    """One rule of `corpus.yaml`: a pattern, and the fields of `FileRules` that it sets."""

    path: str
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CorpusRules:
    """The rules and collections of one corpus; which files it takes.

    Attributes:
        rules: Rules by path, a later one wins.
        granularities: What a collection's records are.
        include, exclude: Patterns of the files that are taken (empty: all), and of those that are not.
    """

    rules: tuple[PathRule, ...] = ()
    granularities: Mapping[str, Granularity] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def left_out(self, path: str) -> str:
        """Why the file at a relative path is not indexed, or "". Exclusions win; no inclusions means all files."""
        by = next((pattern for pattern in self.exclude if _matches(pattern, path)), None)
        if by is not None:
            return f"It is excluded by {by} in {FILE_NAME}"
        if self.include and not any(_matches(pattern, path) for pattern in self.include):
            return f"It is not among what {FILE_NAME} includes"
        return ""

    def access(self) -> tuple[PathRule, ...]:
        found = (PathRule(r.path, {k: v for k, v in r.changes.items() if k in ACCESS_KEYS}) for r in self.rules)
        return tuple(rule for rule in found if rule.changes)

    def access_digest(self) -> str:
        """Names `access()`: equal digests give the same access; "" where no rule says who may see what."""
        declared = [[rule.path, rule.changes] for rule in self.access()]
        return hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()[:16] if declared else ""

    def granularity(self, collection: str) -> Granularity:
        default = DEFAULT_GRANULARITIES.get(collection, Granularity.CHUNK)
        return self.granularities.get(collection, default)

    def for_file(self, path: str, flags: FileRules) -> FileRules:
        """What the file at a relative path gets: the flags, then each matching rule in order."""
        changes = access_changes(self.rules, path)
        return replace(flags, **changes) if changes else flags


def load_rules(corpus: Path) -> CorpusRules:
    """Read `corpus.yaml` of a corpus folder; no file means no rules.

    Raises:
        SettingError: The file cannot be read, or has an unknown key or a value that cannot be.
    """
    return parse_rules(_read(corpus), str(corpus / FILE_NAME))


def policy_values(corpus: Path) -> Mapping[str, tuple[str, ...]]:
    """What `corpus.yaml` says under `policy`: lists of `hide`, `mask`, `mask_sensitivities` and `cleared`, only those given.

    Raises:
        SettingError: The file cannot be read, or has an unknown key or a value that cannot be.
    """
    data, where = _read(corpus), f"policy in {corpus / FILE_NAME}"
    values = data.get("policy") if isinstance(data, Mapping) else None
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise SettingError(f"{where} is not a mapping", "Write `mask: [pattern]` or `hide: [level]` below it")
    _refuse_unknown(values, _POLICY_KEYS, where)
    made = {}
    for key, value in values.items():
        if key in ("hide", "mask_sensitivities"):
            parts = [value] if isinstance(value, str) else value or []
            if not isinstance(parts, list):
                raise SettingError(f"{key} of {where} is not a list of levels", f"Use {', '.join(SENSITIVITIES)}")
            made[key] = tuple(_sensitivity(part, f"{key} of {where}") for part in parts)
        else:
            made[key] = _strings(value, f"{key} of {where}")
    return made


def _read(corpus: Path) -> Any:
    file = corpus / FILE_NAME
    try:
        return read_yaml(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise SettingError(f"{file} cannot be read: {exc}", "Fix it, or move it away") from exc


class SettingsFile(Generic[T]):
    """A value of a corpus's settings files, read again when one of them is another one than at the last look.

    Args:
        corpus: The corpus folder.
        load: Reads the value; what it raises leaves `now`, each time until the file is correct.
        names: The files' names.
    """

    def __init__(self, corpus: Path, load: Callable[[Path], T], *names: str) -> None:
        self._corpus, self._files, self._load = corpus, [str(corpus / name) for name in names or (FILE_NAME,)], load
        self._held: tuple[tuple[int, ...], T] | None = None

    def now(self) -> T:
        """The value as the files have it now."""
        seen: tuple[int, ...] = ()
        changed = 0
        for name in self._files:
            try:
                found = os.stat(name)  # asked at every search: a path object would cost more than the call
            except OSError:
                seen += (0, 0, 0, 0)
                continue
            seen += (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
            changed = max(changed, found.st_ctime_ns)
        held = self._held
        # A file that was written a moment ago may be written again within one tick of the file system's clock.
        if held is None or held[0] != seen or time.time_ns() - changed < _TICK:
            held = self._held = (seen, self._load(self._corpus))
        return held[1]


def parse_rules(data: Any, where: str = FILE_NAME) -> CorpusRules:
    """Rules from the YAML value. Raises SettingError that names `where`."""
    if data is None:
        return CorpusRules()
    if isinstance(data, list):
        data = {"rules": data}
    if not isinstance(data, Mapping):
        raise SettingError(f"{where} is not a list of rules", "Write `rules:` and a list of `- path:` below it")
    _refuse_unknown(data, ("collections", "include", "exclude", "rules", "policy", *QUERY_KEYS), where)
    listed, named = data.get("rules") or [], data.get("collections") or {}
    if not isinstance(listed, list):
        raise SettingError(f"rules in {where} is not a list", "Write one `- path:` for each rule")
    rules = tuple(_rule(rule, f"Rule {number} in {where}") for number, rule in enumerate(listed, 1))
    chosen = {name: _strings(data.get(name), f"{name} in {where}") for name in ("include", "exclude")}
    for name, patterns in chosen.items():
        for pattern in patterns:
            _check_pattern(pattern, f"{name} in {where}")
    if not isinstance(named, Mapping):
        raise SettingError(f"collections in {where} is not a mapping", "Write `name: chunk` or `name: document`")
    granularities: dict[str, Granularity] = {}
    for name, value in named.items():
        (collection,) = collection_names([name], f"A collection in {where}")
        if value not in tuple(Granularity):
            raise SettingError(f"The collection {name} in {where} is {quoted(value)}", "Set it to chunk or document")
        granularities[collection] = Granularity(value)
    return CorpusRules(rules, granularities, **chosen)


def _rule(data: Any, where: str) -> PathRule:
    if not isinstance(data, Mapping):
        raise SettingError(f"{where} is not a list of keys and values", f"Its keys are {', '.join(_RULE_KEYS)}")
    _refuse_unknown(data, _RULE_KEYS, where)
    path = data.get("path")
    if not isinstance(path, str):
        raise SettingError(f"{where} has no usable path", 'Write a pattern, for example path: "hr/**"')
    _check_pattern(path, f"path of {where}")
    readers = {"collection": collection_names, "roles": _strings, "sensitivity": _sensitivity}
    changes: dict[str, Any] = {}
    for key, value in data.items():
        if key == "tenant" and value is None:
            changes[key] = None
        elif key != "path":
            name = "collections" if key == "collection" else key
            changes[name] = readers.get(key, _string)(value, f"{where}: {key}")
    return PathRule(path, changes)


def _check_pattern(pattern: str, where: str) -> None:
    try:
        _spec(pattern)
        if pattern.strip() and not pattern.strip().startswith(("!", "#")):
            return
    except ValueError:
        pass
    raise _refused(where, pattern, "pattern", "Write it as in .gitignore, without ! or #")


def collection_names(value: Any, where: str) -> tuple[str, ...]:
    """Names of collections, sorted, each once. Raises SettingError for none, or one that a plan could not name."""
    names = _strings(value, where)
    if not names or any(not _NAME.fullmatch(name) or name == "all" for name in names):
        remedy = "Use letters, digits, `_`, `-` and `.`, and not the word all, for each collection"
        raise _refused(where, value, "name", remedy)
    return names


def _strings(value: Any, where: str) -> tuple[str, ...]:
    parts = [value] if isinstance(value, str) else value if value is not None else ()
    if not isinstance(parts, list | tuple):
        raise _refused(where, value, "list of names", "Write [one, another]")
    return tuple(sorted({_string(part, where) for part in parts}))


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _refused(where, value, "name", "Write a word, in quotes if it is a number")
    return value.strip()


def _sensitivity(value: Any, where: str) -> str:
    word = value.strip().lower() if isinstance(value, str) else value
    if word not in SENSITIVITIES:
        raise _refused(where, value, "level", f"Set it to one of {', '.join(SENSITIVITIES)}")
    return str(word)


def _refused(where: str, value: Any, kind: str, remedy: str) -> SettingError:
    return SettingError(f"{where} is {quoted(value)}, which is not a {kind}", remedy)


def _refuse_unknown(data: Mapping[Any, Any], known: tuple[str, ...], where: str) -> None:
    unknown = sorted(str(key) for key in data if key not in known)
    if unknown:
        raise SettingError(f"{where} has the unknown keys {', '.join(unknown)}", f"The keys are {', '.join(known)}")


def access_changes(rules: Sequence[PathRule], path: str) -> dict[str, Any]:
    """What rules set for the file at a relative path, a later rule over an earlier one."""
    changes: dict[str, Any] = {}
    for rule in rules:
        if _matches(rule.path, path):
            changes |= rule.changes
    return changes


_spec = cache(spec_of)


def _matches(pattern: str, path: str) -> bool:
    """Whether a path matches. Raises ValueError for what is no pattern."""
    return bool(_spec(pattern).match_file(path))


def stricter(one: str, other: str) -> str:
    """The more restrictive of two sensitivities; an unknown word counts as `restricted`."""
    return SENSITIVITIES[max(_level(one), _level(other))]


def _level(sensitivity: str) -> int:
    word = sensitivity.strip().lower()
    return SENSITIVITIES.index(word) if word in SENSITIVITIES else len(SENSITIVITIES) - 1


def key(name: str) -> str:
    """One spelling of a front matter key: `Allowed-Roles` is `allowed_roles`."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def mentions_visibility(raw: str) -> bool:
    """Whether a front matter block that cannot be parsed seems to claim something about visibility."""
    return bool(_MENTIONED.search(raw))


def narrow(given: FileRules, metadata: Mapping[str, Any]) -> tuple[FileRules, dict[str, Any]]:
    """Apply a document's own claims to the tenant, roles and sensitivity that the rules give it.

    Returns:
        What is left, and the metadata without the claims.

    Raises:
        ReadError: It claims another tenant, or only roles that the rules do not allow, or something unreadable.
    """
    result, rest = given, dict[str, Any]()
    for name, value in metadata.items():
        own = key(name)
        if own in ("roles", "allowed_roles"):
            result = replace(result, roles=_common_roles(result.roles, name, value))
        elif own not in ("tenant", "sensitivity"):
            rest[name] = value
        elif value in (None, ""):
            continue
        elif own == "tenant":
            if not isinstance(value, str) or value.strip() != given.tenant:
                rules = f"the rules give it to {'no tenant' if given.tenant is None else repr(given.tenant)}"
                raise ReadError(
                    f"It says that it belongs to the tenant {value!r}, but {rules}",
                    "Index it with that tenant, by --tenant or a rule in corpus.yaml, or take the line out",
                )
        elif isinstance(value, str):
            result = replace(result, sensitivity=stricter(result.sensitivity, value))
        else:
            remedy = f"Use one of {', '.join(SENSITIVITIES)}"
            raise ReadError(f"Its {name} is {value!r}, which is not a word", remedy)
    return result, rest


def _common_roles(given: tuple[str, ...], name: str, value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else () if value is None else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ReadError(f"Its {name} is {value!r}, which is not a list of names", f"Write {name}: [one, another]")
    own = tuple(sorted({part.strip() for part in parts if part.strip()}))
    common = tuple(role for role in own if role in given) if given else own
    if own and not common:
        raise ReadError(
            f"It allows only the roles {', '.join(own)}, and the rules only {', '.join(given)}, so nobody could see it",
            "Let the two have a role in common, or take the line out",
        )
    return common if own else given


def widening(given: FileRules, metadata: Mapping[str, Any]) -> Problem | None:
    """What to report of a document that says it is less sensitive than the rules: their level stays; None where it does not."""
    own = next((value for name, value in metadata.items() if key(name) == "sensitivity"), None)
    if not isinstance(own, str) or not own.strip() or _level(own) >= _level(given.sensitivity):
        return None
    return Problem(
        f"It says sensitivity: {own.strip().lower()}, and the rules {given.sensitivity}, which it keeps",
        f"To allow it, index it with --sensitivity {own.strip().lower()}, or with a rule in corpus.yaml",
        loses=False,
    )
