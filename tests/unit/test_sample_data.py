"""The sample corpus has at least one file for every rule that tests, guide and demonstrations lean on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

import pytest
import yaml

from workbench.demo import sample_folder
from workbench.ingest.rules import FileRules, load_rules
from workbench.judgments.qrels import load_judgments
from workbench.records import Granularity

ROOT = sample_folder() / "files"
FILES = {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in sorted(ROOT.rglob("*")) if p.is_file()}
RULES = load_rules(sample_folder())
GIVEN = {path: RULES.for_file(path, FileRules()) for path in FILES}


def front(path: str) -> dict[str, object]:
    match = re.match(r"---\n(.*?)\n---\n", FILES[path], re.DOTALL)
    return dict(yaml.safe_load(match[1])) if match else {}


FRONT = {path: front(path) for path in FILES if path.endswith(".md")}


def with_text(pattern: str) -> list[str]:
    return [path for path, text in FILES.items() if re.search(pattern, text)]


def section(path: str, name: str) -> str:
    match = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", FILES[path], re.DOTALL | re.MULTILINE)
    return match[1].strip() if match else ""


def lines(path: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in FILES[path].splitlines()]


COVERED: dict[str, Callable[[], bool]] = {
    "40 to 75 short files": lambda: 40 <= len(FILES) <= 75 and max(map(len, FILES.values())) < 4000,
    "every text format": lambda: (
        {"md", "txt", "rst", "html", "py", "js", "jsonl", "csv", "json"} <= {p.rpartition(".")[2] for p in FILES}
    ),
    "two tenants": lambda: {rules.tenant for rules in GIVEN.values()} == {"acme", "birch"},
    "the same phrase in two tenants": lambda: (
        {GIVEN[p].tenant for p in with_text("(?i)refund without a receipt")} == {"acme", "birch"}
    ),
    "roles by rule": lambda: GIVEN["admin/salaries.md"].roles == ("admin",),
    "roles by front matter": lambda: FRONT["kb/invoice-lookup.md"]["allowed_roles"] == ["support", "finance"],
    "a page that asks for more than its folder": lambda: (
        "support" in str(FRONT["admin/widening-attempt.md"]["allowed_roles"])
        and GIVEN["admin/widening-attempt.md"].roles == ("admin",)
    ),
    "four sensitivities": lambda: (
        {"public", "normal", "internal", "confidential"}
        <= {r.sensitivity for r in GIVEN.values()} | {str(f.get("sensitivity")) for f in FRONT.values()}
    ),
    "types and years to filter by": lambda: (
        {"note", "guide", "policy", "incident", "reference"} <= {str(f.get("type")) for f in FRONT.values()}
        and {2022, 2023, 2024, 2025} <= {f.get("year") for f in FRONT.values()}
    ),
    "files without front matter": lambda: FRONT["kb/no-front-matter.md"] == {},
    "one document in two collections": lambda: (
        GIVEN["artifacts/report-storm-otto.md"].collections == ("artifact_chunks", "artifacts")
    ),
    "a collection of whole documents": lambda: (
        RULES.granularity("artifacts") is Granularity.DOCUMENT
        and RULES.granularity("artifact_chunks") is Granularity.CHUNK
    ),
    "memory and history": lambda: all(
        {"id", "text", "created_at", "metadata"} <= set(r) for f in ("memory", "history") for r in lines(f"{f}.jsonl")
    ),
    "examples with code and tags": lambda: all(
        {"title", "description", "code", "tags", "url"} <= set(r) for r in lines("examples.jsonl")
    ),
    "an identifier with digits": lambda: "kb/invoice-lookup.md" in with_text("ACME-INV-49302"),
    "snake_case and camelCase": lambda: (
        {"kb/naming-rules.md", "src/import_keys.py"} <= set(with_text("snake_case_name"))
        and "src/gauge.js" in with_text("maxRetryCount")
    ),
    "a word with and without its accent": lambda: (
        "kb/zurich-office.md" in with_text("Zürich")
        and "Zürich" not in FILES["notes/travel.txt"]
        and "Zurich" in FILES["notes/travel.txt"]
    ),
    "a Chinese word inside a longer run": lambda: bool(with_text(r"[\u4e00-\u9fff]数据[\u4e00-\u9fff]")),
    "Japanese, Hindi and Thai": lambda: all(
        with_text(f"[{block}]") for block in ("\u3041-\u30ff", "\u0900-\u097f", "\u0e01-\u0e5b")
    ),
    "C++, C#, F# and .NET beside plain C": lambda: all(
        with_text(re.escape(word)) for word in ("C++", "C#", "F#", ".NET", "plain C")
    ),
    "an exact phrase, and its words scattered elsewhere": lambda: (
        with_text("the kettle is never the cause") == ["kb/kettle.md"]
        and all(re.search(rf"\b{w}\b", FILES["notes/kitchen.txt"]) for w in ("kettle", "never", "cause"))
    ),
    "a family of words for a prefix": lambda: len(set(re.findall(r"calibr\w*", " ".join(FILES.values()).lower()))) >= 4,
    "a word to exclude": lambda: (
        with_text("(?i)mercury.*planet") == ["notes/night-sky.txt"] and len(with_text("(?i)mercury")) >= 3
    ),
    "Summary or Overview sections": lambda: (
        bool(section("pages/rhythm.md", "Summary")) and bool(section("pages/arpeggio.md", "Overview"))
    ),
    "Examples under and over 500 characters": lambda: (
        0 < len(section("pages/arpeggio.md", "Examples")) < 500 < len(section("pages/rhythm.md", "Examples"))
    ),
    "a page without Summary and Examples": lambda: section("pages/samples.md", "Summary") == "",
    "duplicates": lambda: max(Counter(FILES.values()).values()) == 3,
    "ties: the same words in another order": lambda: (
        len({tuple(sorted(re.findall(r"\w+", FILES[f"ties/tie-{x}.txt"].lower()))) for x in "abc"}) == 1
    ),
    "a document of many chunks, for neighbours": lambda: len(FILES["kb/installation.md"]) > 2500,
    "hostile HTML, Markdown, formulas and templates": lambda: all(
        word in FILES["hostile/hostile.md"]
        for word in ("<script>", "onerror=", "](javascript:", "$x$", ":red[", "{{ 7 * 7 }}", "DROP TABLE", "=HYPERLINK")
    ),
    "hostile terminal codes and direction marks": lambda: all(
        mark in FILES["hostile/hostile.md"] for mark in ("\x1b[31m", "\x07", "\u202e", "\u2066", "\u200b", "e\u0301")
    ),
    "text that gives orders": lambda: bool(with_text("Ignore everything above")),
    "HTML with parts that are no text": lambda: all(
        w in FILES["web/status.html"] for w in ("<script>", "<style>", "<nav>", "&rsquo;")
    ),
}


@pytest.mark.parametrize("rule", COVERED)
def test_the_sample_covers_the_rule(rule: str) -> None:
    """Each rule has its file."""
    assert COVERED[rule]()


def test_the_sample_judgments_name_files_and_records_that_exist() -> None:
    """About twenty queries, each with a relevant document; records are named `file#id`."""
    judgments = load_judgments(sample_folder())
    assert len(judgments) >= 20
    assert not judgments.without_relevant
    records = {f"{p}#{r['id']}" for p in FILES if p.endswith(".jsonl") for r in lines(p)}
    assert sorted(judgments.document_keys - set(FILES) - records) == []
    assert all(topic.keywords for topic in judgments.topics.values())
