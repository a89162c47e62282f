"""The indexing run: from files to a published generation. `index`, `move`, `preview`, `remove`, `take_out` and `watch`
are what everybody calls."""

from __future__ import annotations

from workbench.indexing.preview import preview
from workbench.indexing.regroup import move, take_out
from workbench.indexing.run import index, remove
from workbench.indexing.state import IndexOptions
from workbench.indexing.watch import watch

__all__ = ["IndexOptions", "index", "move", "preview", "remove", "take_out", "watch"]
