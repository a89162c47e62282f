"""A citation opens again: from what a result cites, or what people write, to the characters of a document."""

import file_makers as make
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import UsageError
from workbench.locators import Place, ends_of, joined, line_of, locate, locator, pairs_of, spoken
from workbench.retrieve.readfile import find_cited, find_place, split_citation

SHEETS = "# Sales\n\na | b\n1 | 2\n\n# R&D\n\nc\nd\n"
SHEET_PLACES = [
    Place(SHEETS.index(words), locator(sheet=sheet, row=row))
    for words, sheet, row in (("# Sales", "Sales", 1), ("1 | 2", "Sales", 2), ("# R&D", "R&D", 3), ("d\n", "R&D", 12))
]


def at(place: str, text: str = SHEETS, places: list[Place] | None = None, pages: tuple[int, ...] = ()) -> str:
    span = find_place(place, text, SHEET_PLACES if places is None else places, pages)
    return text[span.start : span.end]


@pytest.mark.parametrize(
    "place",
    ["sheet=Sales&row=2", "#sheet=Sales&row=2", "Sales!A2", "sales!B2", "$A$2", "a2", "sheet=Sales&row=2-9", "line 4"],
)
def test_a_row_is_named_in_several_ways(place):
    assert at(place) == "1 | 2"


@pytest.mark.parametrize("place", ["R&D", "'R&D'", "sheet=R%26D", "R&D!1:99", "sheet=R%26D&row=3..sheet=R%26D&row=12"])
def test_a_whole_sheet_is_named_too(place):
    assert at(place) == "# R&D\n\nc\nd"


def test_slides_cells_moments_and_pages():
    text = "one\ntwo\nthree\nfour\n"
    starts = (0, 4, 8, 14)
    slides = [
        Place(a, n) for a, n in zip(starts, ("slide=1", "slide=1&part=notes", "slide=2", "slide=10"), strict=True)
    ]
    assert [at(p, text, slides) for p in ("slide 1", "slide 1 notes", "Slide 2", "slides 2-10")] == [
        "one\ntwo", "two", "three", "three\nfour",
    ]  # fmt: skip
    film = [Place(a, f"time=00:0{n}:00") for n, a in enumerate(starts)]
    assert [at(p, text, film) for p in ("1:00", "00:01:59", "time=00:02:00-00:03:00")] == ["two", "two", "three\nfour"]
    lines = [Place(a, f"line={n}") for a, n in zip(starts, (3, 5, 9, 20), strict=True)]
    assert [at(p, text, lines) for p in ("line=7", "7", "line 9-20", "5")] == ["two", "two", "three\nfour", "two"]
    assert [at(p, text, [], starts) for p in ("page=2", "p 2", "pages 2-3")] == ["two", "two", "two\nthree"]
    assert [at(p, text, []) for p in ("2", "2-3", "lines 2-99", ":4", "line 1")] == [
        "two", "two\nthree", "two\nthree\nfour", "four", "one",
    ]  # fmt: skip
    assert at("sheet=Sales&row=2..sheet=R%26D&row=3") == "1 | 2\n\n# R&D\n\nc"


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("Sales!A77", "sheet Sales has row 1, 2"), ("Costs!A1", "It has sheet Sales, R&D"), ("slide=3", "It has sheet"),
        ("99", "Its last line is 9"), ("rubbish", "It has sheet"), ("0", "no line 0"), ("..", "no place"), ("=", "no place"),
    ],
)  # fmt: skip
def test_a_place_that_is_not_there_is_told_with_those_that_are(place, told):
    with pytest.raises(UsageError, match=told):
        at(place)


def test_a_locator_is_said_in_words():
    assert list(split_citation("a#b.jsonl#x:3-4")) == [
        ("a#b.jsonl#x:3-4", ""), ("a#b.jsonl#x", "3-4"), ("a#b.jsonl", "x:3-4"),
    ]  # fmt: skip
    assert list(split_citation("plain.md")) == [("plain.md", "")]
    assert spoken("sheet=R%26D&row=3-9") == "sheet R&D, row 3-9"
    assert spoken("paragraph=3..table=1&row=2") == "paragraph 3 to table 1, row 2"
    text = "moved\nrow\nrow\n"
    lines = [Place(0, "line=9"), Place(6, "line=7"), Place(10, "line=8")]
    assert locate(lines, 0, 13) == "line=8-9"
    assert joined("line=1&column=90", "line=1&column=7") == "line=1&column=7-90"
    assert at("line=8-9", text, lines) == "moved\nrow\nrow"
    places = ("line=7", "line=7-9", "line=7&column=3-5", "line=7..line=9&column=2", "page=7", "sheet=line&row=7")
    assert [line_of(place) for place in places] == [7, 7, 7, 7, None, None]


