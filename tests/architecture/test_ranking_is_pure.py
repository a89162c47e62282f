"""Ranking is pure: numpy, the standard library, and the layers below it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "workbench" / "ranking"
LOWER = {"errors", "records", "settings", "plan", "ranking"}
IMPURE = {"os", "io", "pathlib", "socket", "sqlite3", "subprocess", "threading", "time", "random", "tempfile"}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.name)
def test_a_ranking_module_imports_numpy_the_standard_library_and_lower_layers_only(path: Path) -> None:
    """No clock, no chance, no file, no thread: the same input gives the same bits."""
    for name in imported(path):
        top, _, rest = name.partition(".")
        if top == "workbench":
            assert rest.split(".")[0] in LOWER, name
        else:
            assert top == "numpy" or (top in sys.stdlib_module_names and top not in IMPURE), name
        assert not name.startswith("numpy.random"), name


def test_fusing_loads_nothing_heavy() -> None:
    """All of ranking, imported in a fresh interpreter, loads no other third-party package than numpy."""
    modules = ", ".join(f"workbench.ranking.{p.stem}" for p in sorted(FOLDER.glob("*.py")) if p.stem != "__init__")
    heavy = [
        "duckdb",
        "streamlit",
        "torch",
        "polars",
        "plotly",
        "usearch",
        "pyarrow",
        "scipy",
        "pandas",
        "numba",
        "yaml",
    ]
    code = f"import sys, {modules}; print(sorted(set(sys.modules) & set(sys.argv[1:])))"
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
