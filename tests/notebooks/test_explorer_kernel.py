"""`wb.explore` in a real kernel: what a browser is sent, and what happens when it sends a slider's new value back."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

MADE = """
import workbench as wb
corpus = wb.open_corpus({path!r}, wb.Principal("acme", ("admin", "support")))
explorer = wb.explore(corpus, "how long do we wait before a retry", plan="rrf vector.threshold=off")
explorer
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """A client of a kernel of this environment."""
    pytest.importorskip("ipykernel", reason="needs the extra notebooks: pip install ipykernel")
    pytest.importorskip("ipywidgets", reason="needs the extra notebooks: pip install ipywidgets")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def said(kernel: Any, code: str) -> list[Any]:
    """Run code; every message of its, as a browser sees them. Fails where the code does."""
    return heard(kernel, kernel.execute(code))


def heard(kernel: Any, sent: str) -> list[Any]:
    """The messages that answer one that was sent, until the kernel is idle again."""
    messages = []
    while True:
        try:
            message = kernel.get_iopub_msg(timeout=120)
        except queue.Empty:
            pytest.fail("the kernel says nothing")
        if message["parent_header"].get("msg_id") != sent:
            continue
        messages.append(message)
        assert message["msg_type"] != "error", "\n".join(message["content"]["traceback"])
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return messages


def test_a_slider_that_a_browser_moves_redraws_the_chart_in_place(kernel: Any, sample_path: Path) -> None:
    """The cell shows a widget; the new value of k comes back, and the plan, the list and the same figure follow."""
    made = said(kernel, MADE.format(path=str(sample_path)))
    shown = [m["content"]["data"] for m in made if m["msg_type"] == "execute_result"]
    assert "application/vnd.jupyter.widget-view+json" in shown[0]
    assert shown[0]["text/plain"].startswith("<Explorer 'how long")
    models = {m["content"]["comm_id"]: m["content"]["data"]["state"] for m in made if m["msg_type"] == "comm_open"}
    (slider,) = (key for key, state in models.items() if state.get("description") == "k")
    sent = [m["content"]["data"]["state"] for m in made if m["content"].get("comm_id") == slider]
    assert [state["value"] for state in sent if "value" in state][-1] == 60.0
    (figure,) = (key for key, state in models.items() if "_widget_data" in state)

    moved = {"comm_id": slider, "data": {"method": "update", "state": {"value": 1.0}, "buffer_paths": []}}
    message = kernel.session.msg("comm_msg", moved)
    kernel.shell_channel.send(message)
    answers = [m["content"] for m in heard(kernel, message["header"]["msg_id"]) if m["msg_type"] == "comm_msg"]
    assert any(a["comm_id"] == figure and a["data"]["state"].get("_py2js_update") for a in answers)
    assert not [a for a in answers if a["comm_id"] == figure and a["data"]["state"].get("_widget_data")]
    assert any("fusion.k=1" in str(a["data"]["state"].get("value")) for a in answers)
    said(kernel, "assert str(explorer.plan) == 'rrf vector.threshold=off fusion.k=1', explorer.plan")
    said(kernel, "assert explorer.result.hits == corpus.search(explorer.result.query, plan=explorer.plan).hits")
