"""The service behind the routes: takes submissions, checks keys, and queues what is proved.

It lives in the event loop of a web server. The database is spoken to in threads of its own, so that a slow
one keeps no other request waiting.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from lcc_scrapy.apps.indexnow.body import BODY_MAX, read_body
from lcc_scrapy.apps.indexnow.checking import Check, Checker, Verdict
from lcc_scrapy.apps.indexnow.keys import Admitted, Keys, wrong
from lcc_scrapy.apps.indexnow.queueing import Queueing, Step
from lcc_scrapy.apps.indexnow.rules import (
    BAD,
    GOOD,
    TOO_MANY,
    WRONG_KEY,
    Asked,
    NotTaken,
    SiteKey,
    Submission,
    read_submission,
)
from lcc_scrapy.apps.indexnow.settings import IndexNowRules
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.throttling import Buckets, Rate
from lcc_scrapy.web.body_room import SMALL, BodyRoom

_log = logging.getLogger(__name__)

DONE, WAITS = 200, 202

THREADS = 2
"""Submissions that are stored at a time; another thread queues them."""

CHECKS = 16
"""Keys that are checked at a time."""

DUE = 100
"""Keys that are looked for at a time whose check is due."""

BODIES = 4 * BODY_MAX
"""Bytes of large bodies in memory at a time."""

EXPIRY = 60.0
"""Seconds between two looks for what is too old."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Taken:
    """A submission that was acknowledged: 200, or 202 where its key or its provider is not known yet."""

    status: int
    urls: int
    ignored: tuple[str, ...] = ()


