"""Archives and mail as programs make them: names of a country, a name twice, links alone, reports, Apple's messages."""

from __future__ import annotations

import io
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest
from reader_files import read, saved, zipped

from workbench.ingest.errors import ReadError
from workbench.ingest.readers import archives
from workbench.ingest.readers.base import Member, Source
from workbench.reports import FileStatus


def named(names: list[bytes]) -> bytes:
    """A ZIP whose members have these bytes as names, without the mark of UTF-8."""
    stream = io.BytesIO()
    places = [f"{number:03}".rjust(len(name), "Z") for number, name in enumerate(names)]
    with zipfile.ZipFile(stream, "w") as archive:
        for place in places:
            archive.writestr(place, "words")
    data = stream.getvalue()
    for place, name in zip(places, names, strict=True):
        data = data.replace(place.encode("ascii"), name)
    return data


@pytest.mark.parametrize(
    ("names", "encoding"),
    [
        (["Überblick.txt", "café.txt"], "utf-8"), (["résumé.txt", "Übersicht.txt"], "cp437"),
        (["Übersicht Größe.txt"], "cp1252"), (["Отчет за год.txt", "Письмо.txt"], "cp866"),
        (["Отчет за год.txt", "Письмо другу.txt"], "cp1251"), (["年度报告.txt", "会议记录.txt"], "gbk"),
        (["年度報告.txt", "かいぎのきろく.txt"], "cp932"), (["연간 보고서.txt", "회의록.txt"], "cp949"),
    ],
)  # fmt: skip
def test_names_of_members_are_read_in_the_code_page_of_their_program(
    tmp_path: Path, names: list[str], encoding: str
) -> None:
    documents, problems = read(saved(tmp_path, "a.zip", named([name.encode(encoding) for name in names])))
    assert [d.path for d in documents] == [f"a.zip!/{name}" for name in names]
    assert not problems


def test_names_of_two_programs_are_each_read(tmp_path: Path) -> None:
    """A member that another program added, or a name that was cut within a character, does not lose the archive."""
    names = [name.encode() for name in ("Übersicht über alles.txt", "Größe.txt", "Maße.txt", "Prüfung.txt")]
    documents, problems = read(saved(tmp_path, "a.zip", named([*names, "Müll.txt".encode("cp1252")])))
    assert [d.path for d in documents] == [f"a.zip!/{name.decode()}" for name in names] + ["a.zip!/Müll.txt"]
    assert not problems


def test_members_of_one_name_are_all_read(tmp_path: Path) -> None:
    """An archive that was added to has the older file first; nothing says which of them is meant."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")
        for words in ("first", "second"):
            archive.writestr("x/a.txt", words)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tape:
        for words in (b"first", b"second"):
            info = tarfile.TarInfo("x/a.txt")
            info.size = len(words)
            tape.addfile(info, io.BytesIO(words))
    for name, data in (("a.zip", stream.getvalue()), ("a.tar", packed.getvalue())):
        documents, problems = read(saved(tmp_path, name, data))
        assert [(d.path, d.text) for d in documents] == [
            (f"{name}!/x/a.txt", "first"),
            (f"{name}!/x/2-a.txt", "second"),
        ]
        assert not problems


def test_many_members_of_one_name_are_each_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for a free name goes on where the last one ended: ten thousand members took minutes."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")
        for name in ("3-a.txt", *["a.txt"] * 40):
            archive.writestr(name, "words")
    tried: list[str] = []
    inner = Source.inner

    def counted(source: Source, member: Member) -> Source:
        tried.append(member.name)
        return inner(source, member)

    monkeypatch.setattr(Source, "inner", counted)
    documents, problems = read(saved(tmp_path, "a.zip", stream.getvalue()))
    numbers = [2, *range(4, 42)]
    assert [d.path for d in documents] == [
        f"a.zip!/{n}" for n in ("3-a.txt", "a.txt", *(f"{n}-a.txt" for n in numbers))
    ]
    assert not problems
    assert len(tried) == 1 + 40 + 39 + 1


def test_a_name_that_an_extra_field_tells_is_taken_as_it_is() -> None:
    told, plain = zipfile.ZipInfo("検索.txt"), zipfile.ZipInfo("a.txt")
    old = zipfile.ZipInfo("café.txt".encode().decode("cp437"))
    assert archives._names([told, old, plain]) == ["検索.txt", "café.txt", "a.txt"]


def test_an_archive_of_links_alone_is_skipped_and_not_broken(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tape:
        info = tarfile.TarInfo("l")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tape.addfile(info)
    with pytest.raises(ReadError, match="only links") as caught:
        read(saved(tmp_path, "a.tar", packed.getvalue()))
    assert caught.value.status is FileStatus.SKIPPED


def test_a_drawing_of_a_program_is_no_archive(tmp_path: Path) -> None:
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": "<Relationships/>",
        "visio/pages/page1.xml": "<Page>x</Page>",
    }
    with pytest.raises(ReadError, match="not read") as caught:
        read(saved(tmp_path, "plan.vsdx", zipped(parts)))
    assert caught.value.status is FileStatus.SKIPPED


@pytest.mark.parametrize("suffix", [".lzma", ".iso", ".deb", ".lz4"])
def test_packers_that_are_not_read_say_to_unpack(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(ReadError, match="no reader") as caught:
        read(saved(tmp_path, f"a{suffix}", b"\x5d\x00\x00\x80\x00" + bytes(range(256))))
    assert "Unpack it" in caught.value.remedy


def test_a_message_of_apples_program_is_read_without_what_the_program_adds(tmp_path: Path) -> None:
    message = b"From: ann@x.org\nTo: bob@x.org\nSubject: Rope\n\nIt arrived.\n"
    plist = b'<?xml version="1.0"?><plist version="1.0"><dict><key>flags</key><integer>1</integer></dict></plist>\n'
    (mail,), problems = read(saved(tmp_path, "1.emlx", b"%d      \n%s%s" % (len(message), message, plist)))
    assert mail.text == "# Rope\n\nFrom: ann@x.org\nTo: bob@x.org\n\nIt arrived.\n"
    assert not problems


def test_why_a_message_was_not_delivered_is_part_of_it(tmp_path: Path) -> None:
    raw = (
        "From: postmaster@x.org\nSubject: Not delivered\nMIME-Version: 1.0\n"
        "Content-Type: multipart/report; boundary=b; report-type=delivery-status\n\n"
        "--b\nContent-Type: text/plain\n\nIt came back.\n"
        "--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mail.x.org\n\n"
        "Final-Recipient: rfc822; gone@y.org\nStatus: 5.1.1\n"
        "--b\nContent-Type: message/rfc822\n\nFrom: ann@x.org\nSubject: Rope\n\nThe first one.\n--b--\n"
    )
    report, first = read(saved(tmp_path, "a.eml", raw))[0]
    assert report.text.endswith(
        "It came back.\n\nReporting-MTA: dns; mail.x.org\n\nFinal-Recipient: rfc822; gone@y.org\nStatus: 5.1.1\n"
    )
    assert [place.locator for place in report.places][-1] == "part=2"
    assert (first.path, first.text) == ("a.eml!/part-3.eml", "# Rope\n\nFrom: ann@x.org\n\nThe first one.\n")
