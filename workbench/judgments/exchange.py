"""Query sets and judgments in and out: what other programs write and read, and a form that keeps everything.

Two families of formats. BEIR folders and TREC files say for each query which *documents* are how relevant: imported, they are
judgments of whole documents; exported, a document has the highest grade of its passages, of all people's (`judging`). Our
own JSONL and CSV have a row for each judgment with passage, judge, time and note, so that export and import again
lose nothing, also into another corpus with the same documents.

An import is one transaction: a file with one bad line changes nothing, and the error names its lines.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.errors import JudgmentError, UsageError, counted
from workbench.judgments import formats
from workbench.judgments.formats import qrels_to_trec, words
from workbench.judgments.judging import Judging, Located, anchors, with_own_ids
from workbench.judgments.log import LONGEST_JUDGE, LONGEST_NOTE
from workbench.judgments.qrels import Topic, load_judgments
from workbench.judgments.query_sets import JUDGING, Query, add_queries, checked
from workbench.locators import whole_number
from workbench.markup import cell
from workbench.saved.database import time_of

IMPORTED = "imported"
"""The judge of judgments that come without one."""

FORMATS = ("jsonl", "csv", "quepid", "trec", "beir")
MOST_UNPACKED = 500_000_000
COLUMNS = (
    "query_id", "query", "keywords", "document", "root", "start", "end", "quote", "grade", "judge", "time", "note",
    "need",
)  # fmt: skip
_OWN = {"quote", "judge"}


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: `judgments == new + unchanged`; `unknown` are documents that the corpus does not have now."""

    name: str
    queries: int
    judgments: int
    new: int
    unchanged: int
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """One judgment of a file, with the name of its document as the file spells it."""

    query_id: str
    document: str
    grade: int
    judge: str
    root: str = ""
    start: int = 0
    end: int = 0
    quote: str = ""
    time: float | None = None
    note: str = ""


# --- in --------------------------------------------------------------------------------------------------------------------


def import_queries(judging: Judging, path: str | Path, name: str) -> tuple[int, int]:
    """Add the queries of a file to a set, which is made where it is not there.

    Args:
        path: `.jsonl` (`_id` and `text`, as BEIR has it), `.csv` (a column `query` or `text`, if wanted `query_id` and
            `keywords`), TREC topics, or a text file with a query a line.

    Returns:
        How many queries the file has, and how many of them were new.
    """
    queries = read_queries(Path(path))
    return len(queries), judging.sets.add(name, queries, make=True, note="Imported", by=judging.judge)


def read_queries(file: Path) -> tuple[Query, ...]:
    """The queries of a file; see `import_queries`. Raises JudgmentError."""
    draft = formats.Draft()
    found: dict[str, Query] = {}
    suffix = file.suffix.lower()
    if suffix == ".csv":
        rows: list[tuple[int, Mapping[str, Any]]] = list(formats.csv_rows(file, draft, (formats.TEXT_NAMES,)))
    elif suffix in formats.TABLES:
        rows = list(formats.json_rows(file, draft))
    elif formats.are_trec_topics(file, formats.text_of(file)):
        formats.read_topics(file, draft)
        rows = [(1, {"_id": t.query_id, "text": t.text, "need": t.need}) for t in draft.topics.values()]
    else:
        rows = [(line, {"text": text}) for line, text in formats.lines_of(file)]
    for line, row in rows:
        text = formats.first_of(row, formats.TEXT_NAMES)
        try:
            need = formats.first_of(row, formats.NEED_NAMES)
            query = checked(Query(formats.id_of(row), text, formats.read_keywords(row), need=need))
        except JudgmentError as exc:
            draft.fault(file, line, exc.message)
            continue
        if found.setdefault(query.query_id, query) != query:
            draft.fault(file, line, f"query {query.query_id!r} was given before with another text")
    draft.check()
    if not found:
        raise JudgmentError(f"{file.name} holds no queries", "Give a file with a query a line")
    return tuple(found.values())


def holds_judgments(file: Path) -> bool:
    """Whether a file looks like judgments: a reader of the wrong kind would name lines that are right."""
    if file.suffix.lower() not in {*formats.TABLES, ".txt"}:
        return True
    lines = [line for _, line in formats.lines_of(file)]
    if file.suffix.lower() == ".txt":
        return 2 * sum(re.fullmatch(r"\s*\S+\s+\S+\s+.+\s[+-]?\d+\s*", line) is not None for line in lines) > len(lines)
    words = set(re.findall(r"\w+", lines[0].lower())) if lines else set()
    return not words.isdisjoint({*formats.GRADE_NAMES, "relevant"})


