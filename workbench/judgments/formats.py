"""Readers of judgment files: BEIR, TREC, CSV and JSONL.

Every reader goes through the whole file, collects what is wrong with its lines, and raises one error that names them; a
file with one bad line gives no judgments at all, because a mean over what happened to be readable looks like a result.
Texts and document keys are brought to NFC, as paths are everywhere in the workbench; a query's id is kept as it is written.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from workbench import settings
from workbench.errors import JudgmentError
from workbench.judgments.qrels import Judgments, Topic
from workbench.judgments.query_sets import query_id_of
from workbench.markup import cell_text

SHOWN_FAULTS = 5
LOWEST_GRADE, HIGHEST_GRADE = -100, 100  # trec_eval allocates a slot a grade

GRADE_NAMES = ("grade", "score", "relevance", "rel", "label", "judgment", "judgement", "rating")
QUERY_ID_NAMES = ("query_id", "query-id", "qid", "_id", "id", "topic")
TEXT_NAMES = ("query", "text", "question", "title")
"""The names of a query's text; beside a document, a title is the document's (`query_text`)."""
DOCUMENT_NAMES = ("document", "path", "doc_id", "document_id", "corpus-id", "docid", "docno", "doc")
JSONL = {".jsonl", ".ndjson"}
NEED_NAMES = ("need", "information_need", "information need")
TABLES = {".csv", *JSONL}
"""Endings of files whose rows name their columns; in the others the place of a field says what it is."""
_QUERIES = "queries.jsonl"
TOPICS = ".topics.tsv"
"""The ending of the queries' file that is beside TREC qrels, in the place of theirs."""
_PARTS = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
_DELIMITERS = (",", ";", "\t")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_TOPIC_PART = re.compile(
    r"<(num|title|desc|narr)>\s*(?:(?:Number|Topic|Description|Narrative):)?(.*?)(?=</?[a-z][^<>\n]*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_RUN = re.compile(r"\s*\S+\s+Q0\s+\S.*\s\d+\s+[-+.\deE]+\s+\S+\s*")


class Draft:
    """Judgments in the making: what was read, and what could not be."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.qrels: dict[str, dict[str, int]] = {}
        self._faults: list[tuple[str, int, str]] = []
        self._lines: dict[tuple[str, str], int] = {}
        self.repeated = 0

    def fault(self, file: Path, line: int, what: str) -> None:
        """Note a line that cannot be read."""
        self._faults.append((file.name, line, what))

    def add_topic(self, file: Path, line: int, query_id: str, text: str, keywords: str | None, need: str = "") -> None:
        """Add a query; the same id again must say the same, and may bring its need."""
        query_id = one_spaced(query_id)
        topic = Topic(query_id, text, keywords, need)
        if not query_id:
            self.fault(file, line, "the query has no id")
        elif _CONTROL.search(query_id):
            self.fault(file, line, f"the query id {query_id!r} has a control character")
        elif not text:
            self.fault(file, line, f"query {query_id!r} has no text")
        elif self.topics.setdefault(query_id, topic) != topic:
            self.fault(file, line, f"query {query_id!r} was given before with another text")
        elif not self.topics[query_id].need:
            self.topics[query_id] = topic

    def add_grade(self, file: Path, line: int, query_id: str, document: str, raw: Any) -> None:
        """Add a judgment; the same pair again must have the same grade."""
        grade, query_id = read_grade(raw), one_spaced(query_id)
        if not query_id or not document:
            self.fault(file, line, "the query id or the document is empty")
        elif _CONTROL.search(query_id):
            self.fault(file, line, f"the query id {query_id!r} has a control character")
        elif grade is None:
            self.fault(file, line, f"the grade {raw!r} is not a whole number from {LOWEST_GRADE} to {HIGHEST_GRADE}")
        else:
            grades = self.qrels.setdefault(query_id, {})
            if document not in grades:
                grades[document] = grade
                self._lines[query_id, document] = line
            elif grades[document] == grade:
                self.repeated += 1
            else:
                before = self._lines[query_id, document]
                self.fault(file, line, f"{query_id!r} and {document!r} had grade {grades[document]} in line {before}")

    def add_row(self, file: Path, line: int, row: Mapping[str, Any]) -> None:
        """Add a judgment with its query's text if it has one, or a query with `relevant`: documents, or documents and grades."""
        query_id, relevant = id_of(row) or own_id(row), row.get("relevant")
        if relevant is None:
            text, grades = query_text(row), {first_of(row, DOCUMENT_NAMES): grade_of(row)}
        else:
            text = first_of(row, TEXT_NAMES)
            grades = dict.fromkeys(map(str, relevant), 1) if isinstance(relevant, list) else relevant
        if text or relevant is not None:
            self.add_topic(file, line, query_id, text, read_keywords(row), first_of(row, NEED_NAMES))
        if not isinstance(grades, dict) or not grades:
            return self.fault(file, line, "relevant is neither a list of documents nor documents with grades")
        for document, grade in grades.items():
            self.add_grade(file, line, query_id, clean(document), grade)

    def finish(self, source: Path, name: str, complete: bool) -> Judgments:
        """The judgments, or the error; `complete` says that every judged query must have a text."""
        if complete:
            firsts: dict[str, int] = {}
            for (query_id, _), line in self._lines.items():
                firsts.setdefault(query_id, line)
            for query_id, line in firsts.items():
                if query_id not in self.topics:
                    self.fault(source, line, f"query {query_id!r} is not among the queries")
        self.check()
        if not self.qrels:
            raise JudgmentError(f"{source} holds no judgments", "Give a file with at least one judged query")
        notes = (f"{self.repeated} lines repeat an earlier judgment with the same grade",) if self.repeated else ()
        return Judgments(self.topics, self.qrels, name, notes)

    def check(self, lost: str = "no judgments were read") -> None:
        """Raises JudgmentError with the lines that could not be read, where there are any; `lost` is what came of the file."""
        if self._faults:
            shown = "; ".join(f"{file}, line {line}: {what}" for file, line, what in self._faults[:SHOWN_FAULTS])
            more = len(self._faults) - SHOWN_FAULTS
            raise JudgmentError(shown + (f"; and {more} more" if more > 0 else ""), f"Fix these lines; {lost}")


def load(path: Path, *, split: str | None, topics: Path | None, name: str | None) -> Judgments:
    """Find out which form a path has and read it; see `judgments.load_judgments`."""
    draft = Draft()
    if not path.exists():
        raise JudgmentError(f"There are no judgments at {path}", "Give a folder with queries and qrels, or a file")
    if path.is_dir():
        qrels, queries = _parts(path, split)
    else:
        if split is not None:
            raise JudgmentError(f"{path.name} is a file and has no splits", "Leave split out, or give the folder")
        qrels, queries = path, next((p for p in read_along(path) if p.is_file()), None)
    queries = topics or queries
    if queries is not None:
        (read_queries if queries.suffix.lower() in JSONL else read_topics)(queries, draft)
    for line, row in judged_rows(qrels, draft):
        if qrels.suffix.lower() in TABLES:
            draft.add_row(qrels, line, row)
        else:  # a name that TREC's form spells with `%20` at its ends has spaces there
            draft.add_grade(qrels, line, *row.values())
    return draft.finish(qrels, name if name is not None else _title(path, split), complete=queries is not None)


def _title(path: Path, split: str | None) -> str:
    stem = path.resolve().name if path.is_dir() else path.stem
    return f"{stem} ({split})" if split else stem


def _parts(folder: Path, split: str | None) -> tuple[Path, Path | None]:
    """The qrels file and the queries file of a folder. Raises JudgmentError where the choice is open."""
    found = {p.stem: p for p in sorted((folder / "qrels").glob("*.tsv"))}
    found.update({p.name[len("qrels.") : -len(".tsv")]: p for p in sorted(folder.glob("qrels.*.tsv"))})
    plain = next((folder / n for n in ("qrels.tsv", "qrels.csv", "qrels.txt", "qrels") if (folder / n).is_file()), None)
    splits = {**({"test": plain} if plain else {}), **found}
    if split is not None and split not in splits:
        known = ", ".join(splits) or "none"
        raise JudgmentError(f"{folder} has no split {split!r}", f"Its splits are: {known}")
    if not splits:
        remedy = "It should have qrels.tsv or qrels/test.tsv, and queries.jsonl beside it"
        raise JudgmentError(f"{folder} holds no qrels", remedy)
    if split is None and plain is None and "test" not in found and len(found) > 1:
        raise JudgmentError(f"{folder} has several splits", "Choose one with split=: " + ", ".join(found))
    qrels = splits[split] if split else plain or splits.get("test") or next(iter(splits.values()))
    names = [f"queries.{split}.jsonl", _QUERIES, "queries.tsv", "topics.txt", "topics.tsv", "topics"]
    queries = next((folder / n for n in names if (folder / n).is_file()), None)
    return qrels, queries


def read_along(file: Path) -> tuple[Path, ...]:
    """What else is read with judgments: the files of a folder; beside qrels the queries, the first that is there counting."""
    if file.is_dir():
        return tuple(p for form in ("qrels*", "qrels/*.tsv", "queries*", "topics*", "corpus*") for p in file.glob(form))
    suffix = file.suffix.lower()
    if suffix in {".csv", *JSONL} or file.name.lower().endswith(TOPICS):
        return ()
    beir = (file.parent / _QUERIES, file.parent.parent / _QUERIES) if suffix == ".tsv" else ()
    return (file.with_suffix(TOPICS), *beir)


def read_queries(file: Path, draft: Draft) -> None:
    """BEIR queries: one JSON object a line with `_id`, `text` and if wanted `keywords` (text, or a list of words)."""
    for line, row in json_rows(file, draft):
        need = first_of(row, NEED_NAMES)
        draft.add_topic(file, line, id_of(row), first_of(row, TEXT_NAMES), read_keywords(row), need)


def read_topics(file: Path, draft: Draft) -> None:
    """TREC topics (`<top>` with `<num>` and `<title>`; `<desc>` and `<narr>` are the need), or lines of id, tab, text; in our own
    form also tab and keywords.
    """
    text = text_of(file)
    if not are_trec_topics(file, text):
        for line, row in lines_of(file):
            query_id, tab, words = row.partition("\t")
            keywords = ""
            if file.name.lower().endswith(TOPICS):
                words, _, keywords = words.partition("\t")
            if tab:
                draft.add_topic(file, line, spoken(query_id.strip()), clean(words), clean(keywords) or None)
            else:
                draft.fault(file, line, "there is no tab between id and text")
        return
    for match in re.finditer(r"<top>(.*?)(?:</top>|(?=<top>)|\Z)", text, re.DOTALL | re.IGNORECASE):
        line = text.count("\n", 0, match.start()) + 1
        parts = {name.lower(): clean(one_spaced(words)) for name, words in _TOPIC_PART.findall(match[1])}
        if not parts.get("num") or "title" not in parts:
            draft.fault(file, line, "the topic has no <num> or no <title>")
        else:
            need = "\n".join(filter(None, (parts.get("desc"), parts.get("narr"))))
            draft.add_topic(file, line, parts["num"].split()[0], parts["title"], None, need)


def are_trec_topics(file: Path, text: str) -> bool:
    return file.suffix.lower() != ".tsv" and "<top>" in text.lower()


def judged_rows(file: Path, draft: Draft) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of a file of judgments with their lines, whatever its form: CSV with a header, JSONL, BEIR's `.tsv`, else TREC."""
    suffix = file.suffix.lower()
    if suffix == ".csv":
        # Quepid's form has queries by their text alone.
        yield from csv_rows(file, draft, ((*QUERY_ID_NAMES, "query"), DOCUMENT_NAMES, GRADE_NAMES))
    elif suffix in JSONL:
        yield from json_rows(file, draft)
    else:
        read = _beir_fields if suffix == ".tsv" else _trec_fields
        for line, text in lines_of(file):
            if (fields := read(file, line, text, draft)) is not None:
                yield line, dict(zip(("query_id", "document", "grade"), fields, strict=True))


def _beir_fields(file: Path, line: int, row: str, draft: Draft) -> Sequence[str] | None:
    """BEIR qrels: query id, document key and grade, separated by tabs; the first line may be a header."""
    fields = [f.strip() for f in row.split("\t")]
    if line == 1 and len(fields) == 3 and fields[0].lower() in QUERY_ID_NAMES and read_grade(fields[2]) is None:
        if fields[2].lower() not in GRADE_NAMES:
            # A column of another name may run the other way, as Cleverdon's codes do (1 is the best).
            draft.fault(file, line, f"the third column is called {fields[2]!r}, not score")
        return None
    if len(fields) != 3:
        draft.fault(file, line, f"there are {len(fields)} fields between tabs instead of 3")
        return None
    return fields


def _trec_fields(file: Path, line: int, row: str, draft: Draft) -> Sequence[str] | None:
    """TREC qrels: query, iteration, document and grade, separated by spaces; a document key may hold spaces, also as `%20`."""
    if _RUN.fullmatch(row):
        raise JudgmentError(
            f"{file.name}, line {line}: this is a line of a run (query, Q0, document, rank, score, name), not of qrels",
            "Give the qrels here: query, iteration, document, grade",
        )
    head = row.split(None, 2)
    tail = head[2].rsplit(None, 1) if len(head) == 3 else []
    if len(tail) != 2:
        draft.fault(file, line, "there are fewer than 4 fields: query, iteration, document, grade")
        return None
    return spoken(head[0]), spoken(clean(tail[0])), tail[1]


def lines_of(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, with their numbers; split on line feeds only (JSON strings may hold U+2028)."""
    return ((n, line) for n, line in enumerate(text_of(file).split("\n"), 1) if line.strip())


def csv_rows(file: Path, draft: Draft, needed: Sequence[Sequence[str]]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The rows of a CSV file by column, with their lines. `file`: The file; its first row that is not blank names the
    columns. What is between the first two names (a comma, a semicolon as spreadsheets write it in many countries, or a
    tab) separates the fields.
    """
    text = text_of(file, as_is=True)  # the line ends inside quotes are the text's own
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a passage may be longer than csv's own limit
    first = next((row for row in text.splitlines() if row.strip()), "")
    delimiter = min(_DELIMITERS, key=lambda mark: (first + mark).index(mark))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    columns: list[str] = []
    line = 1
    try:
        for fields in reader:
            if not any(f.strip() for f in fields):
                pass
            elif not columns:
                columns = [f.strip().lower() for f in fields]
                twice = next((name for n, name in enumerate(columns) if name and name in columns[:n]), None)
                if twice is not None:
                    draft.fault(file, line, f"the header names {twice} twice")
                    return
                missing = [names[0] for names in needed if not set(names) & set(columns)]
                if missing:
                    draft.fault(file, line, f"the header has no column {', '.join(missing)}")
                    return
            elif len(fields) != len(columns):
                draft.fault(file, line, f"there are {len(fields)} fields under {len(columns)} columns")
            else:
                yield line, dict(zip(columns, map(cell_text, fields), strict=True))
            line = reader.line_num + 1
    except csv.Error as exc:
        draft.fault(file, line, f"this is not CSV: {str(exc).partition(' - ')[0]}")


def json_rows(file: Path, draft: Draft) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a JSONL file, with their lines; what is none is a fault."""
    for line, row in lines_of(file):
        try:
            value = json.loads(row, object_pairs_hook=_once)
        except RecursionError:
            draft.fault(file, line, "this is not JSON: nested too deep")
            continue
        except ValueError as exc:  # also a number of thousands of digits, and what `_once` refuses
            draft.fault(file, line, f"this is not JSON: {getattr(exc, 'msg', exc)}")
            continue
        if _HALF.search(row) and any("\ud800" <= c <= "\udfff" for c in json.dumps(value, ensure_ascii=False)):
            draft.fault(file, line, "a text has half of a character (a lone surrogate such as \\ud800)")
            continue
        if isinstance(value, dict):
            yield line, value
        else:
            draft.fault(file, line, "this is not a JSON object")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object, each of whose names is once: json takes the last of equal ones, and one judgment would be lost."""
    made = dict(pairs)
    if len(made) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"{next(name for name, count in counts.items() if count > 1)!r} occurs twice in one object")
    return made


def text_of(file: Path, as_is: bool = False) -> str:
    """A file's text, with line feeds only unless `as_is`. Raises JudgmentError where it cannot be read or is not UTF-8."""
    try:
        data = file.read_bytes()
    except OSError as exc:
        raise JudgmentError(f"{file} cannot be read: {exc.strerror or exc}", "Check the path and its rights") from exc
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise JudgmentError(f"{file.name}, line {line}: this is not UTF-8", "Save the file as UTF-8") from exc
    if as_is:
        return text
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def one_spaced(name: str) -> str:
    """A query's id as query sets keep it: with one space where it has several."""
    return " ".join(name.split())


def clean(value: Any) -> str:
    """A value as text in NFC, without spaces around it."""
    return unicodedata.normalize("NFC", str(value)).strip()


def id_of(row: Mapping[str, Any]) -> str:
    """The query's id in a row, without spaces around it; empty where it has none."""
    names = (str(row[n]).strip() for n in QUERY_ID_NAMES if row.get(n) is not None)
    return next(filter(None, names), "")


def own_id(row: Mapping[str, Any]) -> str:
    """The id of a row's query that has none, from its text; empty where it has no text either."""
    text = query_text(row)
    return query_id_of(text) if text else ""


def query_text(row: Mapping[str, Any]) -> str:
    """The query's text in a row of judgments; empty where it has none."""
    titled = any(name in row for name in DOCUMENT_NAMES)
    return first_of(row, [name for name in TEXT_NAMES if not (titled and name == "title")])


def first_of(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of some names' values that is not blank; empty where there is none."""
    return next((clean(row[n]) for n in names if row.get(n) is not None and clean(row[n])), "")


def grade_of(row: Mapping[str, Any]) -> Any:
    """The grade in a row as it is written; empty where it has none."""
    return next((row[n] for n in GRADE_NAMES if n in row), "")


def read_keywords(row: Mapping[str, Any]) -> str | None:
    """The keywords of a row, a text or a list of words; None where it has none."""
    value = row.get("keywords")
    if isinstance(value, list):
        return clean(" ".join(map(str, value))) or None
    return clean(value) or None if value is not None else None


def read_grade(raw: Any) -> int | None:
    """A whole number within bounds, also written `2.0`; None for anything else."""
    written = str(raw).strip()
    if isinstance(raw, bool) or not re.fullmatch(r"[+-]?[0-9]{1,9}(\.0*)?", written):
        return None
    value = int(float(written))
    return value if LOWEST_GRADE <= value <= HIGHEST_GRADE else None


def qrels_to_trec(judgments: Judgments) -> str:
    """The qrels in the TREC form, with names spelled as `Run.to_trec` spells them."""
    return "".join(
        f"{words(query_id)} 0 {words(key)} {grade}\n"
        for query_id in judgments.query_ids
        for key, grade in judgments.qrels[query_id].items()
    )


_SPECIAL = re.compile(r"[\s\x00-\x1f\x7f\ufeff]|%(?=[0-9A-Fa-f]{2})")
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


def words(name: str) -> str:
    """A name as the TREC form spells it, in one word: a space becomes `%20`, as in URLs, and `%20` itself `%2520`."""
    return _SPECIAL.sub(lambda found: quote(found[0], safe=""), name)


def spoken(word: str) -> str:
    """The name that `words` spells so; what it would not have written, such as other escapes of URLs, stays as it is."""

    def read(found: re.Match[str]) -> str:
        try:
            text = unquote_to_bytes(found[0]).decode("utf-8")
        except UnicodeDecodeError:
            return found[0]
        return text if all(c == "%" or _SPECIAL.match(c) for c in text) else found[0]

    return _ESCAPES.sub(read, word)


def judged_collections(folder: str | Path | None = None) -> dict[str, Path]:
    """Every judged collection in a folder, by name: one with corpus.jsonl, queries.jsonl and qrels.tsv in it.

    `workbench.index` indexes such a folder, and `load_judgments` reads its queries and judgments.

    Args:
        folder: A folder of collections; None: `collections` in the folder of the setting `measure_data`.

    Returns:
        Name -> folder, sorted by name; empty where there are none, or the setting is not set.
    """
    if folder is None:
        setting = str(settings.get("measure_data"))
        if not setting:
            return {}
        folder = Path(setting) / "collections"
    place = Path(folder)
    found = sorted(place.iterdir(), key=lambda path: path.name) if place.is_dir() else []
    return {path.name: path for path in found if not missing_parts(path)}


def missing_parts(folder: Path) -> tuple[str, ...]:
    """The files that a folder lacks to be a judged collection in the BEIR form."""
    return tuple(part for part in _PARTS if not (folder / part).is_file())
