"""Interfaces of what the HTTP API needs, and its limits."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.domain.named_cursors import NamedCursors
from lcc_scrapy.domain.tokens import Tokens
from lcc_scrapy.domain.versions import Version
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
class Lcc:
    """An LCC as its content users see it. All calls block; they come from several threads at a time.

    ``feed`` may be read from replicas; ``primary`` is the feed of the database that is written to,
    None = the same.

    ``open`` gives the content of a document, or an earlier one, decoded, and raises ``ContentGone``,
    ``ContentElsewhere`` or ``ContentLost``. ``address`` gives a URL at which anybody may read it for a short
    time, None where there is none. ``measures`` are read when they are asked for. ``https``: clients see the
    server at an ``https://`` URL.
    """

    feed: Feed
    open: Callable[[CachedUrl | Version], IO[bytes]]
    tokens: Tokens
    cursors: NamedCursors
    measures: Callable[[], list[Measure]] = list
    bounds: Bounds = field(default_factory=Bounds)
    now: Callable[[], float] = time.time
    primary: Feed | None = None
    address: Callable[[CachedUrl | Version], str | None] = lambda _row: None
    https: bool = False

    @property
    def newest(self) -> Feed:
        """The feed that never lags."""
        return self.primary or self.feed
