"""A chat completion server on 127.0.0.1 whose behaviour a test decides, request by request. No part of the client is mocked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers each request by the server's next behaviour; the last one stays."""

    server: Server
    body: dict[str, Any]

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(self.body)
            self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.server.paths.append(self.path)
            index = min(len(self.server.requests), len(self.server.behaviours)) - 1
        with contextlib.suppress(ConnectionError):
            self.server.behaviours[index](self)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def send(self, body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    @property
    def passages(self) -> list[dict[str, Any]]:
        return list(json.loads(self.body["messages"][1]["content"])["passages"])


class Server(ThreadingHTTPServer):
    """Keeps what it was asked; `stop` ends behaviours that hang."""

    daemon_threads = True

    def __init__(self, behaviours: tuple[Behaviour, ...]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviours = behaviours
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.lock = threading.Lock()
        self.stop = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextlib.contextmanager
def serving(*behaviours: Behaviour) -> Iterator[Server]:
    server = Server(behaviours)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()


def completion(content: Any, finish: str = "stop") -> bytes:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    ).encode()


def says(content: Any, finish: str = "stop") -> Behaviour:
    return lambda handler: handler.send(completion(content, finish))


def sends(body: bytes, kind: str = "application/json") -> Behaviour:
    return lambda handler: handler.send(body, kind=kind)


def fails(status: int, said: str = "no", **headers: str) -> Behaviour:
    body = json.dumps({"error": {"message": said, "type": "t", "code": None, "param": None}}).encode()
    return lambda handler: handler.send(body, status, **headers)


def scores_by(judge: Callable[[str], Any]) -> Behaviour:

    def behave(handler: Handler) -> None:
        scores = {str(p["number"]): judge(p["text"]) for p in handler.passages}
        handler.send(completion(json.dumps({"scores": scores})))

    return behave


def hangs(handler: Handler) -> None:
    handler.server.stop.wait(30)


def closes(handler: Handler) -> None:
    handler.close_connection = True


def breaks_off(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


def dripping(start: bytes, drop: bytes) -> Behaviour:
    """The start of an answer, and then a drop now and again."""

    def behave(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + start)
        while not handler.server.stop.wait(0.02):
            handler.wfile.write(drop)
            handler.wfile.flush()

    return behave


trickles = dripping(b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n", b" ")
trickles_head = dripping(b"X-Slow: ", b"a")


def floods(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(1 << 26))
    handler.end_headers()
    for _ in range(1 << 10):
        if handler.server.stop.is_set():
            return
        handler.wfile.write(b" " * (1 << 16))
