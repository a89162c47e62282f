"""The record store of a generation: filters on real documents, visibility, rows, and what it says of itself."""

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench import index
from workbench.corpus import Corpus
from workbench.errors import FilterError, PrincipalRequired, UsageError
from workbench.records import FileStatus, Principal
from workbench.store.access.filters import Date, glob_pattern, parse, select, toggled, values_of
from workbench.store.access.redaction import MaskPatterns
from workbench.store.access.visibility import Access, SeeAll, visible, visible_documents
from workbench.store.catalogue import Catalogue
from workbench.store.reader import Generation, open_generation
from workbench.store.types import Scope

DOCUMENTS = {
    "guide/intro.md": (
        "title: Intro\nyear: 2020\ntags: [Alpha, beta]\ndraft: true\nauthor:\n  name: Ann",
        "Alpha text.",
    ),
    "guide/deep/more.md": ("title: It's more\nyear: 2024\ntags: [gamma]\nreviewed: 2024-05-10", "Beta text."),
    "notes/x.txt": ("", "Plain words."),
    "notes/y.md": ("type: note\nscore: 2.5\nms.date: 2023-01-31\nsensitivity: internal\nlanguage: de", "Gamma text."),
}


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
        ("year >= 2024", [MORE]),
        ("year = 2023", [X, Y]),
        ("year in (2020, 2024)", [MORE, INTRO]),
        ("tags = 'beta'", [INTRO]),
        ("tags contains 'ALPHA'", [INTRO]),
        ("tags contains 'alph'", []),
        ("title = 'It''s more'", [MORE]),
        ("draft = true", [INTRO]),
        ("author.name = 'Ann'", [INTRO]),
        ("score > 2 and score <= 2.5", [Y]),
        ("reviewed >= 2024-05-10", [MORE]),
        ("reviewed > 2024-05-10", []),
        ("reviewed = 2024-05", [MORE]),
        ("ms.date <= 2023-01", [Y]),
        ("modified >= 2023-11-14 and modified < 2023-11-15", [MORE, INTRO, X, Y]),
        ("modified <= 2023-11-14T22:13Z", [MORE, INTRO, X, Y]),
        ("path = 'guide/**'", [MORE, INTRO]),
        ("path = 'guide/*'", [INTRO]),
        ("path = 'guide/intro.md'", [INTRO]),
        ("path in ('notes/*.txt', 'guide/intro.md')", [INTRO, X]),
        ("path glob '**/[xy].*'", [X, Y]),
        ("not path = 'guide/**' and not type = 'note'", [X]),
        ("sensitivity = 'internal'", [Y]),
        ("language = 'de'", [Y]),
        ("source = 'docs'", [MORE, INTRO, X, Y]),
        ("source = 'other'", []),
        ("collection = 'docs' and year = 2020", [INTRO]),
        ("collection = 'memory' or year = 2020", [INTRO]),
        ("size > 0 and lines > 2", [MORE, INTRO, Y]),
        ("tenant = 'acme'", []),
        ("type = 'note' or type = 'text' and year = 1", [Y]),
        ("  ", [MORE, INTRO, X, Y]),
    ],
)
def test_filters(opened, where, paths):
    assert found(opened, where) == paths


@pytest.mark.parametrize(
    "where",
    ["title = 'x'' OR 1=1 --'", "title contains '); DROP TABLE documents; --'", "path glob '[z-a]*('", "tags = '\\'"],
)
def test_an_injected_text_is_only_a_text(opened, where):
    assert found(opened, where) == []
    assert len(found(opened, "type != 'none'")) == 4


def test_records_and_documents_are_chosen_by_collection_path_and_id(opened):
    store = opened.records
    for scope in (store.scope(None, "collection = 'artifacts'", ()), store.scope(None, None, ("artifacts",))):
        assert scope.allowed is not None
        rows = store.rows(np.flatnonzero(scope.allowed).tolist())
        assert {r.chunk.collection for r in rows} == {"artifacts"}
        assert store.count(scope) == (8, 4)
        assert scope.visible is None
    nothing = store.scope(None, None, ("memory",))
    assert store.count(nothing) == (8, 0)
    assert not nothing.allowed_documents.any()
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


