"""The indexing run: from files to a published generation. `index`, `remove`, `preview` and `watch` are what everybody calls."""

from __future__ import annotations

from workbench.indexing.preview import preview
from workbench.indexing.run import index, remove
from workbench.indexing.state import IndexOptions
from workbench.indexing.watch import watch

__all__ = ["IndexOptions", "index", "preview", "remove", "watch"]
