"""Encodings: short texts in the code pages that people have, without a word on what they are in."""

from __future__ import annotations

import pytest

from workbench.ingest import ReadError
from workbench.ingest.encoding import MIXED, decode

RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью.\n"
FRENCH = "Tous les êtres humains naissent libres et égaux en dignité et en droits, doués de raison et de conscience.\n"
GERMAN = (
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft begabt, natürlich größer.\n"
)
POLISH = "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem.\n"
CZECH = "Všichni lidé se rodí svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím, žijí šťastně.\n"
GREEK = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα, με λογική και συνείδηση.\n"
TURKISH = (
    "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler, kardeşlik şarttır.\n"
)
HEBREW = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם.\n"
ARABIC = "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميراً وعليهم أن يعامل بعضهم بعضاً.\n"
JAPANESE = (
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は理性を授けられている。\n"
)
CHINESE = "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。\n"
KOREAN = (
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았다.\n"
)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "koi8-r"), (RUSSIAN, "cp1251"), (RUSSIAN, "iso8859-5"), (RUSSIAN, "cp866"),
        (FRENCH, "latin-1"), (FRENCH, "cp1252"), (GERMAN, "latin-1"),
        (POLISH, "cp1250"), (POLISH, "iso8859-2"), (CZECH, "cp1250"), (CZECH, "iso8859-2"), (GREEK, "cp1253"),
        (TURKISH, "cp1254"), (HEBREW, "cp1255"), (ARABIC, "cp1256"), (JAPANESE, "shift_jis"), (JAPANESE, "euc-jp"),
        (JAPANESE, "iso2022_jp"), (CHINESE, "gb18030"), (KOREAN, "euc-kr"), ("имя;сумма\nцапля;3\nлиса;4\n", "koi8-r"),
        ("Привет\n", "koi8-r"), ("会议记录\n", "gb18030"), ("会议的报告。\n", "gb18030"), ("회의록입니다\n", "euc-kr"),
        ("素早い茶色の狐がのろまな犬を飛び越える。サギは堰のそばで魚を待つ。\n", "shift_jis"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("times", [1, 4])
def test_code_pages_are_told_by_their_text(text: str, encoding: str, times: int) -> None:
    assert decode((text * times).encode(encoding))[0] == text * times


@pytest.mark.parametrize("text", [RUSSIAN, FRENCH, GREEK, HEBREW, ARABIC, JAPANESE, CHINESE, KOREAN])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_unicode_is_told_with_and_without_a_mark(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding))[0] == text


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [("x-sjis", "cp932", JAPANESE), ("gb2312", "gb18030", CHINESE + "镕"), ("EUC-KR", "cp949", KOREAN + "똠"),
     ("iso-8859-1", "cp1252", "“quoted” – naïve"), ("ISO-8859-9", "cp1254", TURKISH)],
)  # fmt: skip
def test_a_declared_encoding_is_taken_for_the_larger_one_that_is_meant(label: str, encoding: str, text: str) -> None:
    assert decode(text.encode(encoding), label)[0] == text


def test_wide_text_without_line_ends_needs_no_mark() -> None:
    """Chinese without blanks and line ends has no zero byte, and no upper bytes that are few."""
    text = CHINESE.strip() * 3
    for encoding in ("utf-16-le", "utf-16-be"):
        assert decode(text.encode(encoding)) == (text, encoding)


@pytest.mark.parametrize(("encoding", "text"), [("hz", "缆绳与锚链的保养"), ("iso2022_kr", "닻줄과 닻사슬\n")])
def test_encodings_that_look_like_ascii_are_not_taken_for_it(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding), encoding)[0] == text


def test_the_marks_of_hz_in_a_program_are_no_text() -> None:
    program = '(format t "~{ab~}" list) (format t "~{cd~}" other)'
    assert decode(program.encode()) == (program, "utf-8")


def test_a_file_of_two_encodings_keeps_the_words_of_both() -> None:
    data = (GERMAN * 3).encode() + "Straße\n".encode("latin-1") + GERMAN.encode()
    assert decode(data) == (GERMAN * 3 + "Straße\n" + GERMAN, MIXED)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\rc\nd", "a\nb\nc\nd"), (b"one\x00two, and so on and on", "one\ufffdtwo, and so on and on"),
        ("e\u0301 \u202b\u05d0\u202c".encode(), "e\u0301 \u202b\u05d0\u202c"), (b"x" * (2 << 20), "x" * (2 << 20)),
    ],
    ids=["line ends", "NUL", "marks and right-to-left", "one long line"],
)  # fmt: skip
def test_text_keeps_its_characters_and_only_line_ends_and_nul_change(data: bytes, text: str) -> None:
    assert decode(data)[0] == text


