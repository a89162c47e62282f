"""The command line: what it prints, reads and writes, its exit codes, and comparing many queries under many plans."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from corpus_files import write_files, write_judged

import workbench as wb
from workbench.cli.main import COMMANDS, main
from workbench.demo import sample_folder
from workbench.plan.fields import FIELDS
from workbench.retrieve.compare import compare_many
from workbench.snapshot.snapshot import Snapshot
from workbench.ui import finder as page_finder
from workbench.ui.state import AppState

SEE_ALL = ("--tenant", "acme", "--role", "admin", "--role", "support")


def run(*arguments: object, code: int | None = None) -> Result:
    """Run a command in this process, which ends with an exit code."""
    done = CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)
    assert code in (None, done.exit_code), done.output
    return done


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    done = run(name, "--help")
    assert done.exit_code == 0
    assert "Usage:" in done.output


@pytest.mark.slow
def test_index_search_and_read(tmp_path, sample_path):
    """A folder is indexed, found, read and indexed again with nothing to do."""
    source = write_files(
        tmp_path / "notes", {"a.md": "# Retries\n\nWait with backoff.\n", "b.bin": "\x00\x01", "c.mp3": "x"}
    )
    corpus = tmp_path / "corpus"
    first = run("index", source, "--corpus", corpus, "--encoder", "hashing")
    assert first.exit_code == 0, first.output
    assert "3 files: 1 indexed, 0 unchanged, 2 skipped, 0 failed; 0 removed" in first.output
    (made,) = [
        line for line in first.output.splitlines() if "generation" in line
    ]  # one line, also where 80 are too few
    assert made.startswith("1 document, 1 chunk; 1 embedded, 0 reused; ")
    again = json.loads(run("index", source, "--corpus", corpus, "--json").output)
    assert (again["changed"], again["embedded"], again["counts"]["unchanged"]) == (False, 0, 1)
    found = run("search", "backoff", "--corpus", corpus)
    assert found.exit_code == 0
    assert "a.md:1-3" in found.output
    assert "1 result" in found.output
    assert run("read", "a.md", "--corpus", corpus).output == "# Retries\n\nWait with backoff.\n\n"
    assert "a.md" in run("grep", "backoff", "--corpus", corpus).output
    assert json.loads(run("info", "--corpus", corpus, "--json").output)["documents"] == 1
    at = ("--corpus", sample_path, *SEE_ALL)
    assert run("search", "qqxzzv", "--mode", "keyword", *at).exit_code == 1
    assert run("grep", "qqxzzv", *at).exit_code == 1
    assert run("read", "kb/none.md", *at).exit_code == 1
    assert run("read", "/etc/passwd", *at).exit_code == 2
    for bad in (
        ("search", "x", "--set", "fusion.kk=1", *at),
        ("search", "x", "--filter", "colour = 'red'", *at),
        ("search", "x", "--corpus", sample_path / "none"),
        ("search", "x", "--corpus", sample_path),
        ("grep", "(open", "--regex", *at),
        ("search", "x", "--preset", "none", *at),
    ):
        done = run(*bad)
        assert done.exit_code == 2, bad
        assert done.stderr.startswith("workbench: ")
        assert len(done.stderr.strip().split("\n")) == 1, done.stderr
    assert run("search").exit_code == 2
    assert run("nonsense").exit_code == 2


def test_json_is_the_result_and_explain_and_compare_are_tables(sample_path, tmp_path):
    done = run("search", "how do retries work", "--json", "--limit", "3", "--corpus", sample_path, *SEE_ALL)
    data = json.loads(done.output)
    assert [h["rank"] for h in data["hits"]] == [1, 2, 3]
    assert "timings_ms" not in data
    timed = run("search", "retries", "--json", "--timings", "--corpus", sample_path, *SEE_ALL)
    assert json.loads(timed.output)["timings_ms"]["total_ms"] > 0
    at = ("--corpus", sample_path, *SEE_ALL)
    done = run("explain", "how do retries work", "kb/kettle.md", "--set", "limit=1", *at)
    assert done.exit_code == 0
    assert "dropped by limit" in done.output
    assert "it is then result 7" in done.output
    judged = tmp_path / "judged.csv"
    judged.write_text("query_id,query,document,grade\nq,how do retries work,kb/kettle.md,1\n", encoding="utf-8")
    told = ("--set", "limit=1", "--judged", judged, "--json")
    done = run("explain", "how do retries work", "kettle.md", *told, *at)
    cost = json.loads(done.output)["ways"][-1]["cost"]
    assert (cost["measure"], cost["difference"], cost["low"], cost["queries"]) == ("nDCG@10", 0.0, None, 1)
    assert run("explain", "retries", "none.md", *at).exit_code == 1
    table = run("compare", "retries", "--plan", "default", "--plan", "tmm", *at)
    assert "Overlap" in table.output
    assert "tmm" in table.output


def test_in_a_pipe_a_result_is_one_line_and_a_row_of_a_table_too(sample_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    at = ("--corpus", sample_path, *SEE_ALL)
    printed = run("search", "how do retries work", "--keywords", "backoff", "--plan", "rrf", *at).output.splitlines()
    heads = [line for line in printed if re.match(r" {1,2}\d+\. \S", line)]
    assert len(heads) == 10
    assert all(line.endswith(")") and " #" in line for line in heads)  # each with its sources, past column 80
    assert max(map(len, heads)) > 80
    rows = run("fields").output.splitlines()
    assert all(any(field.name in row and field.help in row for row in rows) for field in FIELDS)


def test_eval_prints_a_table_and_a_verdict(sample_path, tmp_path):
    at = ("--corpus", sample_path, *SEE_ALL)
    done = run("eval", sample_folder(), "--plan", "default", "--plan", "rrf", "--run", tmp_path / "run.txt", *at)
    assert done.exit_code == 0, done.output
    assert "rrf" in done.output
    assert "default: nDCG@10" in " ".join(done.output.split())
    assert (tmp_path / "run.txt").read_text().startswith("s01 Q0 ")
    data = json.loads(run("eval", sample_folder(), "--json", "--mode", "keyword", *at).output)
    assert data[0]["plan"] == "keyword: default"
    assert run("eval", tmp_path / "none", *at).exit_code == 2


def test_doctor_examines_without_a_model_and_keeps_secrets(sample_path, monkeypatch):
    done = run("doctor", "--no-model", "--verify", "--json", "--corpus", sample_path)
    found = json.loads(done.output)
    assert {f["area"] for f in found} == {"versions", "settings", "corpus", "desk"}
    assert not [f for f in found if f["state"] == "fault"], found
    assert done.exit_code == 0
    monkeypatch.setenv("WORKBENCH_ENDPOINT_KEY", "sesame")
    monkeypatch.setenv("WORKBENCH_THREADS", "many")
    monkeypatch.setenv("WORKBENCH_ENCODRE", "static")
    done = run("doctor", "--no-model", "--json", "--corpus", "none")
    found = {f["name"]: f for f in json.loads(done.output) if f["area"] == "settings"}
    assert found["endpoint_key"]["said"] == "set"
    assert found["threads"]["state"] == "fault"
    assert found["WORKBENCH_ENCODRE"]["state"] == "note"
    assert found["WORKBENCH_ENCODRE"]["said"].endswith("did you mean WORKBENCH_ENCODER?")
    assert "sesame" not in done.output
    assert done.exit_code == 1


@pytest.mark.slow
def test_square_brackets_are_text_in_every_table(tmp_path):
    name, query = "app/[slug]/[bold]x[/].md", "what does [/kettle] \x1b[2J mean"
    corpus = tmp_path / "corpus"
    folder = write_files(
        tmp_path / "files", {name: "# [/b]\n\nkettle [red]words[/red] \x9b2J\n", "b.md": "# Other\n\nkettle\n"}
    )
    assert "[slug]" in run("index", folder, "--corpus", corpus, "--list").output
    (tmp_path / "q.txt").write_text(query + "\n")
    for command in (
        ("search", query, "--mode", "keyword"),
        ("compare", query, "--plan", "rrf", "--plan", "contract"),
        ("compare", "--queries", tmp_path / "q.txt", "--plan", "rrf", "--plan", "contract"),
        ("explain", query, name),
        ("grep", "[red]"),
        ("read", name),
        ("judge", "add", "[/set]", query),
        ("judge", "list"),
        ("search", query, "--mode", "keyword", "--json"),
        ("search", "x", "--filter", "[/nope] \x1b = 1"),
        ("snapshot", "save", query, "--mode", "keyword", "--note", "[/note]"),
        ("snapshot", "list"),
    ):
        result = run(*command, "--corpus", corpus)
        assert result.exception is None or isinstance(result.exception, SystemExit), command
        if command[0] != "read":
            assert "\x1b" not in result.output, command
            assert "\x9b" not in result.output, command
        if command[0] in ("search", "explain", "grep") and "x" not in command:
            assert "[slug]/[bold]x[/].md" in result.output, command


@pytest.mark.parametrize(
    "command",
    [
        ("tune", sample_folder(), "--grid", "fusion.alpha=0.5,0.8", "--out"),
        ("check", sample_folder(), "--save"),
        ("eval", sample_folder(), "--run"),
        ("run", "export", sample_folder()),
        ("snapshot", "save", "retries", "--out"),
    ],
    ids=lambda c: c[0],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(command, sample_path, tmp_path, monkeypatch):
    """A folder that is not there, or a folder in the file's place: exit 2, and nothing was searched for it."""
    monkeypatch.setattr("workbench.cli.options.Given.open", lambda *_, **__: pytest.fail("the corpus was opened"))
    for target, said in ((tmp_path / "none" / "file.txt", "There is no folder"), (tmp_path, "is a directory")):
        done = run(*command, target, "--corpus", sample_path, *SEE_ALL)
        assert done.exit_code == 2
        assert said in done.stderr


