"""A folder of files of every kind, with words made at random: `python tests/many_files.py FOLDER [HOW_MANY]`.

For `workbench index FOLDER --check-words`, and for the tests of what is found in them.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import file_makers as make

Words = Callable[[int], str]
_LETTERS = "abcdefghijklmnopqrstuvwxyz" * 6 + "äéßøžłğ" + "жяиλω"


def words_of(chance: random.Random, letters: str = _LETTERS) -> Words:
    """Makes sentences of a number of words."""

    def sentence(count: int) -> str:
        made = ("".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(count))
        return " ".join(f"{word} {chance.randint(2, 9999)}" if chance.random() < 0.1 else word for word in made)

    return sentence


def _rows(w: Words) -> list[list[str]]:
    return [["Name", "Remark"], *([w(1), w(3)] for _ in range(6))]


def _marked(heading: str) -> Callable[[Words], str]:
    return lambda w: "\n\n".join(f"{heading.format(w(3))}\n\n{w(30)}\n{w(20)}" for _ in range(4))


def _slides(w: Words) -> list[tuple[str, str, str]]:
    return [(w(3), w(15), w(8)) for _ in range(4)]


def _page(w: Words) -> str:
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in _rows(w))
    return f"<html><body><h1>{w(3)}</h1><p>{w(30)}<ul><li>{w(5)}<li>{w(5)}</ul><table>{rows}</table></body></html>"


def _notebook(w: Words) -> str:
    outputs = [{"output_type": "stream", "name": "stdout", "text": w(5)}]
    code = {"cell_type": "code", "source": w(4), "outputs": outputs, "metadata": {}, "execution_count": 1}
    cells = [{"cell_type": "markdown", "source": f"# {w(2)}\n\n{w(20)}", "metadata": {}}, code]
    return json.dumps({"cells": cells * 2, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _properties(kind: str, names: str) -> Callable[[Words], str]:
    return lambda w: (
        "\r\n".join([f"BEGIN:{kind}", *(f"{name}:{w(6)}" for name in names.split()), f"END:{kind}"]) + "\r\n"
    )


def _cues(head: str, comma: str) -> Callable[[Words], str]:
    return lambda w: head + "\n\n".join(f"00:0{n}:00{comma}000 --> 00:0{n}:05{comma}000\n{w(8)}" for n in range(6))


def _rtf(w: Words) -> str:
    body = "".join(rf"\u{ord(c)}?" if c > "\x7f" else c for c in w(60))
    return rf"{{\rtf1\ansi {body[:200]}\par {body[200:]}\par}}"


def _mbox(w: Words) -> bytes:
    return b"".join(b"From a@b Tue Oct  1 12:34:56 2024\n" + make.mail(w(2), w(20)) + b"\n" for _ in range(3))


KINDS: dict[str, Callable[[Words], bytes | str]] = {
    "md": _marked("## {}"),
    "txt": _marked("{}"),
    "rst": lambda w: "\n\n".join(f"{w(3)}\n{'=' * 60}\n\n{w(30)}" for _ in range(4)),
    "tex": _marked(r"\section{{{}}}"),
    "org": _marked("* {}"),
    "adoc": _marked("== {}"),
    "py": lambda w: "\n\n\n".join(f'def f{n}():\n    """{w(9)}"""' for n in range(5)),
    "json": lambda w: json.dumps({"title": w(3), "text": [w(9), w(9)]}, indent=1),
    "jsonl": lambda w: "\n".join(json.dumps({"id": str(n), "title": w(3), "text": w(20)}) for n in range(5)),
    "html": _page,
    "xhtml": lambda w: '<?xml version="1.0" encoding="utf-8"?>\n' + _page(w).replace("<p>", "").replace("<li>", " "),
    "xml": lambda w: f"<r><p>{w(9)}</p><p>{w(9)} <e>{w(2)}</e> {w(5)}</p></r>",
    "pdf": lambda w: make.pdf(["\n".join(w(8) for _ in range(20)) for _ in range(3)]),
    "docx": lambda w: make.docx([("Heading 1", w(3)), ("", w(40)), ("List Bullet", w(5))], _rows(w), [w(20)]),
    "odt": lambda w: make.odt([(1, w(3)), (0, w(40))], _rows(w), [(0, w(20))]),
    "rtf": _rtf,
    "doc": lambda w: make.doc([w(20), w(20)], _rows(w)),
    "pptx": lambda w: make.pptx(_slides(w)),
    "ppt": lambda w: make.ppt(_slides(w)),
    "odp": lambda w: make.odp(_slides(w)),
    "xlsx": lambda w: make.xlsx({"First": _rows(w), "Other": _rows(w)}),
    "xls": lambda w: make.xls({"First": _rows(w), "Other": _rows(w)}),
    "ods": lambda w: make.ods({"First": _rows(w), "Other": _rows(w)}),
    "csv": lambda w: "\n".join(";".join(row) for row in _rows(w)),
    "tsv": lambda w: "\n".join("\t".join(row) for row in _rows(w)),
    "eml": lambda w: make.mail(w(3), w(30), {"note.txt": w(10).encode("utf-8")}),
    "msg": lambda w: make.msg(w(3), w(30)),
    "mbox": _mbox,
    "epub": lambda w: make.epub({f"{n}.xhtml": f"<html><body><p>{w(30)}</p></body></html>" for n in range(3)}),
    "ipynb": _notebook,
    "ics": _properties("VCALENDAR", "SUMMARY DESCRIPTION LOCATION"),
    "vcf": _properties("VCARD", "FN NOTE TITLE"),
    "srt": _cues("", ","),
    "vtt": _cues("WEBVTT\n\n", "."),
    "zip": lambda w: make.zipped({"a.txt": w(20), "d/b.md": w(20)}),
}


def write(folder: Path, how_many: int) -> None:
    """As many files, of each kind in turn; the same ones in every run."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(how_many):
        kind = [*KINDS][number % len(KINDS)]
        letters = _LETTERS[:26] if kind == "pdf" else _LETTERS
        data = KINDS[kind](words_of(random.Random(number), letters))
        make.saved(folder, f"{number:03d}.{kind}", data)


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200)
