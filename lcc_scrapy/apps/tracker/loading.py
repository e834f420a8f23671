"""From a listing to rows: what a server has now replaces what it had, in one transaction.

New rows are written behind numbers that no server shows, in short transactions. The one that ends a load
makes the server show them. What is shown no more, and what a kill left, is removed afterwards.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from lcc_scrapy.apps.tracker.entries import Directory, Unlisted
from lcc_scrapy.apps.tracker.rules.tracked import TAG, Host, Staged
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.apps.tracker.summing import Row, Summary, summed
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import LccError

if TYPE_CHECKING:
    from lcc_scrapy.ops.housekeeping import Further

NUMBERS = "tr_dir"
"""The counter of directories."""

ROWS = 20_000
"""Directories that are written in one transaction: some 100 ms on SQLite."""

CLAIM = 600
"""Seconds after which a load that went silent is given up."""

CLEARED = 5_000
"""Directories that are removed in one transaction."""

PAIRS = 100_000
"""Links and digests after which no further directory is written in the same transaction."""

_AT_A_TIME = 16
NO_IDENTITY = (None, None)


@dataclass(frozen=True, slots=True)
class Scan:
    """Who was listed, when (epoch seconds), by which adapter, and the validator of its listing, if any."""

    hostid: int
    at: int
    adapter: str
    validator: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a scan found. ``unsound`` directories have no identity: something in them cannot be used."""

    dirs: int
    files: int
    links: int
    digests: int
    unsound: int
    first: int = 0


def load(
    store: Store, scan: Scan, listing: Iterable[Directory], now: Callable[[], float] = time.time
) -> Loaded:
    """Take in a listing; whatever it raises, the old generation stays.

    Blocking, in short transactions. Raises ``Unlisted``, also where the server was removed meanwhile.
    """
    summary = summed(listing)
    loaded = stage(store, scan.hostid, summary.rows(), counted(summary), lambda: now() + CLAIM)
    with store.begin() as tx:
        show(tx, scan, loaded)
    clear(store, now())
    return loaded


def counted(summary: Summary) -> Loaded:
    """Return what a summary has."""
    totals = summary.totals
    return Loaded(totals.dirs, totals.files, totals.links, summary.known_digests, totals.unsound)


def stage(
    store: Store, hostid: int, rows: Iterator[Row], counts: Loaded, until: Callable[[], float]
) -> Loaded:
    """Write the rows of a server where nobody is shown them; returns ``counts`` with where they are.

    ``until`` says, at each step, how long they are kept without a further one (epoch seconds).
    """
    with store.begin() as tx:
        first = tx.take(NUMBERS, counts.dirs)
        rows_in(tx).put_staged(Staged(first, counts.dirs, int(until())))
    try:
        while some := _next(rows):
            with store.begin() as tx:
                _still_ours(tx, first)
                _write(tx, hostid, first, some)
                rows_in(tx).put_staged(Staged(first, counts.dirs, int(until())))
    except BaseException:
        give_up(store, first, counts.dirs)
        raise
    return replace(counts, first=first)


def _next(rows: Iterator[Row]) -> list[Row]:
    """Return the rows that are written together."""
    some, pairs = [], 0
    for row in islice(rows, ROWS):
        some.append(row)
        pairs += len(row[6]) + len(row[7])
        if pairs >= PAIRS:
            break
    return some


def give_up(store: Store, first: int, dirs: int) -> None:
    """Leave staged rows to ``clear``; where the database is away, they are left when their time is over."""
    with suppress(LccError), store.begin() as tx:
        if rows_in(tx).staged(first, lock=True) is not None:
            rows_in(tx).put_staged(Staged(first, dirs, 0))


def _still_ours(tx: Tx, first: int) -> None:
    """Refuse to go on with a load that was given up; nobody gives it up before this transaction ends."""
    staged = rows_in(tx).staged(first, lock=True)
    if staged is None or not staged.claimed:
        raise Unlisted("it was loaded too slowly, and given up")


def _write(tx: Tx, hostid: int, first: int, rows: Sequence[Row]) -> None:
    # plain tuples: a load makes millions of them
    tag = TAG.unpack_from
    directories = [
        (first + number, hostid, first + parent, first + below, dirs, name, md5, sha, md5 and tag(md5)[0])
        for number, parent, below, dirs, name, identity, _, _ in rows
        for md5, sha in ((identity[0], identity[1][:16]) if identity else NO_IDENTITY,)
    ]
    rows_in(tx).insert_directories(directories)
    links = [(first + row[0], *link) for row in rows if row[6] for link in sorted(row[6])]
    rows_in(tx).insert_tracked_links(links)
    rows_in(tx).insert_digests([(first + row[0], *one) for row in rows if row[7] for one in sorted(row[7])])


def show(tx: Tx, scan: Scan, loaded: Loaded) -> Host:
    """Make a server show what was staged, and no more what it had; the caller's transaction commits it."""
    _still_ours(tx, loaded.first)
    host = rows_in(tx).host(scan.hostid, lock=True)
    if host is None:
        raise Unlisted(f"server {scan.hostid} was removed")
    hide(tx, host)
    rows_in(tx).delete_staged(loaded.first)
    shown = replace(
        host,
        first=loaded.first,
        dirs=loaded.dirs,
        files=loaded.files,
        links=loaded.links,
        digests=loaded.digests,
        unsound=loaded.unsound,
        scanned=scan.at,
        adapter=scan.adapter,
        validator=scan.validator,
    )
    rows_in(tx).put_host(shown)
    raise_generation(tx, host.domain)
    return shown


def hide(tx: Tx, host: Host) -> None:
    """Leave what a server has to ``clear``; the caller changes or removes the server's row."""
    if host.dirs:
        rows_in(tx).put_staged(Staged(host.first, host.dirs, 0))


def raise_generation(tx: Tx, name: str) -> None:
    """Note that the servers of a domain have something else now; a peer's domain has the peer's numbers.

    Numbers begin when a domain was added: one that is removed and added again goes on with higher ones.
    """
    domain = rows_in(tx).tracked_domain(name, lock=True)
    if domain is not None and not domain.peer:
        rows_in(tx).put_tracked_domain(replace(domain, generation=max(domain.generation, domain.created) + 1))


def clear(store: Store, now: float) -> int:
    """Remove what nobody is shown and nobody loads; returns how many directories that were."""
    return sum(clearing(store, now))


def clearing(store: Store, now: float) -> Iterator[int]:
    """Do so in short transactions; yields after each how many directories it removed at most."""
    while True:
        with store.begin() as tx:
            rows = rows_in(tx)
            ended = [rows.staged(one.first, lock=True) for one in rows.staged_before(int(now), _AT_A_TIME)]
            left = [one for one in ended if one is not None and one.claimed < int(now)]
            for one in left:  # whoever still loads it gives up
                rows.put_staged(replace(one, claimed=0))
        yield 0
        if not ended:
            return
        for one in left:
            yield from _clearing(store, one)


CLEARING: "Further" = clearing
"""The job of the daily sweep: what killed processes left."""


def _clearing(store: Store, staged: Staged) -> Iterator[int]:
    end = staged.first + staged.dirs
    for first in range(staged.first, end, CLEARED):
        upto = min(first + CLEARED, end)
        with store.begin() as tx:
            rows_in(tx).delete_directories(first, upto)
        yield upto - first
    with store.begin() as tx:
        rows_in(tx).delete_staged(staged.first)
    yield 0
