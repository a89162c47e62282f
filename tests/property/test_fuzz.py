"""Hostile input at every border: each case is answered, or refused with one readable sentence, and nothing else happens.

In the suite few cases run, the same in every run, some of them all the way through. By hand, new ones for as long as one likes:
`FUZZ_SECONDS=600 pytest tests/property/test_fuzz.py` gives every surface so many seconds.
What was found once stays, as an example of its surface.
"""

import contextlib
import json
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from snapshot_cases import members, small, zipped
from trials import TRIALS

import workbench as wb
from workbench import settings as own_settings
from workbench.evaluate.run import load_run
from workbench.ingest.rules import FileRules, load_rules, policy_values
from workbench.judgments import exchange
from workbench.judgments.qrels import load_judgments
from workbench.markup import plain
from workbench.mcp.server import build_server
from workbench.plan.fields import FIELDS
from workbench.plan.plan import Plan
from workbench.plan.presets import PRESETS
from workbench.retrieve.keywords import context_keywords, parse_keywords
from workbench.retrieve.messages import format_text
from workbench.snapshot import archive
from workbench.snapshot.snapshot import Library
from workbench.store.access import filters
from workbench.store.lexical import query
from workbench.store.lexical.synonyms import load_vocabulary
from workbench.ui.components.sheet import Sheet, read_target
from workbench.ui.finder import Finder, Request
from workbench.ui.state import PARAMS, from_params
from workbench.ui.views import document, judge

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
WHO = wb.Principal("acme", ("admin", "support"))
LONGEST_SENTENCE = 2_000
HAMMER = settings(
    derandomize=not SECONDS, database=None, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.explicit,
    Phase.generate)
)  # fmt: skip
_PYTHON = re.compile(
    r"\b\w+(?:Error|Exception)\b|NoneType|<class|<function|object at 0x|Traceback|(?<!!)\b(?:str|int|dict|datetime)\b"
)

HOSTILE = [
    "\x00", "\x07", "\x1b[31m", "\r", "\n", "\r\n", "\x85", "\u2028", "\ud800", "\udfff\ud800", "\u202e", "\u200f", "\ufeff",
    "\u0301" * 40, "İ", "ß", "ﬁ", "\U0010ffff", "👩‍👩‍👧", "עברית", "猫" * 50, "9" * 400, "9" * 5000, "-" + "9" * 30, "1e999",
    "-1e-999", "nan",
    "-inf", "0x1f", "1_000", "٣", "²", "%00", "%zz", "{}", "[" * 3000, "(" * 3000, '{"a":' * 1500, "a" * 30_000, "a " * 4000,
    "\\", "\\\\", "'", '"', "`", "“", "<script>", "${x}", "../../etc/passwd", "C:\\x", "~", "*", "?", "**/**", "-", "--",
    "=", "null",
]  # fmt: skip
hostile = st.sampled_from(HOSTILE) | st.text(max_size=20) | st.text(st.characters(), max_size=5)


def mixed(*pieces: str, most: int = 12) -> st.SearchStrategy[str]:
    """Texts of a language's own pieces with hostile ones between them; the pieces alone as often as not."""
    own = st.sampled_from(pieces)
    some = st.one_of(own, own, own, hostile)
    texts = st.lists(own, max_size=most) | st.lists(some, max_size=most)
    return st.tuples(st.sampled_from(["", " ", " "]), texts).map(lambda drawn: drawn[0].join(drawn[1]))


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.sampled_from([10**30, -(2**63), 2**64, 1e308, float("nan"), float("inf"),
    -0.0]),
    st.floats(), hostile, st.dates(), st.datetimes(), st.binary(max_size=4),
)  # fmt: skip
json_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.sampled_from([10**30, 1e308]), st.floats(), hostile
)


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(hostile, v, max_size=3), max_leaves=6
    )


values, json_values = nested(scalars), nested(json_scalars)


