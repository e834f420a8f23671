"""How strangers' markup is shown to lxml: in pieces, and in a thread that ends with it.

libxml2 keeps every name of an element or attribute that it ever read for as long as the thread lives that
read it; pages full of invented names would fill the memory of a thread that goes on.
"""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from lxml import etree

PIECE = 65_536
"""Bytes that are parsed at a time; between two pieces it is seen whether there is enough."""

LARGE = 250_000
"""Bytes from which on what a parser took is given back at once, not when Python finds the time."""


def show(
    body: bytes, make: Callable[[], etree.XMLParser | etree.HTMLParser], enough: Callable[[], bool]
) -> None:
    """Feed ``body`` to the parser that ``make`` makes until there is ``enough``; bad markup ends it."""
    with ThreadPoolExecutor(1, "markup") as thread:
        thread.submit(_feed, body, make, enough).result()
    if len(body) >= LARGE:
        gc.collect(1)  # parsers of lxml are in a cycle with their targets' contexts


def _feed(
    body: bytes, make: Callable[[], etree.XMLParser | etree.HTMLParser], enough: Callable[[], bool]
) -> None:
    parser = make()
    with suppress(etree.XMLSyntaxError):
        for start in range(0, len(body), PIECE):
            parser.feed(body[start : start + PIECE])
            if enough():
                break
        parser.close()
