"""The file of a snapshot: every fault is one readable sentence, and nothing is unfolded that should not be."""

import base64
import hashlib
import html
import io
import json
import re
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest
from corpus_files import write_files
from snapshot_cases import members, shrunk, small, zipped

import workbench as wb
from workbench.errors import SnapshotError, SnapshotNewer
from workbench.snapshot import archive
from workbench.snapshot import page as snapshot_page


@pytest.fixture(scope="module")
def snapshot(sample: wb.Corpus) -> wb.Snapshot:
    return shrunk(sample.search("how do retries work", keywords="retry").snapshot("for its faults"))


@pytest.fixture(scope="module")
def files(snapshot: wb.Snapshot) -> dict[str, bytes]:
    return members(snapshot.to_bytes())


def refused(data: bytes) -> SnapshotError:
    """The error of a file; its message is one sentence with a remedy."""
    with pytest.raises(SnapshotError) as caught:
        wb.Snapshot.load(data)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_part_that_is_changed_missing_or_too_many_is_named(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        at = len(data) // 2
        changed = {**files, name: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]}
        assert name in refused(zipped(changed)).message
    for name in files:
        assert name in refused(zipped({n: d for n, d in files.items() if n != name})).message
    assert "extra.txt" in refused(zipped({**files, "extra.txt": b"hello"})).message
    body = json.loads(files[archive.MANIFEST])
    newer = zipped({**files, archive.MANIFEST: json.dumps({**body, "schema": 9}).encode(), "new.part": b"x"})
    error = refused(newer)
    assert isinstance(error, SnapshotNewer)
    assert "schema 9" in error.message
    assert "index.html" in error.remedy
    data = bytearray(zipped({**files, "searches.yaml": bytes(1 << 20)}))
    for signature, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = data.find(signature)
        while at >= 0:
            if b"searches.yaml" in data[at : at + 70]:
                data[at + offset : at + offset + 4] = len(files["searches.yaml"]).to_bytes(4, "little")
            at = data.find(signature, at + 1)
    assert "searches.yaml" in refused(bytes(data)).message
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for name, data in files.items():
            out.writestr(name, data)
        with pytest.warns(UserWarning, match="Duplicate name"):
            out.writestr("searches.yaml", b"[]")
    assert "twice" in refused(file.getvalue()).message
    assert "no manifest.json" in refused(zipped({"word/document.xml": b"<w/>"})).message
    assert (
        "not a snapshot of the workbench" in refused(zipped({"manifest.json": b'{"schema":1,"kind":"other"}'})).message
    )


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/passwd", "..\\evil", "C:\\evil", "\\\\host\\x"])
def test_a_path_outside_the_file_is_refused(files: dict[str, bytes], name: str) -> None:
    assert "outside itself" in refused(zipped({**files, name: b"x"})).message


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_unfolds(files: dict[str, bytes]) -> None:
    bomb = zipped({**files, "searches.yaml": bytes(300 << 20)})
    assert len(bomb) < 1 << 20
    assert "unfolds" in refused(bomb).message


def test_a_table_of_one_value_is_refused_before_it_unfolds(snapshot: wb.Snapshot, monkeypatch: Any) -> None:
    """A value repeated a million times takes a few bytes in the file; each table is bounded, and all of them."""
    row = snapshot.content.table("sources").head(1)
    monkeypatch.setattr(archive, "MOST_TABLE_BYTES", 5 << 20)
    for many, size in (
        (row.sample(50_000, with_replacement=True), 50_000 * 7 * 16),
        (row.with_columns(source=pl.lit("x" * 1000)).sample(6_000, with_replacement=True), 6_000 * (7 * 16 + 1000)),
    ):
        data = _table(many)
        assert len(data) < 100_000
        forged = small(snapshot.about, snapshot.content, sources_parquet=data).to_bytes()
        assert f"sources.parquet unfolds into {size:,} bytes, more than" in refused(forged).message
    monkeypatch.setattr(archive, "MOST_TABLES_BYTES", 1_000)
    assert "tables unfold into" in refused(snapshot.to_bytes()).message


def test_a_text_of_too_many_values_is_refused_read_or_written(snapshot: wb.Snapshot, monkeypatch: Any) -> None:
    """Each takes a thousand bytes while it is read; what is written is bounded as what is read."""
    forged = small(snapshot.about, snapshot.content, searches_yaml=b"[" + b"1," * 3_000 + b"1]")
    monkeypatch.setattr(archive, "MOST_VALUES", 2_000)
    assert "searches.yaml holds more than the 2,000 values" in refused(forged.to_bytes()).message
    monkeypatch.setattr(archive, "MOST_VALUES", 100)
    with pytest.raises(SnapshotError, match=r"Save fewer searches"):
        archive.write_parts(snapshot.content)
    monkeypatch.setattr(archive, "MOST_YAML_BYTES", 10_000)
    long = zipped({**members(forged.to_bytes()), "searches.yaml": b"#" * 20_000})
    assert "unfolds into 20,000 bytes, more than the 10,000" in refused(long).message


@pytest.mark.parametrize("data", [b"", b"PK", b"hello", b"PK\x05\x06" + bytes(18), b"<!doctype html>" * 100])
def test_what_is_no_zip_is_no_snapshot(data: bytes) -> None:
    assert "not a snapshot" in refused(data).message


