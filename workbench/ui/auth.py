"""Who looks, where people sign in: the claims of Streamlit's OpenID Connect sign-in as a principal, and the door before it.

Without an `[auth]` table in Streamlit's secrets nobody signs in and nothing here does anything. With one, no page runs before
the person has signed in; tenant and roles come from the signed claims and from nowhere else, so no address, widget or view can
change them. What is missing is never guessed: a claim that the settings name and the token lacks closes the door.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import streamlit as st

from workbench import settings
from workbench.errors import SettingError
from workbench.markup import plain
from workbench.records import Principal
from workbench.ui.components import cards
from workbench.ui.launch import is_local, providers_of

_KEY = "wb.w.sign-in."
_LEAVING = _KEY + "leaving"
_CLOCKS = 300
"""Seconds that two machines' clocks may differ."""


def on() -> bool:
    """Whether people sign in here. Raises SettingError where the settings say so and Streamlit knows no provider."""
    if "is_logged_in" in st.user:
        return True
    if str(settings.get("oidc_secrets")):
        raise SettingError(
            "The setting oidc_secrets names a provider to sign in with, and this server does not know it",
            "Start the app with `workbench app`, which reads that file",
        )
    return False


def read_claims(claims: Mapping[str, Any], now: float) -> Principal:
    """The principal that a token's claims, as the provider signed them, name at a time (seconds since 1970). Raises
    SettingError: why somebody who signed in is not let in.
    """
    hours = float(settings.get("oidc_hours"))
    issued = claims.get("iat")
    if isinstance(issued, bool) or not isinstance(issued, (int, float)) or not -_CLOCKS <= now - issued <= hours * 3600:
        raise SettingError(f"You signed in more than {hours:g} hours ago", "Log in again")
    if not all(isinstance(claims.get(name), str) and claims[name].strip() for name in ("iss", "sub")):
        raise SettingError(
            "Your account names no issuer and subject (the claims iss and sub)",
            "Ask whoever keeps the accounts to send them, and log in again",
        )
    tenant, tenant_claim = None, str(settings.get("oidc_tenant_claim"))
    if tenant_claim:
        tenant = claim(claims, tenant_claim)
        if not isinstance(tenant, str) or not tenant.strip():
            remedy = "Ask whoever keeps the accounts to add it, and log in again"
            raise SettingError(f"Your account says no tenant (the claim {tenant_claim})", remedy)
        tenant = tenant.strip()
    return Principal(tenant, roles_in(claim(claims, str(settings.get("oidc_roles_claim")))))


def claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, else by its parts between dots (`realm_access.roles`); None where there is none."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def roles_in(value: Any) -> tuple[str, ...]:
    """Roles of a claim: a list of texts, or one text with commas or spaces; anything else holds none."""
    parts = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)):
        return ()
    return tuple(sorted({p.strip() for p in parts if isinstance(p, str) and p.strip()}))


def principal() -> Principal:
    """Who signed in. To be asked only behind the door. Raises SettingError where nobody may be."""
    if not st.user.is_logged_in:
        raise SettingError("Nobody is signed in", "Log in")
    return read_claims(st.user.to_dict(), time.time())


def person() -> str:
    """Who the person is, for what is kept of them: the provider's subject and issuer. Names and addresses are not verified."""
    claims: Mapping[str, Any] = st.user.to_dict()
    return f"{claims.get('sub', '')}@{claims.get('iss', '')}"


def name() -> str:
    """What the person is called, to be shown to them: the name, address or number of the account."""
    claims: Mapping[str, Any] = st.user.to_dict()
    for key in ("email", "preferred_username", "name"):
        if isinstance(claims.get(key), str) and claims[key].strip():
            return str(claims[key]).strip()
    return person()


def entered() -> bool:
    """Whether the pages may be named: nobody has to sign in, or who looks has and is let in."""
    try:
        return not on() or isinstance(principal(), Principal)
    except SettingError:
        return False


def door() -> bool:
    """Draw the way to sign in where somebody has not, and the way out where somebody has; returns whether the page may run."""
    try:
        if not on():
            return True
    except SettingError as exc:
        st.html(cards.alert("Nobody can sign in", exc.message, exc.remedy))
        return False
    if st.session_state.get(_LEAVING):
        st.text("Logging out. If this stays, load the page again and see who is signed in.")
        return False
    if not st.user.is_logged_in:
        st.subheader("Sign in to search", anchor=False)
        _ways_in()
        return False
    try:
        principal()
    except SettingError as exc:
        st.html(cards.alert("", exc.message, exc.remedy))
        _ways_in()
        st.button("Log out", key=_KEY + "out", on_click=_leave)
        return False
    with st.sidebar.container(horizontal=True, vertical_alignment="center"):
        st.text(plain(name(), 60), width="stretch")
        st.button("Log out", key=_KEY + "out", on_click=_leave, type="tertiary")
    return True


def _leave() -> None:
    """Log out. The session forgets the person at once and the browser is then sent where its cookie is taken away.

    Until it has arrived there the cookie would still let it in, so this session never offers to log in again: the way in
    is shown by the next session, which has no cookie.
    """
    st.session_state[_LEAVING] = True
    st.logout()


def _ways_in() -> None:
    names = providers_of(st.secrets.get("auth", {}))
    for provider in names:
        label = "Log in" if len(names) == 1 else f"Log in with {provider}"
        st.button(label, key=f"{_KEY}in-{provider}", on_click=st.login, args=(provider or None,), type="primary")


def may_index() -> bool:
    """Whether who looks may start an indexing run from the page: it reads this machine's files.

    The local owner, on a server that only this machine reaches; where people sign in, who holds the role of the setting.
    """
    if on():
        role = str(settings.get("app_indexing_role"))
        return bool(role) and role in principal().roles
    return bool(settings.get("app_indexing")) and is_local(str(st.get_option("server.address") or ""))


def indexing_roots() -> tuple[str, ...] | None:
    """Real paths of the folders below which who looks may index; None: any, for the local owner.

    Where people sign in these are the folders that the setting `app_indexing_roots` gives to their tenant (an entry that
    begins with `=` is for those without one).
    """
    if not on():
        return None
    tenant = principal().tenant or ""
    entries = (entry.partition("=") for entry in str(settings.get("app_indexing_roots")).split(os.pathsep))
    return tuple(
        os.path.realpath(os.path.expanduser(folder))
        for named, sign, folder in entries
        if sign and named == tenant and folder
    )
