"""What a word is: the table of examples, and that DuckDB and Python agree on every code point."""

from __future__ import annotations

import hashlib
import json
import unicodedata

import duckdb
import pyarrow as pa
import pytest

from workbench.store.lexical import tokens
from workbench.store.lexical.tokens import RANGES


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
        ("Zu\u0308rich", "zurich"),
        ("Straße STRASSE", "strasse strasse"),
        ("Ελλάδα ΕΛΛΆΔΑ σοφός", "ελλαδα ελλαδα σοφοσ"),
        ("Ёлка й", "елка и"),
        ("İstanbul ISPARTA ısparta", "istanbul isparta isparta"),
        ("Łódź Øre Ærø", "lodz ore aero"),
        ("हिन्दी में खोज", "हिन्दी में खोज"),
        ("البَحث في", "البحث في"),
        ("شَلَام שָׁלוֹם إلى مدرسة ی ک", "شلام שלום الي مدرسه ي ك"),
        ("٢٠٢٤ ४२", "2024 42"),
        ("ﬁne Ｆｏｏ x² ｶﾞ", "fine foo x2 ガ"),
        ("数据库", "数 据 库"),
        ("Python数据3个", "python 数 据 3 个"),
        ("ひらがなカタカナー", "ひ ら が な カ タ カ ナ ー"),
        ("ภาษาไทย", "ภ า ษ า ไ ท ย"),
        ("한국어 검색 API를", "한 국 어 검 색 api 를"),
        ("\u1100\u1166\u110b\u1175\u11b7", "게 임"),
        ("C++ C# F# .NET c++11", "c++ c# f# net .net c++ 11"),
        ("IUserService yAxis", "i user service iuser iuserservice y axis yaxis"),
        ("OAuth2Client", "o auth 2 client oauth oauth2 auth2 oauth2client"),
        ("ASP.NET .network", "asp net .net network"),
        ("snake_case __init__ _", "snake case snake_case init __init__ _"),
        ("getUserName HTMLParser", "get user name getusername html parser htmlparser"),
        ("sha256Hash H2O", "sha 256 hash sha256 sha256hash h 2 o h2o"),
        ("mRNA gRPC PhD URLs", "mrna grpc phd urls"),
        ("ACME-INV-49302", "acme inv 49302 acme-inv-49302"),
        ("state\u2010of\u2011the-art", "state of the art state-of-the-art"),
        ("v1.2.3 10.0.0.1 end. 3", "v 1 2 3 v1 1.2.3 v1.2.3 10 0 0 1 10.0.0.1 end 3"),
        ("foo_barBaz-qux", "foo bar baz qux foo_barbaz foo_barbaz-qux"),
        ("don't", "don t"),
        ("co\u00adoperate می\u200cخواهم", "cooperate ميخواهم"),
        ("😀 ❤\ufe0f 👩\u200d💻x 🇩🇪 1\ufe0f\u20e3", "x 1"),
        ("--- *** \u0301", ""),
        ("a--b -c- d", "a b c d"),
        ("vue3 10GB 3f7a1c9e", "vue 3 vue3 10 gb 10gb 3f7a1c9e"),
    ],
)
def test_a_text_has_these_words(text: str, expected: str) -> None:
    assert words(text) == expected.split()


@pytest.mark.parametrize(
    ("word", "term"),
    [("retries", "retri"), ("running", "run"), ("zurich", "zurich"), ("49302", "49302"), ("b12s", "b12s")],
)
def test_only_words_of_plain_letters_are_stemmed(word: str, term: str) -> None:
    assert tokens.stem(word) == term


def test_encoded_data_is_one_word() -> None:
    """A word of more than 32 parts is not split, and no compound spans more than 32 positions."""
    blob = "aaBb" * 40
    assert words(blob) == [blob.lower()]
    long = "-".join(["ab"] * 40)
    parts, wholes, _ = tokens.analyse(long)
    assert len(parts) == 40
    assert not wholes


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


def test_duckdb_and_python_find_the_same_pieces() -> None:
    """One table of ranges, two programs: at the borders of every range, and everywhere below U+0800."""
    borders = {p + d for r in (*RANGES, *tokens._UNSPACED) for p in r for d in (-1, 0, 1)}
    assert not disagreements(sorted(borders | set(range(0x800))))


def test_letters_and_digits_are_words_and_spaces_are_not() -> None:
    """No letter or number of Unicode is dropped; no space or control character starts a word."""
    for point in range(0x110000):
        category = unicodedata.category(chr(point))
        if category[0] in "LN":
            assert tokens.PIECES.search(chr(point)), hex(point)
        elif category in {"Zs", "Zl", "Zp", "Cc"}:
            assert not tokens.PIECES.search(chr(point)), hex(point)


def test_the_version_of_the_words_is_raised_when_they_change() -> None:
    """What these texts consist of belongs to version 2: if this fails on purpose, raise WORDS_VERSION, and set both here."""
    said = (
        "The runners' state-of-the-art getHttpClient, HTTPServer2 and snake_case_name: C++, C# or .NET; ACME-INV-49302, 10.0.0.1,"
        " naïve Straße ﬁne x² mRNA Ångström Ωμέγα йод 日本語テキスト ภาษาไทย हिन्दी python3.11 v1.2.3 don't e\u0301te\u0301 iPhone"
    )
    pieces = tokens.PIECES.findall(said)
    analysed = [[list(map(list, a.parts)), list(map(list, a.wholes)), a.symbol] for a in map(tokens.analyse, pieces)]
    terms = tokens.stems([word for parts, wholes, _ in analysed for word, *_ in (*parts, *wholes)])
    whole = json.dumps([pieces, analysed, terms, tokens.CONTEXT_GAP, tokens.SPAN_BITS], ensure_ascii=True)
    assert (tokens.WORDS_VERSION, hashlib.sha256(whole.encode()).hexdigest()[:16]) == (2, "8ed8fe846836f3d2")
