"""Several principals over HTTP: a bearer token each, from a file that only the server reads.

::

    - token: a long random text
      tenant: acme
      roles: [support]
    - token: another one
      roles: [admin]

Every call is answered for the principal of its token, from a corpus that is open for that principal alone; a request without a
token of the file gets 401 and reaches no tool.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken

from workbench.errors import SettingError
from workbench.records import Principal, principal_key
from workbench.settings import read_yaml

if TYPE_CHECKING:
    from workbench.corpus import Corpus

SHORTEST = 16


class People:
    """Who may ask: a `TokenVerifier` of the SDK, and the open corpus of whoever does.

    Args:
        principals: Principal by token.
        open_for: Opens the corpus for a principal.
    """

    def __init__(self, principals: Mapping[str, Principal], open_for: Callable[[Principal], Corpus]) -> None:
        # Looked up by digest, so that how long a look-up takes says nothing of a token.
        self._principals = {_digest(token): principal for token, principal in principals.items()}
        self._open_for = open_for
        self._opened: dict[str, Corpus] = {}
        self._lock = threading.Lock()

    async def verify_token(self, token: str) -> AccessToken | None:
        """The token's principal as the SDK names it; None for a token that is not in the file."""
        principal = self._principals.get(_digest(token))
        if principal is None:
            return None
        return AccessToken(token=token, client_id=_digest(token), scopes=[], subject=principal_key(principal))

    def corpus(self) -> Corpus:
        """The corpus as who asks now may see it. Raises SettingError outside a request with a token."""
        token = get_access_token()
        principal = None if token is None else self._principals.get(token.client_id)
        if principal is None:
            raise SettingError("Nobody is named by this request", "Send a bearer token of the server's file")
        key = principal_key(principal)
        with self._lock:
            if key not in self._opened:
                self._opened[key] = self._open_for(principal)
            return self._opened[key]

    def close(self) -> None:
        """Close every corpus."""
        for corpus in self._opened.values():
            corpus.close()


def read_people(file: Path) -> Mapping[str, Principal]:
    """Principal by token. Raises SettingError for a file that is not as above."""
    try:
        rows = read_yaml(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        # Never its text: it holds the tokens.
        raise SettingError(
            f"The file of tokens {file} cannot be read, or is not YAML in UTF-8", "Write it as the guide shows"
        ) from exc
    found: dict[str, Principal] = {}
    for number, row in enumerate(rows if isinstance(rows, list) and rows else [None], 1):
        token, principal = _person(row, f"Entry {number} of {file}")
        if token in found:
            raise SettingError(
                f"Entry {number} of {file} has the token of another entry", "Give each a token of its own"
            )
        found[token] = principal
    return found


def _person(row: Any, where: str) -> tuple[str, Principal]:
    if not isinstance(row, dict) or row.keys() - {"token", "tenant", "roles"}:
        raise SettingError(
            f"{where} is not a token with a tenant and roles", "Write token, tenant and roles, no other keys"
        )
    token, tenant, roles = row.get("token"), row.get("tenant"), row.get("roles") or []
    if not isinstance(token, str) or len(token) < SHORTEST:
        raise SettingError(
            f"{where} has no token of at least {SHORTEST} characters", "Write a long random text in quotes"
        )
    if (
        not (tenant is None or isinstance(tenant, str))
        or not isinstance(roles, list)
        or not all(isinstance(r, str) for r in roles)
    ):
        raise SettingError(
            f"{where} has a tenant that is not text, or roles that are not a list of texts", "Write roles: [support]"
        )
    return token, Principal(tenant, tuple(roles))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
