"""Finding files: everything found is accounted for, in one order, and nothing outside the root is read."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from corpus_files import write_files
from file_makers import documents, names, problems

from workbench.errors import SettingError, UsageError
from workbench.ingest.errors import ReadError
from workbench.ingest.readers.base import Source
from workbench.ingest.rules import SENSITIVITIES, CorpusRules, FileRules, load_rules, narrow, parse_rules, stricter
from workbench.ingest.walk import FoundFile, digest_of, open_found, walk
from workbench.records import FileStatus, Granularity


def test_files_come_in_path_order_and_every_entry_is_accounted_for(tmp_path):
    """Found files and skips together are all entries; the order is the code-point order of the paths."""
    write_files(tmp_path, {"b.md": "b", "a/z.md": "z", "a/b/c.md": "c", "a.md": "a", ".env": "x", "B.md": "B"})
    found, skipped = names(list(walk([tmp_path])))
    assert found == sorted(found) == ["B.md", "a.md", "a/b/c.md", "a/z.md", "b.md"]
    assert skipped == {".env": "It is hidden"}
    first = next(item for item in walk([tmp_path]) if item.path == "B.md")
    assert isinstance(first, FoundFile)
    assert (first.root, first.absolute, first.size) == (str(tmp_path), str(tmp_path / "B.md"), 1)
    assert first.modified_ns == (tmp_path / "B.md").stat().st_mtime_ns


def test_hidden_files_come_when_asked_but_version_control_never(tmp_path):
    write_files(tmp_path, {".notes/a.md": "a", ".git/config": "x"})
    assert names(list(walk([tmp_path])))[0] == []
    found, skipped = names(list(walk([tmp_path], hidden=True)))
    assert found == [".notes/a.md"]
    assert skipped == {".git/": "It belongs to version control"}


def test_nested_gitignore_files_overrule_each_other(tmp_path):
    write_files(
        tmp_path,
        {
            ".gitignore": "*.log\n!keep.log\nbuild/\n/only-top.md\n\\\n",
            "a.log": "", "keep.log": "", "build/x.md": "", "only-top.md": "",
            "sub/.gitignore": "!a.log\nkeep.log\n",
            "sub/a.log": "", "sub/keep.log": "", "sub/only-top.md": "",
        },
    )  # fmt: skip
    found, skipped = names(list(walk([tmp_path])))
    assert found == ["keep.log", "sub/a.log", "sub/only-top.md"]
    assert {path for path, reason in skipped.items() if "ignored by" in reason} == {
        "a.log", "build/", "only-top.md", "sub/keep.log",
    }  # fmt: skip
    assert "sub/keep.log" in names(list(walk([tmp_path], gitignore=False)))[0]


def test_lines_of_a_gitignore_that_no_engine_takes_are_passed_over(tmp_path):
    """A range that runs backwards is nothing to git and to us; classes of characters are what they say."""
    lines = ["[z-a]", "[[:digit:]]*.log", "[[:nonsense:]]", "[\\d-a]", "\\", "!", "[", "[[a]", "b.md"]
    write_files(tmp_path, {".gitignore": "\n".join(lines), "a.md": "", "b.md": "", "1.log": "", "x.log": ""})
    assert names(list(walk([tmp_path])))[0] == ["a.md", "x.log"]


def test_the_repository_above_the_root_counts_unless_it_ignores_the_root(tmp_path):
    write_files(
        tmp_path, {".git/HEAD": "", ".gitignore": "*.tmp\nout/\n", "docs/a.tmp": "", "docs/a.md": "", "out/b.md": ""}
    )
    assert names(list(walk([tmp_path / "docs"])))[0] == ["a.md"]
    assert names(list(walk([tmp_path / "out"])))[0] == ["b.md"]


def test_links_do_not_lead_out_of_the_root_or_in_circles(tmp_path):
    """Inside the root each file is read once; what only a link leads to is read under the link's name."""
    root = write_files(tmp_path / "root", {"a/one.md": "1", ".store/two.md": "2", ".store/deep/three.md": "3"})
    write_files(tmp_path / "outside", {"secret.md": "s"})
    (root / "a/circle").symlink_to(root)
    (root / "a/self").symlink_to(root / "a/self")
    (root / "again.md").symlink_to(root / "a/one.md")
    (root / "current.md").symlink_to(".store/two.md")
    (root / "linked").symlink_to(".store/deep")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "out.md").symlink_to(tmp_path / "outside/secret.md")
    (root / "gone.md").symlink_to(root / "nothing.md")
    found, skipped = names(list(walk([root])))
    assert found == ["a/one.md", "current.md", "linked/three.md"]
    assert {path: reason.split("link")[1] for path, reason in skipped.items() if "link" in reason} == {
        "a/circle": " to what is read under its own name",
        "a/self": ": nothing is where it leads to",
        "again.md": " to what is read under its own name",
        "out": " that leads out of the folder",
        "out.md": " that leads out of the folder",
        "gone.md": ": nothing is where it leads to",
    }


