"""Words of texts and keywords: whole tokens, compared whatever their case, width and composition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.words import WORDS_MAX, normalised, word_spans, words_of, words_of_keyword
from tests.naive_annotation import words_of as plain_words_of

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cn", "Co"]), max_size=40)
WRITTEN = st.text(
    st.sampled_from("aBß_1 -.,東京カ゚ée\u0301\u0328ﬁ㎞İΣς½\u00ad\u200d\u200bกำ\u0e33हिन्दी"), max_size=30
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Java, JAVA (java)", ["java", "java", "java"]),
        ("C++ and C#", ["c", "and", "c"]),
        ("don't re-use e.g. 3.14", ["don", "t", "re", "use", "e", "g", "3", "14"]),
        ("snake_case x2", ["snake_case", "x2"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("ﬁle \uff21\uff22\uff23 ²", ["file", "abc", "2"]),
        ("e\u0301t\u00e9 \u00c9T\u00c9", ["été", "été"]),
        ("hy\u00adphen zero\u200bwidth join\u200der", ["hyphen", "zero", "width", "joiner"]),
        ("東京タワー tower", ["東", "京", "タ", "ワ", "ー", "tower"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("한국어 위키", ["한국어", "위키"]),
        ("", []),
        ("… — !", []),
    ],
)
def test_words_of_texts(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_a_keyword_has_one_word_at_least_and_not_too_many() -> None:
    assert words_of_keyword(" Virtual  Machine ") == ["virtual", "machine"]
    assert len(words_of_keyword("a " * WORDS_MAX)) == WORDS_MAX
    for bad in ("", "++", "a " * (WORDS_MAX + 1)):
        with pytest.raises(ValueError, match=r"has \d+ words, expected 1 to 32"):
            words_of_keyword(bad)


@given(WRITTEN)
def test_words_are_those_of_the_plain_definition(text: str) -> None:
    assert words_of(text) == plain_words_of(text)


@given(st.one_of(TEXTS, WRITTEN))
def test_words_stand_where_their_spans_say(text: str) -> None:
    form = normalised(text)
    assert [form[begin:end] for begin, end in word_spans(text)] == words_of(text)


@given(st.one_of(TEXTS, WRITTEN))
def test_words_normalised_again_are_the_same(text: str) -> None:
    words = words_of(text)
    assert words_of(" ".join(words)) == words


@given(st.lists(st.one_of(TEXTS, WRITTEN)), st.sampled_from(" ,;:./、。"))
def test_a_text_may_be_cut_where_blocks_end(pieces: list[str], mark: str) -> None:
    """``streams`` counts the words of a text block by block, and each block begins with such a mark."""
    cut = [words_of(piece if not number else mark + piece) for number, piece in enumerate(pieces)]
    assert words_of(mark.join(pieces)) == [word for words in cut for word in words]
