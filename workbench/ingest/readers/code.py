"""Source code: functions and classes as sections. Python through its own parser, other languages by their keywords.

A definition starts at the comments, attributes and decorators right above it. Python knows where a definition ends; for
the others the next definition at the same or a lower indentation ends it. Code that does not parse falls back to the
keywords.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from workbench.ingest.encoding import clean
from workbench.ingest.errors import Problem
from workbench.ingest.outline import Lines, Outline, Section
from workbench.ingest.readers.base import Parsed, Reader, Source

_TABLE = (
    "python .py .pyi .pyw; javascript .js .mjs .cjs .jsx; typescript .ts .tsx; java .java; kotlin .kt .kts; "
    "scala .scala; go .go; rust .rs; c .c .h; cpp .cc .cpp .cxx .hpp .hh; csharp .cs; fsharp .fs; swift .swift; "
    "objective-c .m; ruby .rb rakefile gemfile; php .php; perl .pl .pm; lua .lua; r .r; julia .jl; dart .dart; "
    "elixir .ex .exs; erlang .erl; haskell .hs; ocaml .ml; clojure .clj; elisp .el; vim .vim; shell .sh .bash "
    ".zsh .fish; powershell .ps1 .psm1 .psd1; batch .bat .cmd; sql .sql; protobuf .proto; graphql .graphql; css "
    ".css; scss .scss; less .less; vue .vue; svelte .svelte; terraform .tf; yaml .yaml .yml; toml .toml; "
    "properties .properties; ini .ini .cfg; cmake .cmake cmakelists.txt; groovy .gradle .groovy jenkinsfile; "
    "nix .nix; zig .zig; assembly .asm; make makefile; dockerfile dockerfile containerfile; just justfile"
)
_LANGUAGES = {name: own[0] for own in map(str.split, _TABLE.split(";")) for name in own[1:]}
"""Suffix, or whole file name in lower case -> language."""
_NAMES = frozenset(_LANGUAGES)
_DOTTED = frozenset(name for name in _NAMES if name[0] == ".")
_DATA = frozenset({"yaml", "properties", "toml", "ini", "css", "scss", "less"})
_ESCAPED, _ESCAPE = ("yaml", "toml", "properties"), re.compile(r"\\u(?!000)([0-9a-fA-F]{4})")
_SHEBANG = re.compile(rb"#!.*?\b(python|bash|zsh|sh|node|ruby|perl|lua|php)")
_SHELLS = {"bash": "shell", "zsh": "shell", "sh": "shell", "node": "javascript"}

_WORDS = (
    r"(?:class|interface|struct|enum|union|trait|impl|record|protocol|extension|object|module|namespace|mixin"
    r"|function|func|fun|fn|def|defp|defmodule|sub|filter|workflow|message|service|macro_rules!)"
)
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|abstract|final|sealed|open|override|virtual|async"
    r"|partial|data|inline|extern|unsafe|const|local|pub(?:\([\w ]+\))?)[ \t]+)*"
)
_DEFINITION = re.compile(
    rf"([ \t]*){_MODIFIERS}{_WORDS}\b[ \t*]*(?:\([^()\n]*\)[ \t]*)?(?:<[^<>\n]*>[ \t]*)?([A-Za-z_$][\w$:.-]*)"
)
_C_FUNCTION = re.compile(
    r"()(?![ \t]|return\b|else\b|typedef\b|#)[A-Za-z_][\w \t*&:<>,~]*?[ \t*&]([A-Za-z_~][\w:~]*)[ \t]*\([^;]*\)?[^;]*$"
)
_C_LIKE = frozenset({"c", "cpp", "objective-c", "java", "csharp"})
_ABOVE = ("#", "//", "/*", "*", "@", "--", ";;", "///", "[")


def _read(source: Source) -> Iterator[Parsed | Problem]:
    text, metadata = source.text()
    language = language_of(source)
    if language in _ESCAPED and "\\u" in text:
        text = clean(_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text))
    yield Parsed(text, "code", code_outline(text, language), language=language, metadata=metadata)


READER = Reader("code", _read, _NAMES & _DOTTED, _NAMES - _DOTTED, lambda head: _SHEBANG.match(head) is not None)


def language_of(source: Source) -> str:
    """Name of the programming language by name, suffix or the script's first line, or ""."""
    name = _LANGUAGES.get(source.name.lower()) or _LANGUAGES.get(source.suffix)
    if name:
        return name
    shebang = _SHEBANG.match(source.head())
    word = shebang[1].decode("ascii") if shebang else ""
    return _SHELLS.get(word, word)


def code_outline(text: str, language: str) -> Outline:
    if language in _DATA:
        return Outline(prose=False)
    lines = Lines(text)
    sections = _python(text, lines) if language == "python" else None
    return Outline(_by_keyword(lines, language) if sections is None else sections, prose=False)


def _python(text: str, lines: Lines) -> tuple[Section, ...] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: list[Section] = []
    stack: list[tuple[list[ast.stmt], int]] = [(tree.body, 1)]
    while stack:
        body, level = stack.pop()
        for node in body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            start = lines.start(_comments_above(lines, first))
            inner = lines.start(max(node.body[0].lineno - 1, node.lineno))
            end = lines.start(node.end_lineno or node.lineno)
            found.append(Section(start, min(inner, end), level, node.name))
            found.append(Section(end, end, level, ""))
            if isinstance(node, ast.ClassDef):
                stack.append((node.body, level + 1))
    return _without_empty_ends(found)


def _without_empty_ends(found: list[Section]) -> tuple[Section, ...]:
    """In order; an end that coincides with another section's start, or with an outer end, says nothing."""
    found.sort(key=lambda s: (s.start, bool(s.title), -s.level))
    kept: list[Section] = []
    for section in found:
        if kept and not kept[-1].title and kept[-1].start == section.start and section.level <= kept[-1].level:
            kept.pop()
        kept.append(section)
    return tuple(kept)


def _comments_above(lines: Lines, index: int) -> int:
    """First of the comment, attribute and decorator lines that are directly above line `index`."""
    while index and lines.line(index - 1).lstrip().startswith(_ABOVE):
        index -= 1
    return index


def _by_keyword(lines: Lines, language: str) -> tuple[Section, ...]:
    found: list[Section] = []
    depths: list[int] = []
    taken = 0
    for index in range(len(lines)):
        line = lines.line(index)
        if len(line) > 400:
            continue
        match = _DEFINITION.match(line)
        if match is None and language in _C_LIKE:
            match = _C_FUNCTION.match(line)
        if match is None:
            continue
        depth = len(match[1].expandtabs(4))
        while depths and depths[-1] >= depth:
            depths.pop()
        if len(depths) >= 2:
            continue  # a closure inside a method is no section
        depths.append(depth)
        start = max(_comments_above(lines, index), taken)
        found.append(Section(lines.start(start), lines.start(index + 1), len(depths), match[2]))
        taken = index + 1
    return tuple(found)
