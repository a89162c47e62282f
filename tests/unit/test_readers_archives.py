"""Archives, mail and mailboxes: what is inside is a document of its own, within limits, and nothing leads out."""

from __future__ import annotations

import base64
import gzip
import io
import warnings
import zipfile

import pytest
from file_makers import docx, mail, read, saved, tar, zipped

from workbench.ingest.errors import ReadError
from workbench.ingest.readers.mail import unpacked_rtf


def test_members_are_documents_with_their_path_in_the_archive(tmp_path):
    inner = zipped({"deep/b.md": "# B\n\nwords"})
    file = saved(tmp_path, "a.zip", zipped({"x/a.txt": "first", "in.zip": inner, "w.docx": docx([("", "in word")])}))
    documents, problems = read(file)
    assert [(d.path, d.type) for d in documents] == [
        ("a.zip!/x/a.txt", "text"), ("a.zip!/in.zip!/deep/b.md", "markdown"), ("a.zip!/w.docx", "word"),
    ]  # fmt: skip
    assert len({d.document_id for d in documents}) == 3
    assert documents[0].size == 5
    assert not problems


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_read_through_every_packer(tmp_path, mode):
    name = "a.tar" + mode[1:].replace(":", ".")
    documents, _ = read(saved(tmp_path, name, tar({"a.txt": b"words"}, mode)))
    assert [d.path for d in documents] == [f"{name}!/a.txt"]


def test_one_packed_file_is_read_under_the_name_it_had(tmp_path):
    documents, _ = read(saved(tmp_path, "notes.md.gz", gzip.compress(b"# T\n\nwords")))
    assert [(d.path, d.type) for d in documents] == [("notes.md.gz!/notes.md", "markdown")]


def test_refused_members_are_named_and_the_others_read(tmp_path):
    documents, problems = read(
        saved(tmp_path, "a.tar", tar({"../x.txt": b"no", "ok.txt": b"yes"}, links={"l": "/etc/passwd"}))
    )
    assert [d.path for d in documents] == ["a.tar!/ok.txt"]
    assert [str(p).partition(":")[0] for p in problems] == ["../x.txt", "l"]


def test_a_bomb_ends_as_a_sentence(tmp_path, monkeypatch):
    bomb = zipped({"big.txt": b"0" * (40 << 20)})
    with pytest.raises(ReadError, match="200 times"):
        read(saved(tmp_path, "a.zip", bomb))
    monkeypatch.setenv("WORKBENCH_MAX_UNPACKED_MB", "1")
    with pytest.raises(ReadError, match="max_unpacked_mb"):
        read(saved(tmp_path, "b.tgz", tar({"b.txt": b"x" * (2 << 20)}, "w:gz")))


def test_members_and_depth_have_limits(tmp_path, monkeypatch):
    data = b"words"
    for level in range(6):
        data = zipped({f"{level}.zip" if level else "a.txt": data, "side.txt": f"level {level}"})
    documents, problems = read(saved(tmp_path, "a.zip", data))
    assert len(documents) == 4
    assert any("max_nesting" in str(p) for p in problems)
    monkeypatch.setenv("WORKBENCH_MAX_MEMBERS", "2")
    with pytest.raises(ReadError, match="max_members"):
        read(saved(tmp_path, "b.zip", zipped({f"{n}.txt": "words" for n in range(3)})))


def test_a_message_has_its_headers_its_body_and_its_attachments(tmp_path):
    data = mail(
        "Plans",
        "See the file.\n",
        {"notes.txt": b"attached words", "r.docx": docx([("", "in word")])},
        "<p>See the <b>file</b>.</p>",
    )
    documents, problems = read(saved(tmp_path, "a.eml", data))
    assert [d.path for d in documents] == ["a.eml", "a.eml!/notes.txt", "a.eml!/r.docx"]
    assert documents[0].title == "Plans"
    assert documents[0].text == (
        "# Plans\n\nFrom: ada@example.org\nTo: bob@example.org\nDate: Tue, 01 Oct 2024 12:34:56 +0000\n\nSee the file.\n"
    )
    assert documents[0].metadata["date"] == "2024-10-01T12:34:56+00:00"
    assert documents[0].places[-1].locator == "part=1"
    assert not problems


def test_a_subject_keeps_the_spaces_between_its_encoded_words(tmp_path):
    raw = b"Subject: aa =?utf-8?b?YWHDnw==?=\n bb =?utf-8?q?c=C3=A9?= =?utf-8?q?d?=\n\nwords"
    assert read(saved(tmp_path, "a.eml", raw))[0][0].title == "aa aaß bb céd"


