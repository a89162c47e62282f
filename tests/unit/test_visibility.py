"""Who sees which document."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.errors import PrincipalRequired, UsageError
from workbench.records import Principal
from workbench.store.access.mask import MaskPatterns
from workbench.store.access.visibility import Access, SeeAll, visible, visible_documents

ALL = SeeAll()


@pytest.mark.parametrize(
    ("tenant", "roles", "who", "seen"),
    [
        (None, (), None, True),
        (None, (), Principal(), True),
        (None, (), Principal("acme"), False),
        ("acme", (), Principal("acme"), True),
        ("acme", (), Principal("other"), False),
        ("acme", (), Principal(), False),
        ("acme", (), Principal("acme", ("hr",)), True),
        ("acme", ("hr", "law"), Principal("acme", ("hr",)), True),
        ("acme", ("hr",), Principal("acme", ("it",)), False),
        ("acme", ("hr",), Principal("acme"), False),
        ("acme", ("hr",), Principal("other", ("hr",)), False),
        (None, ("hr",), Principal(None, ("hr",)), True),
        (None, ("hr",), Principal(), False),
        ("", (), Principal(), False),
        ("Acme", (), Principal("acme"), False),
    ],
)
def test_tenant_must_be_equal_and_a_role_shared(
    tenant: str | None, roles: tuple[str, ...], who: Principal | None, seen: bool
):
    assert visible(Access(tenant, roles, "normal"), who, ALL) is seen


@pytest.mark.parametrize(
    ("sensitivity", "who", "seen"),
    [
        ("normal", Principal(), True),
        ("restricted", Principal(), False),
        ("restricted", None, False),
        ("restricted", Principal(None, ("security",)), True),
    ],
)
def test_a_policy_may_drop_what_tenant_and_roles_allow(sensitivity: str, who: Principal | None, seen: bool):
    policy = MaskPatterns(hidden=("restricted",), cleared=("security",))
    assert visible(Access(None, (), sensitivity), who, policy) is seen


def test_a_policy_never_shows_what_tenant_and_roles_hide():
    assert not visible(Access("acme", (), "normal"), Principal("other"), ALL)


@pytest.mark.parametrize("kind", [Access("acme", (), "normal"), Access(None, ("hr",), "normal")])
def test_nobody_is_refused_where_any_document_has_a_tenant_or_roles(kind: Access):
    kinds = [Access(None, (), "normal"), kind]
    with pytest.raises(PrincipalRequired, match="WORKBENCH_TENANT"):
        visible_documents(kinds, np.array([0, 0, 1], np.int32), None, ALL)


def test_the_mask_is_none_only_where_everything_is_visible():
    kinds = [Access(None, (), "normal"), Access(None, (), "restricted")]
    codes = np.array([0, 1, 0], np.int32)
    assert visible_documents(kinds, codes, None, ALL) is None
    mask = visible_documents(kinds, codes, None, MaskPatterns(hidden=("restricted",)))
    assert mask is not None
    assert mask.tolist() == [True, False, True]


@pytest.mark.parametrize("wrong", [{"roles": "admin"}, {"roles": None}, {"roles": [1]}, {"tenant": 5}])
def test_who_asks_is_named_by_texts(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="Write for example"):
        Principal(**wrong)
