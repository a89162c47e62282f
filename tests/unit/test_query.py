"""The query syntax, words and synonyms, keywords, and the word index: what a search finds, in which order, and for whom."""

import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lexical_corpus import Corpus, build

import workbench as wb
from workbench.errors import QueryError, SettingError
from workbench.ingest.rules import SettingsFile, load_rules
from workbench.records import Span
from workbench.retrieve.keywords import context_keywords, extract_keywords, parse_keywords
from workbench.store.lexical import build as lexical_build
from workbench.store.lexical import tokens
from workbench.store.lexical.query import MAX_CHARACTERS, Matcher, parse, word_matcher
from workbench.store.lexical.synonyms import (
    FILES,
    NONE,
    Vocabulary,
    load_vocabulary,
    save_vocabulary,
    spoken,
    vocabulary_of,
)
from workbench.store.lexical.tokens import RANGES
from workbench.store.types import Scope, Scored


def term(word: str) -> Matcher:
    return Matcher((((word,),),))


def shown(matcher: Matcher) -> str:
    """A matcher on one line: phrases in quotes, ways to write a word between bars."""
    if not matcher.steps:
        return matcher.prefix + "*"
    steps = ["|".join("+".join(path) for path in step) for step in matcher.steps]
    return steps[0] if len(steps) == 1 else '"' + " ".join(steps) + '"'


@pytest.mark.parametrize(
    ("query", "alternatives", "excluded"),
    [
        ("retry policies", [["retri", "polici"]], []),
        ('"connection pool" size', [['"connect pool"', "size"]], []),
        ("cats OR dogs birds", [["cat"], ["dog", "bird"]], []),
        ("cats | dogs", [["cat"], ["dog"]], []),
        ("cats or dogs Or birds", [["cat"], ["dog"], ["bird"]], []),
        ("is it safe or not", [["is", "it", "safe", "not"]], []),
        ("cats -dogs", [["cat"]], ["dog"]),
        ('cats -"big dogs"', [["cat"]], ['"big dog"']),
        ("cats - dogs", [["cat", "dog"]], []),
        ("--dry-run", [["dri+run|dry-run"]], []),
        ("retr* x", [["retr*", "x"]], []),
        ("ACME-INV-* ACME-I*", [["acme-inv-*", "acme-i*"]], []),
        ("数据 库", [['"数 据"', "库"]], []),
        ("C++ .NET", [["c++", ".net"]], []),
        ("parseQuery", [["pars+queri|parsequeri"]], []),
        ("foo_barBaz-qux", [["foo+bar+baz+qux|foo_barbaz+qux|foo_barbaz-qux"]], []),
        ('"one"', [["one"]], []),
        ('say "hi', [["say", "hi"]], []),
        ("'; DROP TABLE records; --", [["drop", "tabl", "record"]], []),
        ("", [], []),
        ('"" - * OR ??? 😀', [], []),
    ],
)
def test_a_query_reads_as(query, alternatives, excluded):
    parsed = parse(query)
    assert [[shown(i.matcher) for i in items] for items in parsed.alternatives] == alternatives
    assert [shown(i.matcher) for i in parsed.excluded] == excluded