class IndexNow:
    """Takes submissions. ``living`` has to be entered first, in the event loop that serves."""

    def __init__(
        self,
        keys: Keys,
        queueing: Queueing,
        rules: IndexNowRules,
        check: Check | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.rules = rules
        self._keys = keys
        self._queueing = queueing
        self._check = check
        self._now = now
        self._threads = CapacityLimiter(THREADS)
        self._own_thread = CapacityLimiter(1)
        self._at_a_time = asyncio.Semaphore(CHECKS)
        self._rates: Buckets[Hashable] = Buckets(rules.rate)
        self._site_checks: Buckets[str] = Buckets(rules.checks_site)
        self._address_checks: Buckets[str] = Buckets(rules.checks_address)
        half = Rate(max(1, rules.checks_site.count // 2), rules.checks_site.seconds)
        self._half_checks: Buckets[tuple[str, str]] = Buckets(half)
        self._all_checks: Buckets[str] = Buckets(rules.checks)
        self._checks: dict[str, asyncio.Task[SiteKey | None]] = {}
        self.bodies = BodyRoom(BODIES, BODY_MAX)
        """Memory for bodies: one client never takes what others need."""
        self._bell = asyncio.Event()

    # --- requests --------------------------------------------------------------------------------

    def knock(self, whose: Hashable) -> None:
        """Count a request of a key or an address; raises ``NotTaken`` 429."""
        _take(self._rates, whose, "too many submissions")

    async def read(self, body: bytes) -> Submission:
        """Read the body of a POST, a large one beside the event loop; raises ``NotTaken``."""
        if len(body) <= SMALL:  # a millisecond's worth
            return _read(body)
        return await self._in_thread(_read, body)

    async def submit(self, asked: Submission, client: str | None = None) -> Taken:
        """Take a submission, which is durable then; raises ``NotTaken``, or ``LccError`` of the database.

        ``client`` is its neighbourhood, None = one without a share of its own.
        """
        self.knock(asked.digest)
        now = int(self._now())
        known = await self._in_thread(self._keys.look, asked, now)
        if known is None and asked.digest not in self._checks:
            self._count_check(asked.site, client)
        admitted: Admitted = await self._in_thread(self._keys.admit, asked, now)
        self._bell.set()
        done = not admitted.waits if admitted.state == GOOD else await self._is_done(admitted.row)
        return Taken(DONE if done else WAITS, len(asked.urls), asked.ignored)

    def _count_check(self, site: str, client: str | None) -> None:
        """Count the check of an unknown key; who has used up its own share takes nothing of the others'."""
        if client is not None:
            _take(self._address_checks, client, "too many unknown keys from your address")
            _take(self._half_checks, (client, site), f"too many unknown keys of {site} from your address")
        _take(self._site_checks, site, f"too many unknown keys of {site}")
        _take(self._all_checks, "", "too many unknown keys")

    async def _is_done(self, row: SiteKey) -> bool:
        """Tell whether a key that has to be checked is good within a little while; raises ``NotTaken``."""
        after = await self._checked(row)
        if after.state == BAD:
            raise NotTaken(WRONG_KEY, wrong(after))
        return after.state == GOOD and not await self._in_thread(self._keys.waits, after)

    async def _checked(self, row: SiteKey) -> SiteKey:
        """Wait a little for the check of a key; returns the key as it is then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.rules.wait):
                return await asyncio.shield(self._begin_check(row)) or row
        return row

    async def _in_thread(self, work: Callable[..., Result], *args: Any) -> Result:
        return await to_thread.run_sync(partial(work, *args), limiter=self._threads)

    # --- checks ----------------------------------------------------------------------------------

    def _begin_check(self, row: SiteKey) -> "asyncio.Task[SiteKey | None]":
        """Begin to check a key, or wait with those who did."""
        task = self._checks.get(row.digest)
        if task is None:
            task = self._checks[row.digest] = asyncio.create_task(self._check_key(row))
            task.add_done_callback(partial(self._check_ended, row.digest))
        return task

    def _check_ended(self, digest: str, task: "asyncio.Task[SiteKey | None]") -> None:
        del self._checks[digest]
        self._bell.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("IndexNow: cannot check a key now, trying again: %s", error)

    async def _check_key(self, row: SiteKey) -> SiteKey | None:
        assert self._check is not None
        async with self._at_a_time:
            private = await self._in_thread(self._keys.may_be_private, row.location)
            verdict: Verdict = await self._check(row.location, row.keytext, private)
        return await self._in_thread(self._keys.settle, row, verdict, int(self._now()))

    # --- work of its own -------------------------------------------------------------------------

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Do what is to be done beside requests, from what an earlier process left on, until the end."""
        checker = Checker() if self._check is None else None
        if checker is not None:
            self._check = checker.check
        work = asyncio.create_task(self._work())
        try:
            yield
        finally:
            tasks = [work, *self._checks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if checker is not None:
                await checker.close()

    async def _work(self) -> None:
        trouble = ""
        expiry = 0.0
        while True:
            self._bell.clear()
            try:
                await self._queue_all()
                await self._begin_due()
                if time.monotonic() >= expiry:
                    await self._beside(self._keys.expire, int(self._now()))
                    expiry = time.monotonic() + EXPIRY
                trouble = ""
            except LccError as error:
                if str(error) != trouble:
                    _log.error("IndexNow: cannot queue now, trying again: %s", error)
                trouble = str(error)
                await asyncio.sleep(self.rules.poll)
            except Exception:  # noqa: BLE001 - what was acknowledged must not wait for a restart because of one defect
                _log.exception("IndexNow: failed to queue, trying again")
                await asyncio.sleep(self.rules.poll)
            with suppress(TimeoutError):  # ``wait_for`` of Python 3.11 may lose that this task is cancelled
                async with asyncio.timeout(self.rules.poll):
                    await self._bell.wait()

    async def _queue_all(self) -> None:
        """Queue what can be queued; what has to wait is passed over until the next round."""
        after = 0
        while some := await self._beside(self._queueing.ready, after):
            for portionid in some:
                step = Step.MORE
                while step is Step.MORE:
                    step = await self._beside(self._queueing.queue, portionid, int(self._now()))
                if step is not Step.HELD:
                    self._queueing.queued()
            after = some[-1]

    async def _begin_due(self) -> None:
        if len(self._checks) < CHECKS:
            for row in await self._beside(self._keys.due, int(self._now()), DUE):
                if len(self._checks) < 2 * CHECKS:
                    self._begin_check(row)

    async def _beside(self, work: Callable[..., Result], *args: Any) -> Result:
        return await to_thread.run_sync(partial(work, *args), limiter=self._own_thread)


def _read(body: bytes) -> Submission:
    return read_submission(read_body(body))


def read_get(url: str, key: str, location: str) -> Submission:
    """Read the parameters of a GET; raises ``NotTaken``."""
    return read_submission(Asked(key, [url], location=location))


def _take(buckets: Buckets[Any], key: Hashable, what: str) -> None:
    now = time.monotonic()
    wait = buckets.wait(key, now)
    if wait:
        raise NotTaken(TOO_MANY, what, math.ceil(wait))
    buckets.take(key, now)
