"""Interfaces of what the HTTP API needs, and its limits."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import IO

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.named_cursors import NamedCursors
from lcc_scrapy.domain.shares import Share
from lcc_scrapy.domain.tokens import Tokens
from lcc_scrapy.feed.reader import Feed


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that ``/metrics`` tells: the values of its labels, and a number, for each sample.

    A counter only rises, unless the LCC is restored from a backup.
    """

    name: str
    help: str
    samples: Sequence[tuple[Sequence[str], float]]
    labels: Sequence[str] = ()
    counter: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much the HTTP API does at a time, and for how long. Times are in seconds."""

    waiters: int = 1000
    """Requests that wait for the feed to grow; more get 503."""
    exports: int = 4
    """Exports and packages that are being written; more get 503."""
    poll: float = 2.0
    """Seconds between two polls of the feed while requests wait."""
    silence: float = 60.0
    """In which a client neither takes nor gives anything; then it is cut."""
    share: Share = field(default_factory=Share)
    """Of each token and each address; more get 429."""
    refusal_delay: float = 1.0
    """After which a client is told that its share is used up: asking again at once is not worth its while."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Who is believed that says in ``X-Forwarded-For`` whose request it brings."""


@dataclass(frozen=True, slots=True)
class Lcc:
    """An LCC as its content users see it. All calls block; they come from several threads at a time.

    ``open`` gives the content of a document, decoded, and raises ``ContentGone``, ``ContentElsewhere`` or
    ``ContentLost``. ``measures`` are read when they are asked for.
    """

    feed: Feed
    open: Callable[[CachedUrl], IO[bytes]]
    tokens: Tokens
    cursors: NamedCursors
    measures: Callable[[], list[Measure]] = list
    bounds: Bounds = field(default_factory=Bounds)
    now: Callable[[], float] = time.time
