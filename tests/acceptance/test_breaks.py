"""The table of breaks fits the code: each edit still finds its place, and each test is there."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from break_rules import ROOT, Break, read_breaks

BREAKS = read_breaks()


@pytest.mark.parametrize("entry", BREAKS, ids=lambda b: f"{b.preset}: {b.rule}")
def test_an_edit_fits_exactly_once(entry: Break) -> None:
    """The old text stands once in its file, the new text differs, and the file is still Python."""
    text = (ROOT / entry.file).read_text(encoding="utf-8")
    assert text.count(entry.old) == 1
    assert entry.new != entry.old
    ast.parse(text.replace(entry.old, entry.new))


def test_every_test_is_there() -> None:
    """Each id names a test function of an existing file."""
    missing = []
    for path, _, name in sorted({b.test.partition("::") for b in BREAKS}):
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        if name not in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}:
            missing.append(f"{path}::{name}")
    assert missing == []


def test_at_least_five_rules_of_each_preset() -> None:
    """Five presets, five rules each, no rule twice."""
    counted = Counter(b.preset for b in BREAKS)
    assert set(counted) == {"passages", "collections", "pages", "contract", "scoped"}
    assert min(counted.values()) >= 5
    assert len({(b.preset, b.rule) for b in BREAKS}) == len(BREAKS)
