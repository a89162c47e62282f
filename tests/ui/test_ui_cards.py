"""Result cards say what the record says; text from documents is shown as text; links to the Document page."""

import html
import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from hits_for_tests import hit
from hypothesis import given
from hypothesis import strategies as st

from workbench import markup as t
from workbench.records import Span, Unavailable
from workbench.ui.components import cards


def test_a_card_says_rank_label_score_distance_and_citation() -> None:
    shown = cards.card(hit(), {"keyword": 4, "vector": 1}, ("keyword", "vector"))
    for words in ("A title", "Hybrid", "0.03202", "distance 0.210", "notes/a.md:3-9", "<mark>retries</mark>"):
        assert words in shown
    assert 'data-wb-copy="notes/a.md:3-9"' in shown
    assert "document?id=d1&amp;path=notes%2Fa.md&amp;lines=3-9" in shown
    shown = cards.card(hit(copies=("b.md", "c/d.md", "<i>e", "f.md", "g.md")), {"keyword": 4}, ("keyword",))
    assert "Also in <bdi>b.md</bdi>, <bdi>c/d.md</bdi>, <bdi>&lt;i&gt;e</bdi> and 2 more</div>" in shown
    assert "Also in" not in cards.card(hit(), {"keyword": 4}, ("keyword",))
    shown = cards.card(hit(), {"keyword": 4}, ("grep", "keyword"))
    assert 'title="grep did not retrieve it"' in shown
    assert "keyword <b>4</b>" in shown
    assert 'class="wb-section" title="A &gt; B"><bdi>B</bdi>' in cards.card(hit(), {}, ())
    assert "wb-section" not in cards.card(hit(section="A title"), {}, ())
    assert "wb-section" not in cards.card(hit(section=""), {}, ())
    line = cards.card(hit(), {}, (), marks=cards.Marks(compact=True, unjudged=True))
    assert '<span class="wb-spot">3-9</span><span class="wb-spot wb-spot-in"><bdi>B</bdi></span>' in line
    assert ">–</span>" in line
    assert "<bdi>notes/a.md</bdi></a><span" in cards.card(
        hit(path="x/notes/a.md", title="a.md"), {}, (), marks=cards.Marks(compact=True)
    )
    assert cards.movement(1, 4) == ("▲3", "3 places up")
    assert cards.movement(5, 4) == ("▼1", "1 place down")
    assert cards.movement(4, 4) == ("=", "the same place")
    assert cards.movement(4, 0) == ("", "")


def test_the_bar_has_the_share_of_what_each_source_added() -> None:
    """By its size, where it is negative; none where one source alone added something, or nothing was added."""
    shown = cards.card(hit(contributions={"keyword": -1.0, "vector": 3.0}), {}, ())
    assert 'title="keyword -1 (25%), vector 3 (75%)"' in shown
    assert re.findall(r'width:([\d.]+)%;background:\S+" data-source="(\w+)"', shown) == [
        ("25.0", "keyword"),
        ("75.0", "vector"),
    ]
    assert "wb-bar" not in cards.card(hit(contributions={"keyword": 0.0, "vector": 0.0}), {}, ())
    assert "wb-bar" not in cards.card(hit(contributions={"vector": 3.0}), {}, ())