@st.composite
def changed(draw: st.DrawFn, value: Any, other: st.SearchStrategy[Any]) -> Any:
    """A value with something in it replaced, taken out, put in or said twice."""
    if not value or not isinstance(value, (dict, list)) or not draw(st.integers(0, 5)):
        return draw(other)
    made: Any = value.copy()
    key = draw(st.sampled_from(sorted(made, key=str) if isinstance(made, dict) else range(len(made))))
    match draw(st.integers(0, 6)):
        case 0:
            del made[key]
        case 1 if isinstance(made, dict):
            made[draw(hostile)] = draw(other)
        case 1:
            made.append(made[key])
        case _:
            made[key] = draw(changed(made[key], other))
    return made


def readable(said: str) -> None:
    """A sentence that every screen can show, that is short enough to read, and that speaks of no Python."""
    assert said == plain(said, LONGEST_SENTENCE), ascii(said)[:3000]
    said.encode("utf-8")
    found = _PYTHON.search(said)
    assert found is None, said


@contextmanager
def answered() -> Iterator[None]:
    try:
        yield
    except wb.WorkbenchError as exc:
        readable(str(exc))


def hammer(check: Callable[[Any], None], strategy: st.SearchStrategy[Any], cases: int, *kept: Any) -> None:
    """Run a check over kept cases and drawn ones: so many in the suite, and by hand until the time is up."""
    for one in kept:
        check(one)
    until = time.monotonic() + SECONDS
    settings(HAMMER, max_examples=cases * TRIALS)(given(strategy)(check))()
    while time.monotonic() < until:
        settings(HAMMER, max_examples=200)(seed(time.time_ns())(given(strategy)(check)))()


# Files and connections, as Python itself sees them: a plan of an address makes it look at none that it names.
_watched: list[str] | None = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched is not None and event in {"open", "os.listdir", "os.scandir", "socket.connect", "socket.getaddrinfo"}:
        said = f"{event} {arguments}"
        if "trap" in said or "getaddrinfo" in said or ("socket" in said and "9" in said):
            _watched.append(said)


@contextmanager
def nothing_named_is_opened() -> Iterator[None]:
    global _watched
    _watched = []
    try:
        yield
        assert not _watched
    finally:
        _watched = None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def own(sample_path: Path, folder: Path) -> Iterator[wb.Corpus]:
    path = folder / "own"
    shutil.copytree(sample_path, path)
    sys.addaudithook(_audit)
    (folder / "trap").mkdir()
    (folder / "trap" / "config.json").write_text("{}")
    with contextlib.chdir(folder), wb.open_corpus(path, WHO, served=True) as corpus:
        yield corpus


def test_the_watch_sees_a_model_that_is_opened(own):
    """Where plans are one's own, the same names are looked up: the check of addresses would notice."""
    with pytest.raises(AssertionError), nothing_named_is_opened(), wb.open_corpus(own.path, WHO) as corpus:
        corpus.search("retry", plan="default rerank.model=trap").frame()


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


