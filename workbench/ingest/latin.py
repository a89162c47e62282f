"""Which code page of Latin letters a text is in, by the alphabets that are written in them.

All of these code pages decode every byte to something, and a detector that counts how likely single letters are takes French
for Baltic as easily as a lone capital for a line of a box. But one text is in one language: where the letters beyond ASCII are
all of one alphabet, its small words are of the same language, and no sign stands inside a word, the code page is the right one;
in a wrong one the letters come from two or three.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

CODE_PAGES = ("cp1252", "iso8859_2", "cp1250", "cp1254", "iso8859_15", "mac_roman", "cp850", "cp1257", "cp852")
"""The likelier first."""
_LANGUAGES = (
    ("àâæçéèêëîïôœùûüÿ", "le la les de des du et un une est sont que qui dans pour par sur pas il ce"),
    ("äöüßéà", "der die das und ist nicht ein eine den dem mit von zu auf im sich des auch es"),
    ("áéíóúüñçàèòï", "el la los las de del y en un una que es por con para se al su no lo cada"),
    ("áâãàçéêíóôõúü", "o a os as de da do dos das e em um uma que para com se por na no"),
    ("àèéìíòóùú", "il la le lo gli di del della che e un una per con non si in da sono al"),
    ("åäöé", "och att det i en som av ett den med till har inte om ja on ei se mutta"),
    ("æøåéóôò", "og i det at en den til er som de med for der af ikke et har"),
    ("áæðéíóöþúý", "og er sem um til hann ekki en var ekki vi"),
    ("áéíóúâêîôûŵŷïäëöü", "agus an na ar yn y de het een en van ik te dat die in"),
    ("çğıİöşüâîû", "ve bir bu da de ne her ile mi var daha"),
    ("ąćęłńóśźż", "i w na z do nie to jest o od za po jak co"),
    ("áčďéěíňóřšťúůýž", "a je se na v to z do s o ale jak za"),
    ("áäčďéíĺľňóôŕšťúýž", "a je sa na v to z do s o ale ako za"),
    ("áéíóöőúüű", "a az egy nem is ez hogy de minden meg"),
    ("ăâîşţșț", "de la un o cu pe din care nu este si"),
    ("čćđšž", "je i u na se da za od su ne"),
    ("ąčęėįšųūž", "ir yra kad su tai iš ne bet"),
    ("āčēģīķļņšūž", "un ir uz ar no par ka"),
    ("äöõüšž", "ja on ei see et ning oma"),
)  # fmt: skip
"""The letters beyond ASCII of the languages, or families of them, that share an alphabet, and their small words."""
_KNOWN = tuple((frozenset(letters + letters.upper()), frozenset(words.split())) for letters, words in _LANGUAGES)
_MARKS = frozenset("«»‹›–—“”„‘’‚…•·°§€£©®™¿¡×½¼¾²³ºª†\u00a0\u00ad±µ")
_MISPLACED = re.compile(
    r"(?<=[^\W\d_])[^\w\s'’‘\-‐.·/\u00ad\u00a0](?=[^\W\d_])|(?<=[^\W\dlL_])·(?=[^\W\d_])|[¼½¾³¹¤¦¨¸](?=[^\W\d_])"
    r"|(?<=[^\W\d_])[„‚¿¡](?!\w)"
)
_CAPITAL_INSIDE = re.compile("(?<=[a-z])[^\x00-\x7f]")
_WORD = re.compile(rb"(?<![\x80-\xff])\b[a-z]+\b(?![\x80-\xff])")
_CLEAR = 0.9
_MOST_FOR_WORDS = 0.5


def latin_code_page(sample: bytes, otherwise: str) -> str:
    """The code page whose reading of the text is in one language.

    Args:
        sample: Bytes of the text.
        otherwise: What a detector took it for: the answer where none of `CODE_PAGES` is clearly better.
    """
    small = Counter(_WORD.findall(sample.lower()))
    words = {word.decode("ascii"): count for word, count in small.items()}
    fit = {name: _fit(sample, name, words) for name in CODE_PAGES}
    best = max(CODE_PAGES, key=lambda name: (fit[name], -CODE_PAGES.index(name)))
    return best if fit[best] >= _CLEAR and fit[best] > fit.get(otherwise, 0.0) + 0.01 else otherwise


def _fit(sample: bytes, name: str, words: Mapping[str, int]) -> float:
    """The share of the characters beyond ASCII that one language and the common marks explain, and some for its small words."""
    text = sample.decode(name, "replace")
    beyond = Counter(c for c in text if c > "\x7f")
    if not beyond:
        return 0.0
    marks = sum(count for c, count in beyond.items() if c in _MARKS)
    known = sum(beyond.values())
    wrong = len(_MISPLACED.findall(text)) + sum(c.isupper() for c in _CAPITAL_INSIDE.findall(text))
    explained = max(
        sum(count for c, count in beyond.items() if c in own) + _for_words(words, small) * known for own, small in _KNOWN
    )  # fmt: skip
    return float(explained + marks - wrong) / known


def _for_words(words: Mapping[str, int], small: frozenset[str]) -> float:
    """How much the small words of a language say that the text is in it: at most `_MOST_FOR_WORDS`."""
    return min(_MOST_FOR_WORDS, sum(words.get(word, 0) for word in sorted(small)) / max(sum(words.values()), 1))