@pytest.fixture(scope="module")
def judged_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve judged queries and what they are in other forms."""
    folder = write_judged(tmp_path_factory.mktemp("files"), 12)
    lines = [line.split(",") for line in (folder / "judged.csv").read_text().splitlines()[1:]]
    (folder / "plain.qrels").write_text("".join(f"{i} 0 {path} 1\n" for i, _, path, _ in lines))
    (folder / "plain.topics.tsv").write_text("".join(f"{i}\t{text}\n" for i, text, _, _ in lines))
    (folder / "beir" / "qrels").mkdir(parents=True)
    (folder / "beir" / "qrels" / "test.tsv").write_text("".join(f"{i}\t{path}\t1\n" for i, _, path, _ in lines))
    queries = "".join(json.dumps({"_id": i, "text": text}) + "\n" for i, text, _, _ in lines)
    (folder / "beir" / "queries.jsonl").write_text(queries)
    (folder / "plan.yaml").write_text("preset: rrf\n")
    (folder / "run.txt").write_text("q0 Q0 f00.md 1 1 other\n")
    (folder / "linked.csv").symlink_to(folder / "judged.csv")
    (folder / "corpus" / "desk.sqlite").touch()
    return folder


OVER_INPUTS = """
check judged.csv --save judged.csv
check judged.csv --save ./linked.csv
check judged.csv --plan-file plan.yaml --save plan.yaml
check plain.qrels --save plain.topics.tsv
check beir --save beir/queries.jsonl
check beir/qrels/test.tsv --save beir/queries.jsonl
check judged.csv --save corpus/desk.sqlite
tune judged.csv --grid fusion.k=1,60 --plan rrf --out judged.csv
tune judged.csv --grid fusion.k=1,60 --plan rrf --test beir/qrels/test.tsv --out beir/qrels/test.tsv
eval judged.csv --run judged.csv
eval judged.csv --with-run run.txt --run run.txt
run export judged.csv judged.csv
run export beir beir/queries.jsonl
snapshot save word1 --judgments judged.csv --out judged.csv
snapshot export run.txt --html --out run.txt
judge export judged corpus/desk.sqlite
"""


@pytest.mark.parametrize("words", OVER_INPUTS.strip().splitlines())
def test_no_command_writes_over_its_own_input(judged_place, words, monkeypatch):
    """Exit 2 with a sentence before any work, under whatever name, and every file is as it was."""
    monkeypatch.setattr("workbench.cli.options.Given.open", lambda *_, **__: pytest.fail("the corpus was opened"))
    monkeypatch.chdir(judged_place)
    before = {p: p.read_bytes() for p in judged_place.rglob("*") if p.is_file()}
    done = run(*words.split(), "--corpus", "corpus")
    assert done.exit_code == 2, done.output
    assert "is an input of this command, and would be overwritten. Write to another file." in done.stderr
    assert {p: p.read_bytes() for p in judged_place.rglob("*") if p.is_file()} == before


def test_a_file_error_is_one_sentence(sample_path, tmp_path, monkeypatch):
    bad = tmp_path / "plan.yaml"
    bad.write_bytes(b"\xff\xfe\x00preset")
    done = run("search", "retries", "--plan-file", bad, "--corpus", sample_path, *SEE_ALL)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"workbench: The plan file {bad} cannot be read")

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "run.txt")

    monkeypatch.setattr("workbench.evaluate.guarding.save_baseline", fails)
    done = run("check", sample_folder(), "--save", "run.txt", "--corpus", sample_path, *SEE_ALL)
    assert done.exit_code == 2
    assert done.stderr == "workbench: run.txt: No space left on device. Check the path, its rights and the disk.\n"


@pytest.mark.parametrize("words", [["doctor", "--no-model"], ["info"], ["snapshot", "list"]], ids=lambda w: w[0])
def test_a_corpus_is_named_from_the_home_folder(words, tmp_path, monkeypatch):
    """`--corpus=~/x`, which a shell leaves as it is, is the folder in the home folder for every command."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes.md").write_text("# Notes\n\nA pelican.\n")
    wb.index([tmp_path / "notes.md"], corpus=tmp_path / "my.corpus", encoder="hashing", workers=0)
    done = CliRunner().invoke(main, [*words, "--corpus=~/my.corpus"])
    assert "There is no corpus" not in done.output
    assert "~" not in done.output
    assert done.exit_code == (1 if "snapshot" in words else 0), done.output


