"""Results kept for a while, by everything that decides them.

The key holds tenant, roles, policy, rules, mode, query, keywords, context, filters, limit, plan and generation, so two
principals never share an entry, and neither a new generation nor a new policy serves an old answer. Entries leave after
`cache_seconds`, or when the cache is full, oldest use first.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from workbench.records import principal_key
from workbench.retrieve.request import Request, folded


@dataclass(frozen=True, slots=True)
class _Entry:
    made: float
    value: Any


class ResultCache:
    """A bounded cache with a time to live, safe from several threads.

    Args:
        most: Entries kept.
        clock: Seconds, for tests.
    """

    def __init__(self, most: int = 128, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, seconds: float) -> Any | None:
        """The value under a key if it is younger than `seconds`, else None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if self._clock() - entry.made >= seconds:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return entry.value

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value."""
        with self._lock:
            self._entries[key] = _Entry(self._clock(), value)
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


def cache_key(request: Request, state: str) -> Hashable:
    """What decides a result: equal keys give equal results.

    Args:
        request: What is asked, and by whom.
        state: Of the corpus: names generation, policy and rules (`Engine.key`).
    """
    who = principal_key(request.principal)
    asked = (request.mode, folded(request.query), folded(request.keywords), request.context, request.filters)
    # A result says which plan it is of, by its preset's name too.
    return (who, asked, request.limit, request.plan, request.plan.preset, state)
