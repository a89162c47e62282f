"""A policy that drops and one that masks: what is masked is nowhere in any answer, and what is dropped is not there at all."""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest
from corpus_files import write_files

import workbench as wb
from workbench.errors import SettingError
from workbench.records import Document, Principal
from workbench.retrieve.messages import format_text
from workbench.store.access.redaction import MaskPatterns, RedactedGrep, RedactedRecords, ShownPostings, load_policy
from workbench.store.access.visibility import MASK, SeeAll
from workbench.store.catalogue import Catalogue

SECRETS = ("1234-5678", "4321-8765", "quokka", "zanzibar", "wombat", "ostrich")
POLICY = MaskPatterns(
    (r"\d{4}-\d{4}", r"begin hidden(?s:.)*?end hidden"), ("confidential",), ("restricted",), ("admin",)
)
FILES = {
    "pay.md": "---\naccount: 1234-5678\nowner: anna\ntags: [a, 1234-5678]\n---\n# Pay of 1234-5678\n\nThe pay account is "
    "1234-5678 of anna.\n\n## Account 4321-8765\n\nWhat the other account pays.\n\n## Examples\n\nPay 4321-8765\n\n"
    "```\npay('1234-5678')\n```\n",
    "long.md": "# Long\n\naccount words begin hidden\n\n" + "\n\n".join(f"## Part {n}\n\n{'quokka ' * 120}" for n in range(4))
    + "\n\nend hidden pay again\n",
    "wide.md": "pay " + "account filler " * 400 + "1234-5678 " + "more filler " * 400 + "\n",
    "plan.md": "---\ntitle: The zanzibar plan\nurl: https://zanzibar.example\ncode: zanzibar\nsensitivity: confidential\n---\n"
    "# Plan\n\npay the zanzibar account\n",
    "example.md": "---\ntype: example\ndescription: pay 1234-5678\ncode: pay(4321-8765)\n---\npay example"
    " begin hidden wombat end hidden\n",
    "vault.md": "---\nsensitivity: restricted\n---\npay the ostrich account\n",
    "open.md": "# Open\n\nThe pay account of everybody is 12-34.\n",
}  # fmt: skip
PLANS = ("default", "tmm", "passages", "collections sources=vector@docs collections=docs", "pages", "contract", "scoped",
         "default neighbours=2", "default rerank.model=overlap", "default fusion.unit=document grep.when=always")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with numbers and passages to mask, a confidential document, and a restricted one."""
    path = tmp_path_factory.mktemp("redaction")
    wb.index([write_files(path / "files", FILES)], corpus=path / "corpus", encoder="hashing")
    return path / "corpus"


@pytest.fixture
def corpus(folder: Path) -> Iterator[wb.Corpus]:
    """As somebody sees it who is not cleared."""
    with wb.open_corpus(folder, Principal(), policy=POLICY) as opened:
        yield opened


def clean(said: object) -> None:
    """No secret is in what was said."""
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=repr)
    assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize(
    ("pattern", "text", "left"),
    [
        ("José", "x José y José, Jose", "x  y , Jose"),
        (r"(?i)\bÉTÉ\w*", "été étés Été, tés", "  , tés"),
        (r"\w+@\w+", "an jörg@bücher.de", "an .de"),
        (r"\b\d{4}\b", "1234 5678 12345", "  12345"),
        (r"\b\d{4}\b", "番号1234です", "番号です"),  # a border of ASCII words only, as RE2 has it
        ("(?s)José.*?end", "a José\nb\nend\nc", "a \n\n\nc"),
        (r"\Aé.*", "é b\né c", "\né c"),
    ],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_mask_covers_a_word_however_it_is_written(pattern, text, left, form):
    text, left = unicodedata.normalize(form, text), unicodedata.normalize(form, left)
    document = Document("d", "d.md", "", text=text)
    shown = MaskPatterns((pattern,)).redact(None, document).text
    assert shown.replace(MASK, "") == left
    assert [len(line) for line in shown.split("\n")] == [len(line) for line in text.split("\n")]


@pytest.mark.parametrize("plan", PLANS)
def test_no_search_shows_what_is_masked(corpus, plan):
    for mode in ("hybrid", "grep", "keyword", "vector"):
        result = corpus.search("pay account", mode=mode, plan=plan, limit=20)
        assert result.hits or (mode, plan) == ("vector", "passages")  # nothing is so near under l2sq
        clean(result.to_dict())
        clean(result.frame().to_dicts())
        clean(repr(result) + result._repr_html_() + format_text(result))
        clean([asdict(corpus.explain(result, path)) for path in FILES])
        assert all(h.path != "vault.md" for h in result.hits)


@pytest.mark.parametrize("query", ["1234-5678", '"1234-5678"', "quokka", "zanz*", "wombat pay", "ostrich"])
def test_no_match_points_behind_a_mask(corpus, query):
    for mode in ("hybrid", "grep", "keyword"):
        result = corpus.search(query, keywords=query, mode=mode, plan="default vector.threshold=off", limit=20)
        for hit in result.hits:
            clean([hit.text, hit.title, hit.section, hit.url, dict(hit.metadata)])
            assert not any(MASK in hit.text[m.start : m.end] for m in hit.matches)


@pytest.mark.parametrize("pattern", [r"1234", r"\d{4}-", "quok+a", "wombat", "zanzibar", "(1|q)[0-9u]{3}", "ostrich"])
def test_grep_finds_nothing_behind_a_mask(corpus, pattern):
    assert corpus.grep(pattern, regex=True) == ()
    assert corpus.search(pattern, mode="grep", plan="grep.regex=yes").messages[0].startswith("0 results")


def test_grep_finds_what_is_beside_a_mask(corpus):
    passages = {p.path: p for p in corpus.grep(["account", "1234"], context=1)}
    clean([asdict(p) for p in passages.values()])
    pay = passages["pay.md"]
    assert {pay.text[m.start : m.end].lower() for m in pay.matches} == {"account"}
    plain = {
        p.path: p
        for p in wb.open_corpus(corpus.path, Principal(None, ("admin",)), policy=POLICY).grep("account", context=1)
    }
    masked = {"text": pay.text, "matches": pay.matches}
    assert pay == replace(plain["pay.md"], **masked)
    assert MASK * 9 in pay.text
    assert passages["wide.md"].text.count("account") > 0


def test_documents_keep_their_length_and_examples_and_tools_are_masked(corpus, folder):
    with wb.open_corpus(folder, Principal(None, ("admin",)), policy=POLICY) as cleared:
        for path in FILES:
            text = corpus.read_file(path)
            clean(text.replace(path, ""))
            if path != "vault.md":
                assert [len(line) for line in text.split("\n")] == [
                    len(li) for li in cleared.read_file(path).split("\n")
                ]
    assert corpus.read_file("vault.md").startswith("[ERROR: NOT_FOUND]")
    from workbench.mcp.tools import CorpusTools

    examples = corpus.search_examples("pay")
    assert {e.path for e in examples} == {"pay.md", "example.md"}
    clean([asdict(e) for e in examples])
    tools = CorpusTools(lambda: corpus, wb.preset("passages"))
    answers = [tools.read_file(path) for path in FILES if path != "vault.md"]
    answers += [tools.grep_search("account"), tools.corpus_info()]
    for answer in answers:
        clean([c.text for c in answer.content] + [answer.structured_content])
    engine = corpus.engine
    scope, catalogue = engine.records.scope(Principal(), None, ()), Catalogue(engine.opened)
    for letters in ("1234", "quok", "anzib", "Account 43"):
        assert not len(catalogue.holding(scope, letters, engine.records))
        assert corpus.documents(text=letters).is_empty()
    titles = corpus.documents(sort="title")["title"].to_list()
    assert titles == sorted(titles, key=str.lower)
    assert len(catalogue.holding(scope, "PAY ACC", engine.records)) >= 2
    assert len(catalogue.holding(scope, "wide.m", engine.records)) > 0
    with wb.open_corpus(folder, Principal(None, ("admin",)), policy=POLICY) as cleared:
        shown, whole = (
            {d.path: d.sha256 for d in c.engine.records.headers(range(c.engine.records.documents_total))}
            for c in (corpus, cleared)
        )
        assert {path for path in FILES if shown[path] != whole[path]} == set(FILES) - {"open.md", "vault.md"}
        assert corpus.info()["digest"] != cleared.info()["digest"]
        assert corpus.info() == corpus.info()
    result = corpus.search("pay account", plan="default fusion.unit=document vector.threshold=off dedupe=no", limit=20)
    steps = [s for s in result.steps if s.step == "policy"]
    masked = [h for h in result.hits if MASK in h.text + h.title + h.section + str(h.metadata)]
    assert [s.step for s in result.steps][-3:] == ["dedupe", "policy", "limit"]
    assert (steps[0].entered, steps[0].left) == (6, 6)
    assert steps[0].reason == "5 of them are shown with parts masked"
    assert "5 of the 6 results are shown with parts masked by the corpus's policy" in result.messages
    assert {h.path for h in masked} <= set(FILES) - {"open.md", "vault.md"}
    for policy in (SeeAll(), MaskPatterns(hidden=("restricted",))):
        with wb.open_corpus(folder, Principal(), policy=policy) as plain:
            assert "policy" not in [s.step for s in plain.search("pay account").steps]


@pytest.mark.parametrize(
    ("masked", "nowhere"), [("123*", "987*"), ("quok*", "qqqq*"), ("zanzibar", "nonesuch"), ('"wombat"', '"tabmow"')]
)
def test_keyword_search_does_not_know_masked_words(corpus, masked, nowhere):
    for form in ("{}", "pay {}", "pay -{}"):
        first, second = (corpus.search(form.format(word), mode="keyword", limit=20) for word in (masked, nowhere))
        assert [(h.chunk_id, h.score) for h in first.hits] == [(h.chunk_id, h.score) for h in second.hits]
        assert [s.left for s in first.steps] == [s.left for s in second.steps]
    engine = corpus.engine
    scope = engine.records.scope(Principal(), None, ())
    assert engine.lexical.frequencies([masked.strip('*"')], scope).tolist() == [0]
    assert engine.lexical.frequencies(["filler", "account"], scope).tolist() != [0, 0]


@pytest.mark.parametrize(
    "condition", ["account = '{}'", "not account = '{}'", "account >= '{}'", "url like '%{}%'", "account != '{}'"]
)
def test_a_filter_matches_no_masked_value(corpus, condition):
    for guess in ("1234-5678", "1234-5679"):
        found = {h.path for h in corpus.search("pay", mode="keyword", filters=condition.format(guess), limit=20).hits}
        assert "pay.md" not in found or condition.startswith("url")
        assert "plan.md" not in found
    assert {h.path for h in corpus.search("pay", mode="keyword", filters="owner = 'anna'").hits} == {"pay.md"}


@pytest.mark.slow
def test_a_policy_may_drop_keep_lengths_and_be_asked_for_by_the_corpus_file(folder, tmp_path):
    with wb.open_corpus(folder, Principal(), policy=MaskPatterns(hidden=("restricted", "confidential"))) as opened:
        for mode in ("hybrid", "grep", "keyword", "vector"):
            result = opened.search("pay account", mode=mode, plan="vector.threshold=off", limit=20)
            assert not {"vault.md", "plan.md"} & {h.path for h in result.hits}
        assert opened.info()["documents"] == len(FILES) - 2
    with wb.open_corpus(folder, Principal(), policy=Shortening()) as opened:
        with pytest.raises(SettingError, match="another length"):
            opened.read_file("pay.md")
        with pytest.raises(SettingError, match="another length"):
            _ = opened.search("pay account", mode="keyword").hits
    wb.index([folder.parent / "files"], corpus=tmp_path / "corpus", encoder="hashing")
    yaml = "policy:\n  mask: ['\\d{4}-\\d{4}']\n  mask_sensitivities: confidential\n  hide: [restricted]\n  cleared: [admin]\n"
    (tmp_path / "corpus" / "corpus.yaml").write_text(yaml)
    assert load_policy(tmp_path / "corpus") == replace(POLICY, patterns=(r"\d{4}-\d{4}",))
    with wb.open_corpus(tmp_path / "corpus") as opened:
        assert "1234-5678" not in opened.read_file("pay.md")
        assert opened.read_file("vault.md").startswith("[ERROR: NOT_FOUND]")


@pytest.mark.parametrize(
    "yaml",
    [
        "policy: 3",
        "policy:\n  blur: [x]",
        "policy:\n  mask: ['(']",
        "policy:\n  mask: ['x*']",
        "policy:\n  hide: [odd]",
    ],
)
def test_a_policy_that_cannot_be_is_refused(tmp_path, yaml):
    (tmp_path / "corpus.yaml").write_text(yaml)
    with pytest.raises(SettingError):
        load_policy(tmp_path)


@dataclass(frozen=True)
class Shortening:
    """A policy that breaks its promise: it takes text out."""

    name: str = "shortening"

    def sees(self, principal: Principal | None, sensitivity: str) -> bool:
        return True

    def redacts(self, principal: Principal | None) -> bool:
        return True

    def redact(self, principal: Principal | None, document: Document) -> Document:
        return replace(document, text=document.text.replace("1234-5678", ""))


@pytest.mark.parametrize(
    ("shown", "holds_no_text"),
    [
        (
            RedactedRecords,
            "columns count digest fields find_document find_record generation ids may_know numbers_named"
            " of_kind paths_of places records_of roots sources",
        ),
        (RedactedGrep, "close search"),  # search reads lines through what masks them
        (ShownPostings, ""),
    ],
)
def test_every_method_that_gives_text_masks_it(shown, holds_no_text):
    """A method that is new to the store is masked, or is named here because it gives no text."""
    inherited = {
        n for n in dir(shown) if not n.startswith("_") and callable(getattr(shown, n)) and n not in vars(shown)
    }
    assert inherited <= set(holds_no_text.split())
