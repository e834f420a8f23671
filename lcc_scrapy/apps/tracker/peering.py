"""Fetches domains from the trackers that may speak for them, when they are due.

Files wait on disk without a name until all of them came and are what the manifest says. Then they are taken
in, whole or not at all. Several processes may do so on one database.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lcc_scrapy.apps.tracker.concurrency import ended, together
from lcc_scrapy.apps.tracker.exchange import Manifest
from lcc_scrapy.apps.tracker.http_index import http_url
from lcc_scrapy.apps.tracker.importing import Arrived, is_here, take_in
from lcc_scrapy.apps.tracker.peer_http import Offer, PeerFailed, PeerHttp
from lcc_scrapy.apps.tracker.peers import Peers
from lcc_scrapy.apps.tracker.rules.scans import CLAIM
from lcc_scrapy.apps.tracker.rules.tracked import Place, TrackedDomain
from lcc_scrapy.apps.tracker.settings import ScanLimits
from lcc_scrapy.apps.tracker.spool import Files
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.http.outgoing import Outgoing
from lcc_scrapy.kit.work import Work

AT_A_TIME = 4
"""Domains that one process fetches at a time."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Imported:
    """How it ended: ``manifest`` is None where nothing is new, or it failed (``error``)."""

    domain: str
    manifest: Manifest | None = None
    error: str = ""


@dataclass(slots=True)
class Peering:
    """Fetches domains. ``work`` runs short jobs of the database, ``loading`` long ones.

    ``told`` hears how each ended. ``poll``: seconds between two looks at what is due. ``private``: peers may
    have private addresses.
    """

    store: Store
    peers: Peers
    outgoing: Outgoing
    agent: str
    limits: ScanLimits
    folder: Path
    work: Work
    loading: Work
    private: bool = False
    poll: float = 2.0
    told: Callable[[Imported], object] = lambda _: None
    now: Callable[[], float] = time.time
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_A_TIME))

    async def this(self, domain: str, peer: str = "") -> None:
        """Fetch a domain, due or not, from ``peer``, empty = whichever it was added with.

        Raises ``NotTracked`` or ``ServerRefused`` where nobody may be asked.
        """
        await self._run(await self.work(self.peers.claim, domain, peer, self._time()))

    async def once(self) -> None:
        """Fetch what is due, and end."""
        await together(map(self._in_its_place, await self.work(self.peers.due, self._time())))

    async def forever(self) -> None:
        """Fetch domains when they are due, until cancelled."""
        running: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                try:
                    for domain in await self.work(self.peers.due, self._time()):
                        if domain not in running:
                            running[domain] = asyncio.ensure_future(self._in_its_place(domain))
                except LccError as error:
                    _log.warning("exchange: %s", error)
                await asyncio.sleep(self.poll)
                running = {name: one for name, one in running.items() if not one.done()}
        finally:
            await ended(running.values())

    async def _in_its_place(self, domain: str) -> None:
        async with self._places:
            try:
                one = await self.work(self.peers.claim_due, domain, self._time())
                if one is not None:
                    await self._run(one)
            except LccError as error:  # the database is away; the claim ends by itself
                self.told(Imported(domain, error=str(error)))

    # --- one domain ----------------------------------------------------------------------------------

    async def _run(self, one: TrackedDomain) -> None:
        keeping = asyncio.ensure_future(self._keep(one.domain))
        try:
            self.told(await self._noted(one))
        except asyncio.CancelledError:
            with suppress(LccError):
                await self.work(self.peers.released, one)
            raise
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _noted(self, one: TrackedDomain) -> Imported:
        """Fetch a domain, take it in, and note how that ended."""
        try:
            manifest = await self._taken_in(one)
        except LccError as error:
            return await self._failed(one, str(error), error)
        except Exception as error:  # noqa: BLE001 - a defect met in one domain must not end the others
            _log.exception("domain %s cannot be fetched", one.domain)
            return await self._failed(one, "a defect of the tracker: see its log", error)
        await self.work(self.peers.succeeded, one.domain, self._time())
        return Imported(one.domain, manifest)

    async def _failed(self, one: TrackedDomain, why: str, error: Exception) -> Imported:
        wait = error.retry_after if isinstance(error, PeerFailed) else 0.0
        await self.work(self.peers.failed, one, why, self._time(), wait)
        return Imported(one.domain, error=why)

    async def _taken_in(self, one: TrackedDomain) -> Manifest | None:
        files = Files(self.folder)
        try:
            try:
                async with asyncio.timeout(self.limits.deadline):
                    offer = await self._fetched(one, files)
            except TimeoutError:
                limit = f"{self.limits.deadline:g} s (LCC_TRACKER_DEADLINE)"
                raise PeerFailed(f"{one.peer}: not done after {limit}") from None
            if offer is None:
                return None
            arrived = Arrived(offer.manifest, one.peer, files.opened, offer.validator)
            await self.loading(take_in, self.store, arrived, self.now)
            return offer.manifest
        finally:
            files.close()

    async def _fetched(self, one: TrackedDomain, files: Files) -> Offer | None:
        """Fetch the files of a domain; None = what is here is what the peer has."""
        peer = self._peer(one)
        offer = await peer.manifest(one.domain, one.validator)
        if offer is None:
            return None
        if await self.work(is_here, self.store, offer.manifest, one.peer):
            await self.work(self.peers.seen, one.domain, offer.validator)
            return None
        total = sum(file.bytes for file in offer.manifest.files)
        if total > self.limits.most_bytes:
            raise PeerFailed(f"{one.peer}: more than {self.limits.most_bytes} bytes (LCC_TRACKER_BYTES)")
        for file in offer.manifest.files:
            await peer.file(file, files.new())
        return offer

    def _peer(self, one: TrackedDomain) -> PeerHttp:
        place = Place.parse(one.peer)
        if place.scheme not in {"http", "https"} or place.query:
            raise PeerFailed(f"{one.peer} is no http or https URL: import the domain from a folder")
        limits = self.limits
        times = (limits.patience, limits.deadline)
        return PeerHttp(self.outgoing, http_url(place), self.agent, *times, self.private)

    async def _keep(self, domain: str) -> None:
        """Claim the domain again and again, until another process has it."""
        while True:
            await asyncio.sleep(CLAIM / 3)
            with suppress(LccError):
                if not await self.work(self.peers.keep, domain, self._time()):
                    return

    def _time(self) -> int:
        return int(self.now())
