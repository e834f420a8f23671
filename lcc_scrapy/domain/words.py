"""Texts and keywords as sequences of words that can be compared (Unicode NFKC_Casefold, tokens).

A word is a run of letters, digits, marks and underscores. Scripts without blanks between words (Han, kana,
Thai, Lao, Khmer, Myanmar) give a word for each character, so that their words are phrases.
"""

import re
import unicodedata

WORDS_MAX = 32
"""Words of one keyword: at one place of a text end no more keywords than this."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0903\u093a-\u094f"
    "\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc\u09be-\u09cd\u09d7\u09e2\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a70"
    "\u0a71\u0a75\u0a81-\u0a83\u0abc\u0abe-\u0acd\u0ae2\u0ae3\u0b01-\u0b03\u0b3c\u0b3e-\u0b57\u0b62\u0b63\u0b82"
    "\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3c\u0c3e-\u0c56\u0c62\u0c63\u0c81-\u0c83\u0cbc\u0cbe-\u0cd6\u0ce2\u0ce3"
    "\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d62\u0d63\u0d81-\u0d83\u0dca-\u0df3\u0f18-\u0f19\u0f35\u0f37\u0f39"
    "\u0f71-\u0f87\u135d-\u135f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060"
    "\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\u3099\u309a"
)
_ALONE = re.compile(f"[{_UNSPACED}]")
_RUN = re.compile(f"[\\w{_MARKS}]+")
_WORD = re.compile(f"(?=[\\w{_MARKS}])[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\\w{_MARKS}])+")
"""The same in one expression, which takes several times as long."""

_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_UNSEEN = re.compile("[\xad\u034f\u061c\u180e\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
"""What is not seen and stands within words: soft hyphens, joiners, marks of direction."""


def normalised(text: str) -> str:
    """Return text in the form in which it is compared: Unicode's NFKC_Casefold.

    The text between two blanks becomes the same whatever stands around it.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold()
    return unicodedata.normalize("NFKC", folded)


def words_of(text: str) -> list[str]:
    """Return the words of a text, as they are compared and in their order."""
    form = normalised(text)
    if form.isascii():
        return _ASCII_WORD.findall(form)
    return _RUN.findall(_ALONE.sub(r" \g<0> ", form))


def keeps_places(text: str) -> bool:
    """Tell whether each character of a text stays in its place when the text is ``normalised``."""
    if text.isascii():
        return True
    # Equal lengths alone do not say so: one character may become two, and two others one.
    folds = unicodedata.is_normalized("NFKC", text) and len(text.casefold()) == len(text)
    return folds and len(normalised(text)) == len(text)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where the words of a text stand that ``keeps_places``."""
    return [word.span() for word in _WORD.finditer(normalised(text))]


def words_of_keyword(key: str) -> list[str]:
    """Return the words of a keyword or phrase; raises ``ValueError`` with what is wrong, in one line."""
    words = words_of(key)
    if not 0 < len(words) <= WORDS_MAX:
        raise ValueError(f"keyword {key[:60]!r} has {len(words)} words, expected 1 to {WORDS_MAX}")
    return words
