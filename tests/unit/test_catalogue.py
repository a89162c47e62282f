"""The catalogue lists what a scope makes visible, in the corpus's order, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.corpus import Corpus
from workbench.records import Principal
from workbench.reports import FileStatus
from workbench.store.catalogue import Catalogue
from workbench.store.types import Scope


@pytest.fixture(scope="module")
def corpus_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tenants; acme's folder has a folder in it, a file that fails and one that is skipped."""
    folder = tmp_path_factory.mktemp("catalogue")
    for tenant, names in (("acme", ("a.md", "b.md", "deep/c.md")), ("zeta", ("z.md",))):
        for name in names:
            path = folder / tenant / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {name}\n\nWords of {tenant} in {name}.\n")
        (folder / tenant / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing that follows is one")
        (folder / tenant / "data.bin").write_bytes(bytes(range(256)) * 8)
        level = "internal" if tenant == "acme" else "normal"
        wb.index(
            [folder / tenant], corpus=folder / "corpus", encoder="hashing", workers=0, tenant=tenant, sensitivity=level
        )
    return folder / "corpus"


@pytest.fixture
def acme(corpus_path: Path) -> Iterator[Corpus]:
    with wb.open_corpus(corpus_path, Principal("acme")) as corpus:
        yield corpus


def parts(corpus: Corpus, where: str = "") -> tuple[Catalogue, Scope]:
    engine = corpus.engine
    return Catalogue(engine.opened), engine.records.scope(corpus.principal, where or None, ())


def test_paths_are_the_visible_ones_with_the_letters(acme: Corpus) -> None:
    catalogue, scope = parts(acme)
    assert catalogue.paths(scope, 10) == ["a.md", "b.md", "deep/c.md"]
    assert catalogue.paths(scope, 10, "DEEP") == ["deep/c.md"]
    assert catalogue.paths(scope, 2) == ["a.md", "b.md"]
    assert catalogue.paths(scope, 10, "z.md") == []


def test_a_folder_holds_its_own_documents_and_not_those_deeper(acme: Corpus, corpus_path: Path) -> None:
    catalogue, scope = parts(acme)
    root = str(corpus_path.parent / "acme")
    assert [d.path for d in catalogue.folder("b.md", root, scope)] == ["a.md", "b.md"]
    assert [d.path for d in catalogue.folder("deep/c.md", root, scope)] == ["deep/c.md"]
    assert catalogue.folder("z.md", str(corpus_path.parent / "zeta"), scope) == []


def test_records_are_found_by_letters_of_text_section_and_path(acme: Corpus) -> None:
    catalogue, scope = parts(acme)
    assert len(catalogue.holding(scope, "")) == 3
    assert len(catalogue.holding(scope, "words OF acme")) == 3
    assert len(catalogue.holding(scope, "deep/")) == 1
    assert len(catalogue.holding(scope, "zeta")) == 0
    numbers = catalogue.holding(scope, "c.md")
    assert numbers.dtype == np.int64
    assert acme.engine.records.columns(numbers).paths == ("deep/c.md",)


def test_refused_files_are_counted_by_reason_failed_first(acme: Corpus) -> None:
    """Every file once, of one's own tenant, with reason and remedy; the list may be shorter than the count."""
    catalogue, _ = parts(acme)
    counts, listed = catalogue.refused(acme.principal)
    assert sum(counts.values()) == len(listed) == 2
    assert [f.status for f in listed] == [FileStatus.FAILED, FileStatus.SKIPPED]
    assert all(f.reason for f in listed)
    assert len(catalogue.refused(acme.principal, 1)[1]) == 1