def test_how_the_words_of_a_query_are_weighed():
    assert parse("the cat").scored == ((term("cat"), 1.0),)
    assert parse("to be").scored == ((term("be"), 1.0), (term("to"), 1.0))
    assert dict(parse('"the" cat').scored) == {term("cat"): 1.0, term("the"): 1.0}
    assert dict(parse("the OR cat").scored) == {term("cat"): 1.0, term("the"): 1.0}
    third = pytest.approx(1 / 3)
    whole = Matcher(((("acm", "inv", "49302"), ("acme-inv-49302",)),))
    assert dict(parse("ACME-INV-49302").scored) == {
        whole: 1.0,
        term("acm"): third,
        term("inv"): third,
        term("49302"): third,
    }
    assert dict(parse("vue3").scored) == {Matcher(((("vue", "3"), ("vue3",)),)): 1.0, term("vue"): 0.5}
    assert list(dict(parse("p53").scored).values()) == [1.0]
    assert len(parse("数据").scored) == len(parse("게임").scored) == len(parse("แมว").scored) == 1
    for run, grams in (("备份失败", 3), ("게임을", 2), ("如何设置数据库连接池", 9), ("ภาษาไทย", 5)):
        scored = parse(run).scored
        assert len(scored) == 1 + grams
        assert sum(weight for _, weight in scored) == pytest.approx(2.0)
    assert parse("cat cats dog").scored == ((term("cat"), 2.0), (term("dog"), 1.0))
    with pytest.raises(QueryError, match=r"leave out.*Add a word"):
        parse('-draft -"first version"')


@pytest.mark.slow
def test_a_query_beyond_the_limit_is_an_error_that_says_so():
    with pytest.raises(QueryError, match=r"100,000 characters.*10,000"):
        parse("x" * 100_000)
    for text in ("ab " * 5000, '"' * 5000, "a-a" * 4000, "数" * MAX_CHARACTERS, "aB" * 5000, "a-" * 5000, "a* " * 4000):
        assert parse(text[:MAX_CHARACTERS]).text == text[:MAX_CHARACTERS]


@given(st.text(alphabet=st.one_of(st.sampled_from(list('"-*|OR ab数é_.C+#\ud800\0')), st.characters())))
def test_any_text_is_read_or_refused_with_a_remedy(text):
    try:
        parsed = parse(text)
    except QueryError as error:
        parsed = None
        remedy = error.remedy
    if parsed is None:
        assert remedy
        return
    assert all(items for items in parsed.alternatives)
    assert bool(parsed.scored) == bool(parsed.alternatives)
    assert list(parsed.scored) == sorted(parsed.scored)
    word_matcher(text)


def words(text: str) -> list[str]:
    found = []
    for piece in tokens.PIECES.findall(text):
        parts, wholes, _ = tokens.analyse(piece)
        found += [p.word for p in parts] + [w.word for w in wholes]
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Zürich zurich", "zurich zurich"),
        ("Straße STRASSE", "strasse strasse"),
        ("Ελλάδα ΕΛΛΆΔΑ σοφός", "ελλαδα ελλαδα σοφοσ"),
        ("İstanbul ISPARTA ısparta", "istanbul isparta isparta"),
        ("हिन्दी में खोज", "हिन्दी में खोज"),
        ("البَحث في", "البحث في"),
        ("شَلَام שָׁלוֹם إلى مدرسة ی ک كِتَابٌ أحمد على", "شلام שלום الي مدرسه ي ك كتاب احمد علي"),
        ("٢٠٢٤ ४२", "2024 42"),
        ("ﬁne Ｆｏｏ x² ｶﾞ", "fine foo x2 ガ"),
        ("数据库", "数 据 库"),
        ("Python数据3个", "python 数 据 3 个"),
        ("ひらがなカタカナー", "ひ ら が な カ タ カ ナ ー"),
        ("ภาษาไทย", "ภ า ษ า ไ ท ย"),
        ("한국어 검색 API를", "한 국 어 검 색 api 를"),
        ("\u1100\u1166\u110b\u1175\u11b7", "게 임"),
        ("C++ C# F# .NET c++11", "c++ c# f# net .net c++ 11"),
        ("OAuth2Client", "o auth 2 client oauth oauth2 auth2 oauth2client"),
        ("snake_case __init__ _", "snake case snake_case init __init__ _"),
        ("sha256Hash H2O", "sha 256 hash sha256 sha256hash h 2 o h2o"),
        ("ACME-INV-49302", "acme inv 49302 acme-inv-49302"),
        ("state\u2010of\u2011the-art", "state of the art state-of-the-art"),
        ("v1.2.3 10.0.0.1 end. 3", "v 1 2 3 v1 1.2.3 v1.2.3 10 0 0 1 10.0.0.1 end 3"),
        ("co\u00adoperate می\u200cخواهم", "cooperate ميخواهم"),
        ("😀 ❤\ufe0f 👩\u200d💻x 🇩🇪 1\ufe0f\u20e3", "x 1"),
        ("--- *** \u0301", ""),
        ("vue3 10GB 3f7a1c9e", "vue 3 vue3 10 gb 10gb 3f7a1c9e"),
    ],
)
def test_a_text_has_these_words(text, expected):
    assert words(text) == expected.split()


