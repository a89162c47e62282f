"""The shape of the project: one-way imports, lean loading, a pure core, thin pages, named things documented."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import workbench

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "workbench"
SOURCES = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in sorted(PACKAGE.rglob("*.py"))}
BELOW_RANKING = {"errors", "records", "settings", "plan", "ranking"}
IMPURE = {"os", "io", "pathlib", "socket", "sqlite3", "subprocess", "threading", "time", "random", "tempfile"}
HEAVY = (
    "torch", "streamlit", "duckdb", "polars", "plotly", "sentence_transformers", "openvino", "usearch", "pyarrow", "ipywidgets",
)  # fmt: skip


def below(folder: str) -> Iterator[tuple[str, ast.Module]]:
    return ((name, ast.parse(text)) for name, text in SOURCES.items() if name.startswith(f"workbench/{folder}/"))


def imported(tree: ast.Module) -> set[str]:
    """Every name that a module imports, with the module it comes from."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def loaded(modules: str, *unwanted: str) -> str:
    """Which of some modules a fresh interpreter has loaded after an import."""
    code = f"import sys, {modules}; print(*sorted(set(sys.modules) & set(sys.argv[1:])))"
    done = subprocess.run([sys.executable, "-c", code, *unwanted], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_every_module_is_in_one_layer():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    found = {
        f"workbench.{path.stem}"
        for path in PACKAGE.iterdir()
        if path.stem != "__init__" and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    assert sorted(name for layer in layers for name in re.findall(r"[\w.]+", layer)) == sorted(found)


def test_importing_loads_nothing_that_is_not_needed():
    assert loaded("workbench, workbench.cli.main", *HEAVY) == ""
    unneeded = ("workbench.ingest.readers", "workbench.assist.endpoint", "asyncio", "polars", "plotly", "torch")
    assert loaded("workbench.corpus", *unneeded) == ""


def test_ranking_is_pure():
    """Numpy, the standard library and lower layers; no clock, chance, file or thread: the same input gives the same bits."""
    for module, tree in below("ranking"):
        for name in imported(tree):
            top, _, rest = name.partition(".")
            if top == "workbench":
                assert rest.split(".")[0] in BELOW_RANKING, f"{module}: {name}"
            else:
                assert top == "numpy" or (top in sys.stdlib_module_names and top not in IMPURE), f"{module}: {name}"
            assert not name.startswith("numpy.random"), f"{module}: {name}"
    modules = ", ".join(name.removesuffix(".py").replace("/", ".") for name, _ in below("ranking") if "__" not in name)
    assert loaded(modules, *HEAVY, "scipy", "pandas", "numba", "yaml") == ""


def test_every_public_name_has_a_docstring():
    for name in workbench.__all__:
        value = getattr(workbench, name)
        assert name == "__version__" or value.__doc__, name
        if isinstance(value, type):
            for method, made in vars(value).items():
                assert method.startswith("_") or not callable(made) or made.__doc__, f"{name}.{method}"


def test_the_app_holds_no_sql_and_no_store_of_its_own():
    for name, tree in below("ui"):
        tops = {found.partition(".")[0] for found in imported(tree)}
        assert not tops & {"duckdb", "sqlite3", "polars"}, name
        assert not re.search(r"\bSELECT\b.*\bFROM\b", SOURCES[name]), name
