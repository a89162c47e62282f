"""One small corpus for all tests of the pipeline: the sample, by the hashing encoder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.demo.data import sample_folder

SUPPORT = wb.Principal("acme", ("admin", "support"))


@pytest.fixture(scope="session")
def sample_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus on disk."""
    path = tmp_path_factory.mktemp("sample") / "corpus"
    path.mkdir()
    shutil.copy(sample_folder() / "corpus.yaml", path)
    wb.index([sample_folder() / "files"], corpus=path, encoder="hashing")
    return path


@pytest.fixture(scope="session")
def sample(sample_path: Path) -> Iterator[wb.Corpus]:
    """The sample corpus, open, as somebody who may see all of acme's."""
    with wb.open_corpus(sample_path, SUPPORT) as corpus:
        yield corpus


@pytest.fixture
def make_corpus(tmp_path: Path) -> Iterator[object]:
    """A function that indexes files given as a dict and opens the corpus."""
    made: list[wb.Corpus] = []

    def make(files: dict[str, str], **options: object) -> wb.Corpus:
        source = write_files(tmp_path / f"files{len(made)}", files)
        path = tmp_path / f"corpus{len(made)}"
        wb.index([source], corpus=path, encoder="hashing", **options)
        corpus = wb.open_corpus(path)
        made.append(corpus)
        return corpus

    yield make
    for corpus in made:
        corpus.close()
