"""Withdrawals: an owner wants less than before, so what it still reaches is computed anew.

Whoever takes a directive or a URD back only notes a withdrawal of its owner in that transaction. What the
owner reaches from its other directives and URDs, along stored links, is then computed in short reading
transactions, and the rest of its interests goes in short writing ones. A withdrawal ends when all is done;
after a kill it is done anew.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from lcc_scrapy.cache.owners import tell_owners
from lcc_scrapy.db.records import Ownership
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.directives import DEPTH_MAX, NOBODY
from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.requests import is_asked_for
from lcc_scrapy.domain.roots import Root, fetch_url
from lcc_scrapy.spidering.directives import linked_from

CHUNK = 250
"""Interests in one transaction."""

PAGES = 32
"""Documents whose links are read in one transaction."""

MILLI = 1000


class _Risen(Exception):
    """An interest of the owner was added, or goes farther than when its reach was computed."""


def withdraw(tx: Tx, owners: Iterable[str]) -> None:
    """Note that owners want less than before: URDs of theirs were removed, or reach less."""
    tx.put_withdrawals(owners)


def carry_out(store: Store, now: Callable[[], float] = time.time) -> Iterator[int]:
    """Carry withdrawals out; yields after each short transaction how many interests it removed."""
    while True:
        with store.read() as tx:
            waiting = tx.withdrawals(1)
        if not waiting:
            return
        yield from of_owner(store, waiting[0].owner, now)


def of_owner(store: Store, owner: str, now: Callable[[], float] = time.time) -> Iterator[int]:
    """Carry the withdrawal of one owner out, if there is one; yields like ``carry_out``."""
    done = False
    while not done:
        try:
            yield from _Anew(store, owner, int(now() * MILLI)).run()
            done = True
        except _Risen:
            yield 0


class _Anew:
    """The interests of an owner, computed once. ``now`` in epoch milliseconds.

    It keeps about 100 bytes in memory for each interest of the owner in one provider's URLs.
    """

    def __init__(self, store: Store, owner: str, now: int) -> None:
        self._store = store
        self._owner = owner
        self._now = now
        self._reach: dict[bytes, int] = {}
        self._ahead: list[list[bytes]] = []
        self._roots: tuple[Root, ...] = ()

    def run(self) -> Iterator[int]:
        with self._store.read() as tx:
            began = tx.withdrawal(self._owner)
            pid = tx.next_owned(self._owner, -1)
        if began is None:
            return
        while pid is not None:
            yield from self._compute(pid)
            yield from self._apply(pid, began.changes)
            with self._store.read() as tx:
                pid = tx.next_owned(self._owner, pid)
        with self._store.begin() as tx:
            self._refuse_risen(tx, began.changes)
            tx.end_withdrawal(self._owner)
        yield 0

    def _refuse_risen(self, tx: Tx, changes: int) -> None:
        there = tx.withdrawal(self._owner, lock=True)
        if there is not None and there.changes != changes:
            raise _Risen

    # --- what is reached still --------------------------------------------------------------------

    def _compute(self, pid: int) -> Iterator[int]:
        self._reach, self._ahead = {}, [[] for _ in range(DEPTH_MAX + 1)]
        with self._store.read() as tx:
            self._roots = tuple(map(Root.parse, tx.roots(pid)))
        for rows in self._pages(pid):
            self._reach |= {row.furlkey: -1 for row in rows}
            for row in rows:
                self._come_to(row.furlkey, row.asked)
            yield 0
        yield from self._come_to_urds(pid)
        for reach in range(DEPTH_MAX, 0, -1):
            while self._ahead[reach]:
                self._follow_some(pid, reach)
                yield 0

    def _pages(self, pid: int) -> Iterator[list[Ownership]]:
        after = b""
        while True:
            with self._store.read() as tx:
                rows = tx.owned_by(self._owner, pid, after, CHUNK)
            if not rows:
                return
            yield rows
            after = rows[-1].furlkey

    def _come_to_urds(self, pid: int) -> Iterator[int]:
        after = 0
        while True:
            with self._store.read() as tx:
                urds = tx.urds_of(self._owner, after, CHUNK)
            if not urds:
                return
            for one in urds:
                furl = fetch_url(one.uri, self._roots) if is_asked_for(one, self._now) else ""
                self._come_to(furlkey(pid, furl) if furl else b"", one.depth)
            after = urds[-1].urdid
            yield 0

    def _come_to(self, key: bytes, reach: int) -> None:
        if reach > self._reach.get(key, DEPTH_MAX):
            self._reach[key] = reach
            self._ahead[reach].append(key)

    def _follow_some(self, pid: int, reach: int) -> None:
        some, self._ahead[reach] = self._ahead[reach][:PAGES], self._ahead[reach][PAGES:]
        with self._store.read() as tx:
            for key in some:
                if self._reach[key] == reach:  # else it was come to on a shorter way since
                    for _, furl in linked_from(tx, key, self._roots):
                        self._come_to(furlkey(pid, furl), reach - 1)

    # --- what goes ---------------------------------------------------------------------------------

    def _apply(self, pid: int, changes: int) -> Iterator[int]:
        for rows in self._pages(pid):
            if any(self._reach.get(row.furlkey, row.reach) < row.reach for row in rows):
                yield self._apply_to(pid, [row.furlkey for row in rows], changes)

    def _apply_to(self, pid: int, keys: list[bytes], changes: int) -> int:
        with self._store.begin() as tx:
            if not tx.lock_providers([pid]):
                return 0
            self._refuse_risen(tx, changes)
            there = tx.ownerships((key, self._owner) for key in keys).values()
            less = [row for row in there if self._reach.get(row.furlkey, row.reach) < row.reach]
            gone = [row.furlkey for row in less if self._reach[row.furlkey] < 0]
            tx.delete_owners((key, self._owner) for key in gone)
            tx.put_owners([self._shortened(row) for row in less if self._reach[row.furlkey] >= 0])
            if self._owner != NOBODY:
                tell_owners(tx, gone)
            return len(gone)

    def _shortened(self, row: Ownership) -> Ownership:
        reach = self._reach[row.furlkey]
        return replace(row, reach=reach, due=row.due and reach > 0)
