"""Cache digests that are served: made once in a while for each set of rules, in one thread, and kept."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from lcc_scrapy.apps.tracker.answering import Answering
from lcc_scrapy.apps.tracker.digest_urls import digest_urls
from lcc_scrapy.apps.tracker.redirection import better
from lcc_scrapy.apps.tracker.rules.cache_digest import digest_of
from lcc_scrapy.apps.tracker.rules.policy import Rules

LIFE = 3600
"""Seconds after which a cache asks again."""

KEPT = 600
"""Seconds for which a digest is kept for caches with the same rules."""

MOST_KEPT = 16
"""Sets of rules whose digests are kept, or are to be made; of those that are kept, the oldest goes."""

SECONDS = 60.0
"""How long URLs of a digest are looked for; then it has those that were found."""

PATIENCE = 2.0
"""Seconds for which a cache waits for its first digest: told to come again, Squid does after 5 minutes."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Made:
    """A digest, and when it was made (epoch seconds)."""

    data: bytes
    at: int


class ServedDigests:
    """Digests by rules; ``most`` is how many URLs one has. One at a time is made."""

    def __init__(self, answering: Callable[[], Answering], most: int) -> None:
        self._answering = answering
        self._most = most
        self._thread = ThreadPoolExecutor(1, "digest")
        self._stops = threading.Event()
        self._lock = threading.Lock()
        self._made: dict[Rules, Made] = {}
        self._making: dict[Rules, Future[None]] = {}

    async def of(self, address: str) -> Made | None:
        """Return the digest for an address, "" = of nobody in particular; None: it is still to be made.

        One that is too old is returned while the next one is made.
        """
        answering = self._answering()
        rules = answering.policy.of(address) if address else answering.policy.others
        made = self._made.get(rules)
        if made is not None and made.at + KEPT > time.time():
            return made
        making = self._begun(answering, rules, address)
        if made is None and making is not None:
            await asyncio.wait([asyncio.wrap_future(making)], timeout=PATIENCE)
        return self._made.get(rules, made)

    def close(self) -> None:
        """Make no more; what is looked up just now is not waited for."""
        self._stops.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begun(self, answering: Answering, rules: Rules, address: str) -> Future[None] | None:
        """Have a digest made, unless it is being made; None if too many others are to be."""
        with self._lock:
            if rules in self._making:
                return self._making[rules]
            if self._stops.is_set() or len(self._making) >= MOST_KEPT:
                return None
            self._making[rules] = self._thread.submit(self._make, answering, rules, address)
            return self._making[rules]

    def _make(self, answering: Answering, rules: Rules, address: str) -> None:
        made = None
        try:
            made = self._digest(answering, address)
        except Exception as error:  # noqa: BLE001
            if not self._stops.is_set():
                _log.warning("no cache digest: %(error)s", {"error": type(error).__name__})
        with self._lock:
            del self._making[rules]
            if made is not None:
                self._made.pop(rules, None)
                self._made[rules] = made
            if len(self._made) > MOST_KEPT:
                del self._made[next(iter(self._made))]

    def _digest(self, answering: Answering, address: str) -> Made:
        end = time.monotonic() + SECONDS
        urls = digest_urls(
            answering.store,
            lambda url: better(answering, url, address) is not None,
            self._most,
            lambda: time.monotonic() < end and not self._stops.is_set(),
        )
        return Made(digest_of(urls), int(time.time()))
