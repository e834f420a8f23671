"""Scans for tests: one server, in a thread with an event loop of its own."""

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lcc_scrapy.apps.tracker.effort import Effort
from lcc_scrapy.apps.tracker.entries import Directory
from lcc_scrapy.apps.tracker.identity import Identity
from lcc_scrapy.apps.tracker.listed import Known, Listed, Unchanged
from lcc_scrapy.apps.tracker.rules.tracked import Place
from lcc_scrapy.apps.tracker.scanning import Asked, Scanner
from lcc_scrapy.apps.tracker.settings import ScanLimits
from lcc_scrapy.apps.tracker.summing import summed
from lcc_scrapy.http.outgoing import Outgoing, tls_context


@dataclass
class Found:
    listed: Listed
    directories: list[Directory]
    effort: Effort

    def __iter__(self):
        return iter(self.directories)


def scanned(url, folder: Path, limits=None, *, known=None, now=0.0, private=True, bandwidth=0):
    """Scan a server at an address of this machine; returns what was found (see ``Found``), or raises."""

    async def scan():
        outgoing = Outgoing(4, tls_context())
        scanner = Scanner(outgoing, "lcc-test", limits or ScanLimits(), folder)
        asked = Asked(Place.parse(url), bandwidth, private, known or Known())
        try:
            found = await scanner.scan(asked, now or time.time())
            if isinstance(found, Unchanged):
                return found
            with found:
                return Found(found.listed, list(found), found.effort)
        finally:
            await outgoing.close()

    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, scan()).result()


def identities(listing: Iterable[Directory]) -> dict[tuple[bytes, ...], Identity | None]:
    """Return the identities of all directories that are listed or named."""
    return dict(summed(listing).identities())
