"""Cache digests that are served: made once in a while for each set of rules, and kept."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from lcc_scrapy.domain.cache_digest import digest_of
from lcc_scrapy.domain.tracker_policy import Rules
from lcc_scrapy.tracker.answering import Answering
from lcc_scrapy.tracker.digest_urls import digest_urls
from lcc_scrapy.tracker.redirection import better

LIFE = 3600
"""Seconds after which a cache asks again."""

KEPT = 600
"""Seconds for which a digest is kept for caches with the same rules."""

MOST_KEPT = 16
"""Sets of rules whose digests are kept; the oldest goes."""


@dataclass(frozen=True, slots=True)
class Made:
    """A digest, and when it was made (epoch seconds)."""

    data: bytes
    at: int


class ServedDigests:
    """Digests by rules; ``most`` is how many URLs one has. One at a time is made, others wait for it."""

    def __init__(self, answering: Callable[[], Answering], most: int) -> None:
        self._answering = answering
        self._most = most
        self._making = threading.Lock()
        self._made: dict[Rules, Made] = {}

    def of(self, address: str) -> Made:
        """Return the digest for an address, "" = of nobody in particular. Blocking, for seconds maybe."""
        answering = self._answering()
        rules = answering.policy.of(address) if address else answering.policy.others
        with self._making:
            made = self._made.pop(rules, None)
            if made is None or made.at + KEPT <= time.time():
                made = self._make(answering, address)
            self._made[rules] = made
            if len(self._made) > MOST_KEPT:
                del self._made[next(iter(self._made))]
            return made

    def _make(self, answering: Answering, address: str) -> Made:
        urls = digest_urls(
            answering.store, lambda url: better(answering, url, address) is not None, self._most
        )
        return Made(digest_of(urls), int(time.time()))