MODES = st.sampled_from(["hybrid", "keyword", "vector", "grep", "semantic"])
QUERIES = mixed(
    "retry", "back-off", "incident", "OR", "or", "AND", "NOT", "-", "-retry", '"', '"exponential backoff"', "re*", "*", "(",
    ")", "a",
    "the", "E_4711", "INC-1042", "v2.3.1", "naïve", "“quoted”", ":", "+", "~2", "^3", "-“", '-"a b"', "retry_policy",
    "getUserName", "/", ".",
)  # fmt: skip
PATTERNS = mixed(
    "a", ".", ".*", "(", ")", "(?i)", "(?P<n>a)", "[a-z]", "[", "]", "{2}", "{1,1000}", "{1001}", "+", "*", "?", "|", "^",
    "$", "\\b", "\\d",
    "\\pL", "\\p{Greek}", "\\1", "(?=a)", "(?<!a)", "\\Q", "\\E", "\\C", "\\x{10ffff}", "\\x{110000}", "(?s)", "(a*)*",
    "(a|a)*$", "\\z", "[[:alpha:]]",
)  # fmt: skip
FILTERS = mixed(
    "type", "path", "year", "title", "tenant", "metadata.author", '"type"', '"a""b"', "modified", "size", "=", "!=", "<",
    ">=", "<>", "==", "in",
    "not", "and", "or", "like", "glob", "contains", "(", ")", ",", "'note'", "'it''s'", "2024", "1.5", "-3", "1e400",
    "true", "2024-02-30",
    "2024-05", "9999-12-31", "0001-01-01", "2024-01-01T00:00:00+99:99", "'%a_'", "'**/[a-'", "'*.md'", "is", "null", "--",
    ";", "99999999999999999999",
)  # fmt: skip
WORDS = [f.name if not f.family else f"{f.name}.{s}" for f in FIELDS for s in ("vector", "keyword@docs", "vector:m/x")]
PLAN_VALUES = [
    "1", "0", "0.5", "-1", "off", "auto", "yes", "no", "3x", "+5", "100000", "1e5", "1e-320", "grep,keyword,vector",
    "vector@artifacts", "document",
    "convex", "all", "any", "minmax", "zscore", "combmnz", "always", "l2", "cosine", "overlap", "echo", "trap", "./trap",
    "endpoint:trap",
    "trap/config.json", "docs", "pages", "none", "chunk", "passage", "9" * 40, "1__0", "٣",
]  # fmt: skip
assigned = st.tuples(
    st.sampled_from(WORDS), st.sampled_from(["=", "=", "=", "==", " = ", ""]), st.sampled_from(PLAN_VALUES) | hostile
)
PLANS = st.one_of(
    st.tuples(
        st.sampled_from([*(p.name for p in PRESETS), "", "nosuch"]), st.lists(assigned.map("".join), max_size=5)
    ).map(lambda drawn: " ".join((drawn[0], *drawn[1]))),
    mixed(*(p.name for p in PRESETS), "fusion.k=3", "'limit=5'", '"', "sources=", "threshold.", "vector:", "@", "preset=tmm"),
)  # fmt: skip
TEXTS = {"query": QUERIES, "keywords": QUERIES | PATTERNS, "filters": FILTERS, "plan": PLANS}


def test_queries(own):

    def check(drawn: tuple[str, str, str, str, bool]) -> None:
        text, keywords, context, mode, regex = drawn
        with answered():
            query.parse(text)
        with answered():
            parse_keywords(keywords)
            context_keywords(context)
        with answered():
            own.grep(keywords, regex=regex, limit=5)
        with answered():
            plan = f"default grep.regex={'yes' if regex else 'no'} cache_seconds=0 limit=3"
            found = own.search(text, keywords or None, context or None, mode, plan)
            assert found.hits is not None
            found.frame()
            format_text(found)
            found.with_plan(found.plan.replace({"fusion.alpha": 0.3})).frame()
        with answered():
            own.engine.lexical.highlight(text, "retry the back-off, naïve and E_4711")

    hammer(check, st.tuples(QUERIES, QUERIES | PATTERNS, QUERIES, MODES, st.booleans()), 12)


def test_filters(own):
    """The filter language: what is read has a text form that is read the same, and is asked of the store."""

    def check(text: str) -> None:
        with answered():
            node = filters.parse(text)
            assert filters.parse(str(node)) == node
        with answered():
            own.search("retry", mode="keyword", filters=text, plan="default cache_seconds=0")

    hammer(check, FILTERS, 25, "type = 'note' and not (year >= 2024 or title like '%a_')")


def test_plans(own):
    data = {"preset": "default", "edition": 2, "fields": {"fusion": {"k": 3, "method": "rrf"}, "limit": 5}}
    files = changed(data, values).map(dumped) | mixed(
        "preset: tmm\n", "fields:\n", "  limit: 3\n", "- ", "&a [*a]", "!!python/name:os.x ", "? "
    )

    def check(drawn: tuple[str, str]) -> None:
        for read, text in zip((Plan.parse, Plan.from_yaml), drawn, strict=True):
            with answered():
                plan = read(text)
                assert Plan.parse(str(plan)) == plan
                assert str(Plan.from_yaml(plan.to_yaml())) == str(plan)
                with nothing_named_is_opened():
                    own.search("retry policy", "back-off", plan=plan).frame()

    hammer(
        check, st.tuples(PLANS, files), 25,
        ("default", "preset: [2000-01-01]\n"), ("default", "edition:\n- 2000-01-01\n"), ('"' + "a  " * 4000,
        "- - !!python/name:os.x - x"),
        ("", "[" * 3000), ("", "&a [*a]"), ("", "fields: 2024-99-99"),
    )  # fmt: skip


