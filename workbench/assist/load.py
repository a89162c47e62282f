"""Which name in a plan means which implementation, decided here and nowhere else.

`rerank.model`:

* `overlap`: the shipped word counter, no model (`plain`);
* `endpoint:MODEL`: a chat model behind the endpoint that the settings name (`endpoint`);
* anything else: a cross-encoder, a folder or a name on the hub (`cross_encoder`). A folder called `overlap` is `./overlap`.

`rewrite.model`: `echo`, `keywords` (`plain`), or `endpoint:MODEL`.

Each is made once in a process, when it is first asked for, and again when its files or settings change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from workbench import settings
from workbench.assist.plain import ECHO, KEYWORDS, OVERLAP, EchoRewriter, KeywordsRewriter, OverlapReranker
from workbench.assist.protocol import PREFIX, Reranker, Rewriter
from workbench.errors import AssistError
from workbench.plan.fields import OFF

BUILT_IN = frozenset({OFF, OVERLAP, ECHO, KEYWORDS})
"""What a plan may name without anything being loaded."""
_Made = TypeVar("_Made")

RERANKERS = f"`{OVERLAP}`, `{PREFIX}MODEL`, or a cross-encoder's folder or name"
REWRITERS = f"`{ECHO}`, `{KEYWORDS}`, or `{PREFIX}MODEL`"


class _Slot:
    """One model of this process, and the lock under which it is made."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.state: object = None
        self.value: Any = None


_slots: dict[tuple[str, str], _Slot] = {}
_slots_lock = threading.Lock()


def may_name(model: str) -> bool:
    """Whether a plan from an address, an MCP call or a snapshot may name a model: a built-in one, or one of `allowed_models`."""
    listed = (name.strip() for name in str(settings.get("allowed_models")).split(","))
    return model.strip() in BUILT_IN | {*filter(None, listed)}


def check_named(model: str) -> None:
    """Refuse a model that `may_name` does not allow, without looking whether there is one. Raises AssistError."""
    if not may_name(model):
        raise AssistError(
            f"The plan names the model {model!r}, which is not allowed here",
            "Who runs the server lists it in the setting allowed_models",
        )


def load_reranker(model: str) -> Reranker:
    """The reranker that `rerank.model` names. Safe from several threads; all get the same one.

    Raises:
        AssistError: There is no such model or endpoint, or it cannot be loaded.
    """
    name = model.strip()
    if name == OVERLAP:
        return OverlapReranker()
    if name.startswith(PREFIX):
        from workbench.assist.endpoint import Endpoint, EndpointReranker

        return _kept("rerank", name, _endpoint_state(), lambda: EndpointReranker(Endpoint(name.removeprefix(PREFIX))))
    from workbench.assist import cross_encoder

    folder = cross_encoder.find(name)
    cross_encoder.check_head(name, folder)  # before its files are listed: any folder may be named
    state = (folder, cross_encoder.signature(folder), settings.get("rerank_timeout_seconds"))
    return _kept("rerank", name, state, lambda: cross_encoder.CrossEncoderReranker(name))


def load_rewriter(model: str) -> Rewriter:
    """The rewriter that `rewrite.model` names. Safe from several threads; all get the same one.

    Raises:
        AssistError: There is no such rewriter or endpoint.
    """
    name = model.strip()
    if name == ECHO:
        return EchoRewriter()
    if name == KEYWORDS:
        return KeywordsRewriter()
    if name.startswith(PREFIX):
        from workbench.assist.endpoint import Endpoint, EndpointRewriter

        return _kept("rewrite", name, _endpoint_state(), lambda: EndpointRewriter(Endpoint(name.removeprefix(PREFIX))))
    raise AssistError(f"There is no rewriter called {name!r}", f"rewrite.model is {REWRITERS}")


def _endpoint_state() -> object:
    return tuple(settings.get(name) for name in ("endpoint_url", "endpoint_key", "endpoint_timeout_seconds"))


def _kept(seam: str, name: str, state: object, make: Callable[[], _Made]) -> _Made:
    """What was made under that name if its state is as it was then, else a new one."""
    with _slots_lock:
        slot = _slots.setdefault((seam, name), _Slot())
    with slot.lock:
        if slot.value is None or slot.state != state:
            slot.value, slot.state = make(), state
        value: _Made = slot.value
        return value
