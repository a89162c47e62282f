"""grep against ripgrep: the same lines of the same files, for fixed text and regular expressions of every kind."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from grep_cases import make_grep, run

from workbench.store.grep.search import MappedGrep

RG = shutil.which("rg")
pytestmark = pytest.mark.skipif(RG is None, reason="needs ripgrep (rg) on the path")

_WORDS = (
    "retry Retry RETRY retry_count backoff back-off timeout TimeOut max_size maxSize x1 v1.2.3 ACME-INV-49302 std::vector "
    "naïve Straße ΟΔΟΣ οδος 検索 全文検索 👩‍💻 e\u0301 -> => ({[ ]}) foo.bar http://a.b/c?d=e 192.168.0.1 a@b.com \t the The of"
)

FIXED = [
    "retry", "Retry", "re", "e", "backoff", "back-off", "k-o", "max_size", "std::vector", "::", "->", " ", "retry backoff",
    "the of", "naïve", "straße", "οδος", "ΟΔΟΣ", "検索", "文検", "👩‍💻", "e\u0301", "foo.bar", "({[", "a@b", "nothing", "49302",
]  # fmt: skip

REGEX = [
    r"retry_\w+", r"[A-Z]{3,}-[A-Z]+-\d+", r"\bmax\w*", r"time.?out", r"^retry", r"the$", r"^$", r"\d+\.\d+\.\d+\.\d+",
    r"(retry|backoff) (the|of)", r"[^\x00-\x7f]{2}", r"\S{20}", r"[a-z]+@[a-z]+\.com", r"(?i)TIMEOUT", r"\p{Greek}+",
    r"a.*b.*c", r"^.{30}$", r"x|y|z", r"[0-9a-f]{5}", r"-\w+-", r"\bre", r"\p{Lu}\p{Ll}+ \p{Lu}", "(?-i:Retry) retry",
]  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[MappedGrep, Path]:
    rng = np.random.default_rng(11)
    words = np.array(_WORDS.split(" "))
    texts = []
    for _ in range(60):
        lines = [
            " ".join(words[rng.integers(0, len(words), int(rng.integers(0, 9)))]) for _ in range(rng.integers(0, 60))
        ]
        texts.append("\n".join(lines) + "\n" * int(rng.integers(0, 2)))
    files = tmp_path_factory.mktemp("files")
    names = [f"f{n:03d}.txt" for n in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (files / name).write_text(text, encoding="utf-8", newline="\n")
    return make_grep(tmp_path_factory.mktemp("index"), texts, names=names), files


def _ripgrep(files: Path, pattern: str, flags: list[str]) -> set[tuple[str, int]]:
    command = [str(RG), "--no-config", "--no-heading", "--with-filename", "--line-number", *flags, "-e", pattern, "."]
    done = subprocess.run(command, cwd=files, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode in (0, 1), done.stderr
    found = set()
    for line in done.stdout.split("\n")[:-1]:
        name, number, _ = line.split(":", 2)
        found.add((name.removeprefix("./"), int(number)))
    return found


def _ours(grep: MappedGrep, pattern: str, **options: object) -> set[tuple[str, int]]:
    answer = run(grep, pattern, context=0, depth=100_000, **options)  # type: ignore[arg-type]
    return {(p.path, n) for p in answer.passages for n in p.matched_lines}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "flag"), [("smart", "-S"), ("sensitive", "-s"), ("ignore", "-i")])
def test_fixed_text_finds_what_ripgrep_finds(corpus: tuple[MappedGrep, Path], case: str, flag: str) -> None:
    grep, files = corpus
    for pattern in FIXED:
        assert _ours(grep, pattern, case=case) == _ripgrep(files, pattern, ["-F", flag]), pattern


@pytest.mark.slow
@pytest.mark.parametrize(("case", "flag"), [("smart", "-S"), ("sensitive", "-s"), ("ignore", "-i")])
def test_regular_expressions_find_what_ripgrep_finds(corpus: tuple[MappedGrep, Path], case: str, flag: str) -> None:
    grep, files = corpus
    for pattern in REGEX:
        plain = pattern.replace(r"\w", "[0-9A-Za-z_]").replace(r"\d", "[0-9]").replace(r"\b", r"(?-u:\b)")
        assert _ours(grep, pattern, regex=True, case=case) == _ripgrep(files, plain, [flag]), pattern


@pytest.mark.slow
def test_whole_words_are_those_of_ripgrep(corpus: tuple[MappedGrep, Path]) -> None:
    """`rg -w`, for words of letters (an emoji is a word to neither, but what joins its parts is to ripgrep)."""
    grep, files = corpus
    for pattern in [
        "retry",
        "Retry",
        "re",
        "max_size",
        "back",
        "back-off",
        "naïve",
        "straße",
        "検索",
        "retry backoff",
        "x1",
    ]:
        assert _ours(grep, pattern, word=True) == _ripgrep(files, pattern, ["-F", "-S", "-w"]), pattern