def test_a_remark_on_an_indexed_file_is_printed(tmp_path):
    """Once a reason with the number of files, so that what a file asked for and did not get is seen without --list."""
    for n in range(3):
        (tmp_path / f"{n}.md").write_text(f"---\nsensitivity: public\n---\n# Part {n}\n")
    words = ["index", str(tmp_path), "--corpus", str(tmp_path / "corpus"), "--encoder", "hashing"]
    said = CliRunner().invoke(main, words).output
    assert "note on 3: It says sensitivity: public, and the rules normal, which it keeps. To allow it, index it" in said


as_admin = partial(run, code=0)


@pytest.fixture(scope="module")
def saved(sample_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of two searches and an evaluation, saved to a file."""
    out = tmp_path_factory.mktemp("saved") / "two"
    as_admin(
        "snapshot", "save", "how do retries work", "runbook", "-c", sample_path, *SEE_ALL, "-o", out, "--note", "two of them",
        "--set", "vector.threshold=off", "--judgments", sample_folder(), "--measure", "RR",
    )  # fmt: skip
    return out.with_suffix(".snapshot")


def test_save_show_verify_and_diff(saved, sample_path):
    assert "how do retries work" in as_admin("snapshot", "show", saved).output
    data = json.loads(as_admin("snapshot", "show", saved, "--json").output)
    assert [s["query"] for s in data["searches"]] == ["how do retries work", "runbook"]
    assert data["title"] == "two of them"
    assert data["evaluations"][0]["means"][0]["measure"] == "RR"
    assert "Verified" in as_admin("snapshot", "verify", saved, "-c", sample_path, *SEE_ALL).output
    other = as_admin("snapshot", "verify", saved, "-c", sample_path, "--tenant", "birch").output
    assert "the corpus is open as tenant birch" in other
    assert json.loads(as_admin("snapshot", "verify", saved, "--no-corpus", "--json").output)["ok"]
    broken = bytearray(saved.read_bytes())
    broken[len(broken) // 2] ^= 1
    bad = saved.with_name("bad.snapshot")
    bad.write_bytes(broken)
    assert "workbench: The snapshot's part" in as_admin("snapshot", "verify", bad, code=2).stderr
    other = saved.with_name("other.snapshot")
    as_admin(
        "snapshot", "save", "how do retries work", "-c", sample_path, *SEE_ALL, "-o", other, "--set", "fusion.k=5",
        "--set", "vector.threshold=off",
    )  # fmt: skip
    assert "fusion.k: A 60, B 5." in as_admin("snapshot", "diff", saved, other).output
    found = json.loads(as_admin("snapshot", "diff", saved, other, "--json").output)
    assert [s["setting"] for s in found["settings"]] == ["fusion.k"]
    assert found["documents"] == []
    as_admin("snapshot", "diff", saved, code=2)
    assert "nothing to save" in as_admin("snapshot", "save", "-c", sample_path, *SEE_ALL, code=2).stderr


@pytest.mark.slow
def test_the_corpus_keeps_what_has_no_file(tmp_path):
    """Under its id, which every command takes; nothing kept is exit code 1."""
    corpus = tmp_path / "c"
    wb.index([write_files(tmp_path / "n", {"a.md": "# A\n\nretry\n"})], corpus=corpus, encoder="hashing")
    as_admin("snapshot", "list", "-c", corpus, code=1)
    made = json.loads(as_admin("snapshot", "save", "retry", "-c", corpus, "--json").output)
    assert Path(made["path"]).parent == corpus / "snapshots"
    assert made["id"] in as_admin("snapshot", "list", "-c", corpus).output
    assert "Verified" in as_admin("snapshot", "verify", made["id"], "-c", corpus).output
    (corpus / "snapshots" / "bad.snapshot").write_bytes(b"no zip")
    listed = json.loads(as_admin("snapshot", "list", "-c", corpus, "--json").output)
    assert any("not a snapshot" in row["title"] for row in listed)
    assert "no snapshot with this id" in as_admin("snapshot", "show", "0" * 16, "-c", corpus, code=2).stderr


@pytest.mark.slow
def test_export_asks_for_the_audience(saved, tmp_path):
    assert "--audience-tenant" in as_admin("snapshot", "export", saved, "--csv", code=2).stderr
    everything = as_admin("snapshot", "export", saved, "--csv", "--audience-same").output
    theirs = as_admin("snapshot", "export", saved, "--csv", "--audience-tenant", "acme").output
    assert "runbooks/" in everything
    assert "runbooks/" not in theirs
    assert theirs.count("\n") > 3
    hidden = as_admin("snapshot", "export", saved, "--json", "--audience-same", "--hide", "internal").output
    assert "runbooks/" not in hidden
    page = tmp_path / "page.html"
    as_admin("snapshot", "export", saved, "--html", "-o", page, "--audience-tenant", "acme", "--redact")
    assert "replaced by citations" in page.read_text("utf-8")
    as_admin(
        "snapshot", "export", saved, "-o", tmp_path / "theirs.snapshot", "--audience-tenant", "acme", "--metadata-only"
    )
    assert wb.Snapshot.load(tmp_path / "theirs.snapshot").about.omitted
    assert as_admin("snapshot", "export", saved, "--trec", "--audience-same").output.split()[1] == "Q0"
    as_admin("snapshot", "export", saved, "--trec", "--audience-same", "--metadata-only", code=2)
    as_admin("snapshot", "export", saved, "--audience-same", code=2)


QUERIES = ("retry pause", '"retry pause" -stop', "unheard again")


def saved_by_the_app(corpus: wb.Corpus, query: str) -> Snapshot:
    """A search a column, as the Snapshots page saves them; a slider was moved meanwhile."""
    state, finder = AppState(query=query), page_finder.Finder()
    for plan in (state.plan.replace({"fusion.k": 5, "limit": 3}), state.plan):
        found = [finder.find(corpus, page_finder.Request(query), c.mode, plan) for c in state.columns]
    return Snapshot.of([f.result for f in found if f.result is not None])


@pytest.mark.slow
def test_what_the_app_saves_verifies_and_an_edited_document_is_named(tmp_path):
    gap = "\n" * 30
    texts = {f"d{n:03d}.md": f"retry {n}\n" + ("again" if n % 3 else f"pause{gap}retry pause\n") for n in range(140)}
    files, folder = write_files(tmp_path / "files", texts), tmp_path / "corpus"
    wb.index([files], corpus=folder, encoder="hashing", workers=0)
    with wb.open_corpus(folder) as corpus:
        kept = [Snapshot.load(saved_by_the_app(corpus, query).to_bytes()) for query in QUERIES]
        for one in kept:
            found = one.verify(corpus)
            assert (found.ok, found.ran, [c.differences for c in found.searches if c.differences]) == (True, True, [])
        (matched,) = (s for s in kept[0].searches[0].funnel if (s.step, s.source) == ("match", "grep"))
        assert (matched.left, matched.reason) == (100, "234 lines in 140 files match: at least 100 chunks")
    (files / "d007.md").write_text("another text\n", encoding="utf-8")
    wb.index([files], corpus=folder, encoder="hashing", workers=0)
    with wb.open_corpus(folder) as corpus:
        for one in kept:
            assert "1 document changed (d007.md)" in one.verify(corpus).verdict
        assert "1 document changed (d007.md)" in " ".join(kept[0].diff(saved_by_the_app(corpus, QUERIES[0])).sentences)


Make = Callable[..., wb.Corpus]


def test_each_plan_is_held_against_the_first(make_corpus):
    corpus = make_corpus({"a.md": "apples", "b.md": "apples and pears", "c.md": "plums"})
    made = compare_many(
        corpus.compare, [("apples", None), ("plums", None)], ["sources=keyword", "vector.threshold=off", "sources=grep"]
    )
    frame = made.frame()
    assert frame["plan"].to_list() == [*made.names, *made.names]
    keyword, both, grep = frame.to_dicts()[:3]
    assert (keyword["hits"], keyword["documents"], keyword["shared"], keyword["rbo"]) == (2, 2, 2, 1.0)
    assert keyword["top"] == "a.md:1-1"
    assert (both["hits"], both["shared"], both["jaccard"]) == (3, 2, pytest.approx(2 / 3))
    assert (grep["hits"], grep["shared"], grep["jaccard"], grep["same_top"]) == (2, 2, 1.0, True)
    summary = {row["plan"]: row for row in made.summary().to_dicts()}
    assert summary[made.names[0]] == {
        "plan": made.names[0], "queries": 2, "empty": 0, "hits": 1.5, "same_top": 2, "shared": 1.5, "jaccard": 1.0, "rbo": 1.0,
    }  # fmt: skip
    corpus = make_corpus({"a.md": "apples"})
    made = compare_many(corpus.compare, [("zebra", None)], ["sources=keyword", "sources=grep", "vector.threshold=off"])
    rows = made.frame().to_dicts()
    assert [(r["hits"], r["top"], r["same_top"]) for r in rows[:2]] == [(0, None, True)] * 2
    assert rows[2]["same_top"] is False
    assert made.summary()["empty"].to_list() == [1, 1, 0]
    text = "# Page\n\n## Summary\n\nIn short.\n\n" + "".join(f"## S{n}\n\n{'apples ' * 150}\n\n" for n in range(4))
    corpus = make_corpus({"a.md": text, "b.md": "pears"})
    rows = (
        compare_many(corpus.compare, [("apples", None)], ["vector.threshold=off", "contract", "pages limit=2"])
        .frame()
        .to_dicts()
    )
    assert [r["documents"] for r in rows] == [2, 2, 1]
    assert rows[1]["rbo"] == 1.0
    assert rows[2]["hits"] == 2


def test_queries_and_plans_are_read_in_every_form(tmp_path, sample_path):
    at = ("--corpus", sample_path, *SEE_ALL)
    (tmp_path / "b.jsonl").write_text('{"_id": "1", "text": "x", "keywords": "y"}\n{"text": "z"}\n', encoding="utf-8")
    done = run("compare", "--queries", tmp_path / "b.jsonl", "--plan", "default", "--json", *at)
    assert [row["query"] for row in json.loads(done.output)["queries"]] == ["x", "z"]
    (tmp_path / "q.jsonl").write_text('{"text": "fine"}\n[]\n', encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    (tmp_path / "q.txt").write_text("x\n")
    for arguments, said in (
        (
            ("compare", "--queries", tmp_path / "q.jsonl", "--plan", "default"),
            "q.jsonl, line 2: this is not a JSON object",
        ),
        (("compare", "--queries", tmp_path / "empty.txt", "--plan", "default"), "holds no queries"),
        (("compare", "--plan", "default"), "either a query or --queries FILE"),
        (("compare", "x", "--queries", tmp_path / "q.txt", "--plan", "default"), "either a query or --queries FILE"),
        (("compare", "x"), "There is no plan to compare"),
        (
            ("compare", "--queries", tmp_path / "q.txt", "--plan", "default", "-k", "y"),
            "--keywords belongs to one query",
        ),
    ):
        done = run(*arguments, *at)
        assert done.exit_code == 2
        assert said in done.stderr
    (tmp_path / "mine.yaml").write_text("preset: tmm\nfields:\n  fusion:\n    alpha: 0.5\n")
    named = ("--preset", "contract", "--plan", "default fusion.k=5", "--plan-file", tmp_path / "mine.yaml")
    arguments = (*named, "--set", "limit=3")
    names = ["contract limit=3", "default limit=3 fusion.k=5", "tmm limit=3 fusion.alpha=0.5"]
    at = ("--corpus", sample_path, *SEE_ALL, "--json")
    compared = json.loads(run("compare", "retries", *arguments, *at).output)
    assert [(o["a"], o["b"]) for o in compared["overlap"]] == [
        (names[0], names[1]),
        (names[0], names[2]),
        (names[1], names[2]),
    ]
    measured = json.loads(run("eval", sample_folder(), *arguments, *at).output)
    assert [m["plan"] for m in measured] == names
