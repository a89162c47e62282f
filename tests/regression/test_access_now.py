"""Access is what it is now: a policy or rule that changes in `corpus.yaml` is obeyed by whoever has the corpus open already."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from corpus_files import write_files
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

import workbench as wb
from workbench.errors import PrincipalRequired, SettingError
from workbench.records import principal_key
from workbench.store.access.redaction import MaskPatterns
from workbench.store.reader import open_generation
from workbench.ui import resources

FILES = {
    "hr/wages.md": "# Wages\n\nzebrafish wages 1234-5678\n",
    "open.md": "# Open\n\nzebrafish plain\n",
    "secret.md": "---\nsensitivity: restricted\n---\n# Secret\n\nzebrafish secret\n",
    "hr/copy.md": "# Same\n\nzebrafish same bytes\n",
    "pub/copy.md": "# Same\n\nzebrafish same bytes\n",
}
STAFF, BOSS = wb.Principal("acme", ("staff",)), wb.Principal("acme", ("boss",))
ALL = {"hr/wages.md", "open.md", "secret.md", "hr/copy.md"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of one tenant without rules."""
    path = tmp_path_factory.mktemp("now")
    wb.index([write_files(path / "files", FILES)], corpus=path / "corpus", tenant="acme", encoder="hashing")
    return path / "corpus"


@pytest.fixture(autouse=True)
def _no_rules(folder: Path) -> Iterator[None]:
    """Every test begins without a policy, without rules and without open corpora of the app."""
    st.cache_resource.clear()
    yield
    (folder / "corpus.yaml").unlink(missing_ok=True)


def found(corpus: wb.Corpus) -> set[str]:
    return {h.path for h in corpus.search("zebrafish", mode="keyword").hits}


@pytest.mark.parametrize("follow", [False, True])
def test_a_policy_counts_from_the_next_answer_on(folder: Path, follow: bool) -> None:
    rules = folder / "corpus.yaml"
    with wb.open_corpus(folder, STAFF, follow=follow) as corpus:
        before = corpus.search("zebrafish", mode="keyword")
        assert {h.path for h in before.hits} == ALL
        rules.write_text("policy:\n  hide: [restricted]\n  mask: ['\\d{4}-\\d{4}']\n  cleared: [boss]\n")
        assert found(corpus) == ALL - {"secret.md"}
        assert "1234" not in corpus.read_file("hr/wages.md")
        assert corpus.read_file("secret.md").startswith("[ERROR: NOT_FOUND]")
        assert not corpus.explain(before, "secret.md").found
        assert corpus.info()["documents"] == 4
        rules.write_text("policy:\n  hide: [no-such-level]\n")
        with pytest.raises(SettingError, match="not a level"):
            corpus.search("zebrafish", mode="keyword")
        rules.write_text("policy:\n  hide: [restricted]\n  cleared: [staff]\n")
        assert found(corpus) == ALL
        assert "1234" in corpus.read_file("hr/wages.md")


def test_a_rule_that_takes_away_counts_before_the_next_run(folder: Path) -> None:
    """Roles are those of both, a copy elsewhere has its own, and what went to another tenant is nobody's until it is read."""
    rules = folder / "corpus.yaml"
    with wb.open_corpus(folder, STAFF) as staff, wb.open_corpus(folder, BOSS) as boss:
        assert found(staff) == found(boss) == ALL
        rules.write_text("rules:\n- path: 'hr/**'\n  roles: [boss]\n")
        assert found(staff) == {"open.md", "secret.md", "pub/copy.md"}
        assert found(boss) == ALL
        assert staff.read_file("hr/wages.md") == staff.read_file("hr/none.md").replace("none", "wages")
        assert staff.search("same bytes", mode="keyword").hits[0].copies == ()
        rules.write_text("rules:\n- path: 'hr/**'\n  roles: [boss]\n- path: hr/wages.md\n  roles: [staff]\n")
        assert found(staff) == {"open.md", "secret.md", "hr/wages.md", "pub/copy.md"}
        rules.write_text("rules:\n- path: open.md\n  tenant: birch\n- path: 'hr/**'\n  sensitivity: restricted\n")
        assert found(staff) == ALL - {"open.md"}
        rules.write_text(rules.read_text() + "policy:\n  hide: [restricted]\n")
        assert found(staff) == found(boss) == {"pub/copy.md"}
        rules.unlink()
        assert found(staff) == ALL


