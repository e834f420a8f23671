"""Leftovers of a kill or power cut: content files without rows, whole or half (decision 123).

A starting worker goes through the blocks of file ids that belong to dead processes of this machine. It
first takes each block over. So a process that is alive after all can give no file of that block a row any
more.
"""

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

from twisted.python.failure import Failure

from lcc_scrapy.cache.file_ids import FileIds, new_token, without_row
from lcc_scrapy.content.store import ContentStore
from lcc_scrapy.db.records import FileBlock
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import StoreUnavailable

PACE = 200
"""Files looked up and removed per job of the store's thread."""

RETRY = 10.0
"""Seconds until a database that does not answer is asked again."""

_log = logging.getLogger(__name__)


class Leftovers:
    """Removes, once, the leftovers of dead processes of this machine, which ``dead_owners`` names.

    ``mine`` are the file ids of this process. What cannot be removed now is left to the next start.
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        clock: Clock,
        *,
        content: ContentStore,
        mine: FileIds,
        dead_owners: Callable[[], Collection[str]],
    ) -> None:
        self.over = False
        self._store = store
        self._thread = thread
        self._clock = clock
        self._content = content
        self._mine = mine
        self._dead_owners = dead_owners
        self._token = new_token()
        self._timer: Any = None
        self._stopped = False

    def start(self) -> None:
        """Begin; ``over`` tells when all is done."""
        self._go_on(self.steps())

    def stop(self) -> None:
        """Begin no further step."""
        self._stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _go_on(self, steps: Iterator[None]) -> None:
        if not self._stopped:
            stepping = self._thread.run(self._step, steps)
            stepping.addCallbacks(self._stepped, self._failed, callbackArgs=(steps,))

    @staticmethod
    def _step(steps: Iterator[None]) -> bool:
        """Do a bounded part; returns whether there may be more (in the store's thread)."""
        return next(steps, False) is None

    def _stepped(self, more: bool, steps: Iterator[None]) -> None:
        if more:
            self._go_on(steps)
        else:
            self.over = True

    def _failed(self, failure: Failure) -> None:
        _log.error("cannot remove what killed processes left: %s", failure.getErrorMessage())
        if not isinstance(failure.value, StoreUnavailable):
            self.over = True
        elif not self._stopped:
            self._timer = self._clock.callLater(RETRY, self.start)

    def steps(self) -> Iterator[None]:
        """Do everything, a bounded part at a time (blocking)."""
        for block in self._blocks_of_the_dead():
            yield
            if self._take_over(block):
                yield from self._clear(block)

    def _blocks_of_the_dead(self) -> list[FileBlock]:
        """Look at the blocks first: a process that begins after that has others."""
        with self._store.read() as tx:
            blocks = tx.blocks_of(self._content.machineid)
        dead = self._dead_owners() if blocks else ()
        return [block for block in blocks if block.owner in dead or self._is_of_my_former_life(block)]

    def _is_of_my_former_life(self, block: FileBlock) -> bool:
        return block.owner == self._mine.owner and block.token != self._mine.token

    def _take_over(self, block: FileBlock) -> bool:
        """Make a block ours as it was seen; waits for a commit of its ids that is under way."""
        with self._store.begin() as tx:
            now = tx.lock_blocks(block.machineid, [block.block])
            if now != {block.block: block}:
                return False
            tx.put_block(replace(block, owner=self._mine.owner, token=self._token))
        return True

    def _clear(self, block: FileBlock) -> Iterator[None]:
        removed, all_gone = 0, True
        fileids = self._content.files_from(block.first)
        for start in range(0, len(fileids), PACE):
            yield
            with self._store.read() as tx:
                lone = without_row(tx, block.machineid, fileids[start : start + PACE])
            gone = self._content.remove(lone)
            removed, all_gone = removed + len(gone), all_gone and len(gone) == len(lone)
        yield
        if removed:
            _log.info("removed %d content files without rows, left by a process that was killed", removed)
        if all_gone:
            self._forget(block)

    def _forget(self, block: FileBlock) -> None:
        """Forget a block when its files cannot come back any more, not even by a power cut."""
        self._content.sync_removals(block.first)
        with self._store.begin() as tx:
            now = tx.lock_blocks(block.machineid, [block.block])
            still = [number for number, one in now.items() if one.token == self._token]
            tx.drop_blocks(block.machineid, still)