KEYS = st.sampled_from(["sheet", "row", "slide", "part", "cell", "output", "table", "time"])
VALUES = st.one_of(st.integers(1, 30).map(str), st.text(min_size=1, max_size=8))
LOCATORS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=2).map(lambda keys: locator(**keys))


@given(LOCATORS, LOCATORS)
def test_any_locator_and_any_range_come_apart_again(first, last):
    both = joined(first, last)
    if ".." in both and both != first and both != last:
        assert ends_of(f"{first}..{last}") == (first, last)
    assert ends_of(first) == (first, first)
    assert locator(**dict(pairs_of(first))) == first


@given(
    st.lists(st.tuples(LOCATORS, st.integers(1, 5)), min_size=1, max_size=12, unique_by=lambda item: item[0]), st.data()
)
def test_what_is_cited_is_found(parts, data):
    places, text = [], ""
    for name, size in parts:
        places.append(Place(len(text), name))
        text += "x" * size + "\n"
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = find_place(locate(places, start, end), text, places, ())
    assert found.start <= start
    assert found.end >= len(text[:end].rstrip())


def test_what_a_result_cites_is_read_again(tmp_path):
    files = {
        "book.xlsx": make.xlsx({"Sales": [["what", "sum"], ["heron", 3]], "R&D = 5%": [["heron"]]}),
        "deck.pptx": make.pptx([("heron", "on a slide", "heron notes"), ("two", "heron", "")]),
        "plan.docx": make.docx([("", "A heron."), ("", "Two.")], [["heron", "price"], ["x", "y"]]),
        "mail.eml": make.mail("heron", "The heron.", {"a.zip": make.zipped({"d/in.md": "# T\n\nA heron.\n"})}),
        "notes.md": b"# N\n\nheron\n",
    }
    folder = tmp_path / "files"
    folder.mkdir()
    for name, content in files.items():
        make.saved(folder, name, content)
    wb.index([folder], corpus=tmp_path / "c", encoder="hashing", workers=0)
    with wb.open_corpus(tmp_path / "c") as corpus:
        hits = corpus.search("heron", mode="keyword", limit=20).hits
        assert {hit.path.partition("!/")[0] for hit in hits} == set(files)
        for hit in hits:
            assert hit.text.strip() in corpus.read_file(hit.citation), hit.citation
        assert corpus.read_file("book.xlsx", at="Sales!A2") == "heron | 3"
        assert corpus.read_file("book.xlsx#sheet=Costs") == (
            "[ERROR: NOT_FOUND] book.xlsx: There is no place 'sheet=Costs' in it. It has sheet Sales, R&D = 5%."
        )
        assert find_cited(corpus.engine, "notes.md:3").lines == (3, 3)
        result = corpus.search("heron", mode="keyword", limit=20)
        assert corpus.explain(result, "deck.pptx#slide=2").citation == "deck.pptx#slide=2"
        assert corpus.explain(result, "deck.pptx#slide=77").found
        assert corpus.read_file("nothing.md:3-4").startswith("[ERROR: NOT_FOUND] There is no document nothing.md")
        assert corpus.read_file("/etc/passwd:1").startswith("[ERROR: ACCESS_DENIED]")


def test_lines_and_columns_of_a_source_open_the_text_that_stands_there():
    text = "one\ntwo\nthree\nfour\n"
    names = ("line=3", "line=7&column=10", "line=7&column=90", "line=9")
    lines = [Place(a, n) for a, n in zip((0, 4, 8, 14), names, strict=True)]
    asked = "3|5|line 7|7-8|line=7&column=10-90|line=7&column=95|line 7 column 12|7-9|line=8|99".split("|")
    assert [at(p, text, lines) for p in asked] == [
        "one", "one", "two\nthree", "two\nthree", "two\nthree", "three", "two", "two\nthree\nfour", "two\nthree", "four",
    ]  # fmt: skip
    assert locate(lines, 0, 5) == "line=3..line=7&column=10"
    assert at("line=3..line=7&column=10", text, lines) == "one\ntwo"
    with pytest.raises(UsageError, match="It has line 3 to 9"):
        at("line 1", text, lines)
