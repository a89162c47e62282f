"""Embedding what has no vector yet, into the journal, so that an interrupted run goes on where it stopped.

The texts are taken a window at a time and sorted by length within it, because encoders run texts of one length together. The
encoder gets a few hundred at once: after each such batch the vectors are in the journal and the run may be stopped. Time
left follows the tokens, because texts differ in length.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.encode.protocol import Meter
from workbench.errors import IndexingStopped
from workbench.records import EncoderIdentity, ProgressCallback
from workbench.store.generations import step
from workbench.store.journal import Journal
from workbench.store.staging import Staging

if TYPE_CHECKING:
    from workbench.encode.protocol import Encoder

_WINDOW = 8192
_BATCH = 256

Abort = Callable[[], bool]


def embed_missing(
    staging: Staging,
    journal: Journal,
    old_database: Path | None,
    load: Callable[[], Encoder],
    identity: EncoderIdentity,
    tell: ProgressCallback,
    abort: Abort,
) -> tuple[int, int]:
    """Give every staged text a vector in the journal, unless the old generation or the journal has one.

    Args:
        staging: What the run has read.
        journal: The encoder's journal.
        old_database: The old generation's database if it holds this encoder's vectors.
        load: Loads the encoder; called only if a text lacks its vector.
        identity: What the encoder is expected to be.
        tell: Called with progress.
        abort: Asked before each batch.

    Returns:
        Number of texts embedded, and of texts whose vector was there.

    Raises:
        IndexingStopped: `abort` said so; what was embedded is kept.
        EncoderError: The encoder cannot be loaded or run.
    """
    missing, tokens, there = staging.find_missing(old_database, journal.hashes())
    if not missing:
        return 0, there
    encoder = load()
    meter = Meter(tell, "embed", missing, float(tokens))
    for window in staging.missing_texts(_WINDOW):
        window.sort(key=lambda row: (-row[1], row[0]))
        for at in range(0, len(window), _BATCH):
            check(abort)
            batch = window[at : at + _BATCH]
            journal.append([row[0] for row in batch], encoder.encode([row[2] for row in batch]))
            meter.advance(len(batch), identity.name, float(sum(row[1] for row in batch)))
            step("embedded")
    journal.sync()
    return missing, there


def check(abort: Abort) -> None:
    """Raise IndexingStopped if asked to."""
    if abort():
        raise IndexingStopped(
            "The indexing run was stopped; the corpus is as it was before",
            "Run the same command again: what was embedded is kept",
        )
