"""Words that readers lost, glued or changed: one small file each, made here, what must be in its text and what must not.

A word that is glued to another, split or left out cannot be found by anyone, and nothing tells that it is missing.
"""

# ruff: noqa: E501 (a table of small files, a line each)
from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Mapping
from email.message import EmailMessage

import file_makers
import olefile
import openpyxl
import pytest
from file_makers import cut_file, doc_of, found, ods, odt, pdf, pptx, read, saved, xlsx, zipped
from test_readers_office import WORD, changed, paragraph, styled, word

from workbench.ingest.errors import Problem, ReadError
from workbench.records import FileStatus

MATH = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def run(words: str, look: str = "") -> str:
    return f'<w:r><w:rPr>{look}</w:rPr><w:t xml:space="preserve">{words}</w:t></w:r>'


def shown(body: str, parts: Mapping[str, str] | None = None) -> bytes:
    """A Word file of one paragraph."""
    return word(f"<w:p>{body}</w:p>", dict(parts or {}))


def formats(cells: Mapping[str, float | int | str]) -> bytes:
    """A workbook with a number in each of these formats."""
    book = openpyxl.Workbook()
    for number, (code, value) in enumerate(cells.items(), 1):
        book.active.cell(number, 1, f"row{number}")
        book.active.cell(number, 2, value).number_format = code
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def spans(words: str, styles: str) -> bytes:
    """An OpenDocument text whose paragraph holds spans: `{name=words}` is one of this style."""
    for style in styles.split(";"):
        words = words.replace(f"{{{style.split()[0]}=", f'<text:span text:style-name="{style.split()[0]}">')
    words = words.replace("}", "</text:span>")
    pairs = (style.split(" ", 1) for style in styles.split(";"))
    made = "".join(f'<style:style style:name="{n}"><style:text-properties {look}/></style:style>' for n, look in pairs)
    return changed(odt([(0, "HERE")]), "content.xml", lambda xml: styled(xml.replace("HERE", words), made))


def layers() -> bytes:
    """A PDF with a layer that is off, in an object of its own."""
    data = pdf(["HERE"])
    shown, hidden = (
        b"BT /F1 12 Tf 14 TL 72 720 Td (seen) Tj T* ET",
        b"/OC /L BDC BT /F1 12 Tf 72 600 Td (secret) Tj ET EMC",
    )
    stream = shown + b" " + hidden
    data = re.sub(
        rb"<< /Length \d+ >>\nstream\n.*?\nendstream",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        data,
        flags=re.S,
    )
    data = data.replace(b"/Resources << /Font", b"/Resources << /Properties << /L 9 0 R >> /Font")
    data = data.replace(b"/Outlines 4 0 R", b"/OCProperties << /OCGs [9 0 R] /D << /OFF [9 0 R] >> >>")
    return data.replace(b"\n3 0 obj", b"\n9 0 obj\n<< /Type /OCG /Name (Off) >>\nendobj\n3 0 obj", 1)


def letters() -> bytes:
    """A PDF whose labels were drawn a letter at a time, up the page and beside."""
    drawn, data = b"", pdf(["HERE"])
    for label in range(6):
        turn = b"0 1 -1 0" if label else b"1 0 0 1"
        x, y = (100 + 20 * label, 100) if label else (100, 300)
        for letter in f"bound {label}":
            drawn += (
                b"BT /F1 12 Tf %s %.2f %.2f Tm (%s) Tj ET " % (turn, x, y, letter.encode()) if letter != " " else b""
            )
            step = 3.34 if letter == " " else 6.67
            x, y = (x, y + step) if label else (x + step, y)
    stream = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn)
    return re.sub(rb"<< /Length \d+ >>\nstream\n.*?\nendstream", stream, data, flags=re.S)


def stream_of(book: bytes) -> bytes:
    """The records of a workbook, without the OLE file around them."""
    with olefile.OleFileIO(book) as held:
        return bytes(held.openstream("Workbook").read())


def two_parts(plain: str, html: str) -> bytes:
    message = EmailMessage()
    message["Subject"] = "Two"
    message.set_content(plain)
    message.add_alternative(html, subtype="html")
    return message.as_bytes()


