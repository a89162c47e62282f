"""Says where the app stands before the browser's part of Streamlit guesses it.

At `/tune` that part first asks `/tune/_stcore/health` and `/tune/_stcore/host-config`, because an app may be served below a
folder; both are 404, which the browser logs as errors on every page but the first, and only then does it ask at the root. The
page can be told: one line in its head, relative to its own address, so it holds behind a proxy's folder too. Answering those
addresses instead would make the browser take `/tune` for the app's folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEAD = b"<head>"
_SAID = b'<head><script>window.__streamlit={BACKEND_BASE_URL:new URL(".",location.href).href};</script>'


class BaseSaid:
    """ASGI middleware that puts the line into the app's page where that is asked for by a page's name.

    Args:
        app: The app.
        pages: Names of the pages as their addresses have them.
    """

    def __init__(self, app: ASGIApp, pages: frozenset[str]) -> None:
        self.app, self.pages = app, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        asked = scope["type"] == "http" and scope["method"] == "GET" and scope["path"].removeprefix("/") in self.pages
        if not asked:
            await self.app(scope, receive, send)
            return
        # Whole and not packed, whatever the browser has kept: the line must be in it.
        left = (b"accept-encoding", b"if-none-match", b"if-modified-since")
        headers = [(name, value) for name, value in scope["headers"] if name.lower() not in left]
        page = _Page(send)
        await self.app({**scope, "headers": headers}, receive, page.take)


class _Page:
    """One answer: held until it is whole, then sent with the line in it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: dict[str, Any] = {}
        self._body = b""

    async def take(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            self._start = dict(message)
        elif message["type"] != "http.response.body":
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish()

    async def _finish(self) -> None:
        html = any(n.lower() == b"content-type" and v.startswith(b"text/html") for n, v in self._start["headers"])
        body = self._body.replace(_HEAD, _SAID, 1) if html else self._body
        length = (b"content-length", str(len(body)).encode())
        kept = [h for h in self._start["headers"] if h[0].lower() not in (b"content-length", b"etag")]
        await self._send({**self._start, "headers": [*kept, length]})
        await self._send({"type": "http.response.body", "body": body})