def disagreements(points: list[int]) -> list[str]:
    """Texts around these code points that DuckDB and Python cut into other pieces."""
    connection = duckdb.connect()
    table = pa.table({"i": pa.array([p for p in points if 0 < p < 0xD800 or p > 0xDFFF], pa.int32())})
    connection.register("points", table)
    connection.execute(
        "CREATE TABLE t AS SELECT 'a' || c || 'b' || c || c || '-' || c || '.' || c AS x FROM (SELECT chr(i) AS c FROM points)"
    )
    rows = connection.execute(f"SELECT x, array_to_string({tokens.piece_sql('x')}, chr(0)) FROM t").fetchall()
    assert rows
    return [x for x, pieces in rows if "\0".join(tokens.PIECES.findall(x)) != pieces]


def test_duckdb_and_python_find_the_same_pieces_of_one_version():
    borders = {p + d for r in (*RANGES, *tokens._UNSPACED) for p in r for d in (-1, 0, 1)}
    assert not disagreements(sorted(borders | set(range(0x800))))
    said = (
        "The runners' state-of-the-art getHttpClient, HTTPServer2 and snake_case_name: C++, C# or .NET; ACME-INV-49302, 10.0.0.1,"
        " naïve Straße ﬁne x² mRNA Ångström Ωμέγα йод 日本語テキスト ภาษาไทย हिन्दी python3.11 v1.2.3 don't e\u0301te\u0301 iPhone"
    )
    pieces = tokens.PIECES.findall(said)
    analysed = [[list(map(list, a.parts)), list(map(list, a.wholes)), a.symbol] for a in map(tokens.analyse, pieces)]
    terms = tokens.stems([word for parts, wholes, _ in analysed for word, *_ in (*parts, *wholes)])
    whole = json.dumps([pieces, analysed, terms, tokens.CONTEXT_GAP, tokens.SPAN_BITS], ensure_ascii=True)
    assert (tokens.WORDS_VERSION, hashlib.sha256(whole.encode()).hexdigest()[:16]) == (2, "8ed8fe846836f3d2")


TEXTS = {
    "one.md": "# Deploying\n\nThe kubernetes cluster restarts nightly.\n",
    "two.md": "# Running\n\nk8s needs a token here.\n",
    "three.md": "# Builds\n\nContinuous integration runs each build.\n",
    "four.md": "# Checks\n\nThe CI job failed again.\n",
    "five.md": "# Other\n\nContinuous delivery is another thing; integration of gas pipes too.\n",
}
WORDS = vocabulary_of([["k8s", "kubernetes"], ["CI", "continuous integration"]], ["acme"])


def weights(query: str, vocabulary: Vocabulary = WORDS) -> dict[str, float]:
    """The terms that BM25 counts, a phrase written with its words joined."""
    scored = spoken(query, vocabulary).query.scored
    return {" ".join(t for step in m.steps for t in step[0]) or m.prefix + "*": w for m, w in scored}


