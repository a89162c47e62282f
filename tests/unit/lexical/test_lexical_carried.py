"""Words taken from the generation before: the same bytes as words found in the texts, whatever came, went or moved."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from lexical_corpus import Corpus, build

from workbench.records import Progress
from workbench.store.lexical import build as lexical_build
from workbench.store.lexical import tokens
from workbench.store.lexical.build import Before

WORDS = (
    "run",
    "runs",
    "running",
    "Runner",
    "fooBar",
    "foo-bar",
    "FOO",
    "bars",
    "数据",
    "C++",
    "naïve",
    "10.0.0.1",
    "a_b",
)
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=12)


def held(corpus: Corpus) -> dict[str, object]:
    """The bytes of every file, and the rows of every table."""
    tables = {t: corpus.connection.execute(f"SELECT * FROM {t}").fetchall() for t in lexical_build.TABLES}
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in corpus.folder.iterdir()} | tables


def carry(
    folder: Path, old: Corpus, old_texts: list[str], texts: list[str], where: list[int], **options: object
) -> Corpus:
    """Build `texts` with the old words: `where` is the new number of each old text, -1 where it has gone."""
    assert all(number < 0 or texts[number] == text for number, text in zip(where, old_texts, strict=True))
    np.save(folder / "numbers.npy", np.array(where, np.int32))
    return build(folder / "again", texts, before=Before(old.folder, folder / "numbers.npy"), **options)


@settings(deadline=None, max_examples=25)
@given(TEXTS, TEXTS, st.randoms(use_true_random=False), st.sampled_from((3, 1 << 20)))
def test_words_that_are_carried_over_are_those_that_are_found(old, fresh, random, run_pieces) -> None:
    """Some old texts stay, in any order, new ones lie between them; words and whole terms come and go; runs of any size."""
    stay = [number for number in range(len(old)) if random.random() < 0.7]
    places = [*stay, *([-1] * len(fresh))]
    random.shuffle(places)
    coming = iter(fresh)
    texts = [old[place] if place >= 0 else next(coming) for place in places]
    where = [places.index(number) if number in places else -1 for number in range(len(old))]
    with tempfile.TemporaryDirectory() as folder:
        before = build(Path(folder) / "old", old)
        whole = build(Path(folder) / "whole", texts)
        assert held(carry(Path(folder), before, old, texts, where, run_pieces=run_pieces)) == held(whole)


def test_only_new_texts_are_read(tmp_path: Path) -> None:
    """Of four records one is new: one is split."""
    old, texts = ["run runs", "fooBar", "running"], ["fooBar", "a new one", "run runs", "running"]
    told: list[Progress] = []
    before = build(tmp_path / "old", old)
    carry(tmp_path, before, old, texts, [2, 0, 3], progress=told.append)
    assert [(r.done, r.total) for r in told if r.detail == "read"] == [(1, 1)]


def test_words_made_by_other_rules_are_not_carried_over(tmp_path: Path) -> None:
    """Another version of anything that decides what a word is, or no word of it: every text is read."""
    old, texts = ["run runs", "fooBar"], ["fooBar", "run runs"]
    before = build(tmp_path / "old", old)
    note = before.folder / "made_with.json"
    for change in (lambda: note.write_text(json.dumps({**json.loads(note.read_text()), "words": "0"})), note.unlink):
        change()
        told: list[Progress] = []
        carry(tmp_path, before, old, texts, [1, 0], progress=told.append)
        assert [(r.done, r.total) for r in told if r.detail == "read"] == [(2, 2)]


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