def test_addresses(own):
    """Every parameter of every page; whatever an address names, no model, file or endpoint of its naming is opened."""
    plain: dict[str, st.SearchStrategy[str]] = {
        "q": QUERIES, "keywords": TEXTS["keywords"], "context": QUERIES, "filters": FILTERS, "plan": PLANS,
        "columns": st.lists(st.sampled_from(["grep", "keyword", "vector", "hybrid", "plan", "x", "PLAN "]) | hostile,
        max_size=6).map(",".join),
        "moves": st.sampled_from(["0", "1", "2", "-1", "٣", "²"]) | hostile, "picture": st.sampled_from(["ranks",
        "funnel"]) | hostile,
        "as": mixed("hr", ",", "-", "admin"),
    }  # fmt: skip
    plain |= {name: PLANS for name in PARAMS if name not in plain}
    others = {
        "id": hostile, "path": mixed("retries.md", ":", "3-9", "#slide=3", "/", "..", "%20", "#page=", "#L3"),
        "at": mixed("page=3", "slide=", "L1-2"),
        "lines": mixed("1", "-", "999999999", "٣", most=3), "quote": hostile, "match": st.sampled_from(["1", "²",
        "0"]) | hostile,
        "set": hostile, "judge": hostile, "pool": PLANS, "depth": st.sampled_from(["1", "²", "٣", "101",
        "9" * 5000]) | hostile,
    }  # fmt: skip

    def check(drawn: tuple[dict[str, str], dict[str, str]]) -> None:
        params, other = drawn
        state, said = from_params(params)
        for sentence in said:
            readable(sentence)
        again, nothing = from_params(state.to_params())
        assert (again, nothing) == (state, ())
        asked = Request(state.query, state.keywords, state.filters, state.context)
        finder = Finder()
        with nothing_named_is_opened():
            for column in state.columns[:2]:
                found = finder.find(own, asked, column.mode, state.plan_of(column))
                if found.error is not None:
                    readable(str(found.error))
                elif found.result is not None:
                    with answered():
                        own.explain(found.result, other.get("path", ""))
        shown = document.find(own, other.get("id", ""), other.get("path", ""), other.get("at", ""))
        if isinstance(shown, str):
            readable(shown)
        elif shown.problem is not None:
            readable(str(shown.problem))
        else:
            sheet = Sheet.of(shown.text, shown.path, shown.chunks, shown.places)
            target = read_target(other.get("lines", ""), other.get("quote", ""))
            sheet.html(sheet.page_at(sheet.offset_of(target)), target, (), None)
        judge.from_params(other, "me")
        with answered():
            Library(own.path).get(other.get("id", ""))

    drawn = st.tuples(st.fixed_dictionaries({}, optional=plain), st.fixed_dictionaries({}, optional=others))
    kept = [
        ({}, {}),
        ({"q": "retry"}, {"path": "kb/retries.md", "lines": "3-9", "quote": "\x00"}),
        ({}, {"path": "kb/retries.md", "at": "page=3"}),
        ({"q": "a " * 4000}, {}),
        ({}, {"set": "x", "depth": "²"}),
        ({"moves": "²"}, {"set": "x", "depth": "9" * 5000}),
        ({"plan": "\x1b\u202e" * 999}, {}),
    ]
    hammer(check, drawn, 12, *kept)


