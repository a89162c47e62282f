"""Fixtures shared by all tests."""

import dataclasses
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from corpus_files import write_files
from trials import TRIALS

import workbench as wb
from workbench.demo import sample_folder

# Tests never read the settings, models or corpora of the person who runs them, and never wait for a network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

BROWSER, REGRESSION = (Path(__file__).parent / name for name in ("browser", "regression"))

# The same examples in every run, so that a tree is green or red whoever runs it; with more trials, others each time.
# No clock decides: a busy machine draws slowly and runs slowly.
hypothesis.settings.register_profile(
    "fixed",
    max_examples=60 * TRIALS,
    derandomize=TRIALS == 1,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("fixed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: journeys in a browser wait more than they work."""
    return min((os.cpu_count() or 1) + 1, 4)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", choices=("here", "milvus"), default="here", help="Where corpora that tests index are.")


@pytest.fixture(scope="session", autouse=True)
def _store(pytestconfig: pytest.Config) -> Iterator[None]:
    """With `--store milvus` each new corpus is in a file of milvus-lite beside its folder: `make test-scale`."""
    if pytestconfig.getoption("store") == "here":
        yield
        return
    from workbench.indexing.state import Run

    begin = Run.begin.__func__

    def beside(cls, corpus, options, previous, *more):
        if options is not None and options.store is None:
            options = dataclasses.replace(options, store=f"{corpus.absolute()}.db")
        return begin(cls, corpus, options, previous, *more)

    Run.begin = classmethod(beside)
    yield
    Run.begin = classmethod(begin)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of `regression` is slow: it indexes, breaks and repairs. Slow files first, so that workers end together.

    A journey that fails is gone through again, twice at most, which the summary counts: on a busy machine a key may be pressed in
    the moment in which the page that hears it is replaced.
    """
    for item in items:
        if BROWSER in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=2))
        if REGRESSION in item.path.parents:
            item.add_marker(pytest.mark.slow)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def small_demo(shared_folder: Path) -> Path:
    """The folder with `demo/files` and `demo/corpus`, the small part of the demo with the model; embedded once a run."""
    with open(shared_folder / "demo.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        files = wb.demo_files(shared_folder / "demo" / "files", small=True)
        wb.index([files], corpus=shared_folder / "demo" / "corpus", collection="docs")
    return shared_folder


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


@pytest.fixture(scope="session")
def sample_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "corpus"
    path.mkdir()
    shutil.copy(sample_folder() / "corpus.yaml", path)
    wb.index([sample_folder() / "files"], corpus=path, encoder="hashing", workers=0)
    return path


@pytest.fixture(scope="session")
def sample(sample_path: Path) -> Iterator[wb.Corpus]:
    """The sample corpus, open, as somebody who may see all of acme's."""
    with wb.open_corpus(sample_path, wb.Principal("acme", ("admin", "support"))) as corpus:
        yield corpus


@pytest.fixture(scope="module")
def corpus_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A function that indexes files given as a dict, under settings of the corpus, and opens the corpus for the module."""
    made: list[wb.Corpus] = []

    def make(
        files: dict[str, str], who: wb.Principal | None = None, settings: str = "", **options: object
    ) -> wb.Corpus:
        folder = tmp_path_factory.mktemp("made")
        write_files(folder / "corpus", {"corpus.yaml": settings} if settings else {})
        wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing", **options)
        made.append(wb.open_corpus(folder / "corpus", who))
        return made[-1]

    yield make
    for corpus in made:
        corpus.close()


@pytest.fixture
def make_corpus(tmp_path: Path) -> Iterator[object]:
    """A function that indexes files given as a dict and opens the corpus."""
    made: list[wb.Corpus] = []

    def make(files: dict[str, str], **options: object) -> wb.Corpus:
        source = write_files(tmp_path / f"files{len(made)}", files)
        path = tmp_path / f"corpus{len(made)}"
        wb.index([source], corpus=path, encoder="hashing", workers=0, **options)
        tenant = options.get("tenant")
        corpus = wb.open_corpus(path, None if tenant is None else wb.Principal(str(tenant), ("admin",)))
        made.append(corpus)
        return corpus

    yield make
    for corpus in made:
        corpus.close()
