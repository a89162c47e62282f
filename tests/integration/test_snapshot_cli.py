"""`workbench snapshot`: save, list, show, verify, diff, export, as somebody types them; and what the app saves verifies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from corpus_files import write_files

import workbench as wb
from workbench.cli.main import main
from workbench.snapshot.snapshot import Snapshot
from workbench.ui.finder import Asked, Finder
from workbench.ui.state import AppState

ASKED = ("--tenant", "acme", "--role", "admin", "--role", "support")


def run(*arguments: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(main, [str(a) for a in arguments])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def saved(sample_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of two searches and an evaluation, saved to a file."""
    from workbench.demo import sample_folder

    out = tmp_path_factory.mktemp("saved") / "two"
    run(
        "snapshot", "save", "how do retries work", "runbook", "-c", sample_path, *ASKED, "-o", out, "--note", "two of them",
        "--set", "vector.threshold=off", "--judgments", sample_folder(), "--measure", "RR",
    )  # fmt: skip
    return out.with_suffix(".snapshot")


def test_save_and_show(saved: Path) -> None:
    """The file holds what was asked; as text and as JSON."""
    assert "how do retries work" in run("snapshot", "show", saved).output
    data = json.loads(run("snapshot", "show", saved, "--json").output)
    assert [s["query"] for s in data["searches"]] == ["how do retries work", "runbook"]
    assert data["title"] == "two of them"
    assert data["evaluations"][0]["means"][0]["measure"] == "RR"


@pytest.mark.slow
def test_the_corpus_keeps_what_has_no_file(tmp_path: Path) -> None:
    """Under its id, which every command takes; nothing kept is exit code 1."""
    corpus = tmp_path / "c"
    wb.index([write_files(tmp_path / "n", {"a.md": "# A\n\nretry\n"})], corpus=corpus, encoder="hashing")
    run("snapshot", "list", "-c", corpus, code=1)
    made = json.loads(run("snapshot", "save", "retry", "-c", corpus, "--json").output)
    assert Path(made["path"]).parent == corpus / "snapshots"
    assert made["id"] in run("snapshot", "list", "-c", corpus).output
    assert "Verified" in run("snapshot", "verify", made["id"], "-c", corpus).output
    (corpus / "snapshots" / "bad.snapshot").write_bytes(b"no zip")
    listed = json.loads(run("snapshot", "list", "-c", corpus, "--json").output)
    assert any("not a snapshot" in row["title"] for row in listed)
    assert "no snapshot with this id" in run("snapshot", "show", "0" * 16, "-c", corpus, code=2).stderr