def test_tools(own):
    """Arguments of every tool, as a client may send them: an answer that is JSON, or a sentence."""
    numbers = (
        st.sampled_from([1, 3, 3, 10, None])
        | st.sampled_from([1, 3, 0, -1, 10**12, 10**30, 2.5, "3", "0.2"])
        | json_values
    )
    arguments: dict[str, st.SearchStrategy[Any]] = {
        "semantic_query": QUERIES, "exact_keywords": TEXTS["keywords"], "query": TEXTS["keywords"], "filters": FILTERS,
        "plan": PLANS,
        "editor_text": QUERIES, "patterns": st.lists(PATTERNS, max_size=3), "path": mixed("retries.md", ":3-9", "#slide=3",
        "/etc/passwd", ".."),
        "limit": numbers, "threshold": numbers | st.just("off"), "context": numbers, "start_line": numbers,
        "end_line": numbers,
        "form": st.sampled_from(["full", "brief"]), "case": st.sampled_from(["smart", "ignore"]), "regex": st.booleans(),
        "word": st.booleans(),
    }  # fmt: skip
    server = build_server(own)
    schemas = {tool.name: tool.input_schema for tool in anyio.run(server.list_tools)}

    @st.composite
    def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
        name = draw(st.sampled_from(sorted(schemas)))
        known = list(schemas[name].get("properties", {}))
        chosen = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
        given = {
            n: draw(arguments.get(n, QUERIES) if draw(st.integers(0, 15)) else json_values)
            for n in {*chosen, *schemas[name].get("required", [])}
        }
        return name, given if draw(st.integers(0, 5)) else draw(changed(given, json_values))

    def check(drawn: tuple[str, Any]) -> None:
        name, given = drawn
        if not isinstance(given, dict):
            return
        with nothing_named_is_opened():
            try:
                result = anyio.run(server.call_tool, name, given)
            except UnexpectedToolError:
                raise
            except ToolError as exc:
                readable(str(exc))
                return
        json.loads(result.model_dump_json())

    hammer(
        check,
        calls(),
        12,
        ("corpus_info", {"[" * 3000: None}),
        ("read_file", {"path": ""}),
        ("read_file", {"path": "x\x1b" * 3000}),
        ("read_file", {"path": "x/" + "9" * 5000 + "/y"}),
    )


def dumped(value: Any) -> str:
    return yaml.safe_dump(value, allow_unicode=True)


def test_snapshots(own):
    """Bytes, members, manifests and parts that are not what was saved, also where all digests are right."""
    made = wb.Snapshot.of(own.search("retry backoff", "incident", plan="default limit=3"))
    snapshot = small(made.about, made.content)
    whole, files = snapshot.to_bytes(), members(snapshot.to_bytes())
    body = json.loads(files[archive.MANIFEST])
    parts = {name: data for name, data in files.items() if name != archive.MANIFEST}
    texts = sorted(name for name in parts if name.endswith(".yaml"))

    @st.composite
    def bytes_changed(draw: st.DrawFn, data: bytes) -> bytes:
        made = bytearray(data)
        for _ in range(draw(st.integers(1, 4))):
            at, length = draw(st.integers(0, len(made))), draw(st.sampled_from([0, 1, 1, 4, 2000]))
            said = st.binary(max_size=8) | st.sampled_from([b"\xff\xff\xff\xff", b"\0\0\0\0", b"PK\1\2", b"PK\3\4"])
            made[at : at + length] = draw(said)
        return bytes(made)

    @st.composite
    def parts_changed(draw: st.DrawFn) -> bytes:
        """Another manifest or other parts, most often with the digests that they ought to have."""
        named, said = dict(parts), body
        match draw(st.integers(0, 3)):
            case 0:
                name = draw(st.sampled_from(texts))
                value = draw(changed(yaml.safe_load(parts[name]), values))
                named[name] = dumped(value).encode("utf-8", "surrogatepass")
            case 1:
                name = draw(st.sampled_from(sorted(named)))
                pieces = mixed("- ", "a: ", "&a ", "*a", "[", "!!x ").map(lambda t: t.encode("utf-8", "surrogatepass"))
                named[name] = draw(bytes_changed(named[name]) | pieces)
            case 2:
                said = draw(changed(body, json_values))
            case _:
                name = draw(
                    st.sampled_from(sorted(named)) | hostile.filter(lambda t: len(t) < 1000 and "\ud800" not in t)
                )
                named[name] = draw(st.binary(max_size=20) | st.sampled_from(list(named.values())))
                named.pop(draw(st.sampled_from([*sorted(named), ""])), None)
        if said is body and draw(st.integers(0, 3)):
            return archive.to_bytes(archive.describe(made.about, named), named)
        if isinstance(said, dict) and said is not body:
            said = {k: v for k, v in said.items() if k != "digest"}
            said = said | {"digest": archive.hashlib.sha256(archive._json(said)).hexdigest()}
        with warnings.catch_warnings(action="ignore"), contextlib.suppress(UnicodeError):
            return zipped({archive.MANIFEST: json.dumps(said).encode(), **named})
        return b""

    def check(data: bytes) -> None:
        with answered():
            read = wb.Snapshot.load(data)
            assert wb.Snapshot.load(read.to_bytes()) == read
            with answered():
                assert read.diff(read).settings().is_empty()
            for each in range(len(read.searches)):
                with answered():
                    read.hits(each)
                    read.frame(each)
            with answered():
                read.documents()
                read.html()
            with answered():
                read.redacted().metadata_only()
            with answered(), nothing_named_is_opened():
                read.verify(own)

    hammer(check, st.one_of(bytes_changed(whole), parts_changed(), parts_changed()), 12)