@pytest.mark.parametrize(
    "data", [bytes(range(256)) * 8, b"\x01\x00\x02\x00" * 200, b"\x00" * 400, bytes(range(0, 256, 2)) * 9]
)
def test_binaries_are_no_text_in_any_encoding(data: bytes) -> None:
    with pytest.raises(ReadError):
        decode(data)


@pytest.mark.parametrize(("text", "encoding"), [(FRENCH, "cp1252"), (RUSSIAN, "cp1251"), (RUSSIAN, "koi8-r")])
def test_lines_of_two_encodings_are_read_each_in_its_own(text: str, encoding: str) -> None:
    other = f"and {text}"
    found, name = decode((text.encode() + other.encode(encoding)) * 3)
    assert found == (text + other) * 3
    assert name.startswith("utf-8 and ")


def test_words_that_nul_sets_apart_are_text() -> None:
    assert (
        decode(b"a heron\x00the second\x00a third word\x00\n")[0] == "a heron\ufffdthe second\ufffda third word\ufffd\n"
    )


@pytest.mark.parametrize("encoding", ["cp500", "cp037"])
def test_text_of_mainframes_is_named_and_not_read_as_noise(encoding: str) -> None:
    with pytest.raises(ReadError, match="EBCDIC") as caught:
        decode("THE QUICK BROWN FOX JUMPS over the lazy dog.\n".encode(encoding) * 30)
    assert "iconv" in caught.value.remedy


NAVAL_FRENCH = (
    "Entretien de la chaîne d'ancre. Le capitaine vérifie chaque jour l'état de la coque ; où sont les matelots ?"
)
NAVAL_GERMAN = (
    "Pflege der Ankerkette. Der Kapitän prüft täglich den Anker, die Matrosen säubern das Deck und den größeren Kran."
)
SPANISH = "Mantenimiento de la cadena. El capitán revisa el ancla cada mañana; así será más fácil, según él, en otoño."
ITALIAN = "Manutenzione della catena. Il capitano controlla l'ancora perché è così; più libertà, lunedì, però là."
NAVAL_TURKISH = (
    "Çapa zincirinin bakımı. Kaptan her gün çapayı kontrol eder, tayfalar güverteyi yıkar. İğne ışık, şöyle, ağaç."
)
DANISH = "Vedligeholdelse af kæden. Kaptajnen går over dækket på broen. Den første søndag æble og øl."
LITHUANIAN = (
    "Inkaro grandinės priežiūra. Kapitonas kasdien tikrina inkarą, jūreiviai plauna denį. Žmogus, šuo, ąžuolas."
)
CROATIAN = "Održavanje sidrenog lanca. Kapetan provjerava sidro svaki dan, čovjek, kuća, žena, šuma, đak."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (NAVAL_FRENCH, "latin-1"), (NAVAL_FRENCH, "mac-roman"), (NAVAL_FRENCH, "cp850"),
        (NAVAL_FRENCH + " Le cœur.", "iso8859-15"),
        (NAVAL_GERMAN, "latin-1"), (NAVAL_GERMAN, "mac-roman"), (NAVAL_GERMAN, "cp850"), (SPANISH, "latin-1"),
        (ITALIAN, "latin-1"), (ITALIAN, "mac-roman"), (NAVAL_TURKISH, "cp1254"), (NAVAL_TURKISH, "iso8859-9"),
        (DANISH, "cp1252"),
        (DANISH, "cp850"), (LITHUANIAN, "cp1257"), (CROATIAN, "cp1250"), (CROATIAN, "iso8859-2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("times", [1, 3])
def test_the_language_tells_the_code_page(text: str, encoding: str, times: int) -> None:
    """French is not Baltic, an accent no sign, and the last letters of Turkish no Icelandic."""
    assert decode((f"{text}\n" * times).encode(encoding))[0] == f"{text}\n" * times


@pytest.mark.parametrize("word", ["Sales Überblick", "Straße 12", "ein Kapitän", "À la carte", "l'état de la coque"])
def test_a_single_accent_is_a_letter(word: str) -> None:
    """One byte beyond ASCII is a letter of the West, no line of a box and no half of a Chinese character."""
    assert decode(word.encode("latin-1"))[0] == word


def test_a_mark_alone_says_nothing_of_letters() -> None:
    text = "Hij kon niet liegen en zich zelf verzekeren, dat het een nevelachtige voorstelling was…\n"
    assert decode(text.encode("cp1252"))[0] == text
