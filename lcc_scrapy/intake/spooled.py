"""Spool files as intake reads them, and what becomes of those that it cannot read."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lcc_scrapy.cache import full_set_requests
from lcc_scrapy.db.records import ABSORBED
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.providers import Wanted
from lcc_scrapy.uns.spool import Lost, ReadySet, SpoolFolder
from lcc_scrapy.uns.spool_file import DamagedSpoolFile, SpoolReader


class SpooledFile(SpoolReader):
    """A ``SpooledSet`` in a complete spool file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        header, footer = self.header, self.footer
        self.pid = header.pid
        self.connseq = header.seq
        self.setid = header.set_id
        self.digest = footer.content
        self.full = header.full
        self.charged = header.charged
        self.ifabsent = header.ifabsent
        self.removals = footer.removals
        self.urls = footer.records
        self.unreadable = footer.unreadable


def _at_once(job: Callable[[], None]) -> None:
    job()


class AbsorbableSpool:
    """The spool folder as the absorber wants it; a file damaged since start-up is set aside.

    ``beside`` runs what needs no database, in another thread if it likes.
    """

    def __init__(
        self, folder: SpoolFolder, lost: Lost, beside: Callable[[Callable[[], None]], None] = _at_once
    ) -> None:
        self._folder = folder
        self._lost = lost
        self._beside = beside
        self._absorbed: deque[ReadySet] = deque()

    def open(self, waiting: ReadySet) -> SpooledFile | None:
        """Open a set, or set it aside when it is damaged or gone."""
        try:
            return SpooledFile(waiting.path)
        except (DamagedSpoolFile, FileNotFoundError) as error:
            self.set_aside(waiting, str(error))
            return None

    def set_aside(self, waiting: ReadySet, reason: str) -> None:
        """Ask the provider for everything, then put the file away: a kill in between asks again."""
        self._lost(waiting, reason)
        self._folder.set_aside(waiting, reason)

    def remove(self, sets: Sequence[ReadySet]) -> None:
        """Remove absorbed sets soon; one that a kill leaves behind is known as absorbed."""
        if sets:
            self._absorbed.extend(sets)
            self._beside(self._remove_absorbed)

    def _remove_absorbed(self) -> None:
        """Remove those of all steps so far: they share what takes longest, to make it durable."""
        gone = [self._absorbed.popleft() for _ in range(len(self._absorbed))]
        if gone:
            self._folder.remove(gone)


def record_loss(store: Store, pid: int, connseq: int) -> None:
    """Ask the provider of a set that cannot be absorbed for everything (seed 003 section 11).

    Nothing more comes of the set, and the same one sent again, under the same id, is a new one.
    """
    with store.begin() as tx:
        full_set_requests.want(tx, pid, Wanted.CACHE_CRASH)
        pset = tx.pset_of(pid, connseq)
        if pset is not None:
            tx.update_pset(replace(pset, phase=ABSORBED, setid="", digest=""))