ENCODINGS = st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"])


def encoded(texts: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    some = st.tuples(texts, ENCODINGS).map(
        lambda d: d[0].encode(d[1], "replace" if d[1] == "latin-1" else "surrogatepass")
    )
    return some | some | some | st.binary(max_size=60)


JSON_LINES = st.lists(
    changed(
        {"query_id": "q1", "_id": "q1", "text": "retry", "query": "retry", "keywords": "x", "document": "a.md", "grade": 1,
        "start": 0, "end": 3,
         "quote": "abc", "time": "2025-01-31T12:00:00+00:00", "judge": "me", "relevant": {"a.md": 1}, "root": "r",
         "note": "n"}, json_values
    ).map(json.dumps)
    | mixed('{"query_id":', '"q1"', ",", '"grade":', "1", "}", "{", "NaN", '"document": "a.md"', "1e999"), max_size=4,
).map("\n".join)  # fmt: skip
CELLS = (
    st.sampled_from(
        ["q1", "q2", "0", "1", "-1", "2", "a.md", "retries.md", "Q0", "retry back-off", "0.5", "run", "1e3"]
    )
    | hostile
)


def rows(separator: str, header: str = "") -> st.SearchStrategy[str]:
    lines = st.lists(st.lists(CELLS, min_size=3, max_size=6).map(separator.join), max_size=5)
    return lines.map(lambda made: "\n".join([header, *made] if header else made))


TOPICS = mixed("<top>", "</top>", "<num>", "Number: ", "1", "<title>", "retry", "<desc>", "\n", "q1\tretry\n", "\t")
FILES: dict[str, st.SearchStrategy[str]] = {
    "j.csv": rows(",", "query_id,query,document,grade") | rows(",",
    "query_id,query,document,grade,start,end,quote,time,judge") | rows(";"),
    "j.jsonl": JSON_LINES, "j.ndjson": JSON_LINES, "j.tsv": rows("\t", "query-id\tcorpus-id\tscore"),
    "j.qrels": rows(" ") | rows("\t"),
    "j.txt": rows(" ") | QUERIES, "j.trec": rows("\t"),
}  # fmt: skip


def test_judgments(own, folder):
    target = folder / "judged"
    target.mkdir()
    judging = own.judging

    def check(drawn: tuple[str, bytes, bytes, bytes, str]) -> None:
        name, data, queries, topics, called = drawn
        file = write(target / name, data)
        write(target / "queries.jsonl", queries)
        write(target / "topics", topics)
        with answered():
            loaded = load_judgments(file, topics=target / "topics" if file.suffix in {".qrels", ".trec"} else None)
            if len(loaded.topics) < 3:
                own.evaluate(loaded, "default cache_seconds=0", mode="keyword").frame()
        with answered():
            exchange.holds_judgments(file)
        for read in (exchange.import_queries, exchange.import_judgments):
            with answered():
                read(judging, file, called)
        for one in judging.sets.names():
            judging.sets.remove(one)
        file.unlink()

    def drawn_file(name: str) -> st.SearchStrategy[tuple[str, bytes, bytes, bytes, str]]:
        return st.tuples(
            st.just(name), encoded(FILES[name]), encoded(JSON_LINES), encoded(TOPICS),
            st.just("set") | st.just("set") | hostile
        )  # fmt: skip

    kept = ("j.csv", b"query_id,query,document,grade\nq1,retry,kb/retries.md,1\n", b"", b"", "set")
    hammer(check, st.sampled_from(sorted(FILES)).flatmap(drawn_file), 15, kept)


def test_runs(own, folder):
    judged = write(folder / "measured.csv", "query_id,query,document,grade\nq1,retry,retries.md,1\n")
    judgments = load_judgments(judged)

    def check(data: bytes) -> None:
        with answered():
            run = load_run(write(folder / "run.trec", data))
            assert load_run(run.save_trec(folder / "again.trec")).rankings == run.rankings
            own.evaluate_run(run, judgments).frame()

    lines = st.lists(
        st.tuples(CELLS, st.just("Q0") | CELLS, CELLS, CELLS, CELLS, st.just("run") | CELLS).map(" ".join), max_size=5
    ).map("\n".join)  # fmt: skip
    hammer(check, encoded(lines | rows(" ") | rows("\t")), 25, b"q1 Q0 retries.md 1 0.5 run\n")


YAML_PIECES = (
    "tenant", "roles", "rules", "- path: ", "a/**", ": ", "\n", "  ", "- ", "[", "]", "{", "}", "&a ", "*a", "!!set ",
    "!!binary ", "? ", "|\n", ">\n",
    "<<: *a", "2024-01-01", "0o17", "1:30", ".nan", ".inf", "---\n", "...\n", "%YAML 1.3\n", "!!timestamp 2024-99-99",
    "!!int x", "!!float x", "'", '"',
)  # fmt: skip
LAUGHS = "a: &a0 [x, x]\n" + "".join(f"b{n}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9))


def test_settings(folder, monkeypatch):
    file = folder / "settings.yaml"
    monkeypatch.setenv("WORKBENCH_SETTINGS", str(file))
    names = [s.name for s in own_settings.SETTINGS]
    files = st.dictionaries(st.sampled_from(names), values, max_size=3).map(dumped) | mixed(*names, *YAML_PIECES)

    def check(drawn: tuple[bytes, str, str]) -> None:
        data, name, said = drawn
        write(file, data)
        for setting in own_settings.SETTINGS:
            with answered():
                own_settings.get(setting.name)
        with answered():
            own_settings.BY_NAME[name].read(said, "The environment variable X")

    hammer(
        check,
        st.tuples(encoded(files), st.sampled_from(names), hostile),
        20,
        (b"corpus: x", "corpus", "~x\x00y"),
        *((text.encode(), "tenant", "") for text in (LAUGHS, "!!int x1:30", "!!set  roles", "tenant: [2000-01-01]")),
    )


def test_corpus_settings(own, folder):
    data = {
        "collections": {"docs": "chunk", "pages": "document"}, "include": ["**/*.md"], "exclude": ["x/**", "*.tmp"],
        "rules": [{"path": "hr/**", "collection": "docs", "tenant": "acme", "roles": ["hr"], "type": "note",
        "sensitivity": "restricted"}],
        "policy": {"hide": ["restricted"], "mask": ["[a-z]+@x", "iban"], "mask_sensitivities": ["restricted"],
        "cleared": ["hr"]},
        "synonyms": [["k8s", "kubernetes"], ["CI", "continuous integration"]], "stop_words": ["acme", "inc"],
    }  # fmt: skip
    path = folder / "ruled"
    shutil.copytree(own.path, path)
    texts = changed(data, values).map(dumped) | changed(data, PATTERNS | QUERIES).map(dumped) | mixed(*YAML_PIECES)

    def check(drawn: bytes) -> None:
        write(path / "corpus.yaml", drawn)
        for read in (policy_values, load_vocabulary):
            with answered():
                read(path)
        with answered():
            rules = load_rules(path)
            rules.access_digest()
            for name in ("hr/a.md", "x/y.tmp", "a\nb.md"):
                rules.left_out(name)
                rules.for_file(name, FileRules())
        with answered(), wb.open_corpus(path, WHO) as corpus:
            corpus.search("retry k8s incident", plan="default limit=3").frame()

    hammer(
        check,
        encoded(texts),
        8,
        *(text.encode() for text in (LAUGHS, "exclude: 2000-01-01", "collections: {docs: 2000-01-01}", "? x\n" * 999)),
    )