def test_synonyms_and_stop_words_of_a_corpus():
    assert weights("kubernetes token") == {"kubernet": 1.0, "token": 1.0} | weights("k8s", NONE)
    assert spoken("kubernetes token", WORDS).also == ("k8s",)
    assert weights("kubernetes k8s") == weights("kubernetes k8s", NONE)
    assert spoken("continuous integration failed", WORDS).also == ("CI",)
    assert spoken('"continuous integration" failed', WORDS).also == ("CI",)
    assert spoken("ci failed", WORDS).also == ("continuous integration",)
    assert spoken("continuous failed integration", WORDS).also == ()
    assert weights("acme token") == {"token": 1.0}
    assert spoken("ACME token", WORDS).dropped == ("ACME",)
    assert weights("acme") == {"acm": 1.0}
    assert spoken("acme", WORDS).dropped == ()
    assert weights('"acme" token') == {"acm": 1.0, "token": 1.0}


@pytest.mark.parametrize("query", ["token -kubernetes", "kubern*", "other words", ""])
def test_excluded_words_and_prefixes_stay_as_they_are(query):
    assert weights(query) == weights(query, NONE)
    assert spoken(query, WORDS).also == ()


@pytest.fixture(scope="module")
def folder(corpus_of: Callable[..., wb.Corpus]) -> Path:
    return corpus_of(TEXTS).path


def found(corpus: wb.Corpus, query: str, plan: str = "default") -> set[str]:
    return {h.path.rpartition("/")[2] for h in corpus.search(query, mode="keyword", plan=plan).hits}


def test_a_search_finds_what_means_the_same(folder):
    with wb.open_corpus(folder, follow=True) as corpus:
        assert found(corpus, "kubernetes") == {"one.md"}
        corpus.set_vocabulary(WORDS)
        assert corpus.vocabulary == WORDS
        assert found(corpus, "kubernetes") == {"one.md", "two.md"}
        assert found(corpus, "kubernetes token", "default keyword.operator=all") == {"two.md"}
        assert found(corpus, "ci", "default keyword.operator=all") == {"three.md", "four.md"}
        every = found(corpus, "continuous integration", "default keyword.operator=all")
        assert every == {"three.md", "four.md", "five.md"}
        (hit,) = [h for h in corpus.search("kubernetes", mode="keyword").hits if h.path.endswith("two.md")]
        assert [hit.text[m.start : m.end] for m in hit.matches] == ["k8s"]
        assert "Searched also: k8s" in corpus.search("kubernetes", mode="keyword").messages
        said = corpus.search("kubernetes acme", mode="hybrid").messages
        assert said[-2:] == ("Searched also: k8s", "Not counted, being stop words of this corpus: acme")
        assert not any("also" in m for m in corpus.search("kubernetes", mode="vector").messages)
        corpus.set_vocabulary(NONE)
        assert found(corpus, "kubernetes") == {"one.md"}
    with wb.open_corpus(folder, follow=True) as corpus:
        before = corpus.search("k8s", mode="keyword")
        assert corpus.search("k8s", mode="keyword").cached
        corpus.set_vocabulary(WORDS)
        after = corpus.search("k8s", mode="keyword")
        assert len(after.hits) > len(before.hits)
        assert len(before.with_plan("default limit=50").hits) == len(before.hits)
        corpus.set_vocabulary(NONE)
        assert len(corpus.search("k8s", mode="keyword").hits) == len(before.hits)
    save_vocabulary(folder, NONE)
    with wb.open_corpus(folder) as pinned, wb.open_corpus(folder, follow=True) as following:
        save_vocabulary(folder, WORDS)
        assert len(found(pinned, "k8s")) == 1
        assert len(found(following, "k8s")) == 2
        pinned.refresh()
        assert len(found(pinned, "k8s")) == 2
    save_vocabulary(folder, NONE)


