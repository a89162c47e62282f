"""Who may see a document: what the rules give, narrowed by what the document itself says, never widened.

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

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from workbench.ingest.errors import Problem, ReadError

SENSITIVITIES = ("public", "normal", "internal", "confidential", "restricted")
"""The levels, from the least to the most restrictive."""

KEYS = frozenset({"tenant", "roles", "allowed_roles", "sensitivity"})
"""Front matter keys that are claims about visibility; they do not stay in the metadata."""

_MENTIONED = re.compile(r"(?im)^[\s\"']*(tenant|(allowed[ _-])?roles|sensitivity)[\s\"']*[:=]")


@dataclass(frozen=True, slots=True)
class Visibility:
    """Tenant (None: no tenant), roles (empty: everyone of the tenant) and sensitivity of one document."""

    tenant: str | None = None
    roles: tuple[str, ...] = ()
    sensitivity: str = "normal"


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


def narrow(given: Visibility, metadata: Mapping[str, Any]) -> tuple[Visibility, dict[str, Any]]:
    """Apply a document's own claims to what the rules give.

    Args:
        given: What the rules give.
        metadata: The document's front matter or record.

    Returns:
        The narrowed visibility, and the metadata without the claims.

    Raises:
        ReadError: The document claims another tenant, or only roles that the rules do not allow, or something unreadable.
    """
    result = given
    rest: dict[str, Any] = {}
    for name, value in metadata.items():
        match key(name):
            case "tenant":
                _same_tenant(given.tenant, value)
            case "roles" | "allowed_roles":
                result = replace(result, roles=_common_roles(result.roles, _names(name, value)))
            case "sensitivity":
                result = replace(
                    result, sensitivity=stricter(result.sensitivity, _word(name, value, given.sensitivity))
                )
            case _:
                rest[name] = value
    return result, rest


def widening(given: Visibility, metadata: Mapping[str, Any]) -> Problem | None:
    """What to report of a document that says it is less sensitive than the rules: their level stays; None where it does not."""
    own = next((value for name, value in metadata.items() if key(name) == "sensitivity"), None)
    if not isinstance(own, str) or not own.strip() or _level(own) >= _level(given.sensitivity):
        return None
    return Problem(
        f"It says sensitivity: {own.strip().lower()}, and the rules {given.sensitivity}, which it keeps",
        f"To allow it, index it with --sensitivity {own.strip().lower()}, or with a rule in corpus.yaml",
        loses=False,
    )


def _same_tenant(given: str | None, value: Any) -> None:
    if value is None or value == "":
        return
    if not isinstance(value, str) or value.strip() != given:
        rules = f"the rules give it to {given!r}" if given is not None else "the rules give it to no tenant"
        raise ReadError(
            f"It says that it belongs to the tenant {value!r}, but {rules}",
            "Index it with that tenant, by --tenant or a rule in corpus.yaml, or take the line out",
        )


def _common_roles(given: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    if not own:
        return given
    common = tuple(role for role in own if role in given) if given else own
    if not common:
        raise ReadError(
            f"It allows only the roles {', '.join(own)}, and the rules only {', '.join(given)}, so nobody could see it",
            "Let the two have a role in common, or take the line out",
        )
    return common


def _names(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ReadError(f"Its {name} is {value!r}, which is not a list of names", f"Write {name}: [one, another]")
    return tuple(sorted({part.strip() for part in parts if part.strip()}))


def _word(name: str, value: Any, otherwise: str) -> str:
    if value is None or value == "":
        return otherwise
    if not isinstance(value, str):
        raise ReadError(f"Its {name} is {value!r}, which is not a word", f"Use one of {', '.join(SENSITIVITIES)}")
    return value
