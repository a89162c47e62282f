"""The shape of the project: one-way imports, lean loading, thin pages, named things documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "workbench").rglob("*.py"))
VIEWS = sorted((ROOT / "workbench" / "ui" / "views").glob("*.py"))


def test_imports_go_one_way() -> None:
    """The layers of pyproject.toml hold, and `ranking` reaches nothing but numpy and the standard library."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_importing_the_package_loads_nothing_heavy() -> None:
    """`import workbench` and the command line's help load neither torch, nor streamlit, nor duckdb."""
    code = "import sys, workbench, workbench.cli.main; print(sorted(set(sys.modules) & set(sys.argv[1:])))"
    heavy = [
        "torch",
        "streamlit",
        "duckdb",
        "polars",
        "plotly",
        "sentence_transformers",
        "openvino",
        "usearch",
        "pyarrow",
        "ipywidgets",
    ]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_a_corpus_loads_no_reader() -> None:
    """Who searches reads no file and asks no endpoint: what is needed for that alone is not imported."""
    code = "import sys, workbench.corpus; print(sorted(set(sys.modules) & set(sys.argv[1:])))"
    unneeded = ["workbench.ingest.readers", "workbench.assist.endpoint", "asyncio", "polars", "plotly", "torch"]
    done = subprocess.run([sys.executable, "-c", code, *unneeded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_has_a_docstring() -> None:
    """Each name in `workbench.__all__` exists and is documented, and so is every public method of its classes."""
    import workbench

    for name in workbench.__all__:
        value = getattr(workbench, name)
        assert name == "__version__" or value.__doc__, name
        if isinstance(value, type):
            for method, made in vars(value).items():
                if not method.startswith("_") and callable(made):
                    assert made.__doc__, f"{name}.{method}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_is_one_concept(path: Path) -> None:
    """Over 800 lines a module holds more than one thing."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 800


@pytest.mark.parametrize("path", VIEWS, ids=lambda p: p.name)
def test_views_hold_no_sql_no_numpy_and_no_session_state(path: Path) -> None:
    """A page arranges; it does not compute, query, or keep state under keys of its own."""
    text = path.read_text(encoding="utf-8")
    imported = {
        name.name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")])
    }
    assert not imported & {"numpy", "duckdb", "sqlite3", "polars"}
    assert "session_state" not in text
    assert not re.search(r"\bSELECT\b.*\bFROM\b", text)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_error_is_swallowed(path: Path) -> None:
    """No bare except, and no handler that only passes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{path}:{node.lineno}: bare except"
            broad = isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}
            only_passes = len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
            assert not (broad and only_passes), f"{path}:{node.lineno}: swallows every error"


def test_the_top_level_holds_only_what_it_should() -> None:
    """Only the agreed names stand at the top of the repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    allowed = {
        "pyproject.toml", "workbench", "notebooks", "data", "tests", ".streamlit", "README.md", "CHANGELOG.md",
        "CONTRIBUTING.md", "LICENSE", "Makefile", ".ci", ".gitignore", "constraints.txt",
    }  # fmt: skip
    assert names <= allowed, sorted(names - allowed)
