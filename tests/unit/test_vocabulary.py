"""Synonyms and stop words: what they do to a query, and the file they stand in."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import workbench as wb
from workbench.errors import SettingError
from workbench.ingest.rules import QUERY_KEYS, SettingsFile, load_rules
from workbench.store.lexical.synonyms import (
    FILES,
    NONE,
    Vocabulary,
    load_vocabulary,
    save_vocabulary,
    spoken,
    vocabulary_of,
)

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


def test_a_synonym_counts_as_much_as_the_word() -> None:
    assert weights("kubernetes token") == {"kubernet": 1.0, "token": 1.0} | weights("k8s", NONE)
    assert spoken("kubernetes token", WORDS).also == ("k8s",)


def test_a_synonym_that_was_typed_is_not_counted_again() -> None:
    assert weights("kubernetes k8s") == weights("kubernetes k8s", NONE)


def test_a_phrase_is_known_quoted_or_not() -> None:
    assert spoken("continuous integration failed", WORDS).also == ("CI",)
    assert spoken('"continuous integration" failed', WORDS).also == ("CI",)
    assert spoken("ci failed", WORDS).also == ("continuous integration",)
    assert spoken("continuous failed integration", WORDS).also == ()


def test_words_are_compared_as_the_index_compares_them() -> None:
    assert spoken("KUBERNETES", WORDS).also == ("k8s",)
    assert spoken("Continuous integrations", WORDS).also == ("CI",)


@pytest.mark.parametrize("query", ["token -kubernetes", "kubern*", "other words", ""])
def test_excluded_words_and_prefixes_stay_as_they_are(query: str) -> None:
    assert weights(query) == weights(query, NONE)
    assert spoken(query, WORDS).also == ()


def test_a_stop_word_counts_only_quoted_or_alone() -> None:
    assert weights("acme token") == {"token": 1.0}
    assert spoken("ACME token", WORDS).dropped == ("ACME",)
    assert weights("acme") == {"acm": 1.0}
    assert spoken("acme", WORDS).dropped == ()
    assert weights('"acme" token') == {"acm": 1.0, "token": 1.0}


# --- in a corpus ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("words")
    for name, text in TEXTS.items():
        (root / "files").mkdir(exist_ok=True)
        (root / "files" / name).write_text(text, encoding="utf-8")
    wb.index([root / "files"], corpus=root / "corpus", encoder="hashing", workers=0)
    return root / "corpus"


def found(corpus: wb.Corpus, query: str, plan: str = "default") -> set[str]:
    return {h.path.rpartition("/")[2] for h in corpus.search(query, mode="keyword", plan=plan).hits}


def test_a_search_finds_what_means_the_same(folder: Path) -> None:
    """With any word and with all words; marked in the text; said in the messages; gone when the words are gone."""
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


def test_the_cache_does_not_serve_an_answer_of_other_words(folder: Path) -> None:
    with wb.open_corpus(folder, follow=True) as corpus:
        before = corpus.search("k8s", mode="keyword")
        assert corpus.search("k8s", mode="keyword").cached
        corpus.set_vocabulary(WORDS)
        after = corpus.search("k8s", mode="keyword")
        assert len(after.hits) > len(before.hits)
        assert len(before.with_plan("default limit=50").hits) == len(before.hits)
        corpus.set_vocabulary(NONE)
        assert len(corpus.search("k8s", mode="keyword").hits) == len(before.hits)


def test_a_pinned_corpus_keeps_its_words_until_it_is_refreshed(folder: Path) -> None:
    save_vocabulary(folder, NONE)
    with wb.open_corpus(folder) as pinned, wb.open_corpus(folder, follow=True) as following:
        save_vocabulary(folder, WORDS)
        assert len(found(pinned, "k8s")) == 1
        assert len(found(following, "k8s")) == 2
        pinned.refresh()
        assert len(found(pinned, "k8s")) == 2
    save_vocabulary(folder, NONE)


# --- the file --------------------------------------------------------------------------------------------------------


def test_words_in_corpus_yaml_count_until_there_is_a_file_of_their_own(tmp_path: Path) -> None:
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


def test_no_file_is_no_vocabulary(tmp_path: Path) -> None:
    assert load_vocabulary(tmp_path) == NONE
    odd = vocabulary_of([["yes", "no: way"], ["#1", "C#", "café"]], ["null", "x'y"])
    save_vocabulary(tmp_path, odd)
    assert load_vocabulary(tmp_path) == odd
    assert set(yaml.safe_load((tmp_path / "synonyms.yaml").read_text(encoding="utf-8"))) == set(QUERY_KEYS)


@pytest.mark.parametrize(("text", "says"), [
    ("synonyms: [a, b]", "list of lists"), ("synonyms:\n- [a]", "one word"), ("stop_words: the", "not a list"),
    ("stop_words: [a b]", "several words"), ("synonyms:\n- [a, '--']", "not a word"), ("stop_words: [[a]]", "not a word"),
    ("synonyms: [", "cannot be read"),
])  # fmt: skip
def test_what_cannot_be_is_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "synonyms.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingError, match=says) as raised:
        load_vocabulary(tmp_path)
    assert raised.value.remedy
