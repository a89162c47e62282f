"""An exploratory workbench for hybrid retrieval.

The public names are here and load what they need when they are first used: `import workbench` loads neither torch, nor
streamlit, nor duckdb.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from workbench.plan.plan import Plan as Plan
    from workbench.plan.plan import preset as preset
    from workbench.records import Hit as Hit
    from workbench.records import Principal as Principal

_PUBLIC = {
    "Comparison": "workbench.retrieve.compare",
    "Corpus": "workbench.corpus",
    "Example": "workbench.retrieve.examples",
    "Explanation": "workbench.retrieve.explain",
    "FusionPlan": "workbench.plan.fields",
    "Candidates": "workbench.ranking.candidates",
    "demo_files": "workbench.demo",
    "demo_judgments": "workbench.demo",
    "explore": "workbench.notebook.explorer",
    "fuse": "workbench.ranking.fuse",
    "index": "workbench.corpus",
    "judged_collections": "workbench.judgments.formats",
    "load_judgments": "workbench.judgments.qrels",
    "load_run": "workbench.evaluate.run",
    "move": "workbench.corpus",
    "open_corpus": "workbench.corpus",
    "preview": "workbench.corpus",
    "progress_line": "workbench.notebook",
    "remove": "workbench.corpus",
    "Passage": "workbench.records",
    "SearchResult": "workbench.retrieve.result",
    "LiveMeasure": "workbench.evaluate.live",
    "Range": "workbench.evaluate.grid",
    "Sweep": "workbench.evaluate.sweep",
    "Snapshot": "workbench.snapshot.snapshot",
    "Hit": "workbench.records",
    "IndexReport": "workbench.records",
    "Plan": "workbench.plan.plan",
    "Principal": "workbench.records",
    "WorkbenchError": "workbench.errors",
    "preset": "workbench.plan.plan",
}

_MODULES = ("charts",)

__all__ = ["__version__", *_MODULES, *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