def test_a_named_file_has_its_folder_as_root_even_if_it_is_hidden_or_ignored(tmp_path):
    write_files(tmp_path, {".gitignore": "*.md\n", ".draft.md": "x", "a.md": "a"})
    found = list(walk([tmp_path / ".draft.md", tmp_path / "a.md", tmp_path / "a.md"]))
    assert names(found)[0] == [".draft.md", "a.md"]
    assert {item.root for item in found} == {str(tmp_path)}


def test_paths_are_nfc_and_two_spellings_of_one_name_are_reported(tmp_path):
    composed, decomposed = "é.md", unicodedata.normalize("NFD", "é.md")
    write_files(tmp_path, {composed: "1", decomposed: "2"})
    found, skipped = names(list(walk([tmp_path])))
    assert found == [composed]
    assert list(skipped) == [composed]


def test_a_name_that_is_no_utf8_is_found_and_can_be_stored(tmp_path):
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("x")
    (item,) = walk([tmp_path])
    assert isinstance(item, FoundFile)
    assert item.path.encode("utf-8") == rb"caf\xe9.md"
    assert Path(item.absolute).read_text() == "x"


def test_special_files_large_files_and_the_corpus_are_skipped_with_a_remedy(tmp_path):
    write_files(tmp_path, {"big.txt": b"x" * ((1 << 20) + 1), "fits.txt": b"x" * (1 << 20), "my.corpus/a.md": "a"})
    os.mkfifo(tmp_path / "pipe")
    items = list(walk([tmp_path], max_file_mb=1, exclude=[tmp_path / "my.corpus"]))
    found, skipped = names(items)
    assert found == ["fits.txt"]
    assert set(skipped) == {"big.txt", "my.corpus/", "pipe"}
    assert "max_file_mb" in skipped["big.txt"]
    assert all(item.remedy for item in items if not isinstance(item, FoundFile))


def test_a_folder_that_cannot_be_read_is_reported_and_the_walk_goes_on(tmp_path, monkeypatch):
    write_files(tmp_path, {"a/x.md": "x", "locked/y.md": "y", "z.md": "z"})
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    items = list(walk([tmp_path]))
    assert names(items)[0] == ["a/x.md", "z.md"]
    (failed,) = [i for i in items if not isinstance(i, FoundFile)]
    assert (failed.path, failed.status) == ("locked/", FileStatus.FAILED)
    assert "permission denied" in failed.reason


def test_a_path_that_does_not_exist_is_a_usage_error_at_once(tmp_path):
    with pytest.raises(UsageError, match="no file or folder"):
        walk([tmp_path, tmp_path / "absent"])


@pytest.mark.slow
def test_a_deep_tree_does_not_overflow(tmp_path):
    deep = "/".join(["d"] * 600)
    write_files(tmp_path, {f"{deep}/a.md": "x"})
    assert names(list(walk([tmp_path])))[0] == [f"{deep}/a.md"]


