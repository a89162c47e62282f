"""Which root a file belongs to, whatever is indexed in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.errors import UsageError
from workbench.indexing.roots import Root, salted, settle, targets
from workbench.ingest.walk import walk


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("docs/a.md", "docs/sub/b.md", "notes/a.md", "c.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def placed(asked: list[Path], old: dict[str, Root]) -> tuple[list[tuple[str, str]], dict[str, Root]]:
    wanted = targets(asked)
    items, roots = settle(walk(wanted), wanted, old, "{}")
    return [(Path(i.root).name, i.path) for i in items], roots


def test_a_folder_is_a_root_and_a_file_alone_opens_none(tree: Path):
    files, roots = placed([tree / "docs", tree / "c.md"], {})
    assert files == [(tree.name, "c.md"), ("docs", "a.md"), ("docs", "sub/b.md")]
    assert [(Path(r.root).name, r.whole) for _, r in sorted(roots.items())] == [(tree.name, False), ("docs", True)]


def test_a_part_of_a_known_root_keeps_its_paths(tree: Path):
    _, roots = placed([tree / "docs"], {})
    files, after = placed([tree / "docs" / "sub"], roots)
    assert files == [("docs", "sub/b.md")]
    assert after == roots
    files, after = placed([tree / "docs" / "sub" / "b.md"], roots)
    assert files == [("docs", "sub/b.md")]
    assert after == roots


def test_a_folder_around_known_roots_takes_them_in(tree: Path):
    _, roots = placed([tree / "docs", tree / "c.md"], {})
    files, after = placed([tree], roots)
    assert [path for _, path in files] == ["c.md", "docs/a.md", "docs/sub/b.md", "notes/a.md"]
    assert list(after) == [str(tree)]
    assert after[str(tree)].whole


def test_a_folder_inside_another_one_asked_for_is_not_a_root_of_its_own(tree: Path):
    for asked in ([tree, tree / "docs"], [tree / "docs", tree]):
        assert targets(asked) == (str(tree),)


def test_the_second_root_with_a_path_of_the_first_gets_a_salt_for_good(tree: Path):
    docs, notes = str(tree / "docs"), str(tree / "notes")
    roots = {docs: Root(docs, True, "", "{}"), notes: Root(notes, True, "", "{}")}
    held = {docs: {"a.md", "sub/b.md"}, notes: {"a.md"}}
    result, warnings = salted(roots, {docs, notes}, held)
    assert (result[docs].salt, result[notes].salt) == ("", "notes")
    assert "both hold a.md" in warnings[0]
    assert salted(result, set(), held) == (result, ())
    assert salted(roots, {notes}, {docs: {"x"}, notes: {"a.md"}})[1] == ()


def test_nothing_and_what_does_not_exist_are_refused(tree: Path):
    with pytest.raises(UsageError, match="Name at least one"):
        targets([])
    with pytest.raises(UsageError, match="no file or folder"):
        targets([tree / "none"])
