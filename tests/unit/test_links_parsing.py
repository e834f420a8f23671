"""Parsers end with their thread, and a thread parses a bounded number of bytes."""

from threading import get_ident

from lxml import etree

from lcc_scrapy.links.effort import Effort
from lcc_scrapy.links.parsing import TOGETHER, show, together


def threads_of(*sizes: int) -> list[int]:
    """Show bodies of these sizes one after the other; return in which threads they were parsed."""
    threads: list[int] = []

    def make() -> etree.HTMLParser:
        threads.append(get_ident())
        return etree.HTMLParser()

    for size in sizes:
        show(b"<p>".ljust(size), make, lambda: True, Effort())
    return threads


def test_every_document_has_a_thread_of_its_own() -> None:
    assert get_ident() not in threads_of(10, 10)


def test_small_documents_that_are_read_together_share_a_thread() -> None:
    own, *threads = together(lambda: [get_ident(), *threads_of(10, 10, 10)])
    assert set(threads) == {own}
    assert own != get_ident()


def test_a_thread_parses_so_many_bytes_and_no_more() -> None:
    own, *threads = together(lambda: [get_ident(), *threads_of(TOGETHER - 10, 20, 10, 1)])
    assert [thread == own for thread in threads] == [True, False, True, False]