@pytest.mark.parametrize("swap", ["file", "folder", "pipe"])
def test_a_link_that_takes_the_place_of_a_file_is_not_followed(tmp_path, swap):
    """Between the walk and the reading: neither for the text nor for the digest, and no pipe is waited for."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "sub" / "a.txt").write_text("mine")
    (tmp_path / "out" / "a.txt").write_text("stolen")
    (found,) = walk([tmp_path / "in"])
    assert isinstance(found, FoundFile)
    with open_found(found) as stream:
        assert stream.read() == b"mine"
    if swap == "folder":
        (tmp_path / "in" / "sub").rename(tmp_path / "in" / "was")
        (tmp_path / "in" / "sub").symlink_to(tmp_path / "out")
    else:
        (tmp_path / "in" / "sub" / "a.txt").unlink()
        place = tmp_path / "in" / "sub" / "a.txt"
        os.mkfifo(place) if swap == "pipe" else place.symlink_to(tmp_path / "out" / "a.txt")
    for read in (Source(found).data, Source(found).head, Source(found).stream):
        with pytest.raises(ReadError, match="link or another file"):
            read()
    with pytest.raises(OSError, match="link or another file"):
        digest_of(found)


HR = FileRules(tenant="acme", roles=("hr", "boss"), sensitivity="internal")


def test_later_rules_win_key_by_key_and_flags_are_the_base():
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


def test_the_settings_file_is_read_from_the_corpus_and_may_be_absent(tmp_path):
    assert load_rules(tmp_path) == CorpusRules()
    write_files(tmp_path, {"corpus.yaml": "- path: '*.md'\n  tenant: acme\n"})
    assert load_rules(tmp_path).for_file("x/a.md", FileRules()).tenant == "acme"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("rules: [{path: a, role: hr}]", "unknown keys role"),
        ("rules: [{tenant: acme}]", "no usable path"),
        ("rules: [{path: '[z-a]'}]", "which is not a pattern"),
        ("rules: [{path: a, sensitivity: hush}]", "not a level"),
        ("rules: [{path: a, tenant: 7}]", "tenant"),
        ("rules: [{path: a, collection: []}]", "not a name"),
        ("rules: [{path: a, roles: {a: b}}]", "list of names"),
        ("rules: [a]", "Rule 1"),
        ("collections: {a: page}", "'page'"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_in_one_sentence(tmp_path, data, words):
    write_files(tmp_path, {"corpus.yaml": data})
    with pytest.raises(SettingError, match=words) as caught:
        load_rules(tmp_path)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


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
def test_roles_are_intersected(given, own, result):
    visibility, rest = narrow(FileRules(roles=given), {"Allowed-Roles": own, "x": 1})
    assert visibility.roles == result
    assert rest == {"x": 1}


def test_sensitivity_only_rises_and_an_unknown_word_is_the_most_restrictive():
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
def test_a_claim_that_would_widen_or_cannot_be_read_refuses_the_document(tmp_path, front):
    write_files(tmp_path, {"a.md": f"---\n{front}\n---\n# T\n"})
    with pytest.raises(ReadError) as caught:
        documents(tmp_path / "a.md", HR)
    assert caught.value.status is FileStatus.FAILED
    assert caught.value.remedy


def test_a_document_without_a_tenant_by_rule_cannot_choose_one(tmp_path):
    write_files(tmp_path, {"a.md": "---\ntenant: acme\n---\ntext"})
    with pytest.raises(ReadError, match="no tenant"):
        documents(tmp_path / "a.md", FileRules())


def test_front_matter_narrows_and_leaves_the_metadata(tmp_path):
    write_files(tmp_path, {"a.md": "---\ntenant: acme\nroles: [hr, x]\nsensitivity: public\nteam: red\n---\n# T\n"})
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
def test_a_document_that_calls_itself_public_is_so_where_the_rules_allow_it(tmp_path, rules, kept, told):
    write_files(tmp_path, {"a.md": "---\nsensitivity: Public\n---\n# T\n"})
    (document,) = documents(tmp_path / "a.md", rules)
    assert document.sensitivity == kept
    said = problems(tmp_path / "a.md", rules)
    assert [(f"the rules {kept}" in p.reason, "--sensitivity public" in p.remedy, p.loses) for p in said] == (
        [(True, True, False)] if told else []
    )


def test_a_refused_record_is_a_problem_and_the_others_are_read(tmp_path):
    lines = ['{"id": "1", "text": "a", "tenant": "globex"}', '{"id": "2", "text": "b", "roles": ["hr"]}']
    write_files(tmp_path, {"r.jsonl": "\n".join(lines)})
    (document,) = documents(tmp_path / "r.jsonl", HR)
    assert (document.metadata["record_id"], document.roles) == ("2", ("hr",))
    assert "globex" in problems(tmp_path / "r.jsonl", HR)[0].reason
