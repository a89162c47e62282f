"""Who sees which document: decided once per search, over the few distinct kinds of access that a corpus has.

A document carries a tenant, allowed roles and a sensitivity, and its records inherit them. It is visible to a principal when

1. its tenant equals the principal's. A document without a tenant belongs to the tenant "none" and is visible only to a
   principal without a tenant; it is *not* public. A file that somebody forgot to assign is then missing from an answer,
   which people notice, instead of present in a stranger's, which they do not. Text meant for all tenants is indexed once
   for each;
2. its roles are empty (everyone of the tenant), or the principal holds at least one of them; and
3. the policy lets the principal see its sensitivity.

What a policy lets be seen it may also redact: `redact` gives a document back with parts of its texts masked. That is applied
where texts leave the store (`access.redaction`), after a search has found what it finds.

Nobody named (principal None) is the local owner of the corpus and sees every document that the policy allows, but only where
no document has a tenant or roles; elsewhere that is refused, because "everything" must never be the default of a shared
corpus. What a principal may not see takes part in nothing: no count, no statistic, no list of fields, no digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.errors import SAY_WHO, PrincipalRequired
from workbench.ingest.rules import stricter
from workbench.records import Document, Principal

MASK = "\u2588"
"""What stands for a masked character."""


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """What decides who sees a document: one value for all documents that have it in common."""

    tenant: str | None
    roles: tuple[str, ...]
    sensitivity: str
    closed: bool = False
    """Nobody sees it: the rules of today and those that it was indexed under have nobody in common."""

    def under(self, changes: Mapping[str, Any]) -> Access:
        """What is left of this access under what the corpus's rules set today (`ingest.rules.access_changes`).

        Rules that take away count at once. What they give needs the document's own claims, which are read when it is indexed:
        until then both have to agree.
        """
        roles, closed = self.roles, self.closed
        asked = tuple(changes.get("roles", ()))
        if asked:
            roles = tuple(sorted(set(asked) & set(roles))) if roles else asked
            closed = closed or not roles
        if "tenant" in changes and changes["tenant"] != self.tenant:
            closed = True
        level = changes.get("sensitivity")
        return Access(self.tenant, roles, stricter(self.sensitivity, level) if level else self.sensitivity, closed)


class Policy(Protocol):
    """Decides what a principal sees of what tenant and roles allow. Pure: the same question always has the same answer.

    Attributes:
        name: Stands in cache keys and snapshots: policies that may answer differently have different names.
    """

    @property
    def name(self) -> str:
        """The policy's name."""

    def sees(self, principal: Principal | None, sensitivity: str) -> bool:
        """Whether documents of this sensitivity are visible to the principal (None: the local owner)."""

    def redacts(self, principal: Principal | None) -> bool:
        """Whether `redact` may change anything for the principal; where it may not, it is never called."""

    def redact(self, principal: Principal | None, document: Document) -> Document:
        """The document as the principal may read it: text, title, url and metadata masked where need be.

        The text keeps its number of characters and its line breaks, so that chunks, citations and line numbers stay true.
        Called with the whole text, and with each heading as the text of the same document.
        """


@dataclass(frozen=True, slots=True)
class SeeAll:
    """The default policy: every sensitivity is visible to whom tenant and roles allow, and nothing is masked."""

    name: str = "all"

    def sees(self, principal: Principal | None, sensitivity: str) -> bool:
        return True

    def redacts(self, principal: Principal | None) -> bool:
        return False

    def redact(self, principal: Principal | None, document: Document) -> Document:
        return document


def holds_one(principal: Principal | None, roles: Sequence[str]) -> bool:
    """Whether a principal holds one of some roles; the local owner holds none."""
    return principal is not None and not set(roles).isdisjoint(principal.roles)


def visible(access: Access, principal: Principal | None, policy: Policy) -> bool:
    """Whether a document with this access is visible. A principal None is judged by the policy alone."""
    if access.closed:
        return False
    if principal is not None:
        if access.tenant != principal.tenant:
            return False
        if access.roles and set(access.roles).isdisjoint(principal.roles):
            return False
    return policy.sees(principal, access.sensitivity)


def may_know(
    access: str, principal: Principal | None, policy: Policy, changes: Mapping[str, Any] | None = None
) -> bool:
    """Whether a principal may know of a file: as of a document with the access (JSON, `FileRules.access`) that rules and
    flags gave to the file, under the `changes` that the rules of today set for it (`ingest.rules.access_changes`). Principal
    None knows of files without tenant and roles only.
    """
    tenant, roles, level = json.loads(access)
    kind = Access(tenant, tuple(roles), level).under(changes or {})
    if principal is None and (kind.tenant is not None or kind.roles):
        return False
    return visible(kind, principal, policy)


def visible_documents(
    kinds: Sequence[Access], codes: NDArray[np.int32], principal: Principal | None, policy: Policy
) -> NDArray[np.bool_] | None:
    """The mask over documents, bool (d,), or None where every document is visible. `codes`, int32 (d,), is the index into `kinds`
    for each document. Raises PrincipalRequired where nobody is named and some document has a tenant or roles.
    """
    if principal is None and any(kind.tenant is not None or kind.roles for kind in kinds):
        raise PrincipalRequired("This corpus has tenants or roles, and no principal was given", SAY_WHO)
    seen = np.fromiter((visible(kind, principal, policy) for kind in kinds), bool, len(kinds))
    return None if seen.all() else np.asarray(seen[codes], bool)


def policy_digest(policy: Policy | None) -> str:
    """A policy's name as a digest, 16 hex digits; "" for none."""
    return "" if policy is None else hashlib.sha256(policy.name.encode("utf-8")).hexdigest()[:16]