def test_words_in_corpus_yaml_count_until_there_is_a_file_of_their_own(tmp_path):
    file = tmp_path / "corpus.yaml"
    file.write_text("rules:\n- path: 'hr/**'\n  roles: [hr]\nsynonyms:\n- [a, b]   # old\n", encoding="utf-8")
    before, rules = file.read_bytes(), load_rules(tmp_path)
    watched = SettingsFile(tmp_path, load_vocabulary, *FILES)
    assert watched.now() == Vocabulary((("a", "b"),))
    save_vocabulary(tmp_path, WORDS)
    assert load_vocabulary(tmp_path) == watched.now() == WORDS
    save_vocabulary(tmp_path, NONE)
    assert load_vocabulary(tmp_path) == watched.now() == NONE
    assert (file.read_bytes(), load_rules(tmp_path)) == (before, rules)


@pytest.mark.parametrize(("text", "says"), [
    ("synonyms: [a, b]", "list of lists"), ("synonyms:\n- [a]", "one word"), ("stop_words: the", "not a list"),
    ("stop_words: [a b]", "several words"), ("synonyms:\n- [a, '--']", "not a word"), ("stop_words: [[a]]", "not a word"),
    ("synonyms: [", "cannot be read"),
])  # fmt: skip
def test_what_cannot_be_is_a_sentence(tmp_path, text, says):
    (tmp_path / "synonyms.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingError, match=says) as raised:
        load_vocabulary(tmp_path)
    assert raised.value.remedy


FREQUENCIES = {"retries": 5, "work": 90, "backoff": 2, "queue": 40, "exponential": 2, "documents": 900}


def counts(words: Sequence[str]) -> list[int]:
    return [FREQUENCIES.get(word, 0) for word in words]


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("backoff retry", ("backoff", "retry")),
        ('"exponential backoff" retry', ("exponential backoff", "retry")),
        ("a  a\tb", ("a", "b")),
        ('  ""  " " ', ()),
        ('say "open', ("say", "open")),
        ("“smart quotes” x", ("smart quotes", "x")),
        ("foo->bar C++ it's", ("foo->bar", "C++", "it's")),
        ("Retry retry", ("Retry", "retry")),
        ("", ()),
    ],
)
def test_keywords_as_written(text, keywords):
    assert parse_keywords(text) == keywords


@pytest.mark.parametrize(
    ("query", "keywords"),
    [
        ("how do retries work", ("retries", "work")),
        ("how does the queue work with exponential backoff", ("exponential", "backoff", "queue", "work")),
        ('why is "lost update" in ACME-INV-49302 or foo_bar', ("lost update", "ACME-INV-49302", "foo_bar")),
        ("C++ vs C#, .NET and BM25?", ("C++", "C#", ".NET", "BM25", "vs")),
        (
            "std::vector numpy.sum camelCase v1.2 --strict HTTP",
            ("std::vector", "numpy.sum", "camelCase", "v1.2", "HTTP"),
        ),
        ("retries -work OR backoff*", ("backoff", "retries")),
        ("what is it", ("what", "is", "it")),
        ("??", ("??",)),
        ("", ()),
    ],
)
def test_keywords_from_a_question(query, keywords):
    """Phrases, then codes, then the rarest words; stop words out, unless they are all there is."""
    assert extract_keywords(query, counts) == keywords


def test_at_most_eight_keywords():
    asked: list[Sequence[str]] = []

    def frequency(words: Sequence[str]) -> list[int]:
        asked.append(words)
        return [100 - int(word[1:].translate(str.maketrans("abcdefghij", "0123456789"))) for word in words]

    words = [f"w{'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}" for n in range(30)]
    assert extract_keywords(" ".join(["the", *words]), frequency) == tuple(reversed(words[-8:]))
    assert len(asked) == 1
    assert "the" not in asked[0]
    assert extract_keywords("foo_bar", frequency) == ("foo_bar",)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('s("bd*2 hh").note("c3 e3").lpf(800)', ("s", "bd", "hh", "note", "c3", "e3", "lpf")),
        ('note("c e g c").sound("<piano gm_pad>(3,8)")', ("note", "c", "e", "g", "sound", "piano", "gm_pad")),
        (
            "stack(\n  s('bd [~ sd]'), // a comment\n  n(`0 .. 7`).scale(\"C:minor\"))",
            ("stack", "s", "bd", "sd", "n", "scale", "minor"),
        ),
        ("for (const i of itemsList) { total += price[i]; }", ("itemsList", "total", "price")),
        ("it's the policy of don't", ("policy",)),
        ("/* open comment never closed foo", ()),
        ("Größe größe", ("Größe", "größe")),
        ("", ()),
    ],
)
def test_names_from_code(text, names):
    """Functions, identifiers and the words of quoted patterns in order of appearance, each once."""
    assert context_keywords(text) == names