def test_a_mailboxs_messages_are_numbered_and_quoted_from_lines_are_restored(tmp_path):
    line = b"From ada@example.org Tue Oct  1 12:34:56 2024\n"
    box = line + mail("One", ">From here on\n") + b"\n" + line + mail("Two", "words\n", {"a.txt": b"more"})
    documents, _ = read(saved(tmp_path, "a.mbox", box))
    assert [d.path for d in documents] == ["a.mbox!/1.eml", "a.mbox!/2.eml", "a.mbox!/2.eml!/a.txt"]
    assert "\nFrom here on" in documents[0].text


@pytest.mark.parametrize(
    "raw",
    [
        b"Subject: =?koi8-r?B?8NLJ18XU?=\n\nwords", b"Subject: =?x-unknown?Q?caf=C3=A9?=\n\nwords",
        "Subject: naïve\n\nwords".encode(), b"Subject: a\nContent-Type: text/plain; charset=nonsense\n\nwords",
        b"Subject: a\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n!!!not base64!!!d29yZHM=",
        b"Subject: a\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nwords without an end",
        b"Subject: a\nContent-Type: text/plain; name*\n\nwords",
    ],
)  # fmt: skip
def test_mail_that_breaks_its_own_rules_is_read(tmp_path, raw):
    documents, _ = read(saved(tmp_path, "a.eml", raw))
    assert documents[0].text.strip()


def test_attachments_of_the_part_that_is_not_shown_and_messages_in_base64_are_read(tmp_path):
    """Apple Mail puts attachments beside the HTML of an alternative; raw bytes in a header are what people mean by them."""
    attached = "Content-Disposition: attachment; filename="
    inner = base64.encodebytes(b"Subject: Inner\n\nbilge water").decode()
    mixed = "\n".join(
        (
            "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>words</p>",
            f"--b\nContent-Type: text/csv\n{attached}p.csv\n\na,b",
            f"--b\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n{attached}in.eml\n\n{inner}\n--b--",
        )
    )
    head = "Subject: Grüße\nContent-Type: multipart/alternative; boundary=a\n\n--a\nContent-Type: text/plain\n\nwords"
    documents, _ = read(saved(tmp_path, "a.eml", f"{head}\n--a\n{mixed}\n--a--\n".encode()))
    titles = {d.path.rpartition("!/")[2]: d.title for d in documents}
    assert titles == {"a.eml": "Grüße", "p.csv": "p", "in.eml": "Inner"}


def test_the_richer_part_of_a_message_is_read(tmp_path):
    data = mail("News", "This is in HTML.\n", {}, f"<p>{'demurrage ' * 40}</p>")
    assert "demurrage" in read(saved(tmp_path, "a.eml", data))[0][0].text


def test_compressed_rtf_of_a_message_is_unpacked():
    packed = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    )
    assert unpacked_rtf(packed) == "hello world\n"
    with pytest.raises(ReadError, match="damaged"):
        unpacked_rtf(packed[:-3])


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
def test_names_of_members_are_read_in_the_code_page_of_their_program(tmp_path, names, encoding):
    documents, problems = read(saved(tmp_path, "a.zip", named([name.encode(encoding) for name in names])))
    assert [d.path for d in documents] == [f"a.zip!/{name}" for name in names]
    assert not problems


def test_names_of_two_programs_are_each_read(tmp_path):
    """A member that another program added, or a name that was cut within a character, does not lose the archive."""
    names = [name.encode() for name in ("Übersicht über alles.txt", "Größe.txt", "Maße.txt", "Prüfung.txt")]
    documents, problems = read(saved(tmp_path, "a.zip", named([*names, "Müll.txt".encode("cp1252")])))
    assert [d.path for d in documents] == [f"a.zip!/{name.decode()}" for name in names] + ["a.zip!/Müll.txt"]
    assert not problems


def test_members_of_one_name_are_all_read(tmp_path):
    """An archive that was added to has the older file first; nothing says which of them is meant."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")
        for words in ("first", "second"):
            archive.writestr("x/a.txt", words)
    packed = tar([("x/a.txt", words) for words in (b"first", b"second")])
    for name, data in (("a.zip", stream.getvalue()), ("a.tar", packed)):
        documents, problems = read(saved(tmp_path, name, data))
        assert [(d.path, d.text) for d in documents] == [
            (f"{name}!/x/a.txt", "first"),
            (f"{name}!/x/2-a.txt", "second"),
        ]
        assert not problems


def test_a_message_of_apples_program_is_read_without_what_the_program_adds(tmp_path):
    message = b"From: ann@x.org\nTo: bob@x.org\nSubject: Rope\n\nIt arrived.\n"
    plist = b'<?xml version="1.0"?><plist version="1.0"><dict><key>flags</key><integer>1</integer></dict></plist>\n'
    (mail,), problems = read(saved(tmp_path, "1.emlx", b"%d      \n%s%s" % (len(message), message, plist)))
    assert mail.text == "# Rope\n\nFrom: ann@x.org\nTo: bob@x.org\n\nIt arrived.\n"
    assert not problems


def test_why_a_message_was_not_delivered_is_part_of_it(tmp_path):
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
