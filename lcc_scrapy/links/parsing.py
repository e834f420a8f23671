"""Parsing foreign markup with lxml: in pieces, in a thread that ends with its document.

libxml2 keeps every name of an element or attribute that it ever read for as long as the thread lives that
read it; pages full of invented names would fill the memory of a thread that goes on. So a thread parses so
many bytes, of one document or of several.
"""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import local
from typing import TypeVar

from lxml import etree

from lcc_scrapy.links.effort import Effort

PIECE = 65_536
"""Bytes that are parsed at a time; between two pieces it is seen whether there is enough."""

LARGE = 250_000
"""Bytes from which on what a parser took is given back at once, not when Python finds the time."""

TOGETHER = 2_000_000
"""Bytes that one thread parses of several documents: starting one takes as long as parsing a page."""

Result = TypeVar("Result")
Make = Callable[[], etree.XMLParser | etree.HTMLParser]


def show(body: bytes, make: Make, enough: Callable[[], bool], effort: Effort) -> None:
    """Feed ``body`` to the parser that ``make`` makes until there is ``enough``; bad markup ends it.

    The end of ``effort`` does so, too.
    """
    if len(body) <= _thread.room:
        _thread.room -= len(body)
        _feed(body, make, enough, effort)
    else:
        _in_a_thread(_feed, body, make, enough, effort)
    if len(body) >= LARGE:
        gc.collect(1)  # parsers of lxml are in a cycle with their targets' contexts


def together(work: Callable[..., Result], *args: object) -> Result:
    """Do some work in a thread that parses the documents ``TOGETHER`` that are shown meanwhile."""

    def work_with_room() -> Result:
        _thread.room = TOGETHER
        return work(*args)

    return _in_a_thread(work_with_room)


class _Thread(local):
    """How many bytes more this thread may parse."""

    room = 0


_thread = _Thread()


def _in_a_thread(work: Callable[..., Result], *args: object) -> Result:
    with ThreadPoolExecutor(1, "markup") as thread:
        return thread.submit(work, *args).result()


def _feed(body: bytes, make: Make, enough: Callable[[], bool], effort: Effort) -> None:
    parser = make()
    with effort.working(), suppress(etree.XMLSyntaxError):
        for start in range(0, len(body), PIECE):
            parser.feed(body[start : start + PIECE])
            if enough() or effort.is_spent():
                break
        parser.close()
