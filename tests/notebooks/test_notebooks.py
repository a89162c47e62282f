"""Every notebook runs from top to bottom, its pair is the same, and it uses public names only."""

import ast
import json
import re
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from small_models import make_static

import workbench as wb

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.py"))
IDS = [p.stem for p in NOTEBOOKS]


def cells(path: Path) -> list[tuple[str, str]]:
    jupytext = pytest.importorskip("jupytext")
    return [(cell.cell_type, cell.source) for cell in jupytext.read(path).cells]


@pytest.mark.slow
@pytest.mark.parametrize("script", NOTEBOOKS, ids=IDS)
def test_the_pair_has_the_same_cells(script):
    assert cells(script) == cells(script.with_suffix(".ipynb"))


@pytest.mark.parametrize("script", NOTEBOOKS, ids=IDS)
def test_jupyterlab_opens_the_pair_whichever_file_is_newer(script):
    jupytext = pytest.importorskip("jupytext")
    one, other = (jupytext.writes(jupytext.read(p), fmt="py:percent") for p in (script, script.with_suffix(".ipynb")))
    assert one == other


@pytest.mark.parametrize("script", NOTEBOOKS, ids=IDS)
def test_only_public_names_of_the_workbench_are_used(script):
    inside = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("workbench"))
        or (isinstance(node, ast.Import) and any(n.name.startswith("workbench.") for n in node.names))
    ]
    assert inside == []


@pytest.mark.parametrize("script", NOTEBOOKS, ids=IDS)
def test_it_has_parameters_and_ends_in_assertions(script):
    jupytext = pytest.importorskip("jupytext")
    read = jupytext.read(script).cells
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in read) == 1
    assert any(isinstance(node, ast.Assert) for node in ast.parse(read[-1].source).body)


@pytest.mark.parametrize("script", NOTEBOOKS, ids=IDS)
def test_the_stored_outputs_are_of_one_clean_run(script):
    stored = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]
    assert not re.search(r"/(tmp|home|root|work|Users)/", json.dumps(outputs))
    # The state of sliders holds a copy of the whole plotting library, and without a kernel they do nothing.
    assert "widgets" not in stored["metadata"]
    assert not [o for o in outputs if "application/vnd.jupyter.widget-view+json" in o.get("data", {})]


DEMO = [n for n in NOTEBOOKS if n.stem[:2] in ("01", "03")]
"""Those that read the demo with the model; so does 02, which `tests/browser/test_jupyterlab.py` runs, with another encoder."""


@pytest.mark.slow
def test_those_on_the_demo_run_from_top_to_bottom(small_demo, monkeypatch):
    """A fresh kernel executes every cell, assertions included, and none warns; without collections to measure on.

    One after another, as somebody reads them: they share the demo's folder.
    """
    monkeypatch.delenv("WORKBENCH_MEASURE_DATA", raising=False)
    for script in DEMO:
        assert complaints(script, small_demo) == [], script.name


@pytest.mark.slow
@pytest.mark.parametrize("script", [n for n in NOTEBOOKS if n not in DEMO and n.stem[:2] != "02"], ids=lambda p: p.stem)
def test_it_runs_from_top_to_bottom(script, tmp_path, monkeypatch):
    """As above, in a folder of its own. What 04 claims holds of any two encoders, so it takes two quick ones."""
    monkeypatch.delenv("WORKBENCH_MEASURE_DATA", raising=False)
    parameters: dict[str, Any] = {}
    if script.stem.startswith("04"):
        make_static(tmp_path / "words", topics.values())
        parameters["encoders"] = ["hashing", "words"]
    assert complaints(script, tmp_path, **parameters) == []


@pytest.mark.slow
@pytest.mark.measure
def test_hybrid_helps_and_hurts_on_real_collections(measure_data, tmp_path):
    """The claims of notebook 03 hold of the smallest real collection."""
    found = wb.judged_collections(measure_data / "collections")
    counts = {name: len((f / "corpus.jsonl").read_bytes().splitlines()) for name, f in found.items()}
    smallest = min(counts, key=lambda name: counts[name])
    script = next(s for s in NOTEBOOKS if s.stem.startswith("03"))
    assert complaints(script, tmp_path, most_documents=counts[smallest]) == []
    assert [p.name for p in (tmp_path / "demo" / "collections").iterdir()] == [smallest]


def complaints(script: Path, folder: Path, **parameters: Any) -> list[str]:
    """Execute a notebook in a folder, some parameters replaced; what its cells wrote on stderr.

    Raises nbclient's error where a cell fails.
    """
    jupytext = pytest.importorskip("jupytext", reason="needs the extra notebooks: pip install jupytext")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra notebooks: pip install nbclient")
    notebook = jupytext.read(script)
    (defaults,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    for name, value in parameters.items():
        assert f"\n{name} = " in defaults.source
        defaults.source += f"\n{name} = {value!r}"
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
