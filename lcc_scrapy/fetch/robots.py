"""robots.txt (RFC 9309), looked up once per host inside the turn that needs it first.

Everybody waits for the one look-up of a host, its bytes are charged to the turn that caused it, and a host
that fails to answer it counts as a host that fails.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from scrapy.crawler import Crawler
from scrapy.exceptions import (
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.python import to_unicode

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.references import redirect
from lcc_scrapy.domain.robots import MAX_BYTES, Robots, product_token
from lcc_scrapy.domain.roots import HttpUrl

_log = logging.getLogger(__name__)

KEEP = 86400.0
"""Seconds for which an answer is used (RFC 9309 section 2.4)."""

KEPT_BYTES = 48_000_000
"""Of memory that rules of all hosts may take; what was not used for longest is forgotten first."""

LEAST_BYTES = 3000
"""What a host counts at least, so that no more than 16,000 are remembered."""

OTHERS = 30
"""How many times its file a parser of a project's own is taken to need."""

MOST_READ = 8 * MAX_BYTES
"""Bytes of an answer that are read at all; what comes after ``MAX_BYTES`` is not looked at."""

MAX_REDIRECTS = 5
TOO_MANY_REQUESTS = 429

LARGE = 20_000
"""Bytes from which on an answer is parsed beside the event loop."""


class RobotsForbidden(IgnoreRequest):
    """robots.txt does not permit the URL (611)."""


class RobotsUnavailable(DownloadConnectionRefusedError):
    """robots.txt cannot be had from its host now, so nothing may be fetched from there (602)."""


class LccRobotParser(RobotParser):
    """robots.txt by RFC 9309, for the agent of the crawler; a project may set another ROBOTSTXT_PARSER."""

    def __init__(self, robots: Robots) -> None:
        self._robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> "LccRobotParser":
        """Read a robots.txt."""
        return cls(Robots.parse(robotstxt_body, product_token(_agent(crawler.settings))))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:  # noqa: ARG002
        """Tell whether a URL may be fetched."""
        return self.permits(HttpUrl.parse(to_unicode(url)))

    def permits(self, url: HttpUrl) -> bool:
        """Tell whether a URL may be fetched that has been parsed already."""
        return self._robots.allowed(url.target)

    def crawl_delay(self, user_agent: str | bytes) -> float | None:  # noqa: ARG002
        """Return the seconds between two fetches, None = nothing said."""
        return self._robots.crawl_delay or None

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """Return the sitemaps it names, as written."""
        return self._robots.sitemaps

    @property
    def footprint(self) -> int:
        """Return the bytes of memory that it takes, about."""
        return self._robots.footprint

    @property
    def widened(self) -> int:
        """Return how many rules are not compared as they were written, because there are too many."""
        return self._robots.rules.widened


