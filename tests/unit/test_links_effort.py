"""What reading one document may cost, in processor time and in characters of the URLs that it gives."""

from collections.abc import Iterator
from itertools import count

from lcc_scrapy.links.effort import AT_ONCE, Effort
from lcc_scrapy.links.links import Page, read_page
from lcc_scrapy.links.listings import Listing, read_listing
from lcc_scrapy.links.rules import LinkRules

URL = "http://www.example.org/dir/list"


def ticking(step: float) -> Iterator[float]:
    return count(0.0, step)


def effort(seconds: float = 1e9, characters: int = 10**9, step: float = 0.0) -> Effort:
    ticks = ticking(step)
    return Effort(seconds, characters, lambda: next(ticks))


def sitemap(pages: int) -> bytes:
    return b"<urlset>" + b"".join(b"<url><loc>/%d</loc></url>" % n for n in range(pages)) + b"</urlset>"


def listing(pages: int, limit: Effort) -> Listing:
    return read_listing(sitemap(pages), URL, LinkRules(), limit)


def page(links: int, limit: Effort) -> Page:
    body = b"".join(b"<a href=/%d>" % n for n in range(links))
    return read_page(body, URL, "text/html", "", [], LinkRules(), limit)


def test_what_is_within_the_bounds_is_read_whole() -> None:
    limit = effort(step=0.001)
    assert len(listing(500, limit).pages) == 500
    assert len(page(500, limit).links) == 500
    assert not limit.cut


def test_a_list_is_read_for_so_long_and_no_longer() -> None:
    limit = effort(seconds=100, step=1.0)
    assert 50 < len(listing(100 * AT_ONCE, limit).pages) / AT_ONCE < 100
    assert limit.cut


def test_a_page_is_read_for_so_long_and_no_longer() -> None:
    limit = effort(seconds=100, step=1.0)
    assert 50 < len(page(100 * AT_ONCE, limit).links) / AT_ONCE < 100
    assert limit.cut


def test_the_parser_gets_no_more_once_the_time_is_used_up() -> None:
    limit = effort(seconds=3, step=1.0)
    assert listing(50_000, limit) == Listing()
    assert limit.cut


def test_both_threads_that_read_a_document_use_up_the_same_time() -> None:
    times = iter([0.0, 6.0, 100.0, 103.0, 104.5, 105.0])
    limit = Effort(10.0, 100, lambda: next(times))
    with limit.working():
        pass
    with limit.working():
        assert not limit.is_spent()
        assert limit.is_spent()


def test_a_document_gives_so_many_characters_of_urls_and_no_more() -> None:
    limit = effort(characters=10 * len("http://www.example.org/0"))
    assert len(listing(20, limit).pages) == 10
    assert limit.cut
    limit = effort(characters=10 * len("http://www.example.org/0"))
    assert len(page(20, limit).links) == 10
    assert limit.cut
