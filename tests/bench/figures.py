"""What a bench gives: rows of figures with their peers and goals, as values that print themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Figure:
    """What some samples come to, in the row's unit.

    Attributes:
        p50, p95: Median and 95th percentile of all samples.
        best: Median over the questions of each one's best round: what is left when others do not get in the way.
        samples: How many there are.
    """

    p50: float
    p95: float
    best: float
    samples: int

    @classmethod
    def of(cls, samples: Sequence[float] | Sequence[Sequence[float]]) -> Figure:
        """From samples of one thing, (r,), or rounds of several questions, (r, q); at least one sample."""
        rounds = np.asarray(samples, np.float64)
        p50, p95 = np.percentile(rounds, [50, 95])
        return cls(float(p50), float(p95), float(np.median(rounds.min(axis=0))), rounds.size)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a row should reach, in words, and whether it did (None: it could not be told)."""

    text: str
    met: bool | None


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program at the same task in the same run.

    Attributes:
        name: Name, with what of it was used.
        figure: Its figure, or None where it is missing here.
        at_most: The goal: our median is at most so many times the peer's.
        note: What to know of it; why it is missing.
    """

    name: str
    figure: Figure | None
    at_most: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured thing.

    Attributes:
        key: Its name for `--only`.
        title: What was measured.
        unit: Unit of every figure of the row: ms, s, MB, share.
        figure: Ours.
        peers: Others at the same.
        at_most, at_least: Goal for our median.
        p95_at_most: Goal for our 95th percentile.
        notes: What to know when reading it.
    """

    key: str
    title: str
    unit: str
    figure: Figure
    peers: tuple[Peer, ...] = ()
    at_most: float | None = None
    at_least: float | None = None
    notes: tuple[str, ...] = ()
    p95_at_most: float | None = None

    def ratio(self, peer: Peer) -> float | None:
        """Our median over the peer's: below 1 is faster. None where the peer is missing."""
        if peer.figure is None or peer.figure.p50 <= 0:
            return None
        return self.figure.p50 / peer.figure.p50

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The row's own goals, then one for each peer that has a limit."""
        goals = []
        if self.at_most is not None:
            goals.append(Goal(f"at most {self.at_most:g} {self.unit}", self.figure.p50 <= self.at_most))
        if self.p95_at_most is not None:
            goals.append(Goal(f"p95 at most {self.p95_at_most:g} {self.unit}", self.figure.p95 <= self.p95_at_most))
        if self.at_least is not None:
            goals.append(Goal(f"at least {self.at_least:g}", self.figure.p50 >= self.at_least))
        return (*goals, *(goal for peer in self.peers if (goal := self.against(peer)) is not None))

    def against(self, peer: Peer) -> Goal | None:
        """The goal set by one peer."""
        if peer.at_most is None:
            return None
        ratio = self.ratio(peer)
        return Goal(f"at most {peer.at_most:g}x {peer.name}", None if ratio is None else ratio <= peer.at_most)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "key": self.key,
            "title": self.title,
            "unit": self.unit,
            **_plain(self.figure),
            "peers": [{"name": p.name, **_plain(p.figure), "ratio": self.ratio(p), "note": p.note} for p in self.peers],
            "goals": [{"goal": g.text, "met": g.met} for g in self.goals],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A row that could not be measured, and why."""

    key: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"key": self.key, "unmeasured": self.reason}


def _plain(figure: Figure | None) -> dict[str, Any]:
    if figure is None:
        return {"p50": None, "p95": None, "best": None, "samples": 0}
    return {"p50": figure.p50, "p95": figure.p95, "best": figure.best, "samples": figure.samples}
