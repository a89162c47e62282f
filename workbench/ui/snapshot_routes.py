"""The address `/s/ID` of a kept snapshot: its page, served beside the app under the page's own policy.

The page is drawn anew from the data for who asks: what a file says its `index.html` is, is never sent, and what the viewer may
not see is not in it. Streamlit guards its own addresses only, so the host name and the person are checked here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench import settings
from workbench.errors import PrincipalRequired, WorkbenchError
from workbench.markup import visible
from workbench.records import Principal
from workbench.ui import resources
from workbench.ui.snapshot_access import allowed, missing, today

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from workbench.corpus import Corpus

PATH = "/s/"
_GUARDS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_COOKIE = "_streamlit_user"


def routes() -> list[BaseRoute]:
    """The routes to add to the app."""
    from starlette.routing import Route

    return [Route(PATH + "{id}", serve, methods=["GET"], name="snapshot")]


def serve(request: Request) -> Response:
    """A snapshot's page, or a sentence with 403 or 404."""
    from starlette.responses import HTMLResponse

    from workbench.snapshot.page import policy

    if not host_allowed(request.headers.get("host", "")):
        return _sentence(403, "This server does not answer to this host name.")
    try:
        viewer = person(request.cookies)
    except WorkbenchError as exc:
        return _sentence(403, str(exc))
    try:
        text = page_of(resources.opened(viewer), request.path_params["id"])
    except PrincipalRequired:
        return _sentence(404, str(missing()))
    except WorkbenchError as exc:
        return _sentence(404, str(exc))
    return HTMLResponse(text, headers={**_GUARDS, "Content-Security-Policy": policy()})


def page_of(corpus: Corpus, id: str) -> str:
    """The page of a kept snapshot for the principal that the corpus is open for. Raises SnapshotError."""
    from workbench.snapshot.snapshot import Library

    return _drawn(corpus.engine.key, id, Library(corpus.path).modified(id), corpus)


@st.cache_resource(show_spinner=False, max_entries=4)
def _drawn(state: str, id: str, modified: int, _corpus: Corpus) -> str:
    from workbench.snapshot.snapshot import Library

    whole = Library(_corpus.path).get(id)
    return allowed(whole, _corpus.principal, _corpus.policy, today(_corpus)).html()


def host_allowed(host: str) -> bool:
    """Whether a request's host is one that the app answers to: a page elsewhere must not read a local server."""
    names = st.get_option("server.allowedHosts") or []
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return not names or name.lower() in {str(n).lower() for n in names}


def person(cookies: Mapping[str, str]) -> Principal | None:
    """Who asks: who signed in; where nobody signs in, the settings' principal.

    Raises:
        SettingError: People sign in here, and this one has not.
    """
    from workbench.errors import SettingError
    from workbench.ui import sign_in

    if not _signing_in():
        tenant, roles = str(settings.get("tenant")), str(settings.get("roles"))
        named = tuple(r.strip() for r in roles.split(",") if r.strip())
        return Principal(tenant or None, named) if tenant or named else None
    claims = _claims(cookies)
    found = sign_in.read_claims(claims, time.time()) if claims.get("is_logged_in") is True else None
    if isinstance(found, Principal):
        return found
    raise SettingError("You are not signed in", "Open the app, log in, and come back")


def _signing_in() -> bool:
    if str(settings.get("oidc_secrets")):
        return True
    from streamlit.runtime.secrets import secrets_singleton

    return bool(secrets_singleton.load_if_toml_exists() and "auth" in secrets_singleton)


def _claims(cookies: Mapping[str, str]) -> Mapping[str, Any]:
    """The claims in Streamlit's signed cookie; empty where it is missing or its signature is not the server's."""
    from streamlit.auth_util import get_cookie_with_chunks
    from streamlit.web.server.server_util import get_cookie_secret
    from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value

    secret = get_cookie_secret()

    def one(name: str) -> bytes | None:
        value = cookies.get(name)
        return None if value is None or not secret else decode_signed_value(secret, name, value.encode("latin-1"))

    try:
        claims = json.loads((get_cookie_with_chunks(one, _COOKIE) or b"{}").decode("utf-8"))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def _sentence(status: int, text: str) -> Response:
    from starlette.responses import HTMLResponse

    page = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Snapshot</title><p>{visible(text)}</p></html>'
    return HTMLResponse(page, status_code=status, headers={**_GUARDS, "Content-Security-Policy": "default-src 'none'"})
