"""What reading a list or a page may cost: each dimension is grown, against a harmless one of the same size."""

import gzip
from collections.abc import Callable

import pytest

from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.links.effort import CHARACTERS, Effort
from lcc_scrapy.links.links import read_page
from lcc_scrapy.links.listings import LONGEST, read_listing
from lcc_scrapy.links.rules import LinkRules
from tests.faults.costs import memory, processor_time

URL = "http://www.example.org/dir/list"
RULES = LinkRules()
SIZE = 40_000
PER_URL = URL_MAX + 1000
"""Bytes of memory that a URL may take that is given, in all its forms."""


def read(body: bytes) -> int:
    return len(read_listing(body, URL, RULES).pages)


def read_html(body: bytes) -> int:
    return len(read_page(body, URL, "text/html", "", [], RULES).links)


def items(size: int, item: bytes = b"<url><loc>/page/%d</loc></url>", head: bytes = b"<urlset>") -> bytes:
    count = max(1, (size - len(head)) // (len(item) + 3))
    numbered = (item % n for n in range(count)) if b"%d" in item else (item for _ in range(count))
    return head + b"".join(numbered) + b"</urlset>"


def based(size: int) -> bytes:
    """Half of the bytes are a base, the other half links that it would be joined with."""
    base = b"http://www.example.org/" + b"a" * (size // 2) + b"/"
    return items(size, b"<url><loc>%d</loc></url>", b'<urlset xml:base="' + base + b'">')


def nested(size: int) -> bytes:
    one = b'<e xml:base="' + b"a" * (size // 400) + b'/">'
    return b"<urlset>" + one * 200 + items(size // 2, b"<url><loc>%d</loc></url>", b"") + b"</e>" * 200


def entities(size: int) -> bytes:
    """Each entity stands for ten of the one before."""
    defined = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    head = f'<!DOCTYPE urlset [<!ENTITY e0 "aaaaaaaaaa">{defined}]><urlset xml:base="http://x/&e11;">'
    return items(size, b"<url><loc>&e11;%d</loc></url>", head.encode())


LISTS: dict[str, Callable[[int], bytes]] = {
    "base x items": based,
    "bases nested x their length": nested,
    "a base of its own for each": lambda size: items(size, b'<url xml:base="%d/../x"><loc>y</loc></url>'),
    "odd bases": lambda size: items(size, b'<url xml:base="' + b"%%41/../" * 250 + b'"><loc>%d</loc></url>'),
    "elements": lambda size: items(size, b"<a/>"),
    "attributes": lambda size: b"<urlset " + b"".join(b'a%d="" ' % n for n in range(size // 11)) + b"/>",
    "names": lambda size: items(size, b"<a%d/>"),
    "one long text": lambda size: b"<urlset><url><loc>" + b"a" * size + b"</loc></url></urlset>",
    "long times": lambda size: items(size, b"<url><loc>/a%d</loc><lastmod>" + b"1 " * 4000 + b"</lastmod></url>"),
    "next pages": lambda size: items(size, b'<link rel="next" href="%d"/>', b"<feed>"),
    "open elements": lambda size: b"<a>" * (size // 3),
    "entities": entities,
    "empty lines": lambda size: b"\n" * size,
    "short lines": lambda size: b"a\n" * (size // 2),
    "one long line": lambda size: b"http://www.example.org/" + b"a" * size,
    "blanks": lambda size: b" " * size,
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_no_list_costs_much_more_than_a_harmless_one_of_its_size(name: str) -> None:
    usual, attack = items(SIZE), LISTS[name](SIZE)
    given = read(attack)
    assert processor_time(lambda: read(attack)) < 12 * processor_time(lambda: read(usual))
    assert memory(lambda: read(attack)) < 12 * memory(lambda: read(usual)) + given * PER_URL


@pytest.mark.parametrize("name", LISTS)
def test_four_times_the_bytes_of_a_list_cost_about_four_times_as_much(name: str) -> None:
    small, large = LISTS[name](SIZE // 2), LISTS[name](2 * SIZE)
    given = read(large)
    slack = 0.01  # CPU seconds; what is quadratic takes many times that
    assert processor_time(lambda: read(large)) < 12 * processor_time(lambda: read(small)) + slack
    assert memory(lambda: read(large)) < 8 * memory(lambda: read(small)) + 500_000 + given * PER_URL


def long_base(links: int) -> bytes:
    base = b"http://www.example.org/" + b"a" * (URL_MAX - 40) + b"/"
    return items(links * 27, b"<url><loc>%d</loc></url>", b'<urlset xml:base="' + base + b'">')


def test_a_base_as_long_as_a_url_gives_no_more_than_a_document_may() -> None:
    """With 50,000 links it would be 100 million characters, from less than a million bytes."""
    limit = Effort(1e9)
    pages = read_listing(long_base(50_000), URL, RULES, limit).pages
    assert CHARACTERS - URL_MAX < sum(len(one.url) for one in pages) <= CHARACTERS
    assert limit.cut


def test_a_text_that_unpacks_to_empty_lines_takes_little_more_than_its_bytes() -> None:
    packed = gzip.compress(b"\n" * LONGEST, 1)
    assert memory(lambda: read(packed)) < 4 * LONGEST


PAGES: dict[str, Callable[[int], bytes]] = {
    "base x links": lambda size: b'<base href="http://x/' + b"a" * (size // 2) + b'/">' + b"<a href=b>" * (size // 20),
    "long links": lambda size: b"".join(b'<a href="%d%s">' % (n, b"a" * 9000) for n in range(size // 9010)),
    "candidates": lambda size: b'<img srcset="' + b"a 1x," * (size // 5) + b'">',
    "refreshes": lambda size: b'<meta http-equiv=refresh content="' + b"1 ;" * (size // 3) + b'">',
    "attributes": lambda size: b"<a " + b"".join(b"a%d=1 " % n for n in range(size // 8)) + b">",
    "open elements": lambda size: b"<b>" * (size // 3),
    "open brackets": lambda size: b"<" * size,
    "open comments": lambda size: b"<!--" * (size // 4),
    "entities": lambda size: b'<a href="' + b"&amp;" * (size // 5) + b'">',
    "directives": lambda size: b"<meta name=robots content='" + b"none," * (size // 5) + b"'>",
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_no_page_costs_much_more_than_a_harmless_one_of_its_size(name: str) -> None:
    usual = b"".join(b"<p><a href=page%d.html>text</a>" % n for n in range(SIZE // 31))
    attack = PAGES[name](SIZE)
    assert processor_time(lambda: read_html(attack)) < 12 * processor_time(lambda: read_html(usual))
    assert memory(lambda: read_html(attack)) < 12 * memory(lambda: read_html(usual))
