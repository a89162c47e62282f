"""`workbench mcp` as a process: over standard input and output, and over HTTP."""

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import anyio
import httpx2
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from serving import free_port, until_it_answers

import workbench as wb
from workbench.cli.main import main

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
TOOLS = {"hybrid_search", "grep_search", "vector_search", "search_examples", "read_file", "corpus_info", "explain"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("hybrid_search", {"semantic_query": "what trips the breaker", "exact_keywords": "kettle"}),
    ("vector_search", {"query": "what trips the breaker", "threshold": "off"}),
    ("grep_search", {"query": "kettle"}),
    ("read_file", {"path": "kb/kettle.md"}),
    ("corpus_info", {}),
]


def arguments(corpus: Path, *more: str) -> list[str]:
    return ["-m", "workbench.cli.main", "mcp", "--corpus", str(corpus), "--tenant", "acme", "--role", "support", *more]


def environment() -> dict[str, str]:
    return {"WORKBENCH_SETTINGS": os.environ["WORKBENCH_SETTINGS"], "HF_HUB_OFFLINE": "1"}


async def use(server: StdioServerParameters | str) -> dict[str, Any]:
    """List the tools, call each, and try what must be refused."""
    async with Client(server) as client:
        seen: dict[str, Any] = {"tools": {t.name for t in (await client.list_tools()).tools}}
        for name, given in CALLS:
            seen[name] = await client.call_tool(name, given)
        seen["escape"] = await client.call_tool("read_file", {"path": "../../../../../etc/passwd"})
        seen["hidden"] = await client.call_tool("read_file", {"path": "admin/salaries.md"})
        seen["unknown"] = await client.call_tool("grep_search", {"query": "salary", "tenant": "birch"})
        return seen


def check(seen: dict[str, Any], sample_path: Path) -> None:
    """What a process answers is what the corpus answers."""
    assert seen["tools"] == TOOLS
    with wb.open_corpus(sample_path, wb.Principal("acme", ("support",))) as corpus:
        result = corpus.search("what trips the breaker", keywords="kettle", plan="default")
        hits = seen["hybrid_search"].structured_content["hits"]
        assert [(h["citation"], h["score"], h["label"]) for h in hits] == [
            (h.citation, h.score, str(h.label)) for h in result.hits
        ]
        assert hits
        assert len(seen["vector_search"].structured_content["hits"]) == 10
        assert seen["grep_search"].structured_content["files"] == list(
            dict.fromkeys(p.path for p in corpus.grep("kettle"))
        )
        assert seen["read_file"].structured_content["text"] == corpus.read_file("kb/kettle.md")
        assert seen["corpus_info"].structured_content["digest"] == corpus.info()["digest"]
    assert seen["escape"].is_error
    assert seen["escape"].content[0].text.startswith("[ERROR: ACCESS_DENIED]")
    assert seen["hidden"].content[0].text.startswith("[ERROR: NOT_FOUND]")
    assert seen["unknown"].is_error
    assert "there is no argument 'tenant'" in seen["unknown"].content[0].text


@pytest.mark.slow
def test_over_standard_input_and_output(sample_path):
    server = StdioServerParameters(command=sys.executable, args=arguments(sample_path), env=environment())
    check(anyio.run(use, server), sample_path)


