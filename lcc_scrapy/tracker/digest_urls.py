"""The URLs that a cache digest can name: those of directories, and of files whose digests are known.

The tables name no other files (seed 004 says so of its own). A URL is in the digest if a replica of it is
better than its own server (see ``redirection``).
"""

from collections.abc import Callable, Iterator
from itertools import islice, takewhile

from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.tracker import Host, Place, TrackedDirectory, url_of
from lcc_scrapy.tracker.lookup import base_of, paths_of
from lcc_scrapy.tracker.redirection import FETCHED

AT_A_TIME = 500
"""Directories that are read in one transaction."""

MOST_LOOKED_AT = 200_000
"""Directories that are read for one digest."""

LOOKED_UP = 10
"""URLs that are looked up for each one that a digest may have."""


def digest_urls(
    store: Store, has_better: Callable[[str], bool], most: int, goes_on: Callable[[], bool]
) -> list[str]:
    """Return at most so many URLs that have a better replica, those found until ``goes_on`` says no.

    Blocking, a millisecond or so for each that is looked up.
    """
    found = takewhile(lambda _: goes_on(), _candidates(store, goes_on))
    return list(islice(filter(has_better, islice(found, LOOKED_UP * most)), most))


def _candidates(store: Store, goes_on: Callable[[], bool]) -> Iterator[str]:
    """Yield URLs in directories whose identity another directory has too."""
    with store.snapshot() as tx:
        hosts = [one for one in tx.hosts() if one.dirs and one.url.startswith(FETCHED)]
    left = MOST_LOOKED_AT
    for host in hosts:
        upto = host.first + min(host.dirs, left)
        for first in range(host.first, upto, AT_A_TIME):
            with store.snapshot() as tx:
                if not (goes_on() and _is_still_there(tx, host)):
                    break
                urls = list(_urls(tx, host, first, min(first + AT_A_TIME, upto)))
            yield from urls
        left -= upto - host.first


def _is_still_there(tx: Tx, host: Host) -> bool:
    """Tell whether a server has the directories that it had: a scan may have ended since."""
    now = tx.hosts_by_id({host.hostid}).get(host.hostid)
    return now is not None and (now.first, now.dirs) == (host.first, host.dirs)


def _urls(tx: Tx, host: Host, first: int, upto: int) -> Iterator[str]:
    directories, _, contents = tx.behind(first, upto)
    shared = {one.dirid: one for one in directories if _is_shared(tx, one)}
    if not shared:
        return
    site, base = Place.parse(host.url).site, base_of(host.url)
    paths = paths_of(tx, [(one, host) for one in shared.values()])
    for dirid in shared:
        yield url_of(site, base + paths[dirid], is_directory=True)
    for dirid, name, _ in contents:
        if dirid in shared:
            yield url_of(site, (*base, *paths[dirid], name), is_directory=False)


def _is_shared(tx: Tx, one: TrackedDirectory) -> bool:
    return one.md5 is not None and one.sha is not None and len(tx.directories_with(one.md5, one.sha, 2)) > 1
