"""The layers of pyproject.toml cover the package: what stands in no layer, no rule holds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _layered() -> list[str]:
    """The modules that the layers name, in their order."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    return [name for layer in layers for name in re.findall(r"[\w.]+", layer)]


def test_every_module_stands_in_one_layer() -> None:
    """Each module and package at the top of `workbench` is named by the layers, once, and they name no other."""
    found = {
        f"workbench.{path.stem}"
        for path in (ROOT / "workbench").iterdir()
        if path.stem != "__init__" and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    layered = _layered()
    assert sorted(layered) == sorted(found)