def _agent(settings: BaseSettings) -> str:
    return str(settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"])


@dataclass(frozen=True, slots=True)
class RobotsAnswer:
    """What came of asking for one URL on the way to a robots.txt; ``location`` as written, of a redirect."""

    status: int
    body: bytes
    location: bytes = b""


Ask = Callable[[HttpUrl], Awaitable[RobotsAnswer]]
"""Fetches one URL of up to ``MOST_READ`` bytes without following redirects."""


@dataclass(frozen=True, slots=True)
class Permission:
    """What robots.txt says of a URL it permits: seconds between fetches (0 = nothing said), sitemaps."""

    crawl_delay: float = 0.0
    sitemaps: tuple[str, ...] = ()


NO_RULES = Permission()


class Asker(NamedTuple):
    """For whom a host's rules are good: not everybody may ask everywhere, or is told the same.

    ``private``: private addresses are permitted. ``viewer``: the provider that alone reaches the host in its
    way, by a proxy or with credentials; 0 = all reach it in the same way.
    """

    private: bool = False
    viewer: int = 0


_Host = tuple[str, str, Asker]
"""Scheme, host with port, and who asks."""


@dataclass(slots=True)
class _Known:
    parser: RobotParser | None
    permission: Permission
    until: float
    size: int


class RobotsTxt:
    """The robots.txt of all hosts, as far as they are remembered."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._agent = _agent(crawler.settings)
        self._parser = load_object(crawler.settings["ROBOTSTXT_PARSER"])
        self._known: OrderedDict[_Host, _Known] = OrderedDict()
        self._kept = 0
        self._looking: dict[_Host, asyncio.Task[_Known]] = {}

    def known(self, url: HttpUrl, asker: Asker) -> Permission | None:
        """Return what holds for a URL, None where its host has to be asked; raises ``RobotsForbidden``."""
        host = (url.scheme, url.netloc, asker)
        known = self._known.get(host)
        if known is None or known.until <= time.monotonic():
            return None
        self._known.move_to_end(host)
        return self._judged(known, url)

    async def permission(self, url: HttpUrl, ask: Ask, asker: Asker) -> Permission:
        """Return what holds for a URL, looking its host's rules up by ``ask`` when they are not known.

        Raises ``RobotsForbidden``, or what kept robots.txt from being read.
        """
        known = self.known(url, asker)
        if known is not None:
            return known
        host = (url.scheme, url.netloc, asker)
        looking = self._looking.get(host)
        if looking is None:
            looking = asyncio.ensure_future(self._look_up(host, url, ask))
            self._looking[host] = looking
            looking.add_done_callback(lambda _: self._looking.pop(host, None))
        return self._judged(await asyncio.shield(looking), url)

    def _judged(self, known: _Known, url: HttpUrl) -> Permission:
        if known.parser is not None and not self._permits(known.parser, url):
            raise RobotsForbidden(str(url))
        return known.permission

    def _permits(self, parser: RobotParser, url: HttpUrl) -> bool:
        if isinstance(parser, LccRobotParser):
            return parser.permits(url)
        return parser.allowed(str(url), self._agent)

    async def _look_up(self, host: _Host, url: HttpUrl, ask: Ask) -> _Known:
        answer = await _rules(url, ask)
        size, parser, permission = 0, None, NO_RULES
        if answer is not None:
            rules = answer.body[: MAX_BYTES + 1]
            parser = await self._parse(rules)
            permission = Permission(parser.crawl_delay(self._agent) or 0.0, getattr(parser, "sitemaps", ()))
            size = getattr(parser, "footprint", OTHERS * len(rules))
            _tell_widened(parser, url)
        known = _Known(parser, permission, time.monotonic() + KEEP, max(size, LEAST_BYTES))
        self._remember(host, known)
        return known

    async def _parse(self, rules: bytes) -> RobotParser:
        if len(rules) < LARGE:
            return self._built(rules)
        return await asyncio.get_running_loop().run_in_executor(None, self._built, rules)

    def _built(self, rules: bytes) -> RobotParser:
        parser: RobotParser = build_from_crawler(self._parser, self._crawler, rules)
        return parser

    def _remember(self, host: _Host, answer: _Known) -> None:
        before = self._known.pop(host, None)
        self._known[host] = answer
        self._kept += answer.size - (before.size if before else 0)
        while self._kept > KEPT_BYTES:
            self._kept -= self._known.popitem(last=False)[1].size


def _tell_widened(parser: RobotParser, url: HttpUrl) -> None:
    """Warn of rules that forbid more than they say."""
    widened = getattr(parser, "widened", 0)
    if widened:
        what = {"host": url.netloc, "rules": widened}
        _log.warning("robots.txt of %(host)s has too many wildcards: %(rules)s rules are widened", what)


async def _rules(url: HttpUrl, ask: Ask) -> RobotsAnswer | None:
    """Return the answer with rules, or None when there are none (4xx, endless redirects)."""
    target = HttpUrl(url.scheme, url.host, url.port, "/robots.txt", "")
    for _ in range(MAX_REDIRECTS + 1):
        answer = await _answer(target, ask)
        if answer.status >= 500 or answer.status == TOO_MANY_REQUESTS:  # noqa: PLR2004
            raise RobotsUnavailable(f"{target} answers {answer.status}")
        if answer.status < 300:  # noqa: PLR2004
            return answer
        if not answer.location:
            return None
        try:
            target = redirect(answer.location, target)
        except UrlRefused:
            return None
    return None


async def _answer(target: HttpUrl, ask: Ask) -> RobotsAnswer:
    try:
        return await ask(target)
    except (DownloadTimeoutError, ResponseDataLossError) as error:
        raise RobotsUnavailable(str(error)) from error