@pytest.mark.slow
def test_standard_output_carries_messages_only(sample_path):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    wrong = {"name": "grep_search", "arguments": {"query": "(", "regex": True}}
    lines = [
        (json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}), 1, None),
        (json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": wrong}), 2, None),
        ('{"jsonrpc":"2.0","id":1', None, -32700),
        ("\\x00", None, -32700),
        ('{"id":7,"method":3}', 7, -32600),
        ("[1]", None, -32600),
        ('{"jsonrpc":"2.0","id":"a\\ud83d","method":"ping"}', "a?", None),
    ]
    process = subprocess.Popen(
        [sys.executable, *arguments(sample_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, **environment()},
    )  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        for line, known, code in lines:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert answer["id"] == known
            assert answer.get("error", {}).get("code") == code
            assert answer["id"] != 2 or answer["result"]["isError"] is True
            if known == 1:
                process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (rest, process.returncode) == ("", 0)


@contextmanager
def serving(command: list[str]) -> Iterator[int]:
    """Port of a process that serves HTTP."""
    port, own = free_port(), {**os.environ, **environment()}
    process = subprocess.Popen(
        [sys.executable, *command, "--http", str(port)], stderr=subprocess.PIPE, text=True, env=own
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == f"workbench: serving MCP at http://127.0.0.1:{port}/mcp\n"
        until_it_answers(process, port)
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.slow
def test_over_http(sample_path):
    """The same over streamable HTTP, for two clients after each other; a request for another host's name is turned away."""
    with serving(arguments(sample_path)) as port:
        for _ in range(2):
            check(anyio.run(use, f"http://127.0.0.1:{port}/mcp"), sample_path)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        connection.request("POST", "/mcp", asked, {"Host": "evil.example", **JSON})
        assert connection.getresponse().status == 421
        connection.close()


@pytest.mark.slow
def test_several_people_over_http(sample_path, tmp_path):
    """Each token is answered as its principal, in one server; without one of the file there is 401 and nothing else."""
    people = {
        "first-token-0123456789": wb.Principal("acme", ("support",)),
        "other-token-0123456789": wb.Principal("birch"),
    }
    file = tmp_path / "tokens.yaml"
    file.write_text(json.dumps([{"token": t, "tenant": p.tenant, "roles": list(p.roles)} for t, p in people.items()]))
    command = ["-m", "workbench.cli.main", "mcp", "--corpus", str(sample_path), "--tokens", str(file)]

    async def ask(port: int, token: str) -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as sent,
            Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=sent)) as client,
        ):
            return [await client.call_tool(name, given) for name, given in CALLS]

    with serving(command) as port:
        for token in ("", "first-token-012345678", "wrong" * 5):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            headers = JSON | ({"Authorization": f"Bearer {token}"} if token else {})
            connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), headers)
            assert connection.getresponse().status == 401
            connection.close()
        for token, principal in [*people.items()] * 2:
            answers = anyio.run(ask, port, token)
            with wb.open_corpus(sample_path, principal) as corpus:
                hits = corpus.search("what trips the breaker", keywords="kettle").hits
                assert [h["citation"] for h in answers[0].structured_content["hits"]] == [h.citation for h in hits]
                assert answers[4].structured_content["tenant"] == principal.tenant
                assert answers[4].structured_content["documents"] == corpus.info()["documents"]


@pytest.mark.parametrize(
    "rows",
    [
        "",
        "[]",
        "{a: 1}",
        "[{token: short}]",
        "[{token: 0123456789abcdef, role: x}]",
        "[{token: 0123456789abcdef, roles: x}]",
        "[{token: 0123456789abcdef}, {token: 0123456789abcdef}]",
        "[{token: '\x00",
    ],
)
def test_a_file_of_tokens_is_read_exactly(sample_path, tmp_path, rows):
    """Else exit code 2 and one sentence, without the tokens."""
    (tmp_path / "t").write_text(rows)
    done = CliRunner().invoke(
        main, ["mcp", "--corpus", str(sample_path), "--http", "0", "--tokens", str(tmp_path / "t")]
    )
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert "0123456789abcdef" not in done.stderr


def test_what_cannot_be_served_is_said_at_the_start(sample_path, tmp_path):
    """No corpus, nobody named, an address or port that cannot be: exit code 2 and one sentence, before anything is served."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        who = ["--tenant", "acme"]
        for given, words in [
            (["--corpus", str(tmp_path / "none")], "corpus"),
            (["--corpus", str(sample_path)], "no principal was given"),
            (["--corpus", str(sample_path), *who, "--http", "here"], "is not an address"),
            (["--corpus", str(sample_path), *who, "--http", port], "Cannot listen on"),
            (["--corpus", str(sample_path), *who, "--preset", "best"], "no preset called"),
        ]:
            done = CliRunner().invoke(main, ["mcp", *given])
            assert done.exit_code == 2, given
            assert done.stdout == ""
            assert words in done.stderr
            assert len(done.stderr.splitlines()) == 1
