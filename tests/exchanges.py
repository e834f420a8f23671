"""What fetches domains of other trackers, for tests, in a thread with an event loop of its own; and such a tracker."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from lcc_scrapy.apps.tracker.exchange import export
from lcc_scrapy.apps.tracker.peering import Peering
from lcc_scrapy.apps.tracker.peers import Peers
from lcc_scrapy.apps.tracker.settings import ScanLimits
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.kit.work import at_once
from tests.mirrors import NOW, Tracker, tree_of
from tests.sqlite_store import sqlite_store

TREE = tree_of("a/f 1\na/b/g 2\na/b/h 3\nc/i 4\nj 5")
OTHER = tree_of("x/a/f 1\nx/a/b/g 2\nx/a/b/h 3\ny/z 9")
A, B = "ftp://a.org/", "ftp://b.org/"
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


def exported(folder: Path) -> Tracker:
    """Return a tracker with a domain of two servers, exported into its ``folder``."""
    made = Tracker(sqlite_store())
    made.load(A, TREE, "de", links={(b"a",): [(b"l\xff", b"../c\t")]}, digests={(b"c",): [(b"i", b"d" * 32)]})
    made.load(B, OTHER, "de")
    export(made.store, "de", folder, NOW)
    made.folder = folder
    return made