def _table(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


# --- snapshot page ---------------------------------------------------------------------------------------------------


HOSTILE = (
    "</script><script>alert(1)</script> <img src=x onerror=alert(2)> \u202egnp.exe \x00 \x1b[31m \u2066 retry "
    "${alert(3)} ⟦s0-p1⟧ <!-- --> ]]> &lt;b&gt; \" ' ` <style>*{display:none}</style> javascript:alert(4)"
)


class Page(HTMLParser):
    """The elements of a page, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append((self.elements[-1][1], data))
        elif self._inside == "style":
            self.styles.append(data)
        else:
            self.words.append(data)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> wb.Snapshot:
    """A corpus of hostile texts, titles and paths, and a hostile query."""
    folder = tmp_path_factory.mktemp("hostile")
    files = {
        "<img src=x onerror=alert(9)>.md": f"# {HOSTILE}\n\n{HOSTILE}\n",
        "plain.md": "# Plain\n\nretry alert script\n",
        "a&b\u202e.md": f"# A & B\n\nretry {HOSTILE}\n",
    }
    wb.index([write_files(folder / "files", files)], corpus=folder / "corpus", encoder="hashing")
    with wb.open_corpus(folder / "corpus") as corpus:
        return corpus.search(HOSTILE.replace('"', ""), plan="default vector.threshold=off").snapshot(note=HOSTILE)


def test_hostile_text_is_text_and_in_no_script(hostile: wb.Snapshot) -> None:
    text = hostile.html()
    found = Page(text)
    tags = {tag for tag, _ in found.elements}
    assert tags & {"img", "iframe", "object", "embed", "svg", "form", "base"} == set()
    assert not [a for _, attrs in found.elements for a in attrs if a.startswith("on")]
    assert not [
        a for _, attrs in found.elements if (a := attrs.get("href")) and not a.startswith(("#", "https://", "http://"))
    ]
    assert len(found.styles) == 1
    for character in "\x00\x1b\u202e\u2066":
        assert character not in text
    said = "".join(found.words)
    assert "<img src=x onerror=alert(2)>" in said
    assert "U+202E" in said
    found = Page(hostile.html())
    running = [data for attrs, data in found.scripts if attrs.get("type") is None]
    inert = [data for attrs, data in found.scripts if attrs.get("type") == "application/json"]
    assert len(running) == 2
    assert inert
    assert all(attrs.get("type") in (None, "application/json") for attrs, _ in found.scripts)
    for data in (*inert, running[-1]):
        for word in ("alert", "onerror", "retry", "Plain", "plain.md", "</script", "<!--"):
            assert word not in data, word
    for data in inert:
        assert "<" not in data
        json.loads(data)


def test_the_policy_allows_these_scripts_and_this_style_only(hostile: wb.Snapshot) -> None:
    text = hostile.html()
    found = Page(text)
    policy = next(
        html.unescape(a["content"] or "")
        for t, a in found.elements
        if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    digests = re.findall(r"'sha256-([^']+)'", policy)

    def digest(data: str) -> str:
        return base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()

    running = [data for attrs, data in found.scripts if attrs.get("type") is None]
    assert [digest(d) for d in running] == digests[:2]
    assert digest(found.styles[0]) == digests[2]
    script_rule = next(rule for rule in policy.split(";") if "script-src" in rule)
    assert "unsafe" not in script_rule
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    assert not re.search(r'(?:src|href)="(?!#|http)', re.sub(r"<script>.*?</script>", "", text, flags=re.S))


def test_it_reads_without_javascript(sample: wb.Corpus) -> None:
    """Every passage, score, setting and count is in the HTML; pictures are for who has JavaScript."""
    result = sample.search("how do retries work", keywords="retry", plan="default limit=4 vector.threshold=off")
    found = Page(result.snapshot("for reading").html())
    said = "".join(found.words)
    for hit in result.hits:
        assert hit.citation in said
        assert hit.text.strip()[:30] in said
        assert f"{hit.score:.4f}" in said
    assert str(result.plan) in said
    for step in result.steps:
        assert step.reason in said
    assert sum(tag == "mark" for tag, _ in found.elements) >= 1
    assert sum(tag == "article" for tag, _ in found.elements) == 4
    assert ("p", {"class": "soft nojs"}) in found.elements
    result = sample.search("retry", plan="default vector.threshold=off")
    found = Page(wb.Snapshot.of([result, sample.search("invoice")]).html())
    ids = [a["id"] for _, a in found.elements if "id" in a]
    assert len(ids) == len(set(ids))
    wanted = {
        m for attrs, d in found.scripts if attrs.get("type") for m in re.findall(r"\\u27e6([a-z0-9-]+)\\u27e7", d)
    }
    assert wanted
    assert wanted <= set(ids)
    result = sample.search("zzzzqq", mode="keyword")
    text = result.snapshot().html()
    assert "No passage was shown" in text


@pytest.mark.slow
def test_ten_long_searches_stay_under_eight_megabytes(sample: wb.Corpus) -> None:
    one = sample.search("retry", plan="default vector.threshold=off limit=10").snapshot()
    content = one.content
    text = pl.lit("\u202e<>&" * 20_000)
    many = {
        name: pl.concat([frame.with_columns(search=pl.lit(n, pl.Int64)) for n in range(10)])
        if "search" in frame.columns
        else frame
        for name, frame in content.tables.items()
    }
    many["passages"] = many["passages"].with_columns(text=text, title=text)
    many["candidates"] = pl.concat(
        [
            many["candidates"].with_columns(place=pl.col("place") + n * 1000, rank=pl.col("rank") + n * 1000)
            for n in range(12)
        ]
    )
    big = replace(content, searches=content.searches * 10, tables=many)
    made = snapshot_page.page(one.about, big)
    assert len(made.encode()) < 8_000_000
    assert "more characters" in made
    assert re.search(r"The other [\d,]+ of [\d,]+ candidates", made)
