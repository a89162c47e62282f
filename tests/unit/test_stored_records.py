"""The record store of a generation: filters on real documents, visibility, rows, and what it says of itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from workbench import index
from workbench.errors import FilterError, PrincipalRequired
from workbench.records import Principal
from workbench.store.access.mask import MaskPatterns
from workbench.store.reader import Generation, open_generation

DOCUMENTS = {
    "guide/intro.md": (
        "title: Intro\nyear: 2020\ntags: [Alpha, beta]\ndraft: true\nauthor:\n  name: Ann",
        "Alpha text.",
    ),
    "guide/deep/more.md": ("title: It's more\nyear: 2024\ntags: [gamma]\nreviewed: 2024-05-10", "Beta text."),
    "notes/x.txt": ("", "Plain words."),
    "notes/y.md": ("type: note\nscore: 2.5\nms.date: 2023-01-31\nsensitivity: internal\nlanguage: de", "Gamma text."),
}
SECRET = {
    "hr/pay.md": ("title: Pay\nsalary: 100\ntags: [hidden]", "Secret alpha words."),
    "law/case.md": ("title: Case\nclient: Evil", "Secret beta text."),
}
RULES = """rules:
  - path: "*"
    tenant: acme
  - path: "hr/**"
    roles: [hr]
  - path: "law/**"
    tenant: other
"""


def write(folder: Path, documents: dict[str, tuple[str, str]]) -> None:
    for name, (front, text) in documents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\n{front}\n---\n{text}\n" if front else f"{text}\n")
        os.utime(path, (1_700_000_000, 1_700_000_000))  # 14 November 2023


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generation]:
    base = tmp_path_factory.mktemp("plain")
    write(base / "docs", DOCUMENTS)
    index([base / "docs"], base / "corpus", encoder="hashing", collection=("docs", "artifacts"))
    with open_generation(base / "corpus") as generation:
        yield generation


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Generation, Generation]]:
    """The four documents of the tenant acme, without and with two more that are hidden from it."""
    base = tmp_path_factory.mktemp("shared")
    made = []
    for name, documents in (("without", DOCUMENTS), ("with", {**DOCUMENTS, **SECRET})):
        write(base / name / "docs", documents)
        (base / name / "corpus").mkdir()
        (base / name / "corpus" / "corpus.yaml").write_text(RULES)
        index([base / name / "docs"], base / name / "corpus", encoder="hashing")
        made.append(open_generation(base / name / "corpus"))
    yield made[0], made[1]
    for generation in made:
        generation.close()


def found(generation: Generation, where: str, principal: Principal | None = None) -> list[str]:
    scope = generation.records.scope(principal, where, ())
    total = generation.records.documents_total
    mask = scope.allowed_documents if scope.allowed_documents is not None else np.ones(total, bool)
    return [d.path for d in generation.records.documents(np.flatnonzero(mask).tolist())]


INTRO, MORE, X, Y = "guide/intro.md", "guide/deep/more.md", "notes/x.txt", "notes/y.md"


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        ("type = 'note'", [Y]),
        ("type != 'note'", [MORE, INTRO, X]),
        ("year >= 2024", [MORE]),
        ("year = 2023", [X, Y]),
        ("year in (2020, 2024)", [MORE, INTRO]),
        ("tags = 'beta'", [INTRO]),
        ("tags contains 'ALPHA'", [INTRO]),
        ("tags contains 'alph'", []),
        ("tags like 'gam%'", [MORE]),
        ("title contains 'MORE'", [MORE]),
        ("title = 'It''s more'", [MORE]),
        ("title >= 'J'", [X, Y]),
        ("draft = true", [INTRO]),
        ("draft != true", [MORE, X, Y]),
        ("author.name = 'Ann'", [INTRO]),
        ("score > 2 and score <= 2.5", [Y]),
        ("score = '2.5'", [Y]),
        ("reviewed >= 2024-05-10", [MORE]),
        ("reviewed > 2024-05-10", []),
        ("reviewed < '2024-06'", [MORE]),
        ("reviewed = 2024-05", [MORE]),
        ("ms.date <= 2023-01", [Y]),
        ("modified >= 2023-11-14 and modified < 2023-11-15", [MORE, INTRO, X, Y]),
        ("modified = 2023-11", [MORE, INTRO, X, Y]),
        ("modified > 2023-11-14", []),
        ("modified <= 2023-11-14T22:13Z", [MORE, INTRO, X, Y]),
        ("modified < 2023-11-14T22:13Z", []),
        ("path = 'guide/**'", [MORE, INTRO]),
        ("path = 'guide/'", [MORE, INTRO]),
        ("path = 'guide/*'", [INTRO]),
        ("path = 'guide/intro.md'", [INTRO]),
        ("path in ('notes/*.txt', 'guide/intro.md')", [INTRO, X]),
        ("path glob '**/[xy].*'", [X, Y]),
        ("path like 'guide/%'", [MORE, INTRO]),
        ("not path = 'guide/**' and not type = 'note'", [X]),
        ("sensitivity = 'internal'", [Y]),
        ("sensitivity not in ('internal')", [MORE, INTRO, X]),
        ("language = 'de'", [Y]),
        ("source = 'docs'", [MORE, INTRO, X, Y]),
        ("source like '%/docs'", [MORE, INTRO, X, Y]),
        ("source = 'other'", []),
        ("collection = 'docs' and year = 2020", [INTRO]),
        ("collection = 'memory' or year = 2020", [INTRO]),
        ("size > 0 and lines > 2", [MORE, INTRO, Y]),
        ("metadata.year = 2020", [INTRO]),
        ("tenant = 'acme'", []),
        ("type = 'note' or type = 'text' and year = 1", [Y]),
        ("  ", [MORE, INTRO, X, Y]),
    ],
)
def test_filters(opened: Generation, where: str, paths: list[str]):
    assert found(opened, where) == paths


@pytest.mark.parametrize(
    "where",
    ["title = 'x'' OR 1=1 --'", "title contains '); DROP TABLE documents; --'", "path glob '[z-a]*('", "tags = '\\'"],
)
def test_an_injected_text_is_only_a_text(opened: Generation, where: str):
    assert found(opened, where) == []
    assert len(found(opened, "type != 'none'")) == 4


def test_a_condition_on_the_collection_chooses_records(opened: Generation):
    store = opened.records
    for scope in (store.scope(None, "collection = 'artifacts'", ()), store.scope(None, None, ("artifacts",))):
        assert scope.allowed is not None
        rows = store.rows(np.flatnonzero(scope.allowed).tolist())
        assert {r.chunk.collection for r in rows} == {"artifacts"}
        assert store.count(scope) == (8, 4)
        assert scope.visible is None
    nothing = store.scope(None, None, ("memory",))
    assert store.count(nothing) == (8, 0)
    assert nothing.allowed_documents is not None
    assert not nothing.allowed_documents.any()


def test_a_document_is_found_by_path_id_and_absolute_path(opened: Generation):
    store = opened.records
    scope = store.scope(None, None, ())
    (document,) = store.documents([1])
    for name in (document.path, document.document_id, f"{document.root}/{document.path}"):
        assert store.find_document(name, scope) == 1
    assert store.find_document("", scope) is None
    assert store.find_document("guide", scope) is None
    chunk_id = store.rows([2])[0].chunk.chunk_id
    assert store.find_record(chunk_id, scope) == 2
    assert store.find_record("none", scope) is None


def test_nobody_named_is_refused_where_there_are_tenants(shared: tuple[Generation, Generation]):
    for generation in shared:
        with pytest.raises(PrincipalRequired):
            generation.records.scope(None, "year = 1", ())


ANN = Principal("acme")


def test_hidden_documents_change_no_byte_of_what_the_store_says(shared: tuple[Generation, Generation]):
    """Counts, digest, bytes, fields, values, rows and their order; only the generation's id is another."""
    answers = []
    for generation in shared:
        store = generation.records
        scope = store.scope(ANN, None, ())
        info = {k: v for k, v in store.info(scope).items() if k not in ("generation", "roots")}
        seen = np.arange(store.records_total) if scope.visible is None else np.flatnonzero(scope.visible)
        rows = [r.chunk for r in store.rows(seen.tolist())]
        answers.append((info, store.fields(scope), store.values("tags", scope), rows, store.count(scope)))
        assert found(generation, "title = 'Pay' or path = 'law/**' or not type = 'note'", ANN) == [MORE, INTRO, X]
    assert answers[0] == answers[1]
    assert shared[0].id != shared[1].id


