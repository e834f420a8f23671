"""What fetches domains of other trackers, for tests: in a thread with an event loop of its own."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from lcc_scrapy.domain.tracker_scan_limits import ScanLimits
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.sources.work import at_once
from lcc_scrapy.tracker.peering import Peering
from lcc_scrapy.tracker.peers import Peers

QUICK = replace(ScanLimits(), patience=2.0, deadline=5.0)


def fetch(store, folder: Path, now: float, *, limits=QUICK, what=Peering.once, owner="me/1", private=True):
    """Fetch what is due; returns how each domain ended, as (domain, generation or None, error)."""

    async def ran():
        peers = Peers(store, owner, 60.0, 3600.0)
        outgoing = Outgoing(4, tls_context())
        made = (store, peers, outgoing, "lcc-test", limits, folder, at_once, at_once)
        told = []
        try:
            await what(Peering(*made, private=private, told=told.append, now=lambda: now))
        finally:
            await outgoing.close()
        return [(one.domain, one.manifest and one.manifest.generation, one.error) for one in told]

    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, ran()).result()
