"""What can be taken back in this session: the page as it was, or a step that puts something kept back.

Moves of one setting that follow each other closely (a slider that is dragged) are one change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from workbench.ui.state import AppState

MOST = 100
DRAG_SECONDS = 1.5
_DONE = "wb.done"


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what it was in words, and the state before it, or what takes it back."""

    what: str
    before: AppState | Callable[[], None]
    at: float


def remember(what: str, before: AppState | Callable[[], None]) -> None:
    """Keep a change so that it can be taken back.

    Args:
        what: In words: `fusion.k`, `the deletion of a saved search`.
        before: The state to go back to, or a function that takes the change back.
    """
    done: list[Change] = st.session_state.setdefault(_DONE, [])
    now = time.monotonic()
    dragged = done and not callable(before) and done[-1].what == what and now - done[-1].at < DRAG_SECONDS
    if dragged:
        done[-1] = Change(what, done[-1].before, now)
        return
    done.append(Change(what, before, now))
    del done[:-MOST]


def last() -> Change | None:
    """The last change, taken off the list; None where there is none."""
    done: list[Change] = st.session_state.get(_DONE, [])
    return done.pop() if done else None
