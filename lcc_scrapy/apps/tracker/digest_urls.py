"""The URLs that a cache digest can name: those of directories, and of files whose digests are known.

The tables name no other files (seed 004 says so of its own). A URL is in the digest if a replica of it is
better than its own server (see ``redirection``).
"""

from collections.abc import Callable, Iterator
from itertools import islice, takewhile

from lcc_scrapy.apps.tracker.lookup import Path, base_of, paths_of
from lcc_scrapy.apps.tracker.redirection import FETCHED
from lcc_scrapy.apps.tracker.rules.tracked import Host, Place, TrackedDirectory, url_of
from lcc_scrapy.apps.tracker.store import TrackerRows, each_digest, rows_in
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.roots import URL_MAX

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
        rows = rows_in(tx)
        hosts = [one for one in rows.hosts() if one.dirs and one.url.startswith(FETCHED)]
    left = MOST_LOOKED_AT
    for host in hosts:
        upto = host.first + min(host.dirs, left)
        for first in range(host.first, upto, AT_A_TIME):
            with store.snapshot() as tx:
                rows = rows_in(tx)
                if not (goes_on() and _is_still_there(rows, host)):
                    break
                paths = _shared(rows, host, first, min(first + AT_A_TIME, upto))
            urls = _urls(store, host, paths)
            yield from (one for one in urls if len(one) <= URL_MAX)  # others cannot be asked for
        left -= upto - host.first


def _is_still_there(rows: TrackerRows, host: Host) -> bool:
    """Tell whether a server has the directories that it had: a scan may have ended since."""
    now = rows.hosts_by_id({host.hostid}).get(host.hostid)
    return now is not None and (now.first, now.dirs) == (host.first, host.dirs)


def _shared(rows: TrackerRows, host: Host, first: int, upto: int) -> dict[int, Path]:
    """Return the paths of directories that are elsewhere too."""
    shared = [one for one in rows.behind(first, upto) if _is_shared(rows, one)]
    return paths_of(rows, [(one, host) for one in shared])


def _urls(store: Store, host: Host, paths: dict[int, Path]) -> Iterator[str]:
    site, base = Place.parse(host.url).site, base_of(host.url)
    for dirid, path in paths.items():
        yield url_of(site, (*base, *path), is_directory=True)
        for _, name, _ in each_digest(store, dirid, dirid + 1):
            yield url_of(site, (*base, *path, name), is_directory=False)


def _is_shared(rows: TrackerRows, one: TrackedDirectory) -> bool:
    return one.md5 is not None and one.sha is not None and len(rows.directories_with(one.md5, one.sha, 2)) > 1