def test_the_catalogue_is_of_what_is_visible(acme):
    catalogue, scope = parts(acme)
    assert catalogue.paths(scope, 10) == ["a.md", "b.md", "deep/c.md"]
    assert catalogue.paths(scope, 10, "DEEP") == ["deep/c.md"]
    assert catalogue.paths(scope, 2) == ["a.md", "b.md"]
    assert catalogue.paths(scope, 10, "z.md") == catalogue.paths(scope, 10, "half \ud800") == []
    assert len(catalogue.holding(scope, "", acme.engine.records)) == 3
    assert len(catalogue.holding(scope, "words OF acme", acme.engine.records)) == 3
    assert len(catalogue.holding(scope, "deep/", acme.engine.records)) == 1
    assert len(catalogue.holding(scope, "zeta", acme.engine.records)) == 0
    numbers = catalogue.holding(scope, "c.md", acme.engine.records)
    assert numbers.dtype == np.int64
    assert acme.engine.records.columns(numbers).paths == ("deep/c.md",)
    assert acme.documents(text="C.MD")["path"].to_list() == ["deep/c.md"]
    assert acme.documents("path = 'deep/'", sort="characters", descending=True)["chunks"].to_list() == [1]
    assert acme.documents(sort="date", descending=True)["modified"].is_sorted(descending=True)
    with pytest.raises(UsageError, match="sorted by 'colour'"):
        acme.documents(sort="colour")
    assert catalogue.counts(scope, "path") == {"deep/": 1}
    assert catalogue.counts(scope, "path", "deep/") == {}
    assert catalogue.counts(scope, "collection") == {"docs": 3}
    counts, listed = catalogue.refused(acme.principal)
    assert sum(counts.values()) == len(listed) == 2
    assert [f.status for f in listed] == [FileStatus.FAILED, FileStatus.SKIPPED]
    assert all(f.reason for f in listed)
    assert len(catalogue.refused(acme.principal, 1)[1]) == 1


def test_a_facet_puts_values_into_a_filter_and_takes_them_out():
    """Values of one field are alternatives; every other condition stays."""
    one = toggled("year >= 2024 or x = 1", "type", "pdf")
    assert one == "(year >= 2024 or x = 1) and type = 'pdf'"
    two = toggled(one, "type", "html")
    assert (two, values_of(two, "type")) == (f"{one[:-12]}type in ('pdf', 'html')", ("pdf", "html"))
    assert toggled(two, "type", "html") == one
    assert toggled("type = 'pdf'", "type", "pdf") == toggled("type = 'pdf'", "type", None) == ""
    assert values_of("type = 'pdf' or type = 'html'", "type") == ()


ALL = SeeAll()
HIDING = MaskPatterns(hidden=("restricted",), cleared=("security",))


@pytest.mark.parametrize(
    ("access", "who", "policy", "seen"),
    [
        (Access(None, (), "normal"), None, ALL, True),
        (Access(None, (), "normal"), Principal("acme"), ALL, False),
        (Access("acme", (), "normal"), Principal("acme"), ALL, True),
        (Access("acme", (), "normal"), Principal("other"), ALL, False),
        (Access("acme", (), "normal"), Principal("acme", ("hr",)), ALL, True),
        (Access("acme", ("hr", "law"), "normal"), Principal("acme", ("hr",)), ALL, True),
        (Access("acme", ("hr",), "normal"), Principal("acme", ("it",)), ALL, False),
        (Access("acme", ("hr",), "normal"), Principal("other", ("hr",)), ALL, False),
        (Access(None, ("hr",), "normal"), Principal(None, ("hr",)), ALL, True),
        (Access("", (), "normal"), Principal(), ALL, False),
        (Access("Acme", (), "normal"), Principal("acme"), ALL, False),
        (Access(None, (), "normal"), Principal(), HIDING, True),
        (Access(None, (), "restricted"), Principal(), HIDING, False),
        (Access(None, (), "restricted"), None, HIDING, False),
        (Access(None, (), "restricted"), Principal(None, ("security",)), HIDING, True),
    ],
)
def test_tenant_must_be_equal_a_role_shared_and_no_policy_hide_it(access, who, policy, seen):
    assert visible(access, who, policy) is seen


@pytest.mark.parametrize("kind", [Access("acme", (), "normal"), Access(None, ("hr",), "normal")])
def test_nobody_is_refused_where_any_document_has_a_tenant_or_roles(kind):
    kinds = [Access(None, (), "normal"), kind]
    with pytest.raises(PrincipalRequired, match="WORKBENCH_TENANT"):
        visible_documents(kinds, np.array([0, 0, 1], np.int32), None, ALL)


