"""Every notebook runs from top to bottom, its pair is the same, and it uses public names only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.py"))
IDS = [p.stem for p in NOTEBOOKS]


def cells(path: Path) -> list[tuple[str, str]]:
    jupytext = pytest.importorskip("jupytext")
    return [(cell.cell_type, cell.source) for cell in jupytext.read(path).cells]


@pytest.mark.parametrize("script", NOTEBOOKS, ids=IDS)
def test_the_pair_has_the_same_cells(script: Path) -> None:
    """The reviewed `.py` and the `.ipynb` beside it say the same."""
    assert cells(script) == cells(script.with_suffix(".ipynb"))


@pytest.mark.parametrize("script", NOTEBOOKS, ids=IDS)
def test_only_public_names_of_the_workbench_are_used(script: Path) -> None:
    """`import workbench as wb`, and nothing from inside it."""
    inside = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("workbench"))
        or (isinstance(node, ast.Import) and any(n.name.startswith("workbench.") for n in node.names))
    ]
    assert inside == []


@pytest.mark.parametrize("script", NOTEBOOKS, ids=IDS)
def test_it_has_parameters_and_ends_in_assertions(script: Path) -> None:
    """One cell is tagged `parameters`, and the last cell checks what the notebook claims."""
    jupytext = pytest.importorskip("jupytext")
    read = jupytext.read(script).cells
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in read) == 1
    assert any(isinstance(node, ast.Assert) for node in ast.parse(read[-1].source).body)


@pytest.mark.slow
@pytest.mark.parametrize("script", NOTEBOOKS, ids=IDS)
def test_it_runs_from_top_to_bottom(script: Path, tmp_path: Path) -> None:
    """A fresh kernel executes every cell in an empty folder, assertions included."""
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    notebook = jupytext.read(script)
    client = nbclient.NotebookClient(
        notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    failed = [
        cell.source for cell in notebook.cells for output in cell.get("outputs", []) if output.output_type == "error"
    ]
    assert failed == []
