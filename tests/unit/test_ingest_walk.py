"""Finding files: everything found is accounted for, in one order, and nothing outside the root is read."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from ingest_cases import names, write

from workbench.errors import UsageError
from workbench.ingest.errors import ReadError
from workbench.ingest.readers.base import Source
from workbench.ingest.walk import FoundFile, digest_of, open_found, walk
from workbench.reports import FileStatus


def test_files_come_in_path_order_and_every_entry_is_accounted_for(tmp_path: Path) -> None:
    """Found files and skips together are all entries; the order is the code-point order of the paths."""
    write(tmp_path, {"b.md": "b", "a/z.md": "z", "a/b/c.md": "c", "a.md": "a", ".env": "x", "B.md": "B"})
    found, skipped = names(list(walk([tmp_path])))
    assert found == sorted(found) == ["B.md", "a.md", "a/b/c.md", "a/z.md", "b.md"]
    assert skipped == {".env": "It is hidden"}
    first = next(item for item in walk([tmp_path]) if item.path == "B.md")
    assert isinstance(first, FoundFile)
    assert (first.root, first.absolute, first.size) == (str(tmp_path), str(tmp_path / "B.md"), 1)
    assert first.modified_ns == (tmp_path / "B.md").stat().st_mtime_ns


def test_hidden_files_come_when_asked_but_version_control_never(tmp_path: Path) -> None:
    write(tmp_path, {".notes/a.md": "a", ".git/config": "x"})
    assert names(list(walk([tmp_path])))[0] == []
    found, skipped = names(list(walk([tmp_path], hidden=True)))
    assert found == [".notes/a.md"]
    assert skipped == {".git/": "It belongs to version control"}


def test_nested_gitignore_files_overrule_each_other(tmp_path: Path) -> None:
    write(
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


def test_lines_of_a_gitignore_that_no_engine_takes_are_passed_over(tmp_path: Path) -> None:
    """A range that runs backwards is nothing to git and to us; classes of characters are what they say."""
    lines = ["[z-a]", "[[:digit:]]*.log", "[[:nonsense:]]", "[\\d-a]", "\\", "!", "[", "[[a]", "b.md"]
    write(tmp_path, {".gitignore": "\n".join(lines), "a.md": "", "b.md": "", "1.log": "", "x.log": ""})
    assert names(list(walk([tmp_path])))[0] == ["a.md", "x.log"]


def test_the_repository_above_the_root_counts_unless_it_ignores_the_root(tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "", ".gitignore": "*.tmp\nout/\n", "docs/a.tmp": "", "docs/a.md": "", "out/b.md": ""})
    assert names(list(walk([tmp_path / "docs"])))[0] == ["a.md"]
    assert names(list(walk([tmp_path / "out"])))[0] == ["b.md"]


def test_links_do_not_lead_out_of_the_root_or_in_circles(tmp_path: Path) -> None:
    """Inside the root each file is read once; what only a link leads to is read under the link's name."""
    root = write(tmp_path / "root", {"a/one.md": "1", ".store/two.md": "2", ".store/deep/three.md": "3"})
    write(tmp_path / "outside", {"secret.md": "s"})
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


def test_a_named_file_has_its_folder_as_root_even_if_it_is_hidden_or_ignored(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*.md\n", ".draft.md": "x", "a.md": "a"})
    found = list(walk([tmp_path / ".draft.md", tmp_path / "a.md", tmp_path / "a.md"]))
    assert names(found)[0] == [".draft.md", "a.md"]
    assert {item.root for item in found} == {str(tmp_path)}


def test_two_roots_may_hold_the_same_path_and_nested_roots_give_a_file_once(tmp_path: Path) -> None:
    write(tmp_path, {"one/a.md": "1", "two/a.md": "2", "two/sub/b.md": "3"})
    items = list(walk([tmp_path / "two", tmp_path / "one", tmp_path / "two/sub", tmp_path / "two/a.md"]))
    assert [(Path(i.root).name, i.path) for i in items] == [("one", "a.md"), ("two", "a.md"), ("two", "sub/b.md")]
    again = list(walk([tmp_path / "two/sub", tmp_path / "one", tmp_path / "two"]))
    assert again == items


def test_paths_are_nfc_and_two_spellings_of_one_name_are_reported(tmp_path: Path) -> None:
    composed, decomposed = "é.md", unicodedata.normalize("NFD", "é.md")
    write(tmp_path, {composed: "1", decomposed: "2"})
    found, skipped = names(list(walk([tmp_path])))
    assert found == [composed]
    assert list(skipped) == [composed]


def test_a_name_that_is_no_utf8_is_found_and_can_be_stored(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("x")
    (item,) = walk([tmp_path])
    assert isinstance(item, FoundFile)
    assert item.path.encode("utf-8") == rb"caf\xe9.md"
    assert Path(item.absolute).read_text() == "x"


def test_special_files_large_files_and_the_corpus_are_skipped_with_a_remedy(tmp_path: Path) -> None:
    write(tmp_path, {"big.txt": b"x" * ((1 << 20) + 1), "fits.txt": b"x" * (1 << 20), "my.corpus/a.md": "a"})
    os.mkfifo(tmp_path / "pipe")
    items = list(walk([tmp_path], max_file_mb=1, exclude=[tmp_path / "my.corpus"]))
    found, skipped = names(items)
    assert found == ["fits.txt"]
    assert set(skipped) == {"big.txt", "my.corpus/", "pipe"}
    assert "max_file_mb" in skipped["big.txt"]
    assert all(item.remedy for item in items if not isinstance(item, FoundFile))


def test_a_folder_that_cannot_be_read_is_reported_and_the_walk_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a/x.md": "x", "locked/y.md": "y", "z.md": "z"})
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


def test_a_path_that_does_not_exist_is_a_usage_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file or folder"):
        walk([tmp_path, tmp_path / "absent"])


@pytest.mark.slow
def test_a_deep_tree_does_not_overflow(tmp_path: Path) -> None:
    deep = "/".join(["d"] * 600)
    write(tmp_path, {f"{deep}/a.md": "x"})
    assert names(list(walk([tmp_path])))[0] == [f"{deep}/a.md"]


@pytest.mark.parametrize("swap", ["file", "folder", "pipe"])
def test_a_link_that_takes_the_place_of_a_file_is_not_followed(tmp_path: Path, swap: str) -> None:
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
    for read in (Source(found).bytes, Source(found).head, Source(found).stream):
        with pytest.raises(ReadError, match="link or another file"):
            read()
    with pytest.raises(OSError, match="link or another file"):
        digest_of(found)
