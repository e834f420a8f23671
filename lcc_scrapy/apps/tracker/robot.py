"""The robot: one job per domain, one task per server, one server of a host at a time (seed 004).

Several processes may run robots on one database: each server is claimed. A kill costs what was scanned and
not yet loaded.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from lcc_scrapy.apps.tracker.concurrency import ended, together
from lcc_scrapy.apps.tracker.effort import CannotScan
from lcc_scrapy.apps.tracker.listed import Known, Unchanged
from lcc_scrapy.apps.tracker.loading import Loaded, Scan, clear, load
from lcc_scrapy.apps.tracker.rules.scans import CLAIM
from lcc_scrapy.apps.tracker.rules.tracked import Host, Place
from lcc_scrapy.apps.tracker.scanning import Asked, Scanned, Scanner
from lcc_scrapy.apps.tracker.tasks import Task, Tasks
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.kit.work import Work

AT_A_TIME = 4
"""Servers that one process scans at a time."""


_log = logging.getLogger(__name__)


class Lost(LccError):
    """Another process scans the server by now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scan ended. ``loaded`` is None where nothing was: it failed (``error``), or is ``unchanged``."""

    host: Host
    adapter: str = ""
    loaded: Loaded | None = None
    transferred: int = 0
    requests: int = 0
    unchanged: bool = False
    error: str = ""


@dataclass(slots=True)
class Robot:
    """Scans servers. ``work`` runs short jobs of the database, ``loading`` long ones, beside them.

    ``told`` hears each outcome. ``poll``: seconds between two looks at what is due.
    """

    store: Store
    tasks: Tasks
    scanner: Scanner
    work: Work
    loading: Work
    poll: float = 2.0
    told: Callable[[Outcome], object] = lambda _: None
    now: Callable[[], float] = time.time
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_A_TIME))

    async def these(self, hostids: Collection[int]) -> None:
        """Scan some servers, due or not, one after another; raises ``ServerRefused``."""
        for hostid in hostids:
            await self._run(await self.work(self.tasks.claim, hostid, self._time()))

    async def once(self) -> None:
        """Scan what is due, and end; raises ``LccError`` where the database is away.

        A server may have to wait until one of another domain, on the same host, was scanned: so all domains
        are looked at again, until nothing is left that was due at the beginning.
        """
        await self.loading(clear, self.store, self.now())
        domains, began = await self.work(self.tasks.domains), self._time()
        while any(await together([self._job(domain, began) for domain in domains])):
            pass

    async def forever(self) -> None:
        """Scan servers when they are due, until cancelled."""
        jobs: dict[str, asyncio.Task[None]] = {}
        cleared = False
        try:
            while True:
                try:
                    cleared = cleared or await self.loading(clear, self.store, self.now()) >= 0
                    for domain in set(await self.work(self.tasks.domains)) - jobs.keys():
                        jobs[domain] = asyncio.ensure_future(self._standing_job(domain))
                except LccError as error:
                    _log.warning("scans: %s", error)
                await asyncio.sleep(self.poll)
        finally:
            await ended(jobs.values())

    async def _standing_job(self, domain: str) -> None:
        while True:
            try:
                await self._job(domain)
            except LccError as error:
                _log.warning("scans of domain %s: %s", domain, error)
            await asyncio.sleep(self.poll)

    async def _job(self, domain: str, due_by: int | None = None) -> bool:
        """Scan the servers of a domain that are due, as many at a time as there are places.

        Only what was due at ``due_by``, if that is given. Tells whether there was any.
        """
        running: set[asyncio.Task[None]] = set()
        any_was_due = False
        try:
            while True:
                await self._places.acquire()
                task = await self._claimed(domain, due_by)
                if task is not None:
                    any_was_due = True
                    one = asyncio.ensure_future(self._in_its_place(task))
                    running.add(one)
                    one.add_done_callback(running.discard)
                elif running:  # one of them may be of the same host as what is due
                    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                else:
                    return any_was_due
        finally:
            await ended(running)

    async def _claimed(self, domain: str, due_by: int | None) -> Task | None:
        """Claim what is due; without any, the place is free for others."""
        task = None
        try:
            task = await self.work(self.tasks.claim_due, domain, self._time(), due_by)
        finally:
            if task is None:
                self._places.release()
        return task

    async def _in_its_place(self, task: Task) -> None:
        try:
            await self._run(task)
        except LccError as error:  # the database is away; the claim ends by itself
            self.told(Outcome(task.host, error=str(error)))
        finally:
            self._places.release()

    # --- one server ----------------------------------------------------------------------------------

    async def _run(self, task: Task) -> None:
        keeping = asyncio.ensure_future(self._keep(task))
        scanning = asyncio.ensure_future(self._scanned(task))
        try:
            await asyncio.wait({keeping, scanning}, return_when=asyncio.FIRST_COMPLETED)
            outcome = await scanning if scanning.done() else Outcome(task.host, error=str(Lost(_LOST)))
            self.told(outcome)
        except asyncio.CancelledError:
            with suppress(LccError):
                await self.work(self.tasks.released, task, self._time())
            raise
        finally:
            keeping.cancel()
            scanning.cancel()
            await asyncio.gather(keeping, scanning, return_exceptions=True)

    async def _scanned(self, task: Task) -> Outcome:
        """Scan a server, load what it lists, and note how it ended."""
        host = task.host
        asked = Asked(
            Place.parse(host.url),
            task.rules.bandwidth,
            task.rules.private,
            Known(host.adapter, host.validator),
        )
        try:
            found = await self.scanner.scan(asked, self.now())
            if isinstance(found, Unchanged):
                await self.work(lambda: self.tasks.succeeded(task, self._time(), unchanged=True))
                return Outcome(host, found.adapter, unchanged=True)
            with found:
                return await self._loaded(task, found)
        except LccError as error:
            return await self._failed(task, str(error), error)
        except Exception as error:  # noqa: BLE001 - a defect met at one server must not end the scans of others
            _log.exception("server %d cannot be scanned", host.hostid)
            return await self._failed(task, "a defect of the tracker: see its log", error)

    async def _failed(self, task: Task, why: str, error: Exception) -> Outcome:
        wait = error.retry_after if isinstance(error, CannotScan) else 0.0
        await self.work(self.tasks.failed, task, why, self._time(), wait)
        return Outcome(task.host, error=why)

    async def _loaded(self, task: Task, found: Scanned) -> Outcome:
        if not await self.work(self.tasks.keep, task, self._time()):
            raise Lost(_LOST)
        scan = Scan(task.host.hostid, self._time(), found.listed.adapter, found.listed.validator)
        loaded = await self.loading(load, self.store, scan, found)
        await self.work(self.tasks.succeeded, task, self._time())
        return Outcome(task.host, scan.adapter, loaded, found.effort.transferred, found.effort.requests)

    async def _keep(self, task: Task) -> None:
        """Claim the server again and again, until another process has it."""
        while True:
            await asyncio.sleep(CLAIM / 3)
            with suppress(LccError):
                if not await self.work(self.tasks.keep, task, self._time()):
                    return

    def _time(self) -> int:
        return int(self.now())


_LOST = "another process scans it now"
