"""``scrapy crawl lcc_spider -a provider=N``: visits the pages of a provider that cannot push."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.notations import duration
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.spidering.scanner import Visits
from lcc_scrapy.spiders.arguments import is_yes, refuse_unknown
from lcc_scrapy.spiders.base import LccSpider

_ARGUMENTS = frozenset({
    "provider", "start", "sitemaps", "every", "depth", "max_pages", "stop_when_done", "directives", "sample",
})  # fmt: skip
_OF_LINKS = ("start", "sitemaps", "depth", "max_pages", "directives")
_SAMPLE_MAX = 100_000
AUTO = "auto"
"""Adaptive revisits."""


class LinkSpider(LccSpider):
    """Traditional spidering in the LCC's queue: the roots first, then what the documents of the LCC link to.

    ``-a provider=7`` visits what is not in the LCC yet, and ends. ``-a start=URL,URL`` begins there instead;
    ``-a sitemaps=1`` also where sitemaps lead; ``-a depth=3`` goes so many links from there at most;
    ``-a max_pages=1000`` lets spiders know so many URLs of this provider in all. ``-a every=6h`` goes on, and
    visits each URL again when its last visit is so long ago; ``-a every=auto`` when it may have changed, by
    what its visits showed. With ``-a stop_when_done=1`` it does so once. ``-a directives=1`` has no start
    pages, and follows links as far as directives reach only. ``-a sample=100`` follows no links, but looks at
    so many documents that were pushed, to find how many changes were not; with ``-a every=1d`` again daily.
    """

    name = "lcc_spider"
    arguments: ClassVar[frozenset[str]] = _ARGUMENTS

    def __init__(self, **arguments: str) -> None:
        super().__init__(**{name: value for name, value in arguments.items() if name not in _ARGUMENTS})
        self._visits = read_arguments(_of_visits(arguments))

    @classmethod
    def check_arguments(cls, given: Mapping[str, str]) -> None:
        """Raise ``ValueError`` with what is wrong with the spider's arguments."""
        super().check_arguments(given)
        read_arguments(_of_visits(given))

    def worker_options(self) -> dict[str, Any]:
        """Return what this spider wants of its worker beyond the defaults."""
        return {"visits": self._visits, "stop_when_done": self._visits.once}


def read_arguments(arguments: Mapping[str, str]) -> Visits:
    """Read the arguments of the spider; raises ``ValueError`` with what is wrong."""
    refuse_unknown(arguments, _ARGUMENTS)
    if not arguments.get("provider"):
        raise ValueError("say whose pages: -a provider=N")
    directives = is_yes(arguments, "directives")
    for name in ("start", "sitemaps", "depth"):
        if directives and name in arguments:
            raise ValueError(f"directives=1 says where to begin and how far to go: leave out {name}")
    adaptive = arguments.get("every") == AUTO
    every = 0.0 if adaptive else _every(arguments.get("every", ""))
    sample = _sample(arguments)
    return Visits(
        _number("provider", arguments["provider"], 1),
        _urls(arguments.get("start", "")),
        every,
        adaptive,
        _number("depth", arguments["depth"], 0) if "depth" in arguments else None,
        _number("max_pages", arguments["max_pages"], 1) if "max_pages" in arguments else 0,
        once=is_yes(arguments, "stop_when_done") or not (every or adaptive),
        sitemaps=is_yes(arguments, "sitemaps"),
        directives=directives,
        sample=sample,
    )


def _of_visits(arguments: Mapping[str, str]) -> dict[str, str]:
    """Return those that are not a subclass's own."""
    return {name: value for name, value in arguments.items() if name in _ARGUMENTS}


def _sample(arguments: Mapping[str, str]) -> int:
    if "sample" not in arguments:
        return 0
    other = next((name for name in _OF_LINKS if name in arguments), "")
    if other:
        raise ValueError(f"sample and {other} do not go together: a sample follows no links")
    if arguments.get("every") == AUTO:
        raise ValueError("sample and every=auto do not go together: say how often, for example every=1d")
    count = _number("sample", arguments["sample"], 1)
    if count > _SAMPLE_MAX:
        raise ValueError(f"sample={count}: expected at most {_SAMPLE_MAX}")
    return count


def _number(name: str, text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise ValueError(f"{name}={text}: expected a whole number from {least} on")
    return int(text)


def _every(text: str) -> float:
    try:
        seconds = duration(text) if text else 0.0
    except ValueError as error:
        raise ValueError(f"every={text}: {error}") from None
    if text and not seconds:
        raise ValueError(f"every={text}: expected more than nothing")
    return seconds


def _urls(text: str) -> tuple[str, ...]:
    """Read URLs separated by commas; a comma inside of one has to be written ``%2C``."""
    try:
        return tuple(str(HttpUrl.parse(url)) for url in re.split(r"[,\s]+", text) if url)
    except UrlRefused as error:
        raise ValueError(f"start={text}: {error}") from None