def import_judgments(
    judging: Judging,
    path: str | Path,
    name: str | None = None,
    *,
    judge: str | None = None,
    split: str | None = None,
    topics: str | Path | None = None,
) -> Imported:
    """Add the queries and judgments of a file or folder to a set, which is made where it is not there.

    Args:
        name: The set; None is the file's or folder's name.
        judge: Whose judgments they are, where the file does not say; None is `imported`.
    """
    who = judge or IMPORTED
    with unpacked(Path(path)) as source:
        own = _read_own(source, who) if source.suffix.lower() in formats.TABLES and source.is_file() else None
        if own is None:
            loaded = load_judgments(source, split=split, topics=topics)
            queries = _queries(loaded.topics.values())
            rows = [_Row(i, d, g, who) for i, found in loaded.qrels.items() for d, g in found.items()]
            title = loaded.name
        else:
            (queries, rows), title = own, source.stem
        return _write(judging, name or (title if source == Path(path) else Path(path).stem), queries, rows)


def _queries(topics: Iterable[Topic]) -> list[Query]:
    return [Query(t.query_id, t.text, t.keywords, need=t.need) for t in topics]


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A ZIP archive of judgments as a folder: the one that holds the queries or the qrels; any other path as it is.

    Raises JudgmentError where it is no archive, is too large, or has a name that leads out of it.
    """
    if path.suffix.lower() != ".zip" or not path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                if sum(i.file_size for i in archive.infolist()) > MOST_UNPACKED:
                    raise JudgmentError(
                        f"{path.name} holds more than {MOST_UNPACKED:,} bytes", "Unpack it, and give the folder"
                    )
                archive.extractall(folder)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as exc:
            raise JudgmentError(
                f"{path.name} cannot be unpacked: {exc}", "Pack the folder again as a plain ZIP"
            ) from exc
        found, inside = Path(folder), _entries(Path(folder))
        while len(inside) == 1 and inside[0].is_dir():
            found, inside = inside[0], _entries(inside[0])
        with_topics = [
            p for p in inside if p.with_suffix(formats.TOPICS).is_file() and not p.name.endswith(formats.TOPICS)
        ]
        yield with_topics[0] if with_topics else inside[0] if len(inside) == 1 else found


def _entries(folder: Path) -> list[Path]:
    return [p for p in sorted(folder.iterdir()) if not p.name.startswith((".", "__"))]


def import_files(judging: Judging, files: Sequence[Path], name: str) -> str:
    """Add what some files hold to a set, which is made where it is not there: queries, or judgments, or qrels with the file of
    their topics beside them. Returns what was done, in a sentence.
    """
    topics = [f for f in files if re.match(r"(queries|topics)\b|.*\.topics\.", f.name, re.IGNORECASE)]
    others = [f for f in files if f not in topics]
    if len(files) > 1 and (len(topics), len(others)) != (1, 1):
        names = ", ".join(f.name for f in files)
        remedy = "Give one file, or qrels with queries.jsonl or topics"
        raise JudgmentError(f"It is not clear what these files are: {names}", remedy)
    (file,) = others or topics
    if not others or (not topics and file.suffix.lower() != ".zip" and not holds_judgments(file)):
        total, new = import_queries(judging, file, name)
        return f"{name}: {counted(total, 'query|queries')}, {new} of them new."
    report = import_judgments(judging, file, name, topics=topics[0] if topics else None)
    words = f"{name}: {counted(report.judgments, 'judgment')}, {report.new} of them new; {report.queries} new queries."
    if report.unknown:
        words += f" {counted(len(report.unknown), 'document')} of them not in this corpus, such as {report.unknown[0]}."
    return words


def _write(judging: Judging, name: str, queries: Sequence[Query], rows: Sequence[_Row]) -> Imported:
    names = list(dict.fromkeys(r.document for r in rows))
    found, unknown = anchors(judging, names)
    with judging.sets.database.writing(JUDGING) as db:
        number = judging.sets.found_or_made(db, name, "Imported", judging.judge)
        new_queries = add_queries(db, number, name, queries)
        known = {
            r["query_id"] for r in db.execute("SELECT query_id FROM judging_queries WHERE set_number = ?", (number,))
        }
        lost = next((r.query_id for r in rows if r.query_id not in known), None)
        if lost is not None:
            raise JudgmentError(
                f"The judgments name query {lost!r}, and its text is not known",
                "Give the queries too (--topics), or import them into the set first",
            )
        valid = judging.log.valid_in(db, number)
        before = {(j.query_id, j.anchor.key, j.anchor.root, j.judge): j.grade for j in valid}
        new = 0
        for row in rows:
            document = found[row.document]
            anchor = replace(document, root=document.root or row.root, start=row.start, end=row.end, quote=row.quote)
            if before.get((row.query_id, anchor.key, anchor.root, row.judge)) == row.grade:
                continue
            judging.log.write(db, number, row.query_id, anchor, row.grade, row.judge, row.note, row.time)
            new += 1
    return Imported(name, new_queries, len(rows), new, len(rows) - new, unknown)


def _read_own(file: Path, judge: str) -> tuple[list[Query], list[_Row]] | None:
    """Queries and judgments of our own form; None where the file is of another."""
    draft = formats.Draft()
    rows = list(formats.judged_rows(file, draft))
    if not any(_OWN & set(row) for _, row in rows):
        return None
    made: list[_Row] = []
    for line, row in rows:
        text = formats.query_text(row)
        query_id = formats.one_spaced(formats.id_of(row) or formats.own_id(row))
        if text:
            need = formats.first_of(row, formats.NEED_NAMES)
            draft.add_topic(file, line, query_id, text, formats.read_keywords(row), need)
            if not any(str(row.get(n) or "") for n in (*formats.DOCUMENT_NAMES, *formats.GRADE_NAMES)):
                continue  # a query that is not judged
        try:
            made.append(_row(row, query_id, judge))
        except ValueError as exc:
            draft.fault(file, line, str(exc))
    draft.check()
    return _queries(draft.topics.values()), made


def _row(row: Mapping[str, Any], query_id: str, judge: str) -> _Row:
    """One row. Raises ValueError, which says what is wrong with it."""
    named = next((str(row[n]) for n in formats.DOCUMENT_NAMES if row.get(n)), "")
    document = unicodedata.normalize("NFC", named)  # a path may begin or end with a space
    raw = formats.grade_of(row)
    grade = formats.read_grade(raw)
    start, end, quote = _offset(row.get("start")), _offset(row.get("end")), str(row.get("quote") or "")
    who, note = " ".join(str(row.get("judge") or judge).split()), str(row.get("note") or "")
    if not query_id or not document.strip():
        raise ValueError("the query id or the document is empty")
    if grade is None:
        raise ValueError(f"the grade {raw!r} is not a whole number")
    if start is None or end is None or end < start or (end > 0) != bool(quote):
        raise ValueError(
            "start, end and quote are not those of a passage: 0 <= start < end and its text, or none of them"
        )
    if len(who) > LONGEST_JUDGE or len(note) > LONGEST_NOTE:
        raise ValueError("the judge's name or the note is too long")
    try:
        time = _time(row.get("time"))
    except (ValueError, OverflowError) as exc:
        raise ValueError(f"the time {row.get('time')!r} is not like 2025-01-31T12:00:00+00:00") from exc
    return _Row(query_id, document, grade, who, str(row.get("root") or ""), start, end, quote, time, note)


def _offset(value: Any) -> int | None:
    text = str(value if value is not None else "").strip() or "0"
    return whole_number(text, None, 10**12)


def _time(value: Any) -> float | None:
    if value is None or not str(value).strip():
        return None
    read = datetime.fromisoformat(str(value).strip())
    seconds = (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    time_of(seconds)  # a time at the end of the calendar may be none in UTC
    return seconds


# --- out -------------------------------------------------------------------------------------------------------------------


def export_judgments(
    judging: Judging, name: str, target: str | Path, form: str, judges: Sequence[str] | None = None
) -> int:
    """Write a set's judgments, of what the principal may see.

    Args:
        judges: Whose; None is everybody's for `jsonl` and `csv`, every person's for the others.

    Returns:
        Number of judgments written.
    """
    if form not in FORMATS:
        raise JudgmentError(f"There is no format {form!r}", "Use " + ", ".join(FORMATS))
    path = Path(target)
    if form in {"jsonl", "csv"}:
        rows = _own_rows(judging, name, judges)
        _save(path, _as_jsonl(rows) if form == "jsonl" else _as_csv(rows))
        return sum(row["grade"] != "" for row in rows)
    documents = with_own_ids(judging, judging.judgments(name, judges, documents=True))
    queries = list(documents.topics.values())
    if form == "quepid":
        texts = ((documents.topics[i].text, grades) for i, grades in documents.qrels.items())
        rated = [{"query": text, "docid": d, "rating": g} for text, grades in texts for d, g in grades.items()]
        _save(path, _as_csv(rated, ("query", "docid", "rating")))
    elif form == "trec":
        _save(path, qrels_to_trec(documents))
        lines = ("\t".join((words(q.query_id), q.text, *([q.keywords] if q.keywords else []))) for q in queries)
        _save(path.with_suffix(formats.TOPICS), "".join(line + "\n" for line in lines))
    else:
        for key in sorted(documents.document_keys):
            if key != formats.clean(key) or not {"\t", "\n", "\r"}.isdisjoint(key):
                raise UsageError(f"The BEIR form cannot hold the name {key!r}", "Export as jsonl, csv or trec")
        header = "query-id\tcorpus-id\tscore\n"
        lines = (f"{i}\t{d}\t{g}\n" for i in documents.query_ids for d, g in documents.qrels[i].items())
        _save(path / "qrels" / "test.tsv", header + "".join(lines))
        found = (
            {"_id": q.query_id, "text": q.text, **({"keywords": q.keywords} if q.keywords else {})} for q in queries
        )
        _save(path / "queries.jsonl", _as_jsonl(list(found)))
    return sum(map(len, documents.qrels.values()))


def export_name(name: str, form: str) -> str:
    """What the file of a set's judgments in a form is called."""
    ending = {"quepid": ".quepid.csv", "trec": ".trec.zip", "beir": ".beir.zip"}.get(form, f".{form}")
    return _stem(name) + ending


