"""The first steps of the pipe: decode, remove links, scripts, markup; the words of a page and their places."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lcc_scrapy.annotation import streams
from lcc_scrapy.annotation.automata import WINDOW, Automaton
from lcc_scrapy.annotation.page_text import text_of
from lcc_scrapy.annotation.streams import Extract, Stream, pattern_of
from lcc_scrapy.feed.plain_text import Paragraphs, paragraphs_of_html, text_of_html

PAGE = """<!DOCTYPE html><html><head><title>News &amp; <b>more</b></title><script>var a = "<a href='x'>java</a>";</script></head>
<body><!-- <a href="y">java</a> --><h1>Head</h1><p>One <a href="z">two <b>three</b></a> fo<i>u</i>r&hellip;<br>five
<ul><li>Item<li>other</ul><table><tr><td>New<td>York</table><a name=here>six</a> <area href=w>seven<pre>a
  b</pre>"""


def test_paragraphs_are_what_is_shown_as_such() -> None:
    lines = ("Head", "One two three four…", "five", "Item", "other", "New", "York", "six", "seven", "a", "b")
    assert paragraphs_of_html(PAGE) == Paragraphs("News & <b>more</b>", lines)


def test_the_text_of_links_stays_or_goes_but_never_that_of_other_anchors() -> None:
    kept = paragraphs_of_html(PAGE, link_texts=False).paragraphs
    assert kept == ("Head", "One four…", "five", "Item", "other", "New", "York", "six", "seven", "a", "b")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("a<a href=x>b", "a"),
        ("a<a href=x>b<p>c</p>d</a>e", "a e"),
        ("<a href=x>b<a href=y>c</a>d", "d"),
        ("<a href=x>b<a name=y>c</a>d", "cd"),
        ("<a title='>' href=x>b</a>c", "c"),
        ("<a title=' href'>b</a>c", "c"),
        ("<abbr href=x>b</abbr>c", "bc"),
        ("<A HREF=x>b</A >c", "c"),
        ("<script>'<a href=x>' + y</script>z</a>", "z"),
    ],
)
def test_links_without_their_text(page: str, text: str) -> None:
    assert " ".join(paragraphs_of_html(page, link_texts=False).paragraphs) == text


@given(
    st.lists(
        st.sampled_from(
            ["<p>", "<b>", "<br>", "a ", "b\n", "<pre>", "</pre>", "<!-- x", "-->", "<td>", "&#8233;"]
        )
    )
)
def test_paragraphs_are_the_text_that_indexers_have(pieces: list[str]) -> None:
    page = "".join(pieces)
    assert " ".join(paragraphs_of_html(page).paragraphs).split() == text_of_html(page).text.split()


@pytest.mark.parametrize(
    ("body", "mimetype", "charset", "paragraphs"),
    [
        ("<p>Café".encode("cp1252"), "text/html", "windows-1252", ("Café",)),
        ("<p>Café".encode("cp1252"), "Text/HTML; charset=x", "", ("Café",)),
        (b"one <b>\ntwo", "text/plain", "", ("one <b>", "two")),
        (b"", "text/html", "", ()),
    ],
)
def test_content_is_decoded(body: bytes, mimetype: str, charset: str, paragraphs: tuple[str, ...]) -> None:
    text = text_of(body, mimetype, charset)
    assert text is not None
    assert text.paragraphs == paragraphs


def test_what_is_no_text_has_none() -> None:
    assert text_of(b"%PDF", "application/pdf", "") is None


# --- streams -------------------------------------------------------------------------------------


def shown(extract: Extract) -> list[str]:
    return [extract.text[begin:end] for begin, end in extract.marks]


def test_words_are_framed_and_parts_are_apart() -> None:
    stream = Stream(["Virtual Machine.", "Machine gun"])
    assert stream.characters == " virtual machine  machine gun "
    assert stream.place(pattern_of("machine gun")) == streams.Place(1, 0, 11)
    assert stream.place(pattern_of("machine machine")) is None


def test_keywords_are_shown_in_context_as_they_are_written() -> None:
    text = f"{'blah ' * 40}The JAVA™ Virtual-Machine, ﬁne. {'blah ' * 40}"
    stream = Stream([text, "a title"])
    keys = ("java tm", "virtual machine", "fine", "title")
    assert pattern_of("javatm") in stream.characters  # the sign becomes letters
    places = [place for key in ("javatm", *keys) if (place := stream.place(pattern_of(key)))]
    extracts = stream.extracts(places, 5)
    assert [shown(one) for one in extracts] == [["JAVA™", "Virtual-Machine", "ﬁne."], ["title"]]
    assert extracts[0].text.startswith("…blah blah")
    assert extracts[0].text.endswith("blah…")
    assert len(extracts[0].text) < 250
    assert len(stream.extracts(places, 1)) == 1


@example(7, "a\u0301.ß")
@example(7, "A\u00adß")
@example(1, "H\u0331ß x")
@given(st.sampled_from([1, 7, 4096]), st.text(st.sampled_from("abß 東.,ﬁ\u0301-"), max_size=60))
def test_every_word_is_found_where_it_stands(block: int, text: str) -> None:
    text = " ".join(text.split())
    whole = Stream([text])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK", block)
        stream = Stream([text])
        assert stream.characters == whole.characters
        for word in set(stream.characters.split()):
            place = stream.place(f" {word} ")
            assert place is not None
            assert word in Stream([text[place.begin : place.end]]).characters.split()


def test_places_are_counted_in_words() -> None:
    stream = Stream(["a b a a", "a"])
    assert stream.places(" a ", 10) == [0, 2, 3, 5]
    assert stream.places(" a a ", 10) == [2]
    assert stream.places(" a ", 2) == [0, 2]
    assert stream.places(" c ", 2) == []


def test_of_a_block_without_an_end_the_beginning_is_shown() -> None:
    text = "x|" * 100_000 + "java"
    place = Stream([text]).place(" java ")
    assert place == streams.Place(0, 0, 0)
    assert len(Stream([text]).extracts([place], 5)[0].text) < 200


# --- the automaton -------------------------------------------------------------------------------


def test_overlapping_patterns_count_and_parts_of_words_do_not() -> None:
    automaton = Automaton([" a ", " a a ", " b ", " c "])
    assert automaton.counts(Stream(["a a a ab b"]).characters) == {0: 3, 1: 2, 2: 1}
    assert Automaton([]).counts(" a ") == {}


@given(st.lists(st.sampled_from(["a", "bb", "é", "a bb", "東"]), max_size=40), st.integers(1, 9))
def test_windows_count_each_occurrence_once(words: list[str], window: int) -> None:
    patterns = [" a ", " bb ", " é ", " a bb ", " a a ", " bb a bb "]
    text = f" {' '.join(words)} "
    whole = Automaton(patterns).counts(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lcc_scrapy.annotation.automata.WINDOW", window)
        assert Automaton(patterns).counts(text) == whole


def test_a_long_text_is_searched_in_windows() -> None:
    text = f" {'ab ' * WINDOW}"
    assert Automaton([" ab "]).counts(text) == {0: WINDOW}
