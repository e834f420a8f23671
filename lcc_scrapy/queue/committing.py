"""Commits: outcomes of fetches become durable, in this process or in one of its own.

Whoever commits, the rules are those of ``Settlement``, and files are durable before their rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lcc_scrapy.cache.file_ids import lock_blocks
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import Outcome, Served
from lcc_scrapy.queue.beside import Beside
from lcc_scrapy.queue.settlement import Settled, Settlement


@dataclass(frozen=True, slots=True)
class Holder:
    """The worker that settles: ``owner`` has its leases, ``token`` its blocks of file ids."""

    owner: str
    machineid: int
    token: int


class Committer(Protocol):
    """Makes outcomes durable. Everything here blocks, and is for one thread."""

    def commit(self, outcomes: Sequence[Outcome], now: int, policy: QueuePolicy) -> list[Settled]:
        """Return what became of each outcome, when all of them are on disk: in one transaction, or none.

        Bodies have their file ids; a commit that is tried again writes the same files. Raises
        ``StoreUnavailable`` or ``NotDurable`` when the same may go through later, and ``DiskFailed``.
        """

    def close(self) -> None:
        """Give back what was opened."""


class Commits:
    """Commits in this process, to a store that somebody else closes."""

    def __init__(self, store: Store, content: ContentFiles, holder: Holder) -> None:
        self._store = store
        self._content = content
        self._holder = holder

    def commit(self, outcomes: Sequence[Outcome], now: int, policy: QueuePolicy) -> list[Settled]:
        """Commit rows when their files are on disk."""
        holder = self._holder
        with self._store.begin() as tx, Beside(self._keep) as files:
            lock_blocks(tx, holder.machineid, holder.token, outcomes)
            return Settlement(
                tx,
                outcomes,
                owner=holder.owner,
                machineid=holder.machineid,
                now=now,
                policy=policy,
                keep=files.begin,
                durable=files.wait,
            ).run()

    def _keep(self, kept: Sequence[Served]) -> None:
        self._content.keep([(served.fileid, served.body) for served in kept])

    def close(self) -> None:
        """Close nothing."""