CHART = (
    '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><c:title><a:p><a:r><a:t>Tonnage of quays</a:t></a:r>'
    "</a:p></c:title><c:ser><c:tx><c:pt><c:v>North</c:v></c:pt></c:tx></c:ser></c:chartSpace>"
)
SUP, SUB = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'
RFMT = 'xmlns="urn:schemas-microsoft-com:office:spreadsheet" xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet"'
DELETED, VANISHED, RAISED = (struct.pack("<HB", code, value) for code, value in ((0x800, 1), (0x83C, 1), (0x2A48, 1)))
ROW = struct.pack("<HB", 0x2417, 1) + b"\0"
MICRO = struct.pack("<3H", 0x6A09, 0, 0xF06D)

CASES: dict[str, tuple[str, bytes | str, list[str], list[str]]] = {
    # Figures above and below the line
    "raised in Word": ("a.docx", shown(run("5522") + run("1", SUP) + run(" x10") + run("6", SUP) + run(" H") + run("2", SUB)),
                       ["5522 1", "10^6", "H2"], ["55221"]),
    "raised by a style in Word": ("a.docx", shown(run("5522") + run("1", '<w:rStyle w:val="S"/>'), {
        "styles": f'<w:styles {WORD}><w:style w:type="character" w:styleId="S"><w:rPr>{SUP}</w:rPr></w:style></w:styles>'}),
        ["5522 1"], []),
    "raised in OpenDocument": ("a.odt", spans("5522{S=1} H{L=2} 10{S=6}", 'S style:text-position="super 58%";L style:text-position="-8% 58%"'),
                               ["5522 1 H2 10^6"], []),
    "raised in RTF": ("a.rtf", r"{\rtf1 5522{\super 1} H{\sub 2} 10\super 6\nosupersub 7}", ["5522 1 H2 10^67"], []),
    "raised in DOC": ("a.doc", doc_of([("5522", b""), ("1", RAISED), (" and 10", b""), ("6", RAISED), ("\r", b"")]), ["5522 1 and 10^6"], []),
    "raised in HTML": ("a.html", "<p>5522<sup>1</sup> 10<sup>6</sup> x<sup>2</sup> H<sub>2</sub>O<table><tr><td>8<sup>3</sup><td>b</table>",
                       ["5522 1 10^6 x2 H2O", "8 3 | b"], []),
    "raised in a sheet": ("a.xlsx", changed(xlsx({"S": [["HERE", "b"]]}), "xl/worksheets/sheet1.xml", lambda xml: re.sub(
        r'(<c r="A1")[^>]*>.*?</c>', r'\1 t="inlineStr"><is><r><t>5522</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>1</t></r></is></c>', xml)),
        ["5522 1 | b"], []),
    "raised on a slide": ("a.pptx", changed(pptx([("Title", "HERE", "")]), "ppt/slides/slide1.xml", lambda xml: xml.replace(
        "<a:t>HERE</a:t></a:r>", '<a:t>5522</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>1</a:t></a:r>')), ["5522 1"], []),
    # Formulas
    "formula in Word": ("a.docx", zipped({"[Content_Types].xml": "<Types/>", "word/document.xml":
        f"<w:document {WORD} {MATH}><w:body><w:p>{run('ratio 2')}<m:oMath><m:f><m:num><m:r><m:t>35</m:t></m:r></m:num><m:den><m:r>"
        "<m:t>40</m:t></m:r></m:den></m:f><m:sSup><m:e><m:r><m:t>v</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
        f"</m:oMath>{run(' kilos')}</w:p></w:body></w:document>"}), ["ratio 235/40 v^2 kilos"], ["3540"]),
    "formula in HTML": ("a.html", "<p>q <math><mfrac><mn>1</mn><mn>2</mn></mfrac><msup><mi>v</mi><mn>2</mn></msup></math> l", ["1/2 v^2 l"], []),
    "labels of a drawing": ("a.pdf", letters(), ["bound 0\nbound 1\nbound 2", "bound 5"], []),
    # Deleted and hidden: left out, and the metadata says so
    "hidden in HTML": ("a.html", "<p>seen<p hidden>one<p style='color:red; display : none'>two<dialog>three</dialog><img alt=four hidden>"
                       "<table><tr hidden><td>five<td>six<tr><td>a<td style='visibility:hidden'>seven<td>b</table>",
                       ["seen", "a | b"], ["one", "two", "three", "four", "five", "seven"]),
    "hidden in OpenDocument": ("a.odt", spans("seen{S=secret}", 'S text:display="none"'), ["seen"], ["secret"]),
    "hidden shape on a slide": ("a.pptx", changed(pptx([("Title", "secret", "")]), "ppt/slides/slide1.xml", lambda xml: re.sub(
        r'(<p:cNvPr id="3")', r'\1 hidden="1"', xml)), ["Title"], ["secret"]),
    "hidden shape in Word": ("a.docx", word(f"{paragraph('seen')}<w:p><w:r><w:drawing><wp:inline xmlns:wp='wp'><wp:docPr hidden='1' descr='one'/>"
                             f"<w:txbxContent>{paragraph('secret')}</w:txbxContent></wp:inline></w:drawing></w:r></w:p>"), ["seen"], ["secret", "one"]),
    "hidden shape on an OpenDocument slide": ("a.odp", changed(file_makers.odp([("Title", "secret", "")]), "content.xml", lambda xml: re.sub(
        r'<draw:frame ([^>]*class="outline")', r'<draw:frame draw:display="none" \1', xml)), ["Title"], ["secret"]),
    "hidden in a book": ("a.epub", file_makers.epub({"c.xhtml": "<p>seen</p><p hidden=''>secret</p>"}), ["seen"], ["secret"]),
    "hidden in the page of a mail": ("a.eml", file_makers.mail("S", "", html="<p>seen</p><p style='display:none'>secret</p>"), ["seen"], ["secret"]),
    "hidden in DOC": ("a.doc", doc_of([("seen ", b""), ("secret", VANISHED), ("\r", b"")]), ["seen"], ["secret"]),
    "hidden in a PDF": ("a.pdf", layers(), ["seen"], ["secret"]),
    "deleted in DOC": ("a.doc", doc_of([("Fee is ", b""), ("eleven", DELETED), ("twelve\r", b"")]), ["Fee is twelve"], ["eleven"]),
    "deleted in RTF": ("a.rtf", r"{\rtf1 fee {\deleted eleven}{\revised twelve} crowns}", ["fee twelve crowns"], ["eleven"]),
    "deleted mark and row in Word": ("a.docx", word(
        f"<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>{run('up')}</w:p><w:p>{run('stairs')}</w:p><w:tbl><w:tr><w:trPr><w:del/></w:trPr>"
        f"<w:tc>{paragraph('gone')}</w:tc><w:tc>{paragraph('away')}</w:tc></w:tr><w:tr><w:tc>{paragraph('kept')}</w:tc>"
        f"<w:tc>{paragraph('too')}</w:tc></w:tr></w:tbl>"), ["upstairs", "kept | too"], ["gone"]),
    # Fonts of symbols
    "symbols in Word": ("a.docx", shown(run("5 ") + '<w:r><w:sym w:font="Symbol" w:char="F06D"/></w:r>' + run("m ") + run(
        "\uf0b3", '<w:rFonts w:ascii="Symbol"/>') + '<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>'), ["5 \u03bcm \u2265\u2611"], []),
    "symbols in RTF": ("a.rtf", r"{\rtf1{\fonttbl{\f0 Arial;}{\f3\fcharset2 Symbol;}}5 {\f3 m}m {\f3\'b3} 4}", ["5 \u03bcm \u2265 4"], []),
    "symbols in DOC": ("a.doc", doc_of([("5 ", b""), ("(", MICRO), ("m\r", b"")]), ["5 \u03bcm"], []),
    # Drawings
    "chart in Word": ("a.docx", word(f"{paragraph('Figure')}<w:p><w:r><w:drawing><c:chart xmlns:c='c' xmlns:r='r' r:id='r0'/></w:drawing></w:r></w:p>",
                                     {"chart": CHART}), ["Tonnage of quays\nNorth"], []),
    "chart sheet": ("a.xlsx", zipped({
        "[Content_Types].xml": "<Types/>", "xl/workbook.xml": '<workbook xmlns:r="r"><sheets><sheet name="C" r:id="r0"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<R><r Id="r0" Type="x/chartsheet" Target="chartsheets/s.xml"/></R>', "xl/chartsheets/s.xml": "<chartsheet/>",
        "xl/chartsheets/_rels/s.xml.rels": '<R><r Id="r1" Type="x/drawing" Target="../drawings/d.xml"/></R>', "xl/drawings/d.xml": "<wsDr><graphicFrame><chart xmlns:r='r' r:id='r1'/></graphicFrame></wsDr>",
        "xl/drawings/_rels/d.xml.rels": '<R><r Id="r1" Type="x/chart" Target="../charts/c.xml"/></R>', "xl/charts/c.xml": CHART}),
        ["Tonnage of quays"], []),
    "box and remark on an OpenDocument sheet": ("a.ods", changed(ods({"S": [["Crate", "Weight"]]}), "content.xml", lambda xml: xml.replace(
        ">Crate</text:p>", '>Crate</text:p><office:annotation><dc:creator xmlns:dc="d">Ann</dc:creator><text:p>check</text:p></office:annotation>'
        '<draw:frame xmlns:draw="d"><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame>', 1)),
        ["Crate | Weight\n\nAnn: check\n\nboxed"], []),
    "chart and box in XLS": ("a.xls", file_makers.xls({"S": [["Crate", 12.0]]}, ("Tonnage of quays", "boxed")), ["Crate | 12", "Tonnage of quays", "boxed"], []),
    "a workbook put into DOC": ("a.doc", doc_of([("words\r", b"")], more={"ObjectPool/_1/Workbook": stream_of(file_makers.xls({"S": [["Crate", 12.0]]}))}),
                                ["words", "Crate | 12"], []),
    "a slide of PPT that is not shown": ("a.ppt", file_makers.ppt([("Harbour", "body", "")], hidden=True), ["# Harbour (hidden slide)", "body"], []),
    "a damaged chart in PPT": ("a.ppt", file_makers.ppt([("Harbour", "body", "")], chart=file_makers.ole({"Workbook": b"\x85\0\x02\0??"})),
                               ["Harbour", "body"], []),
    "chart in PPT": ("a.ppt", file_makers.ppt([("Harbour", "body", "")], chart=file_makers.xls({"S": [["North", 12.0]]}, ("Tonnage of quays", "boxed"))),
                     ["Tonnage of quays", "North"], []),
    "OpenDocument chart in PPT": ("a.ppt", file_makers.ppt([("Harbour", "body", "")], chart=file_makers.ole({"package_stream": zipped({"content.xml":
        "<d xmlns:c='c' xmlns:t='t'><c:chart><c:title><t:p>Tonnage</t:p></c:title><c:plot-area/></c:chart></d>"})})), ["Tonnage"], []),
    "drawn shapes in OpenDocument": ("a.odt", changed(odt([(0, "HERE")]), "content.xml", lambda xml: xml.replace(
        "HERE", '<draw:custom-shape xmlns:draw="d"><text:p>shape</text:p></draw:custom-shape>after')), ["after", "shape"], ["shapeafter"]),
    # Tables
    "an empty last cell in DOC": ("a.doc", doc_of([("x\x07\x07\x07\x07b\x07\x07After the table\r", b"")], [("x\x07\x07", b""), ("\x07", ROW), ("\x07b\x07", b""), ("\x07", ROW),
        ("After the table\r", b"")]), ["x\n| b\n\nAfter the table"], []),
    "cells over rows and columns": ("a.html", "<table><tr><th>Region<th>Berth<th>Depth<tr><td rowspan=2>East<td>Alfa<td>9<tr><td>Bravo<td>11"
                                    "<tr><td colspan=2>Sum<td>20</table>",
                                    ["Region | Berth | Depth\nEast | Alfa | 9\n | Bravo | 11\nSum |  | 20"], []),
    "a quote that never closes": ("a.csv", 'id,note,by\n1,"never closed,ann\n2,plain,bo\n3,"x, y",cy\n',
                                  ["1 | never closed | ann\n2 | plain | bo\n3 | x, y | cy"], []),
    "a table named as a workbook": ("a.xls", "<table><tr><th>Cargo<th>Weight<tr><td>Nutmeg<td>120</table>", ["Nutmeg | 120"], ["<t"]),
    "formats of numbers": ("a.xlsx", formats({"00000": 1234, '"C-"0000': 42, "[h]:mm": 1.5, "yyyy-mm-dd hh:mm:ss.000": 45292.5104166667,
        '0.0" kg"': 12.5, "yyyy-mm-dd": 1, "000-0000": 5551234, '0" m";(0" m")': -5, '0;-0;"none"': 0, "#,##0.00": 1234.5,
        "General": "=SUM(A1:A2)", "0.0%": 0.155, "h:mm:ss": 0.5, "mm-dd-yy": 45300, "m/d/yy h:mm": 45301.75, "0.00": 0.1 + 0.2,
        "0": 1e300, '"day" 0': 3}),
        ["15.5%", "| 12:00:00", "2024-01-09", "2024-01-10 18:00:00", "| 0.3", "| 1e+300", "day 3", "row1 | 01234", "C-0042", "| 36:00", "2024-01-01 12:15:00.000", "12.5 kg", "1900-01-01", "555-1234", "-5 m", "| none", "| 1234.5",
         "=SUM(A1:A2)"], []),
    # Codes, escapes and folds
    "escapes in JSON": ("a.json", json.dumps({"t": "Caf\u00e9 \U0001f600", "n": "first\nsecond\t\u0160"}, indent=1),
                        ['"t": "Caf\u00e9 \U0001f600"', "first second \u0160"], ["\\u", "\\n"]),
    "escapes of properties": ("a.properties", "title=Caf\\u00e9\npath=C\\:\\dir\n", ["title=Caf\u00e9", "C\\:\\dir"], []),
    "records without text": ("a.jsonl", '{"m": [{"content": "na\\u00efve"}]}\n{"m": [{"content": "b"}]}\n', ["na\u00efve"], []),
    "colours of a log": ("a.log", "\x1b[31merror\x1b[0m: in \x1b[1mmooring\x1b[0mline \x1b]0;title\x07end\nb\x08bo\x08old", ["error: in mooringline end\nbold"], ["\x1b"]),
    "words inside a sentence of XML": ("a.xml", "<a><p>The <e>quick</e> hawser, fair<e r='x'>lead</e> and H<sub>2</sub>O</p><l><i>one</i><i>two</i></l></a>",
                                       ["p: The quick hawser, fairlead and H2O\n", "i: one\ni: two"], []),
    "Word 2003": ("a.xml", '<w:wordDocument xmlns:w="http://schemas.microsoft.com/office/word/2003/wordml" xmlns:wx="wx"><w:styles/><w:body><wx:sect>'
                  "<w:p><w:r><w:rPr><w:sz w:val='20'/></w:rPr><w:t>The quarantine </w:t></w:r><w:r><w:t>anchorage</w:t></w:r></w:p></wx:sect>"
                  "</w:body></w:wordDocument>", ["The quarantine anchorage"], ["sz", "20"]),
    "Excel 2003": ("a.xml", f'<?xml version="1.0"?><Workbook {RFMT}><Worksheet ss:Name="S"><Table><Row><Cell><Data>a</Data></Cell><Cell ss:Index="3">'
                   '<Data>b</Data></Cell></Row><Row ss:Index="2"><Cell><Data>c</Data></Cell></Row></Table></Worksheet></Workbook>', ["# S\n\na | | b\nc"], []),
    "a folded calendar": ("a.ics", "BEGIN:VCALENDAR\r\nSUMMARY:the plan\r\n ning of berths\r\nDESCRIPTION:first\\nagenda: budget\\, crew\r\nEND:VCALENDAR\r\n",
                          ["planning of berths", "first agenda: budget, crew"], ["BEGIN"]),
    "an encoded card": ("a.vcf", "BEGIN:VCARD\nFN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCllerova bin=\nnacle\nN:Quill;Ada;;;\nPHOTO;ENCODING=b:AAAA\nEND:VCARD\n",
                        ["FN: M\u00fcllerova binnacle", "N: Quill Ada"], ["AAAA"]),
    "notes of subtitles": ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:03.000\nWelcome\n\nNOTE one\ntwo unsaid\n\n00:04.000 --> 00:06.000\n<v Ann>Open</v>\n",
                           ["Welcome\nAnn: Open"], ["unsaid"]),
    "accents of LaTeX": ("a.tex", "Schr\\\"odinger M\\\"{u}ller Erd\\H{o}s na\\\"{\\i}ve fa\\c{c}ade \\v{S}ibenik Stra\\ss{}e \\O re fluo\\-rescence a\\\\-b \\alpha",
                         ["Schr\u00f6dinger M\u00fcller Erd\u0151s na\u00efve fa\u00e7ade \u0160ibenik Stra\u00dfe \u00d8re fluorescence a\\\\-b \\alpha"], []),
    "readings of characters": ("a.html", "<p><ruby>\u6f22<rp>(</rp><rt>\u304b\u3093</rt>\u5b57</ruby>", ["\u6f22\u5b57"], ["\u304b"]),
    # Mail
    "mail that says nothing in its plain part": ("a.eml", two_parts("This message is in HTML. Please use a program that shows it.",
        "<h1>Statement</h1><p>Your demurrage balance is 417 crowns."), ["demurrage", "Please use"], []),
    "Outlook mail with a page": ("a.msg", file_makers.ole({**file_makers.msg_streams("Two", "Please use another program."), "__substg1.0_10130102":
        b"<p>Your demurrage balance is 417 crowns."}), ["demurrage", "another program"], []),
    "mail that says the same twice": ("a.eml", two_parts("Your balance is 417 crowns.", "<p>Your <b>balance</b> is 417 crowns."), ["balance"], []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_word_is_found_as_it_is_shown(tmp_path, case):
    name, data, wanted, unwanted = CASES[case]
    documents, _ = read(saved(tmp_path, name, data))
    text = "\n".join(document.text for document in documents)
    assert [words for words in wanted if words not in text] == [], text
    assert [words for words in unwanted if words in text] == [], text
    hides = case.startswith("hidden")
    assert any("left out" in str(document.metadata.get("hidden", "")) for document in documents) is hides


BINARY = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.bin"/>'
    "</Relationships>"
)
ENCRYPTION = '<encryption><CipherReference URI="OEBPS/a.xhtml"/></encryption>'
NOTHING: list[tuple[str, bytes | str, FileStatus, str]] = [
    *((name, data, FileStatus.SKIPPED, words) for name, data, words in (
        ("a.txt", b"", "empty"), ("a.txt", "\u200b\u200d\ufeff \u00ad\n", "no text"), ("a.txt", b" \n\t\n", "no text"),
        ("a.bin", bytes(range(256)) * 8, "binary"), ("a.mp3", b"ID3\x03 words", "no reader for .mp3 yet"), ("a.wps", b"\x00\x01\x02", "no reader for .wps"),
        *((f"a{suffix}", b"\x5d\x00\x00\x80\x00" + bytes(range(256)), "no reader.*Unpack it") for suffix in (".lzma", ".iso", ".deb", ".lz4")),
        ("winmail.dat", b"\x78\x9f\x3e\x22" + bytes(200), "winmail.dat"),
        ("a.xlsb", zipped({"[Content_Types].xml": "<Types/>", "_rels/.rels": BINARY, "xl/workbook.bin": b"\x00\x01"}), "XLSB"),
        ("a.vsdx", zipped({"[Content_Types].xml": "<Types/>", "_rels/.rels": "<Relationships/>", "visio/pages/page1.xml": "<Page>x</Page>"}), "not read"),
        ("a.zip", zipped({"a.mp3": "x", "b.mp3": "y"}), r"None of its 2 members could be read: There is no reader for \.mp3"),
        ("a.zip", zipped({}), "without members"), ("a.tar", file_makers.tar({}, links={"l": "/etc/passwd"}), "only links"),
    )),
    *((name, data, FileStatus.FAILED, words) for name, data, words in (
        ("a.md", b"PK\x03\x04rest", "broken"), ("a.docx", b"PK\x03\x04", "broken"), ("a.png", b"\x89PNG\r\n\x1a\nrubbish", "broken"),
        ("a.pdf", bytes(range(256)), "not a PDF"), ("a.pdf", b"%PDF-1.4 rubbish", "broken"), ("a.pdf", pdf(["x"])[:60], "broken"),
        ("a.pdf", pdf(["", ""]), "no text on any page"), ("a.pdf", pdf(["x"], encrypt=True), "password"),
        ("a.ppt", file_makers.ppt([("a", "b", "")], locked=True), "locked with a password"),
        *(("a.ppt", file_makers.ole(streams), "broken") for streams in (
            {"PowerPoint Document": b"junk", "Current User": bytes(28)}, {"PowerPoint Document": b"junk" * 30, "Current User": b"\x09" * 28},
            {"PowerPoint Document": b"junk"})),
        ("a.ipynb", "{", "notebook"), ("a.ipynb", "[]", "notebook"), ("a.ipynb", '{"x": 1}', "notebook"),
        *(("a.jsonl", "plain words\n" * lines, "None of its") for lines in (3, 50)),
        ("a.fodt", '<?xml version="1.0"?><office:document xmlns:office="x" office:mimetype="y"></office:document>', "it has no body"),
        ("a.epub", changed(file_makers.epub({"a.xhtml": "garbage"}), "mimetype", str, {"META-INF/encryption.xml": ENCRYPTION}), "protected against copying"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "status", "words"), NOTHING, ids=[f"{c[0]} {c[3]}" for c in NOTHING])
def test_a_file_that_gives_nothing_says_why_and_what_to_do(tmp_path, name, data, status, words):
    with pytest.raises(ReadError, match=words) as caught:
        read(saved(tmp_path, name, data))
    assert caught.value.status is status
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.csv", 'a,b\n1,"x\n2,y\n', "A quote opens here"),
        ("a.jsonl", '{"a": 1}\n', 'objects without "text"'),
        ("a.xlsx", formats({"0": "=A1+1"}), "1 of its formulas have no stored result"),
        ("a.xls", "<table><tr><td>a<td>b</table>", "It is not .xls"),
        ("a.docx", word(paragraph("a"), {"footnotes": "no markup"}), "Its part word/footnotes.xml is not XML"),
        (
            "a.docx",
            changed(word(paragraph("a")), "word/document.xml", str, {"word/embeddings/Old.vsd": "\1\2\3" * 99}),
            "Old.vsd",
        ),
        (
            "a.epub",
            changed(
                file_makers.epub({"c": "<p>a"}),
                "OEBPS/book.opf",
                lambda xml: xml.replace(
                    "</manifest><spine>",
                    '<item id="p" href="p.svg" media-type="image/svg+xml"/></manifest><spine><itemref idref="p"/>',
                ),
            ),
            "The chapter OEBPS/p.svg is image/svg+xml",
        ),
        (
            "a.mbox",
            b"lost words\n\nFrom a@b Tue Oct  1 12:34:56 2024\n" + file_makers.mail("S", "a"),
            "Before its first message",
        ),
        ("a.rtf", r"{\rtf1 a{\object{\*\objdata 00112233}}}", "1 of its embedded objects"),
        (
            "a.doc",
            doc_of([("a\r", b"")], more={"ObjectPool/_1/Equation Native": b"x"}),
            "A formula that was put into it",
        ),
        (
            "a.xlsx",
            changed(xlsx({"S": [["a"]], "T": [["b"]]}), "xl/worksheets/sheet2.xml", lambda _: ""),
            "The sheet T is not read: it is missing",
        ),
    ],
)
def test_what_is_read_with_a_loss_is_reported(tmp_path, name, data, reason):
    _, problems = read(saved(tmp_path, name, data))
    assert [isinstance(problem, Problem) and reason in problem.reason for problem in problems] == [True]


def test_a_heading_of_restructured_text_may_have_a_short_underline(tmp_path):
    """As for docutils, which warns; an example in a listing is none in LaTeX."""

    file = saved(tmp_path, "a.rst", "A\n=\n\nWords\n\nA long heading\n----\n\nmizzenmast\n" + "words. " * 300)
    chunks = [c for item in cut_file(found(file)) if isinstance(item, tuple) for c in item[1]]
    assert any("A long heading" in chunk.section for chunk in chunks)
    file = saved(
        tmp_path, "a.tex", "\\section{Real}\n" + "a " * 300 + "\n\\begin{verbatim}\n\\section{Fake}\n\\end{verbatim}\n"
    )
    assert not any("Fake" in c.section for item in cut_file(found(file)) if isinstance(item, tuple) for c in item[1])
