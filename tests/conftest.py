"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Tests never read the settings, models or corpora of the person who runs them, and never wait for a network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs without the user's settings file and WORKBENCH_ variables (measure_data and cache_dir stay)."""
    kept = {"WORKBENCH_MEASURE_DATA", "WORKBENCH_CACHE_DIR"}
    for name in list(os.environ):
        if name.startswith("WORKBENCH_") and name not in kept:
            monkeypatch.delenv(name)
    monkeypatch.setenv("WORKBENCH_SETTINGS", str(Path(str(tmp_path_factory.getbasetemp())) / "no-settings.yaml"))
    return


@pytest.fixture(scope="session")
def measure_data() -> Path:
    """Folder of collections to measure on; skips where the setting does not name one."""
    folder = os.environ.get("WORKBENCH_MEASURE_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the collections to measure on: set WORKBENCH_MEASURE_DATA to their folder")
    return Path(folder)
