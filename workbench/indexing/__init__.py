"""The indexing run: from files to a published generation. `index` and `remove` are what everybody calls."""

from __future__ import annotations

from workbench.indexing.run import index, remove

__all__ = ["index", "remove"]
