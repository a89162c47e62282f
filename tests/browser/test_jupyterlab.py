"""The tuning notebook in a real JupyterLab: all cells run from its menu, a slider moved by keyboard, the chart follows."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import free_port, until_it_answers
from visiting import expect

pytestmark = [pytest.mark.slow, pytest.mark.browser]

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "02_tune_the_fusion.ipynb"
TOKEN = "a-token-of-this-test"
RUNNING = 240_000
"""Milliseconds that all cells may take: the demo's files are indexed and a sweep is run."""

ERRORS = '[data-mime-type="application/vnd.jupyter.error"]'
RAN = f"""() => document.querySelector('{ERRORS}')
    || [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].every(e => /\\[\\d+\\]/.test(e.textContent))"""
LINES = "lines => lines.map(line => line.getAttribute('d')).join('|')"
CHANGED = (
    "([plot, before]) => "
    "[...plot.querySelectorAll('.scatterlayer .js-line')].map(line => line.getAttribute('d')).join('|') !== before"
)


def prepared_notebook(target: Path) -> None:
    """The notebook as an analyst would set it for a quick look: the hashing encoder, which needs no model; no outputs."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if "parameters" in cell["metadata"].get("tags", []):
            cell["source"] = [line.replace("encoder = None", 'encoder = "hashing"') for line in cell["source"]]
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    text = json.dumps(notebook)
    assert 'encoder = \\"hashing\\"' in text
    target.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a JupyterLab with settings and folders of its own, that opens the notebook."""
    pytest.importorskip("jupyterlab", reason="needs the extra notebooks: pip install jupyterlab")
    place = tmp_path_factory.mktemp("lab")
    prepared_notebook(place / "tune.ipynb")
    settings = place / "settings" / "@jupyterlab"
    # Every cell is drawn, also those out of sight; and nothing is asked of the network.
    wanted = {
        "notebook-extension/tracker": {"windowingMode": "none"},
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    }
    for name, values in wanted.items():
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    own = {
        "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime", "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }  # fmt: skip
    environment = {
        **os.environ, **{name: str(place / folder) for name, folder in own.items()}, "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1", "NO_COLOR": "1",
    }  # fmt: skip
    port = free_port()
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={place}", "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    with (place / "log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        until_it_answers(process, port)
        yield f"http://127.0.0.1:{port}/lab/tree/tune.ipynb?token={TOKEN}"
    finally:
        process.terminate()
        process.wait(30)


def test_a_slider_moves_the_chart_and_the_measure(lab: str, page: Any) -> None:
    page.set_viewport_size({"width": 1500, "height": 1000})
    page.goto(lab)
    page.locator(".jp-CodeCell").first.wait_for()
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()  # before that the menu runs nothing, and says nothing
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(RAN, timeout=RUNNING)
    assert page.locator(ERRORS).all_text_contents() == []
    assert page.locator('[data-mime-type="application/vnd.jupyter.stderr"]').all_text_contents() == []
    # Four of the cells, and the one beside the sliders: drawn some time after the cells have run.
    expect(page.locator(".js-plotly-plot")).to_have_count(5)

    output = page.locator(".jp-OutputArea-output:has(.widget-slider)")
    output.scroll_into_view_if_needed()
    chart, words = output.locator(".js-plotly-plot"), output.locator(".widget-html")
    chart.locator(".scatterlayer .js-line").first.wait_for(state="attached")
    before = (chart.locator(".scatterlayer .js-line").evaluate_all(LINES), words.first.text_content())
    slider = output.locator(".widget-slider", has_text="alpha").get_by_role("slider")
    assert slider.get_attribute("aria-valuenow") == "0.2"
    slider.press("End")
    words.get_by_text("fusion.alpha=1", exact=False).wait_for()
    page.wait_for_function(CHANGED, arg=[chart.element_handle(), before[0]])
    assert slider.get_attribute("aria-valuenow") == "1.0"
    assert words.first.text_content() != before[1]
    assert "of 46 queries" in words.first.text_content()

    output.get_by_role("button", name="Back to the start").click()
    words.get_by_text("Plan: tmm fusion.alpha=0.5", exact=True).wait_for()
    assert page.locator(ERRORS).count() == 0
    assert page.foreign == []
