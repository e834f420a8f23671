"""Commits: outcomes of fetches become durable, in this process or in one of its own.

Whoever commits, the rules are those of ``Settlement``, and files are durable before their rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Any, Protocol, Self

from lcc_scrapy.cache.file_ids import lock_blocks
from lcc_scrapy.content.store import ContentStore
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import Outcome, Served
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
    """Commits in this process, to a store that somebody else closes.

    A commit whose transaction was ended by its server while a slow disk was waited for finds its files when
    it is tried again: they are not written twice.
    """

    def __init__(self, store: Store, content: ContentStore, holder: Holder) -> None:
        self._store = store
        self._content = content
        self._holder = holder
        self._on_disk: frozenset[int] = frozenset()

    def commit(self, outcomes: Sequence[Outcome], now: int, policy: QueuePolicy) -> list[Settled]:
        """Commit rows when their files are on disk."""
        holder = self._holder
        with self._store.begin() as tx, Beside(self._keep) as files:
            lock_blocks(tx, holder.machineid, holder.token, outcomes)
            settled = Settlement(
                tx,
                outcomes,
                owner=holder.owner,
                machineid=holder.machineid,
                now=now,
                policy=policy,
                keep=files.begin,
                durable=files.wait,
            ).run()
        self._on_disk = frozenset()
        return settled

    def _keep(self, kept: Sequence[Served]) -> None:
        missing = [(served.fileid, served.body) for served in kept if served.fileid not in self._on_disk]
        self._content.keep(missing)
        self._on_disk = frozenset(served.fileid for served in kept)

    def close(self) -> None:
        """Close nothing."""


class Beside:
    """Runs one blocking call in a thread of its own while a block goes on; it has ended when the block has.

    What it raises is raised at the end of the block, unless that has failed by itself.
    """

    def __init__(self, work: Callable[..., object]) -> None:
        self._work = work
        self._thread: Thread | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self, *args: Any) -> None:
        """Begin the call."""
        self._thread = Thread(target=self._run, args=args, daemon=True, name="lcc-beside")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the call, and raise what it raised."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self, *args: Any) -> None:
        try:
            self._work(*args)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self._error = error

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._thread is not None:
            self._thread.join()
        if self._error is not None and kind is None:
            raise self._error
