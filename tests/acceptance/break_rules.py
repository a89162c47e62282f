"""Break the presets' rules one at a time and see that their tests notice: a test that cannot fail holds no rule.

    python tests/acceptance/break_rules.py               every rule of breaks.yaml; some ten seconds each
    python tests/acceptance/break_rules.py scoped pages  those presets only
    python tests/acceptance/break_rules.py -k threshold  rules whose words hold that

It works on a copy in a temporary folder and never touches the tree itself. Each test must pass on the unbroken copy and
fail (not merely stop in its set-up) on the broken one. Exit code 1 if a break went unnoticed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("breaks.yaml")
COPIED = ("workbench", "tests", "data", "pyproject.toml")
TIMEOUT = 300


@dataclass(frozen=True, slots=True)
class Break:
    """One way to break one rule.

    Attributes:
        preset: The preset whose rule it is.
        rule: The rule in words.
        file: The file to edit, from the root.
        old: Text that stands exactly once in it.
        new: What stands there instead.
        test: Id of the test that must fail, `path::name`, from the root.
    """

    preset: str
    rule: str
    file: str
    old: str
    new: str
    test: str


def read_breaks() -> tuple[Break, ...]:
    """The breaks of the table, in its order."""
    made = []
    for preset, entries in yaml.safe_load(TABLE.read_text(encoding="utf-8")).items():
        for entry in entries:
            test = entry["test"] if "::" in entry["test"] else f"tests/acceptance/test_{preset}.py::{entry['test']}"
            made.append(
                Break(preset, entry["rule"], f"workbench/{entry['file']}", entry["old"], entry["new"], test)
            )  # fmt: skip
    return tuple(made)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", help="only these presets")
    parser.add_argument("-k", dest="words", default="", help="only rules whose words hold this")
    asked = parser.parse_args(arguments)
    every = read_breaks()
    unknown = set(asked.presets) - {b.preset for b in every}
    if unknown:
        parser.error(f"no such preset: {', '.join(sorted(unknown))}")
    chosen = [b for b in every if (not asked.presets or b.preset in asked.presets) and asked.words in b.rule]
    if not chosen:
        parser.error("no rule fits")
    with tempfile.TemporaryDirectory(prefix="break-rules-") as folder:
        tree = _copy(Path(folder) / "tree")
        whole = sorted({b.test for b in chosen})
        code, states = _run(tree, whole)
        if code:
            failing = ", ".join(sorted(name for name, state in states.items() if state != "passed")) or f"code {code}"
            print(f"Unbroken, the tests do not all pass ({failing}): mend that first", file=sys.stderr)
            return 1
        print(f"unbroken: {len(states)} tests of {len(whole)} pass\n")
        unnoticed = sum(not _noticed(tree, entry) for entry in chosen)
    print(f"\n{len(chosen)} rules broken, {len(chosen) - unnoticed} noticed, {unnoticed} unnoticed")
    return 1 if unnoticed else 0


def _noticed(tree: Path, entry: Break) -> bool:
    """Break one rule, run its test, mend it again; prints a line."""
    path = tree / entry.file
    text = path.read_text(encoding="utf-8")
    if text.count(entry.old) != 1:
        print(f"{entry.preset:<12} STALE      {entry.rule}: {entry.old!r} does not stand once in {entry.file}")
        return False
    started = time.perf_counter()
    path.write_text(text.replace(entry.old, entry.new), encoding="utf-8")
    try:
        _, states = _run(tree, [entry.test])
    finally:
        path.write_text(text, encoding="utf-8")
    noticed = "failed" in states.values()
    word = "noticed" if noticed else f"UNNOTICED ({', '.join(sorted(set(states.values()))) or 'no test ran'})"
    name = entry.test.rpartition("::")[2]
    print(f"{entry.preset:<12} {word:<10} {entry.rule}  [{name}, {time.perf_counter() - started:.0f} s]", flush=True)
    return noticed


def _copy(tree: Path) -> Path:
    tree.mkdir()
    # Compiled files are told apart by second and size: an edit of the same length would go unseen.
    left_out = shutil.ignore_patterns("__pycache__", "*.pyc", "pictures")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=left_out)
        else:
            shutil.copy(source, tree / name)
    return tree


def _run(tree: Path, tests: Sequence[str]) -> tuple[int, dict[str, str]]:
    """Run tests in a copy: pytest's exit code, and test -> passed, failed, error or skipped."""
    report = tree.parent / "report.xml"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
    try:
        code = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=TIMEOUT, check=False
        ).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, {}
    if not report.is_file():
        return code, {}
    states = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        state = next((k for k in ("failure", "error", "skipped") if k in kinds), "passed")
        states[f"{case.get('classname')}::{case.get('name')}"] = "failed" if state == "failure" else state
    return code, states


if __name__ == "__main__":
    sys.exit(main())
