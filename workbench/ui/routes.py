"""Addresses beside the app: `/p/TOKEN`, how far the work is that a page shows; `/s/ID`, the page of a kept snapshot, under its
own policy.

A snapshot is drawn from its data for who asks: what a file says its `index.html` is, is never sent, and what the viewer may
not see is not in it. Streamlit guards its own addresses only, so the host name and the person are checked here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench import settings
from workbench.errors import PrincipalRequired, SettingError, SnapshotError, WorkbenchError
from workbench.markup import visible
from workbench.records import Principal
from workbench.snapshot import Snapshot
from workbench.snapshot.page import policy as page_policy
from workbench.snapshot.snapshot import Library, Listed
from workbench.store.access.visibility import Policy, policy_digest
from workbench.store.types import Scope
from workbench.ui import auth, jobs, resources

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from workbench.corpus import Corpus

MOST_LISTED = 200


def allowed(
    snapshot: Snapshot, viewer: Principal | None, policy: Policy | None, today: Today | None = None, own: bool = False
) -> Snapshot:
    """What of a snapshot the viewer may see, under the corpus's policy of today.

    Args:
        today: The corpus's documents of today; None: nothing is known of them, and others than its makers see none.
        own: It is a file of the viewer's own, and perhaps of another corpus: documents that this one lacks stay.

    Raises:
        SnapshotError: Nothing: it is another tenant's. Worded as if it were not there.
    """
    made_as = snapshot.about.principal
    tenants = (None if made_as is None else made_as.tenant, None if viewer is None else viewer.tenant)
    if tenants[0] != tenants[1]:
        raise missing()
    shown = frozenset() if today is None else today.visible
    if own or viewer == made_as:
        hidden = frozenset() if today is None else today.there - today.visible
        held = snapshot.documents()["document_id"].to_list()
        shown = frozenset(held) - hidden
        if viewer == made_as and policy_digest(policy) == snapshot.about.policy and len(shown) == len({*held}):
            return snapshot
    try:
        return snapshot.for_audience(viewer, policy, shown)
    except PrincipalRequired as exc:
        raise missing() from exc


@dataclass(frozen=True, slots=True)
class Today:
    """Ids of the documents of a corpus: all that are there, and those that the viewer may see."""

    there: frozenset[str]
    visible: frozenset[str]


@resources.kept(8)
def today(corpus: Corpus) -> Today:
    records = corpus.engine.opened.records
    return Today(records.ids(Scope()), records.ids(resources.scope(corpus)))


def missing() -> SnapshotError:
    return SnapshotError("There is no snapshot with this id here", "The Snapshots page lists those that there are")


def kept(corpus: Corpus) -> list[Listed]:
    """The snapshots on the corpus's shelf that its principal may see, newest first; damaged files with what is wrong."""
    shown: list[Listed] = []
    for path in Library(corpus.path).files()[:MOST_LISTED]:
        stat = path.stat()
        one = _read(str(path), stat.st_mtime_ns, stat.st_size)
        if one.snapshot is None:
            shown.append(one)
            continue
        try:
            shown.append(Listed(path, allowed(one.snapshot, corpus.principal, corpus.policy, today(corpus))))
        except WorkbenchError:
            continue  # Another tenant's: not even its being there is told.
    return shown


@st.cache_resource(show_spinner=False, max_entries=64)
def _read(path: str, modified: int, size: int) -> Listed:
    """A file of the shelf, read once as long as it does not change."""
    return Library.read(Path(path))


PATH, PROGRESS = "/s/", "/p/"
_GUARDS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_COOKIE = "_streamlit_user"


def routes() -> list[BaseRoute]:
    from starlette.routing import Route

    return [
        Route(PATH + "{id}", serve, methods=["GET"], name="snapshot"),
        Route(PROGRESS + "{token}", progress, methods=["GET"], name="progress"),
    ]


def progress(request: Request) -> Response:
    """How far something is that a page shows, as JSON; only the page knows the token."""
    from starlette.responses import JSONResponse

    if not host_allowed(request.headers.get("host", "")):
        return _sentence(403, "This server does not answer to this host name.")
    report = jobs.report_of(request.path_params["token"])
    if report is None:
        return _sentence(404, "Nothing of this name is going on.")
    return JSONResponse(asdict(report), headers=_GUARDS)


def serve(request: Request) -> Response:
    from starlette.responses import HTMLResponse

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
    return HTMLResponse(text, headers={**_GUARDS, "Content-Security-Policy": page_policy()})


def page_of(corpus: Corpus, id: str) -> str:
    return _drawn(corpus, id, Library(corpus.path).modified(id))


@resources.kept(4)
def _drawn(corpus: Corpus, id: str, modified: int) -> str:
    whole = Library(corpus.path).get(id)
    return allowed(whole, corpus.principal, corpus.policy, today(corpus)).html()


def host_allowed(host: str) -> bool:
    """Whether a request's host is one that the app answers to: a page elsewhere must not read a local server."""
    names = st.get_option("server.allowedHosts") or []
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return not names or name.lower() in {str(n).lower() for n in names}


def person(cookies: Mapping[str, str]) -> Principal | None:
    """Who asks: who signed in; where nobody signs in, the settings' principal. Raises SettingError."""
    if not _signing_in():
        return resources.settings_principal()
    claims = _claims(cookies)
    if claims.get("is_logged_in") is not True:
        raise SettingError("You are not signed in", "Open the app, log in, and come back")
    return auth.read_claims(claims, time.time())


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
