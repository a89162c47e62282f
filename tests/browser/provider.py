"""A small OpenID Connect provider on this machine, for tests: signs tokens with a key made at start, knows no passwords.

The page that a person is sent to has one button for each account. What it signs, and with which key, is the test's choice.
"""

import json
import secrets
import threading
import time
from collections.abc import Mapping
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT = "workbench-tests"


class Provider:
    """The provider.

    Args:
        accounts: Account name -> its claims.
    """

    def __init__(self, accounts: Mapping[str, Mapping[str, Any]]) -> None:
        self.accounts = accounts
        self.key = RSAKey.generate_key(2048, {"kid": "tests", "use": "sig"})
        self.signing = self.key
        self.codes: dict[str, tuple[str, str]] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                provider.get(self)

            def do_POST(self) -> None:
                provider.post(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        self.server.shutdown()
        self.server.server_close()

    def get(self, request: BaseHTTPRequestHandler) -> None:
        """Metadata, keys, and the page with the accounts."""
        parts = urlsplit(request.path)
        asked = {n: v[0] for n, v in parse_qs(parts.query).items()}
        if parts.path == "/.well-known/openid-configuration":
            self.answer(
                request,
                {
                    "issuer": self.url,
                    "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token",
                    "jwks_uri": f"{self.url}/keys",
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["RS256"],
                },
            )
        elif parts.path == "/keys":
            self.answer(request, {"keys": [self.key.as_dict(private=False)]})
        elif parts.path == "/authorize" and "account" not in asked:
            links = "".join(
                f'<p><a href="?{escape(urlencode({**asked, "account": name}))}">{escape(name)}</a></p>'
                for name in self.accounts
            )
            self.send(request, 200, f"<html><body><h1>Who are you?</h1>{links}</body></html>".encode(), "text/html")
        elif parts.path == "/authorize":
            code = secrets.token_urlsafe(16)
            self.codes[code] = (asked["account"], asked.get("nonce", ""))
            back = asked["redirect_uri"] + "?" + urlencode({"code": code, "state": asked["state"]})
            request.send_response(302)
            request.send_header("Location", back)
            request.end_headers()
        else:
            self.send(request, 404, b"", "text/plain")

    def post(self, request: BaseHTTPRequestHandler) -> None:
        """A code for a token."""
        length = int(request.headers.get("Content-Length", "0"))
        asked = parse_qs(request.rfile.read(length).decode())
        account, nonce = self.codes.pop(asked["code"][0])
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": CLIENT, "sub": account, "iat": now, "exp": now + 600, "nonce": nonce,
            **self.accounts[account],
        }  # fmt: skip
        token = jwt.encode({"alg": "RS256", "kid": "tests"}, claims, self.signing)
        self.answer(request, {"access_token": "unused", "token_type": "Bearer", "expires_in": 600, "id_token": token})

    def answer(self, request: BaseHTTPRequestHandler, value: Mapping[str, Any]) -> None:
        """Send JSON."""
        self.send(request, 200, json.dumps(value).encode(), "application/json")

    @staticmethod
    def send(request: BaseHTTPRequestHandler, status: int, body: bytes, kind: str) -> None:
        """Send a body."""
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
