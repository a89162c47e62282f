"""Grep over the stored text, against ripgrep over the same text as files.

Both are asked with smart case. ripgrep counts matching lines (`-c`), which is the least it can print; we answer with the
best 100 passages of ten lines around each match. ripgrep's time includes the start of its process, as its users have it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.figures import Peer, Row
from bench.ground import Ground
from bench.timing import in_turn
from workbench.records import Progress
from workbench.store.types import Scope

DEPTH = 100
_PATTERNS = 30
_FILES_IN_FOLDER = 500
_NO_LITERALS = (
    r"[A-Z]{3}-[0-9]{6}", r"[0-9a-f]{32}", r"\d+\.\d+\.\d+\.\d+", r"^.{300}$", r"[^\x00-\x7f]{5}", r"\s{20}\S",
    r'"[^"]{80}"', r"\w+_\w+_\w+_\w+_\w+[a-c]", r"[a-z]+@[a-z]+\.[a-z]{2,4}", r"\b[A-Z]{2,}[0-9]{2,}\b",
)  # fmt: skip
_WITH_LITERALS = (r"{}\w+", r"\b{}[a-z]*\W", r"{}.{{0,30}}[0-9]", r"[A-Za-z_]+{}")


def rare(ground: Ground) -> Row:
    """Words that few chunks hold."""
    words = ground.words(2, 20, _PATTERNS)
    return _row(ground, "grep.rare", "a literal in 2 to 20 chunks", words, 0.25)


def frequent(ground: Ground) -> Row:
    """Words that at least one chunk in a hundred holds."""
    words = ground.words(ground.records // 100, ground.records, _PATTERNS)
    return _row(ground, "grep.frequent", "a literal in 1 % of the chunks or more", words, 0.25)


def regex(ground: Ground) -> Row:
    """Regular expressions around a word."""
    words = ground.words(10, max(20, ground.records // 1000), _PATTERNS)
    patterns = [_WITH_LITERALS[n % len(_WITH_LITERALS)].format(re.escape(word)) for n, word in enumerate(words)]
    return _row(ground, "grep.regex", "a regular expression with a literal", patterns, 1.0, regular=True)


def scan(ground: Ground) -> Row:
    """Regular expressions without any text that must occur: every line is looked at."""
    title = "a regular expression without literals"
    return _row(ground, "grep.scan", title, _NO_LITERALS, 1.0, regular=True, rounds=5)


def _row(
    ground: Ground,
    key: str,
    title: str,
    patterns: Sequence[str],
    at_most: float,
    *,
    regular: bool = False,
    rounds: int = 2,
) -> Row:
    grep, everything = ground.engine.grep, Scope()

    def ours(pattern: str) -> object:
        return grep.search([pattern], everything, DEPTH, regex=regular, case="smart", word=False, context=10)

    contestants: dict[str, Callable[[str], object]] = {"ours": ours}
    program = shutil.which("rg")
    name, note = "ripgrep", "not installed: apt-get install ripgrep, or cargo install ripgrep"
    if program is not None:
        folder = _files(ground)
        command = [program, "--no-config", "-c", "-S", *([] if regular else ["-F"])]

        def theirs(pattern: str) -> object:
            return subprocess.run([*command, "-e", pattern, str(folder)], capture_output=True, check=False)

        contestants["ripgrep"] = theirs
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        name, note = " ".join(said.split()[:2]) or name, ""
    figures = in_turn(contestants, patterns, rounds, warm=3)
    return Row(
        key,
        f"{title} ({len(patterns)} of them)",
        "ms",
        figures["ours"],
        (Peer(name, figures.get("ripgrep"), at_most, note),),
    )


def _files(ground: Ground) -> Path:
    """The text of every document as a file, written once."""
    folder, mark = ground.built.peers / "files", ground.built.peers / "files.written"
    if not mark.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        ground.tell(Progress("files for ripgrep", 0, 1))
        for number, text in enumerate(ground.documents()):
            inside = folder / f"{number // _FILES_IN_FOLDER:03d}"
            inside.mkdir(parents=True, exist_ok=True)
            (inside / f"{number:06d}.txt").write_text(text, encoding="utf-8", errors="replace")
        ground.tell(Progress("files for ripgrep", 1, 1))
        mark.touch()
    return folder