@pytest.mark.parametrize("wrong", [{"roles": "admin"}, {"roles": None}, {"roles": [1]}, {"tenant": 5}])
def test_who_asks_is_named_by_texts(wrong):
    with pytest.raises(UsageError, match="Write for example"):
        Principal(**wrong)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("type='note'AND year>=2024", "type = 'note' and year >= 2024"),
        ('title = "it\'s"', "title = 'it''s'"),
        ("a <> 1", "a != 1"),
        ("a not in (1, 2)", "not a in (1, 2)"),
        ("(a = 1) and (b = 2 or c = 3)", "a = 1 and (b = 2 or c = 3)"),
        ("\"strange field\" contains 'x'", "\"strange field\" contains 'x'"),
        ("größe.μ-x = -1.5", "größe.μ-x = -1.5"),
    ],
)
def test_the_text_form_is_canonical(text, canonical):
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text)


@pytest.mark.parametrize(
    ("text", "place", "remedy"),
    [
        ("", 1, "starts with a field"),
        ("a = note", 5, "Put text in quotes: 'note'"),
        ("a = 'x", 5, "Write for example"),
        ("a = 2024-13-01", 5, "Write for example 2024-05-01"),
        ("(a = 1", 7, "')'"),
        ("a = 1 b = 2", 7, "Join conditions"),
        ("and = 1", 1, "starts with a field"),
        ("a in ()", 7, "Write a value"),
        ("(" * 70, 61, "levels"),
    ],
)
def test_a_filter_that_cannot_be_read_is_refused_at_its_place(text, place, remedy):
    with pytest.raises(FilterError) as error:
        parse(text)
    assert f"at character {place}" in error.value.message
    assert remedy in error.value.remedy


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2024-02", datetime(2024, 2, 1), datetime(2024, 3, 1)),
        ("2024-12", datetime(2024, 12, 1), datetime(2025, 1, 1)),
        ("2024-02-29", datetime(2024, 2, 29), datetime(2024, 3, 1)),
        ("2024-02-29T10:00", datetime(2024, 2, 29, 10), datetime(2024, 2, 29, 10, 1)),
        ("2024-02-29T10:00+02:00", datetime(2024, 2, 29, 8), datetime(2024, 2, 29, 8, 1)),
        ("2024-02-29T23:00:30-02:00", datetime(2024, 3, 1, 1, 0, 30), datetime(2024, 3, 1, 1, 0, 31)),
        ("9999-12-31", datetime(9999, 12, 31), datetime.max),
    ],
)
def test_a_date_is_a_stretch_of_time(text, start, end):
    date = Date(text)
    assert (date.start, date.end) == (start, end)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("docs/**", ["docs/a", "docs/a/b.md"], ["docs", "xdocs/a"]),
        ("**/a.md", ["a.md", "x/a.md", "x/y/a.md"], ["xa.md"]),
        ("docs/**/a.md", ["docs/a.md", "docs/x/y/a.md"], ["docsa.md"]),
        ("*.md", ["a.md"], ["x/a.md", "amd"]),
        ("a?[0-9].md", ["ab1.md"], ["a/1.md", "abx.md"]),
        ("[!a]b", ["xb"], ["ab", "/b"]),
        ("a[.md", ["a[.md"], ["a.md"]),
        ("a b(1)+é.md", ["a b(1)+é.md"], ["a b1é.md"]),
    ],
)
def test_globs_stay_within_folders_but_for_two_stars(glob, yes, no):
    import duckdb

    def matches(path: str) -> bool:
        return bool(duckdb.execute("SELECT regexp_full_match(?, ?)", [path, glob_pattern(glob)]).fetchall()[0][0])

    assert [p for p in yes if not matches(p)] == []
    assert [p for p in no if matches(p)] == []


def test_an_unknown_field_is_refused_with_the_known_ones():
    with pytest.raises(FilterError) as error:
        select(parse("type = 'a' and auther = 'b'"), [], ["author"])
    assert "at character 16" in error.value.message
    assert "Did you mean author?" in error.value.remedy
    assert "sensitivity" in error.value.remedy
    with pytest.raises(FilterError, match="10000"):
        parse("a = 1 or " * 5000 + "a = 1")


@pytest.mark.parametrize(
    "text",
    [
        "year contains 'x'", "year = 'x'", "modified = 'yesterday'", "modified like 'x'", "modified = 3", "title < 3",
        "title = true", "type > 2024-01-01",
    ],
)  # fmt: skip
def test_a_value_must_suit_its_field(text):
    with pytest.raises(FilterError, match="at character 1"):
        select(parse(text), [], [])
