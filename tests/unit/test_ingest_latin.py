"""Code pages of Latin letters: the right one is that in which the text is in one language."""

from __future__ import annotations

import pytest

from workbench.ingest.encoding import decode

FRENCH = "Entretien de la chaîne d'ancre. Le capitaine vérifie chaque jour l'état de la coque ; où sont les matelots ?"
GERMAN = (
    "Pflege der Ankerkette. Der Kapitän prüft täglich den Anker, die Matrosen säubern das Deck und den größeren Kran."
)
SPANISH = "Mantenimiento de la cadena. El capitán revisa el ancla cada mañana; así será más fácil, según él, en otoño."
ITALIAN = "Manutenzione della catena. Il capitano controlla l'ancora perché è così; più libertà, lunedì, però là."
TURKISH = (
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
        (FRENCH, "latin-1"), (FRENCH, "mac-roman"), (FRENCH, "cp850"), (FRENCH + " Le cœur.", "iso8859-15"),
        (GERMAN, "latin-1"), (GERMAN, "mac-roman"), (GERMAN, "cp850"), (SPANISH, "latin-1"),
        (ITALIAN, "latin-1"), (ITALIAN, "mac-roman"), (TURKISH, "cp1254"), (TURKISH, "iso8859-9"), (DANISH, "cp1252"),
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