def _stem(name: str) -> str:
    return "".join(c if c.isalnum() or c in " ._-" else "_" for c in name).strip(". ") or "set"


def exported(judging: Judging, name: str, form: str) -> bytes:
    """A set's judgments as one file, which `export_name` names. Forms of several files are a ZIP archive of them."""
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / _stem(name)
        target = {"trec": own / f"{own.name}.qrels", "beir": own}.get(form, own / export_name(name, form))
        export_judgments(judging, name, target, form)
        if form not in ("trec", "beir"):
            return target.read_bytes()
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(p for p in own.rglob("*") if p.is_file()):
                archive.write(file, file.relative_to(folder))
        return out.getvalue()


def _own_rows(judging: Judging, name: str, judges: Sequence[str] | None) -> list[dict[str, Any]]:
    by_query: dict[str, list[Located]] = {}
    for one in judging.located(name, judges=judges):
        by_query.setdefault(one.judgment.query_id, []).append(one)
    if not by_query:
        raise JudgmentError(f"The set {name!r} has no judgments to export", "Judge some of its results first")
    rows: list[dict[str, Any]] = []
    for query in judging.queries(name):
        asked = {"query_id": query.query_id, "query": query.text, "keywords": query.keywords or "", "need": query.need}
        if query.query_id not in by_query:
            rows.append(dict.fromkeys(COLUMNS, "") | asked)
        for one in by_query.get(query.query_id, ()):
            j, a = one.judgment, one.judgment.anchor
            rows.append(
                {
                    **asked, "document": one.path, "root": a.root, "start": a.start, "end": a.end, "quote": a.quote,
                    "grade": j.grade, "judge": j.judge, "time": j.time.isoformat(), "note": j.note,
                }
            )  # fmt: skip
    return rows


def _as_jsonl(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = COLUMNS) -> str:
    out = io.StringIO()
    # A carriage return is left bare by csv's own quoting, and read as a line end.
    bare = any("\r" in str(value) for row in rows for value in row.values())
    writer = csv.DictWriter(out, columns, lineterminator="\n", quoting=csv.QUOTE_ALL if bare else csv.QUOTE_MINIMAL)
    writer.writeheader()
    writer.writerows({k: cell(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows)
    return out.getvalue()


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as exc:
        raise JudgmentError(f"{path} cannot be written: {exc.strerror or exc}", "Choose another place") from exc
