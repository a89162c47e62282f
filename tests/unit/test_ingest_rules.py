"""Rules give, documents narrow: nothing that a document says shows it to more people."""

from __future__ import annotations

from pathlib import Path

import pytest
from ingest_cases import documents, problems, write

from workbench.errors import SettingError
from workbench.ingest import CorpusRules, FileRules, ReadError, load_rules
from workbench.ingest.rules import SENSITIVITIES, Visibility, narrow, parse_rules, stricter
from workbench.records import Granularity
from workbench.reports import FileStatus

HR = FileRules(tenant="acme", roles=("hr", "boss"), sensitivity="internal")


def test_later_rules_win_key_by_key_and_flags_are_the_base() -> None:
    rules = parse_rules(
        {
            "collections": {"notes": "document"},
            "rules": [
                {"path": "hr/**", "collection": ["personnel", "docs"], "tenant": "acme", "roles": "hr"},
                {"path": "*.pdf", "type": "report", "sensitivity": "confidential"},
                {"path": "hr/open/", "roles": [], "tenant": None},
            ],
        }
    )
    flags = FileRules(collections=("base",), sensitivity="internal")
    assert rules.for_file("a.md", flags) == flags
    report = rules.for_file("hr/x.pdf", flags)
    assert report == FileRules(("docs", "personnel"), "acme", ("hr",), "confidential", "report")
    assert rules.for_file("hr/open/y.md", flags) == FileRules(("docs", "personnel"), None, (), "internal")
    assert rules.granularity("notes") is Granularity.DOCUMENT
    assert rules.granularity("artifacts") is Granularity.DOCUMENT
    assert rules.granularity("docs") is Granularity.CHUNK


def test_the_settings_file_is_read_from_the_corpus_and_may_be_absent(tmp_path: Path) -> None:
    assert load_rules(tmp_path) == CorpusRules()
    write(tmp_path, {"corpus.yaml": "- path: '*.md'\n  tenant: acme\n"})
    assert load_rules(tmp_path).for_file("x/a.md", FileRules()).tenant == "acme"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("rules: [{path: a, role: hr}]", "unknown keys role"),
        ("rule: []", "unknown keys rule"),
        ("rules: [{tenant: acme}]", "no usable path"),
        ("rules: [{path: '!a'}]", "no usable path"),
        ("rules: [{path: '[z-a]'}]", "which is not a pattern"),
        ("rules: [{path: a, sensitivity: hush}]", "not a level"),
        ("rules: [{path: a, tenant: 7}]", "tenant"),
        ("rules: [{path: a, collection: 'a,b'}]", "not a name"),
        ("rules: [{path: a, collection: []}]", "not a name"),
        ("rules: [{path: a, roles: {a: b}}]", "list of names"),
        ("rules: {path: a}", "not a list"),
        ("rules: [a]", "Rule 1"),
        ("collections: {a: page}", "'page'"),
        ("7", "list of rules"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_in_one_sentence(tmp_path: Path, data: str, words: str) -> None:
    write(tmp_path, {"corpus.yaml": data})
    with pytest.raises(SettingError, match=words) as caught:
        load_rules(tmp_path)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_flags_are_checked_like_rules() -> None:
    with pytest.raises(SettingError, match="not a level"):
        FileRules(sensitivity="hush")
    with pytest.raises(SettingError, match="not a name"):
        FileRules(collections=())


@pytest.mark.parametrize(
    ("given", "own", "result"),
    [
        (("a", "b"), ["b", "c"], ("b",)),
        (("a", "b"), None, ("a", "b")),
        (("a", "b"), [], ("a", "b")),
        ((), ["b", "a"], ("a", "b")),
        ((), "b, a", ("a", "b")),
        ((), [], ()),
    ],
)
def test_roles_are_intersected(given: tuple[str, ...], own: object, result: tuple[str, ...]) -> None:
    visibility, rest = narrow(Visibility(roles=given), {"Allowed-Roles": own, "x": 1})
    assert visibility.roles == result
    assert rest == {"x": 1}


def test_sensitivity_only_rises_and_an_unknown_word_is_the_most_restrictive() -> None:
    for one in SENSITIVITIES:
        for other in SENSITIVITIES:
            assert stricter(one, other) == max(one, other, key=SENSITIVITIES.index)
        assert stricter(one, "eyes only") == stricter("eyes only", one) == "restricted"


@pytest.mark.parametrize(
    "front",
    [
        "tenant: globex",
        "roles: [sales]",
        "roles: {hr: yes}",
        "sensitivity: [internal]",
        "tenant: {a: b}",
        "tenant: 7",
        "roles: [hr\nsensitivity: restricted",
        "x: [\nTenant: globex",
    ],
)
def test_a_claim_that_would_widen_or_cannot_be_read_refuses_the_document(tmp_path: Path, front: str) -> None:
    write(tmp_path, {"a.md": f"---\n{front}\n---\n# T\n"})
    with pytest.raises(ReadError) as caught:
        documents(tmp_path / "a.md", HR)
    assert caught.value.status is FileStatus.FAILED
    assert caught.value.remedy


def test_a_document_without_a_tenant_by_rule_cannot_choose_one(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "---\ntenant: acme\n---\ntext"})
    with pytest.raises(ReadError, match="no tenant"):
        documents(tmp_path / "a.md", FileRules())


def test_front_matter_narrows_and_leaves_the_metadata(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "---\ntenant: acme\nroles: [hr, x]\nsensitivity: public\nteam: red\n---\n# T\n"})
    (document,) = documents(tmp_path / "a.md", HR)
    assert (document.tenant, document.roles, document.sensitivity) == ("acme", ("hr",), "internal")
    assert document.metadata == {"team": "red"}


@pytest.mark.parametrize(
    ("rules", "kept", "told"),
    [
        (FileRules(sensitivity="public"), "public", False),
        (FileRules(), "normal", True),
        (FileRules(sensitivity="internal"), "internal", True),
    ],
)
def test_a_document_that_calls_itself_public_is_so_where_the_rules_allow_it(
    tmp_path: Path, rules: FileRules, kept: str, told: bool
) -> None:
    write(tmp_path, {"a.md": "---\nsensitivity: Public\n---\n# T\n"})
    (document,) = documents(tmp_path / "a.md", rules)
    assert document.sensitivity == kept
    said = problems(tmp_path / "a.md", rules)
    assert [(f"the rules {kept}" in p.reason, "--sensitivity public" in p.remedy, p.loses) for p in said] == (
        [(True, True, False)] if told else []
    )


def test_a_refused_record_is_a_problem_and_the_others_are_read(tmp_path: Path) -> None:
    lines = ['{"id": "1", "text": "a", "tenant": "globex"}', '{"id": "2", "text": "b", "roles": ["hr"]}']
    write(tmp_path, {"r.jsonl": "\n".join(lines)})
    (document,) = documents(tmp_path / "r.jsonl", HR)
    assert (document.metadata["record_id"], document.roles) == ("2", ("hr",))
    assert "globex" in problems(tmp_path / "r.jsonl", HR)[0].reason
