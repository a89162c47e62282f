"""The indexing run: from files to a published generation. `index`, `remove`, `preview` and `watch` are what everybody calls."""

from __future__ import annotations

from workbench.indexing.preview import preview
from workbench.indexing.removing import remove
from workbench.indexing.run import index
from workbench.indexing.watch import watch

__all__ = ["index", "preview", "remove", "watch"]