def test_verify_is_for_who_asked_then(saved: Path, sample_path: Path) -> None:
    """As the same principal its searches run again; as another they do not."""
    assert "Verified" in run("snapshot", "verify", saved, "-c", sample_path, *ASKED).output
    other = run("snapshot", "verify", saved, "-c", sample_path, "--tenant", "birch").output
    assert "the corpus is open as tenant birch" in other
    assert json.loads(run("snapshot", "verify", saved, "--no-corpus", "--json").output)["ok"]
    broken = bytearray(saved.read_bytes())
    broken[len(broken) // 2] ^= 1
    bad = saved.with_name("bad.snapshot")
    bad.write_bytes(broken)
    assert "workbench: The snapshot's part" in run("snapshot", "verify", bad, code=2).stderr


def test_diff_of_two_files(saved: Path, sample_path: Path) -> None:
    """One setting moved."""
    other = saved.with_name("other.snapshot")
    run(
        "snapshot", "save", "how do retries work", "-c", sample_path, *ASKED, "-o", other, "--set", "fusion.k=5",
        "--set", "vector.threshold=off",
    )  # fmt: skip
    assert "fusion.k: A 60, B 5." in run("snapshot", "diff", saved, other).output
    found = json.loads(run("snapshot", "diff", saved, other, "--json").output)
    assert [s["setting"] for s in found["settings"]] == ["fusion.k"]
    assert found["documents"] == []
    run("snapshot", "diff", saved, code=2)


@pytest.mark.slow
def test_export_asks_for_the_audience(saved: Path, tmp_path: Path) -> None:
    """A snapshot with documents of roles is written for somebody, and without what they may not see."""
    assert "--audience-tenant" in run("snapshot", "export", saved, "--csv", code=2).stderr
    everything = run("snapshot", "export", saved, "--csv", "--audience-same").output
    theirs = run("snapshot", "export", saved, "--csv", "--audience-tenant", "acme").output
    assert "runbooks/" in everything
    assert "runbooks/" not in theirs
    assert theirs.count("\n") > 3
    hidden = run("snapshot", "export", saved, "--json", "--audience-same", "--hide", "internal").output
    assert "runbooks/" not in hidden
    page = tmp_path / "page.html"
    run("snapshot", "export", saved, "--html", "-o", page, "--audience-tenant", "acme", "--redact")
    assert "replaced by citations" in page.read_text("utf-8")
    run("snapshot", "export", saved, "-o", tmp_path / "theirs.snapshot", "--audience-tenant", "acme", "--metadata-only")
    assert wb.Snapshot.load(tmp_path / "theirs.snapshot").about.omitted
    assert run("snapshot", "export", saved, "--trec", "--audience-same").output.split()[1] == "Q0"
    run("snapshot", "export", saved, "--trec", "--audience-same", "--metadata-only", code=2)
    run("snapshot", "export", saved, "--audience-same", code=2)


def test_nothing_to_save_is_a_sentence(sample_path: Path) -> None:
    """Neither a query nor judgments."""
    assert "nothing to save" in run("snapshot", "save", "-c", sample_path, *ASKED, code=2).stderr


QUERIES = ("retry pause", '"retry pause" -stop', "unheard again")


def saved_by_the_app(corpus: wb.Corpus, query: str) -> Snapshot:
    """A search a column, as the Snapshots page saves them; a slider was moved meanwhile."""
    state, finder = AppState(query=query), Finder()
    for plan in (state.plan.replace({"fusion.k": 5, "limit": 3}), state.plan):
        found = [finder.find(corpus, Asked(query), c.mode, plan) for c in state.columns]
    return Snapshot.of([f.result for f in found if f.result is not None])


@pytest.mark.slow
def test_what_the_app_saves_verifies_and_an_edited_document_is_named(tmp_path: Path) -> None:
    """More chunks match than any depth takes; documents with several passages in one chunk are among them."""
    gap = "\n" * 30
    texts = {f"d{n:03d}.md": f"retry {n}\n" + ("again" if n % 3 else f"pause{gap}retry pause\n") for n in range(140)}
    files, folder = write_files(tmp_path / "files", texts), tmp_path / "corpus"
    wb.index([files], corpus=folder, encoder="hashing", workers=0)
    with wb.open_corpus(folder) as corpus:
        kept = [Snapshot.load(saved_by_the_app(corpus, query).to_bytes()) for query in QUERIES]
        for one in kept:
            found = one.verify(corpus)
            assert (found.ok, found.ran, [c.said for c in found.searches if c.said]) == (True, True, [])
        (matched,) = (s for s in kept[0].searches[0].funnel if (s.step, s.source) == ("match", "grep"))
        assert (matched.left, matched.reason) == (100, "234 lines in 140 files match: at least 100 chunks")
    (files / "d007.md").write_text("another text\n", encoding="utf-8")
    wb.index([files], corpus=folder, encoder="hashing", workers=0)
    with wb.open_corpus(folder) as corpus:
        for one in kept:
            assert "1 document changed (d007.md)" in one.verify(corpus).verdict
        assert "1 document changed (d007.md)" in " ".join(kept[0].diff(saved_by_the_app(corpus, QUERIES[0])).sentences)
