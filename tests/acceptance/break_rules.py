"""Break the presets' rules one at a time and see that their tests notice: a test that cannot fail holds no rule.

    python tests/acceptance/break_rules.py               every rule of `BREAKS`
    python tests/acceptance/break_rules.py scoped pages  those presets only

A break is another value of a preset's field. The script runs the tests with itself as a plugin, which changes the preset before
any test is collected; no file is edited. Exit code 1 if a break went unnoticed.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "BREAK_PRESET"

BREAKS: tuple[tuple[str, str, Any], ...] = (
    ("passages", "vector.metric", "l2"),
    ("passages", "grep.show", "chunk"),
    ("passages", "depth.grep", 10),
    ("collections", "fusion.rank_base", 1),
    ("collections", "fusion.unit", "chunk"),
    ("collections", "fusion.single_source", "passthrough"),
    ("pages", "fusion.weights.vector", 0.5),
    ("pages", "keyword.operator", "any"),
    ("contract", "fusion.unit", "chunk"),
    ("contract", "depth.keyword", 10),
    ("scoped", "fusion.weights.keyword", 0.5),
    ("scoped", "keyword.keep_strongest", False),
)


def pytest_configure() -> None:
    from workbench.plan import presets

    name, field, value = BREAKS[int(os.environ[VARIABLE])]
    kept = presets.BY_NAME[name]
    presets.BY_NAME[name] = presets.Preset(name, kept.summary, {**kept.values, field: value})


def main(asked: list[str]) -> int:
    unnoticed = 0
    for number, (name, field, value) in enumerate(BREAKS):
        if asked and name not in asked:
            continue
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "break_rules", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, f"tests/acceptance/test_{name}.py"],
            cwd=ROOT,
            env={**os.environ, VARIABLE: str(number), "PYTHONPATH": str(Path(__file__).parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        # 1: a test failed; anything else (2: the plugin itself, 5: no test) says nothing about the rule.
        unnoticed += done.returncode != 1
        print(f"{name:<12} {field}={value}: {'noticed' if done.returncode == 1 else 'UNNOTICED'}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