def test_a_run_under_the_rules_says_the_same_as_the_rules_before_it(folder: Path, tmp_path: Path) -> None:
    source, corpus = write_files(tmp_path / "files", FILES), tmp_path / "corpus"
    wb.index([source], corpus=corpus, tenant="acme", encoder="hashing")
    (corpus / "corpus.yaml").write_text(
        "rules:\n- path: 'hr/**'\n  roles: [boss]\n- path: open.md\n  sensitivity: internal\n"
    )
    with wb.open_corpus(corpus, STAFF) as staff:
        before = found(staff)
    wb.index([source], corpus=corpus, tenant="acme", encoder="hashing")
    with wb.open_corpus(corpus, STAFF) as staff, open_generation(corpus) as generation:
        assert found(staff) == before == {"open.md", "secret.md", "pub/copy.md"}
        assert generation.manifest.rules
    wb.index([source / "open.md"], corpus=corpus, tenant="acme", encoder="hashing", roles=["boss"])
    with wb.open_corpus(corpus, STAFF) as staff:
        assert "open.md" not in found(staff)


def test_the_local_owner_names_somebody_once_a_rule_has_roles(make_corpus: object) -> None:
    corpus = make_corpus({"a.md": "# A\n\nzebrafish\n"})  # type: ignore[operator]
    (corpus.path / "corpus.yaml").write_text("rules:\n- path: a.md\n  roles: [boss]\n")
    with pytest.raises(PrincipalRequired):
        corpus.search("zebrafish", mode="keyword")


def test_the_app_and_the_result_cache_obey_too(folder: Path) -> None:
    corpus = resources.opened(STAFF, folder)
    assert (found(corpus), resources.info(corpus)["documents"]) == (ALL, 5)
    assert "sensitivity" in resources.filter_fields(corpus)
    (folder / "corpus.yaml").write_text("policy:\n  hide: [restricted]\n")
    again = resources.opened(STAFF, folder)
    assert again is corpus
    assert (found(corpus), resources.info(corpus)["documents"]) == (ALL - {"secret.md"}, 4)
    assert "Secret" not in resources.example_queries(corpus, 9)


NAMES = some.text(some.sampled_from('ab":,[]\\\x00 str\ud800'), max_size=6)
WHO = some.builds(wb.Principal, some.none() | NAMES, some.lists(NAMES, max_size=3).map(tuple)) | some.none()


@given(WHO, WHO)
@example(wb.Principal("acme", ("admin", "support")), wb.Principal("acme", ("adminstr:support",)))
@example(wb.Principal(None), wb.Principal(""))
@example(wb.Principal("a", ("b,c",)), wb.Principal("a", ("b", "c")))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_two_principals_share_a_key(one: wb.Principal | None, other: wb.Principal | None) -> None:
    assert (principal_key(one) == principal_key(other)) == (one == other)
    names = [(() if p is None else (p.tenant or "", *p.roles)) for p in (one, other)]
    policies = [MaskPatterns(hidden=("restricted",), cleared=roles).name for roles in names]
    assert (policies[0] == policies[1]) == (sorted(names[0]) == sorted(names[1]))


@given(some.lists(WHO.filter(lambda who: who is not None), min_size=2, max_size=4, unique=True))
@example([wb.Principal("acme", ("boss", "staff")), wb.Principal("acme", ("bossstr:staff",))])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_app_never_gives_one_person_the_corpus_of_another(folder: Path, people: list[wb.Principal]) -> None:
    logging.disable(logging.CRITICAL)
    try:
        for who in people:
            assert resources.opened(who, folder).principal == who
    finally:
        logging.disable(logging.NOTSET)
