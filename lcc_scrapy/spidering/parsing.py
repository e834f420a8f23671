"""How strangers' markup is shown to lxml: in pieces, and in a thread that ends with it.

libxml2 keeps every name of an element or attribute that it ever read for as long as the thread lives that
read it; pages full of invented names would fill the memory of a thread that goes on.
"""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from lxml import etree

from lcc_scrapy.spidering.effort import Effort

PIECE = 65_536
"""Bytes that are parsed at a time; between two pieces it is seen whether there is enough."""

LARGE = 250_000
"""Bytes from which on what a parser took is given back at once, not when Python finds the time."""


Make = Callable[[], etree.XMLParser | etree.HTMLParser]


def show(body: bytes, make: Make, enough: Callable[[], bool], effort: Effort) -> None:
    """Feed ``body`` to the parser that ``make`` makes until there is ``enough``; bad markup ends it.

    The end of ``effort`` does so, too.
    """
    with ThreadPoolExecutor(1, "markup") as thread:
        thread.submit(_feed, body, make, enough, effort).result()
    if len(body) >= LARGE:
        gc.collect(1)  # parsers of lxml are in a cycle with their targets' contexts


def _feed(body: bytes, make: Make, enough: Callable[[], bool], effort: Effort) -> None:
    parser = make()
    with effort.working(), suppress(etree.XMLSyntaxError):
        for start in range(0, len(body), PIECE):
            parser.feed(body[start : start + PIECE])
            if enough() or effort.is_spent():
                break
        parser.close()