@pytest.mark.parametrize("where", ["salary > 1", "client = 'Evil'"])
def test_a_field_that_only_hidden_documents_have_is_unknown(shared: tuple[Generation, Generation], where: str):
    says = []
    for generation in shared:
        with pytest.raises(FilterError) as error:
            generation.records.scope(ANN, where, ())
        says.append(str(error.value))
    assert says[0] == says[1]


@pytest.mark.parametrize(
    ("who", "paths"),
    [
        (ANN, [MORE, INTRO, X, Y]),
        (Principal("acme", ("hr", "it")), [MORE, INTRO, "hr/pay.md", X, Y]),
        (Principal("other"), ["law/case.md"]),
        (Principal("other", ("hr",)), ["law/case.md"]),
        (Principal("third", ("hr",)), []),
        (Principal(), []),
    ],
)
def test_each_principal_sees_its_own(shared: tuple[Generation, Generation], who: Principal, paths: list[str]):
    store = shared[1].records
    assert found(shared[1], "", who) == paths
    scope = store.scope(who, None, ())
    for path in [*DOCUMENTS, *SECRET]:
        assert (store.find_document(path, scope) is not None) is (path in paths)
    assert store.info(scope)["documents"] == len(paths)
    ids = [r.chunk.chunk_id for r in store.rows(range(store.records_total))]
    assert len(store.numbers_of(ids, scope)) == len(paths)


def test_a_policy_hides_by_sensitivity_everywhere(opened: Generation):
    with open_generation(opened.corpus, MaskPatterns(hidden=("internal",))) as careful:
        assert found(careful, "") == [MORE, INTRO, X]
        scope = careful.records.scope(None, None, ())
        assert "score" not in careful.records.fields(scope)
        assert "score" in opened.records.fields(opened.records.scope(None, None, ()))