EVERYTHING = Scope()
RECORDS = [
    "Retries with a backoff policy for the connection pool.",
    "The pool of connections retries; connection pooling is a policy of its own, a policy for the pool.",
    "GitHub Actions run parse_query_string and getUserName in C++ and C#.",
    "parse the query string with github actions; get user name",
    ("Invoice ACME-INV-49302", "Paid late."),
    "ACME invoices: INV 49301, INV 49303. acme inv acme inv",
    "Zürich is Zurich, naïve café",
    "数据库管理系统 stores 数据",
    "管理数据的系统",
    "to be or not to be, that is the question",
    "'; DROP TABLE postings; --",
    "",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return build(tmp_path_factory.mktemp("corpus"), RECORDS)


def ranked(corpus: Corpus, query: str, operator: str = "any", scope: Scope = EVERYTHING, depth: int = 100) -> Scored:
    return corpus.lexical.search(query, scope, depth, k1=0.9, b=0.4, operator=operator)


@pytest.mark.parametrize(
    ("query", "operator", "expected"),
    [
        ("retry", "any", {0, 1}),
        ("Zürich NAIVE", "all", {6}),
        ("retry github", "all", set()),
        ("the retry", "all", {0, 1}),
        ("retry backoff OR github string", "all", {0, 2, 3}),
        ('"connection pool"', "any", {0, 1}),
        ('"for the connection"', "any", {0}),
        ('"github actions"', "any", {2, 3}),
        ('"git hub actions"', "any", {2}),
        ('"parse query string and get"', "any", {2}),
        ("parse_query_string", "all", {2}),
        ("query-string", "all", {2, 3}),
        ("pool -backoff", "any", {1}),
        ('pool -"backoff policy"', "any", {1}),
        ("string -parse_query_string", "any", {3}),
        ("polic* -retries", "any", set()),
        ("connections*", "any", {1}),
        ("acme-inv-4*", "any", {4}),
        ("C++", "any", {2}),
        ("数据库", "any", {7, 8}),
        ("管理系统", "any", {7, 8}),
        ('"invoice acme-inv-49302"', "any", {4}),
        ("'; drop table postings; --", "all", {10}),
        ("", "any", set()),
    ],
)
def test_a_query_finds(corpus, query, operator, expected):
    assert set(ranked(corpus, query, operator).numbers.tolist()) == expected


def test_scopes_frequencies_and_the_very_code(corpus):
    assert ranked(corpus, "ACME-INV-49302").numbers[0] == 4
    allowed = np.zeros(len(RECORDS), bool)
    allowed[[1, 3]] = True
    every, some = (
        ranked(corpus, "pool policy string"),
        ranked(corpus, "pool policy string", scope=Scope(None, allowed)),
    )
    assert set(some.numbers.tolist()) == {1, 3}
    assert some.found == 2
    scores = dict(zip(every.numbers.tolist(), every.scores.tolist(), strict=True))
    assert [scores[n] for n in some.numbers.tolist()] == some.scores.tolist()
    words = ["Retry", "pools", "github", "query_string", "connection pool", "数据", "nowhere", "***", "-policy"]
    assert corpus.lexical.frequencies(words, EVERYTHING).tolist() == [2, 2, 2, 2, 2, 2, 0, 0, 2]
    visible = np.arange(len(RECORDS)) != 1
    assert corpus.lexical.frequencies(words[:2], Scope(visible, visible)).tolist() == [1, 1]
    assert corpus.lexical.frequencies([], EVERYTHING).tolist() == []
    with pytest.raises(QueryError, match="any or all"):
        ranked(corpus, "pool", "some")


@pytest.mark.parametrize("query", ["retry the pool policy policy", "to be", "'; -- it''s \\ %", "数"])
def test_the_sql_that_is_shown_gives_the_scores_of_words(corpus, query):
    scored = corpus.lexical.search(query, EVERYTHING, 100, k1=0.9, b=0.4, operator="any")
    rows = corpus.connection.execute(corpus.lexical.sql(query, k1=0.9, b=0.4, depth=100)).fetchall()
    assert [number for number, _ in rows] == scored.numbers.tolist()
    assert [score for _, score in rows] == pytest.approx(scored.scores.tolist(), abs=1e-9)
    assert corpus.lexical.sql('"pool of" poli*', k1=0.9, b=0.4, depth=1).startswith("-- without the query's 2 phrases")


def test_equal_scores_stand_by_number_at_any_depth(tmp_path):
    index = build(tmp_path, ["same words here", "other"] * 300).lexical
    for query in ("same", "same words"):
        for depth in (0, 1, 7, 299, 300, 1000):
            scored = index.search(query, EVERYTHING, depth, k1=0.9, b=0.4, operator="any")
            assert scored.numbers.tolist() == list(range(0, 600, 2))[:depth]
            assert scored.found == 300


def test_an_empty_corpus_answers_nothing(tmp_path):
    for name, texts in (("none", []), ("blank", ["", "  ", "***"])):
        index = build(tmp_path / name, texts)
        for query in ("pool", '"a b" c', "po*", "", "a -b"):
            for operator in ("any", "all"):
                assert not ranked(index, query, operator).found
            assert not index.connection.execute(index.lexical.sql(query, k1=0.9, b=0.4, depth=3)).fetchall()
        assert index.lexical.upper_bound("pool", EVERYTHING, k1=0.9) == 0.0
        assert index.lexical.frequencies(["pool"], EVERYTHING).tolist() == [0]


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("retry", "Retries, retried; a retry", ["Retries", "retried", "retry"]),
        ("zürich", "Zu\u0308rich", ["Zu\u0308rich"]),
        ("getUserName", "getUserName, get_user_name", ["getUserName", "get_user_name"]),
        ('"user name"', "getUserName or user name", ["UserName", "user name"]),
        ("retr*", "retry retrieval try", ["retry", "retrieval"]),
        ("数据", "管理数据库", ["数据"]),
        ("the cat -dog", "the cat, the dog", ["cat"]),
        ("ACME-INV-49302", "see ACME-INV-49302.", ["ACME-INV-49302"]),
        ("😀 x", "😀x😀", ["x"]),
        ("text", "", []),
    ],
)
def test_highlights(corpus, query, text, marked):
    spans = corpus.lexical.highlight(query, text)
    assert [text[s.start : s.end] for s in spans] == marked
    assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
    assert all(isinstance(s, Span) for s in spans)


def test_words_made_by_other_rules_are_noticed(tmp_path):
    made = build(tmp_path, ["run runs"])
    assert not made.lexical.older
    made.connection.execute("UPDATE words_made_with SET value = '0' WHERE name = 'words'")
    assert build(tmp_path, ["run"]).lexical.older is False
    assert lexical_build.made_alike(made.connection) is False


def test_many_occurrences_in_one_record_are_kept(tmp_path):
    index = build(tmp_path, ["spam " * 70_000, "spam spam", "egg"]).lexical
    assert index.search('"spam spam"', Scope(), 5, k1=0.9, b=0.4, operator="any").numbers.tolist() == [0, 1]
