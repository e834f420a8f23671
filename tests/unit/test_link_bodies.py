"""How the links of a document are stored: what comes back, and how much room they take."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.db.sql.link_bodies import WORDS_MAX, grown, names_any, packed, unpacked

LINKS = st.builds(DocumentLink, st.text(), st.sampled_from(["a", "frame", "listed"]), st.booleans())
PAGES = st.lists(st.lists(LINKS, max_size=8), max_size=5)


@given(PAGES, st.lists(LINKS))
def test_links_come_back_whatever_they_and_the_dictionary_are(pages, links):
    words = grown(b"", pages)
    assert unpacked(packed(links, words), words) == links


@given(PAGES, st.lists(LINKS, max_size=8), st.text())
def test_who_links_to_a_url_is_told_without_reading_all_links(pages, links, other):
    words = grown(b"", pages)
    body = packed(links, words)
    urls = [one.url for one in links]
    for url in [*urls, other, *(url[1:] for url in urls), "a", "frame", '","', "["]:
        assert names_any(body, words, [url], 10**9)[0] is (url in urls), url
    assert names_any(body, words, ["never", *urls], 10**9)[0] is bool(urls)
    assert names_any(body, words, ["never"], 5)[1] <= 5


def _site(pages, own=20, seed=1):
    rng = random.Random(seed)
    menu = [f"http://www.example.org/section-{n}/index.html" for n in range(60)]
    found = [f"http://www.example.org/section-{n % 60}/article-{n}.html" for n in range(2000)]
    return [[DocumentLink(url, "a") for url in (*menu, *rng.sample(found, own))] for _ in range(pages)]


def test_a_dictionary_of_the_first_page_saves_some_of_the_others_room():
    first, *others = _site(200)
    words = grown(b"", [first])
    plain = sum(len(packed(one, b"")) for one in others)
    assert sum(len(packed(one, words)) for one in others) < 0.85 * plain
    assert plain < 0.25 * sum(len(one.url) for links in others for one in links)


def test_a_dictionary_grows_by_doubling_and_has_its_bound():
    words, kept = b"", [b""]
    for page in _site(300):
        words = grown(words, [page])
        if words != kept[-1]:
            assert len(words) >= 2 * len(kept[-1])
            kept.append(words)
    assert len(kept) <= 6
    assert len(words) <= WORDS_MAX


def test_what_most_pages_have_stands_last():
    often, seldom = DocumentLink("http://x/" + "o" * 300, "a"), DocumentLink("http://x/" + "s" * 300, "a")
    words = grown(b"", [[seldom, often], [often]])
    assert words.endswith(often.url.encode())
    assert seldom.url.encode() in words


@pytest.mark.parametrize("pages", [[], [[]], [[DocumentLink("http://x/", "a")]]])
def test_few_links_make_no_dictionary(pages):
    assert grown(b"", pages) == b""
