"""What is said about a page between those who ask for its rendition and the browser."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lcc_scrapy.domain.errors import LccError


class NoBrowser(LccError):
    """There is no browser: that says nothing of the page."""


class NotRendered(LccError):
    """A browser could make nothing of the page."""


class BrowserLost(NotRendered):
    """The browser ended while it rendered the page."""


class Fetched(NamedTuple):
    """An answer for the page: ``headers`` by lower-case name."""

    status: int
    headers: dict[str, str]
    body: bytes


Answer = Callable[[str, str, str, Mapping[str, str]], Awaitable[Fetched | None]]
"""Answers a request (method, kind of request, URL, headers) of a page; None = it fails there."""


@dataclass(frozen=True, slots=True)
class ServedPage:
    """A page as its site served it."""

    url: str
    headers: dict[str, str]
    body: bytes