@pytest.mark.parametrize("field", ["title", "path", "text", "section", "chunk_id", "document_id"])
def test_hostile_text_in_any_field_stays_text(field: str) -> None:
    bad = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[0m\u202e$x$ **b**\ud800"
    shown = cards.card(hit(**{field: bad, "matches": ()}), {"keyword": 4}, ("keyword",))
    plain = cards.card(hit(matches=()), {"keyword": 4}, ("keyword",))
    elements = re.compile(r"<(?!/?span class=\"wb-code\")(/?[a-z]+)")
    assert [e for e in elements.findall(shown) if e != "/span"] == [e for e in elements.findall(plain) if e != "/span"]
    assert "onerror=alert(2)>" not in shown
    assert "\u202e" not in shown
    assert "\ud800" not in shown


def test_a_grep_card_shows_numbered_lines_around_the_first_match() -> None:
    text = "\n".join(f"line {n}" for n in range(1, 40))
    at = text.index("line 20")
    shown = cards.card(hit(text=text, start_line=101, matches=(Span(at, at + 7),)), {}, ("grep",), numbered=True)
    assert re.findall(r'wb-no">(\d+)<', shown) == ["119", "120", "121", "122", "123"]
    assert '<div class="wb-line wb-hit"><span class="wb-no">120</span>' in shown
    assert "<mark>line 20</mark>" in shown
    assert "quote=word+word" in cards.document_link(hit(text="word " * 200, start_line=4, end_line=4))
    assert "quote" not in cards.document_link(hit())
    assert cards.document_address("a.md") == "document?path=a.md"
    full = cards.document_address(
        "a & b/ü#1.xlsx", document_id="d1", lines=(4, 9), locator="sheet=S&row=4", asked={"q": "rain = snow"}
    )
    assert parts(full) == {
        "q": "rain = snow", "id": "d1", "path": "a & b/ü#1.xlsx", "at": "sheet=S&row=4", "lines": "4-9",
    }  # fmt: skip


def test_a_column_says_messages_and_a_card_grades_notes_and_links() -> None:
    gone = Unavailable("vector", "no model here", "Install the model")
    warning = "vector could not run: no model here. Install the model. The result is from keyword"
    shown = cards.column(
        "Hybrid",
        [hit()],
        ranks={"c1": {"keyword": 1}},
        sources=("keyword",),
        messages=cards.messages_html(("1 result",), (warning, "approximate"), (gone,)),
    )
    assert shown.count("no model here") == 1
    assert "Install the model." in shown
    assert "approximate." in shown
    assert "1 result" in shown
    assert shown.count('role="alert"') == 2
    marks = cards.Marks(
        grades={"c1": 2}, notes={"c1": "<i>mine</i>"}, editor={"c1": "vscode://file/a.md:3"}, collections=True,
        asked={"q": "a & b"}, plan="tmm",
    )  # fmt: skip
    body = _with(marks)
    assert body.count('aria-pressed="true"') == 1
    assert 'data-v="2" title="2: relevant" aria-pressed="true"' in body
    assert "&lt;i&gt;mine&lt;/i&gt;" in body
    assert 'data-wb-open="vscode://file/a.md:3"' in body
    assert "in docs</span>" in body
    assert 'href="explain?q=a+%26+b&amp;plan=tmm&amp;target=notes%2Fa.md"' in body
    assert "data-wb-open" not in _with(cards.Marks())
    assert "plan=" not in _with(cards.Marks())


def _with(marks: cards.Marks) -> str:
    return cards.column("Keyword", [hit()], ranks={}, sources=(), marks=marks)


def parts(link: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(link).query))


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</div></section><h1>",
    "&lt;b&gt; &amp;",
    "**bold** [link](javascript:alert(1)) $x^2$ :red[x] `code`",
    "\x1b[31mred\x1b[0m \x00\x07\x7f",
    "abc\u202egnp.exe\u202c \u2066x\u2069 \u200f",
    "zero\u200bwidth\ufeff soft\u00adhyphen",
    "lone \ud800 surrogate",
    "\U000e0041\U000e0042 tags",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_makes_no_element_but_ours_and_ends_no_attribute(text: str) -> None:
    shown = t.visible(text)
    assert set(re.findall(r"</?([a-z0-9]+)", shown)) <= {"span"}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    assert not set(t.attribute(text)) & set("\"'<>")


@given(st.text(), st.text())
def test_text_may_be_cut_anywhere(one: str, other: str) -> None:
    assert t.visible(one) + t.visible(other) == t.visible(one + other)


@given(st.text(alphabet=st.characters(blacklist_categories=("Cc", "Cf", "Cs", "Zl", "Zp"))))
def test_ordinary_text_reads_back_as_itself(text: str) -> None:
    assert html.unescape(t.visible(text)) == text


def test_hidden_characters_are_named_and_marks_stand_around_the_matches() -> None:
    assert "␛" in t.visible("\x1b")
    assert "U+202E" in t.visible("\u202e")
    assert t.visible("a\tb\nc") == "a\tb\nc"
    assert t.marked("a<b>c", [Span(1, 4)]) == "a<mark>&lt;b&gt;</mark>c"
    assert t.marked("abc", [Span(2, 9), Span(5, 7)]) == "ab<mark>c</mark>"
    assert t.marked("abcd", [Span(1, 3), Span(2, 4)]) == "a<mark>bc</mark><mark>d</mark>"
    text = "x" * 1_000_000
    (line,) = t.lines_of(text, 1)
    assert len(line.html) < t.LONGEST_LINE + 200
    assert "998,000 more characters" in line.html
    assert len(t.plain(text)) == 200


@given(
    st.text(max_size=300), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=5), st.integers(1, 80)
)
def test_an_excerpt_is_a_piece_of_the_text(text: str, raw: list[tuple[int, int]], most: int) -> None:
    spans = [Span(s, s + n) for s, n in raw if s + n <= len(text)]
    piece = t.excerpt(text, sorted(spans), most)
    assert text[piece.before : piece.before + len(piece.text)] == piece.text
    assert len(piece.text) <= most
    assert all(0 <= m.start <= m.end <= len(piece.text) for m in piece.matches)
