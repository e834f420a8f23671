"""Wiring: which store, folder and service stands behind which interface.

``Worker`` is one crawl process's share of the LCC, with a ``Reception`` when it takes sets from providers
too. The command line takes the same pieces one by one.
"""

import logging
import os
import time
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from twisted.internet.defer import Deferred, inlineCallbacks, succeed

from lcc_scrapy import signals
from lcc_scrapy.config import Config
from lcc_scrapy.content.ballast import Ballast
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.identity import machine_identity
from lcc_scrapy.domain.errors import ConfigurationError, DiskFailed, LccError, StoreUnavailable
from lcc_scrapy.domain.queue import Outcome, Served
from lcc_scrapy.domain.room import Reserve
from lcc_scrapy.queue_manager import Identity, Limits, QueueManager
from lcc_scrapy.reception import Reception
from lcc_scrapy.reloading import Reloader
from lcc_scrapy.storage import schema
from lcc_scrapy.storage.closed import refuse_closed
from lcc_scrapy.storage.delete_manager import DeleteManager
from lcc_scrapy.storage.feed import LCC_ID
from lcc_scrapy.storage.fileids import FileIds
from lcc_scrapy.storage.home import Home, WorkerSlot
from lcc_scrapy.storage.housekeeping import Housekeeper
from lcc_scrapy.storage.intake import Step
from lcc_scrapy.storage.means import Disks, Means, provide_descriptors
from lcc_scrapy.storage.settler import Settler
from lcc_scrapy.storage.settling import FILEID, Settled, Settlement
from lcc_scrapy.storage.sql import SqlStore
from lcc_scrapy.storage.thread import StoreThread, keep_timers_steady
from lcc_scrapy.storage.tx import Store
from lcc_scrapy.uns.spool import ReadySet

_log = logging.getLogger(__name__)

DESCRIPTORS = 64
"""Open files of a process beside those of its connections and what these write."""

LAST_WORDS = 5.0
"""Seconds for what is left to be stored when the time to stop is over; then a hanging database is left."""


def open_store(config: Config, *, check: bool = True, tolerated: Container[str] = ()) -> SqlStore:
    """Open the database; raises ``ConfigurationError`` with what to do when it cannot be used.

    A database that is closed for one of the ``tolerated`` reasons is opened all the same.
    """
    store = unchecked_store(config)
    try:
        if check:
            check_store(config, store, tolerated)
    except StoreUnavailable as error:
        raise ConfigurationError(f"the database does not answer: {error}") from None
    return store


def unchecked_store(config: Config) -> SqlStore:
    """Return the store of a database that nobody has spoken to yet."""
    try:
        return SqlStore(config.database_url)
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise ConfigurationError(f"LCC_DATABASE_URL: {error}") from None


def check_store(config: Config, store: SqlStore, tolerated: Container[str] = ()) -> None:
    """Refuse a database that must not be worked with; ``StoreUnavailable`` when it does not answer.

    One that is closed for one of the ``tolerated`` reasons is let pass.
    """
    if schema.is_missing_file(config.database_url):
        raise ConfigurationError(
            f"the database file {store.url.database} does not exist:"
            " correct LCC_DATABASE_URL, or bring the file back"
        )
    try:
        waiting = schema.pending(config.database_url)
        if waiting:
            raise ConfigurationError(f"the database needs `lcc db upgrade` (waiting: {', '.join(waiting)})")
        store.check()
        with store.read() as tx:
            refuse_closed(tx, tolerated)
    except DBAPIError as error:
        raise ConfigurationError(f"the database cannot be used: {error.orig}") from None


def check_owner(home: Home, store: Store) -> None:
    """Refuse a database that belongs to another LCC than the data folder."""
    with store.read() as tx:
        theirs = tx.info(LCC_ID)
    if theirs != home.lcc_id:
        raise ConfigurationError(f"the database belongs to LCC {theirs}, {home.folder} to LCC {home.lcc_id}")


def disks_of(config: Config, *folders: Path) -> Disks:
    """Return the disks of the data folder and of others."""
    reserve = Reserve(config.disk_min_free, config.ballast)
    return Disks([config.data_dir, *folders], reserve, Ballast(config.data_dir, config.ballast))


def means_of(config: Config, reactor: Any, *folders: Path, fetches: int = 0) -> Means:
    """Return what looks after a process that writes to these folders, and let it open files enough."""
    connections = config.connections_max if config.spool_dir in folders else 0
    provide_descriptors(DESCRIPTORS + 2 * (fetches + connections))
    return Means(disks_of(config, *folders), reactor, end_at_once)


def end_at_once(error: DiskFailed) -> NoReturn:
    """End this process as a kill would, with status 74 (EX_IOERR): nothing is answered or written after."""
    try:
        _log.critical(
            "%s: this process ends, for nothing may be tried again on a disk that fails;"
            " nothing that was accepted is lost: see to the disk, then start again", error,
        )  # fmt: skip
        logging.shutdown()
    finally:
        os._exit(os.EX_IOERR)


def machine_number(config: Config, store: Store) -> int:
    """Return this machine's number, which ``lcc init`` registered."""
    identity = machine_identity(config.content_dir)
    with store.read() as tx:
        number = tx.machine(identity) if identity else None
    if number is None:
        raise ConfigurationError(
            f"content folder {config.content_dir} is not registered: run `lcc init --machine`"
        )
    return number


class Worker:
    """What one crawl process runs: store thread, queue manager, and, if it listens, UNS and intake."""

    def __init__(
        self,
        crawler: Crawler,
        config: Config,
        *,
        serves_uns: bool = False,
        stop_when_done: bool = False,
        only: int | None = None,
    ) -> None:
        self.config = config
        self.closing = False
        self.aborting = False
        self.refused = False
        self.on_abort: list[Callable[[], object]] = []
        self.manager: QueueManager
        self.content: ContentFiles
        self.means: Means
        self._crawler = crawler
        self._listens = serves_uns and bool(config.uns_endpoints)
        self._stop_when_done = stop_when_done
        self._only = only
        self._reception: Reception | None = None
        self._opened = False

    def now(self) -> int:
        """Return the time in epoch seconds."""
        return int(time.time())

    # --- life ------------------------------------------------------------------------------------

    @inlineCallbacks
    def open(self, wake: Callable[[], None]) -> Any:
        """Open everything; a refusal is logged as one line and kept in ``refused``."""
        from twisted.internet import reactor  # noqa: PLC0415, TID251 - installed by Scrapy by now

        self._reactor: Any = reactor
        config = self.config
        spool = [config.spool_dir] if self._listens else []
        keep_timers_steady(reactor)
        self.means = means_of(config, reactor, config.content_dir, *spool, fetches=config.fetches)
        self._thread = StoreThread(reactor, self.means.notice)
        self._reloader = Reloader(reactor, self._crawler.settings, self)
        self._reloader.install()
        try:
            yield self._thread.run(self._open_store)
            if self._listens:
                self._reception = self._make_reception()
                yield self._reception.claim()
            yield self._thread.run(self._open_folders)
            self._assemble(wake)
            if self._reception is not None:
                yield self._reception.begin()
                yield self._reception.listen()
        except LccError as error:
            self.refused = True
            _log.critical("%s", error)
            return
        self._opened = True
        self.means.start()
        self.manager.start()
        if self._stop_when_done:
            self._reactor.callLater(self.config.poll, self._watch)

    def _open_store(self) -> None:
        self._home = Home.find(self.config.data_dir)
        self.means.look()
        self._store = open_store(self.config)
        check_owner(self._home, self._store)
        self._check_writable()

    def _open_folders(self) -> None:
        config = self.config
        self._machineid = machine_number(config, self._store)
        self._slot = WorkerSlot(config.data_dir, self._machineid)
        self.content = ContentFiles(config.content_dir, self._machineid, self._slot.number)
        self.content.prepare()

    def _check_writable(self) -> None:
        try:
            with self._store.begin() as tx:
                tx.take(FILEID, 0)
        except StoreUnavailable as error:
            raise ConfigurationError(f"the database cannot be written to: {error}") from None

    def _assemble(self, wake: Callable[[], None]) -> None:
        config = self.config
        settler = Settler(self._thread, self._reactor, self._commit, FileIds(self._store).number)
        self.on_abort.append(settler.give_up)
        self.manager = QueueManager(
            self._store,
            self._thread,
            settler,
            self._reactor,
            identity=Identity(self._slot.owner, self._machineid, os.getpid()),
            dead_owners=self._slot.dead_owners,
            zone=config.timezone,
            limits=_limits(config),
            wake=wake,
            steady=time.monotonic,
            only=self._only,
            short=lambda: self.means.short,
        )
        self._delete_manager = DeleteManager(
            self._store,
            self._thread,
            self._reactor,
            self.content,
            outcomes_kept=config.outcomes_kept,
            sets_kept=config.policy.resend_period,
        )
        self._delete_manager.start()
        self._housekeeper = Housekeeper(
            self._store, self._thread, self._reactor, config.policy, swept=self._announce
        )
        self._housekeeper.start()

    def _make_reception(self) -> Reception:
        return Reception(
            self.config,
            self._home.lcc_id,
            self._store,
            self._thread,
            self._reactor,
            accepted=self._accepted,
            absorbed=self._absorbed,
            means=self.means,
        )

    @inlineCallbacks
    def _watch(self) -> Any:
        """Close the spider when the queue is empty, and the spool if it is ours."""
        if self.closing:
            return
        try:
            done: bool = yield self._thread.run(self._is_done)
        except StoreUnavailable:
            done = False
        if done and not self.manager.in_flight():
            yield deferred_from_coro(self._crawler.engine.close_spider_async(reason="finished"))
        else:
            self._reactor.callLater(self.config.poll, self._watch)

    def _is_done(self) -> bool:
        with self._store.read() as tx:
            queued = tx.queued_total()
        return not queued and not (self._reception and self._reception.spool.ready())

    def apply(self, config: Config) -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self.config = config
        if self._reception is not None:
            self._reception.apply(config)
        if self._opened:
            self.manager.apply(_limits(config))
            self._housekeeper.policy = config.policy
            self._delete_manager.outcomes_kept = config.outcomes_kept

    def renew_certificates(self) -> Deferred[int]:
        """Read the certificates of the UNS again; the result is how many there are."""
        return succeed(0) if self._reception is None else self._reception.renew_certificates()

    def shutdown_begins(self) -> None:
        """Start nothing new; what is in flight has ``LCC_STOP_TIMEOUT`` to end."""
        if self._opened and not self.closing:
            self.closing = True
            self.manager.stopping = True
            self._reactor.callLater(self.config.stop_timeout, self._abort)

    def _abort(self) -> None:
        self.aborting = True
        for cut_off in self.on_abort:
            cut_off()
        self._reactor.callLater(LAST_WORDS, self._thread.abandon)

    @inlineCallbacks
    def close(self) -> Any:
        """Settle what is under way, give turns and locks back."""
        self.shutdown_begins()
        self.closing = True
        self._reloader.stop()
        if self._reception is not None:
            yield self._reception.stop()
        if self._opened:
            self.means.stop()
            self._delete_manager.stop()
            self._housekeeper.stop()
            yield self.manager.stop()
            yield self._thread.run(self._close_blocking).addErrback(
                lambda failure: _log.warning("not closed in order: %s", failure.getErrorMessage())
            )
        self._thread.close()
        self._reloader.restore()

    def _close_blocking(self) -> None:
        self._store.close()
        self._slot.release()

    def keeps_alive(self) -> bool:
        """Tell whether the spider has to go on although nothing is in flight now."""
        return not self.closing

    # --- events ----------------------------------------------------------------------------------

    def _accepted(self, waiting: ReadySet) -> None:
        self._crawler.signals.send_catch_log(signals.lcc_set_accepted, pid=waiting.pid, path=waiting.path)

    def _absorbed(self, step: Step) -> None:
        self._announce(step)
        self.manager.touched(step.pid)

    def _announce(self, step: Step) -> None:
        for key, reason in step.removed:
            signals.announce_removal(self._crawler, step.pid, key, reason)

    def _commit(self, outcomes: Sequence[Outcome]) -> list[Settled]:
        """Settle outcomes durably (in the store's thread): files first, then rows, in one transaction."""
        with self._store.begin() as tx:
            return Settlement(
                tx,
                outcomes,
                owner=self._slot.owner,
                machineid=self._machineid,
                now=self.now(),
                policy=self.config.policy,
                keep=self._keep,
            ).run()

    def _keep(self, kept: Sequence[Served]) -> None:
        self.content.keep([(served.fileid, served.body) for served in kept])


def _limits(config: Config) -> Limits:
    return Limits(
        window=config.window,
        tickets=config.read_ahead,
        places=config.fetches,
        lease=config.lease,
        poll=config.poll,
        bandwidth=config.bandwidth,
        backoff=config.host_backoff,
    )


# --- one worker per crawler ----------------------------------------------------------------------

_workers: WeakKeyDictionary[Crawler, Worker] = WeakKeyDictionary()


def attach_worker(crawler: Crawler, config: Config, **options: Any) -> Worker:
    """Give a crawler its worker."""
    worker = _workers[crawler] = Worker(crawler, config, **options)
    return worker


def worker_of(crawler: Crawler) -> Worker | None:
    """Return the worker of a crawler, if one of the LCC's spiders runs in it."""
    return _workers.get(crawler)


def required_worker(crawler: Crawler) -> Worker:
    """Return the worker of a crawler; components of the LCC work with its spiders only."""
    worker = worker_of(crawler)
    if worker is None:
        raise NotConfigured("this component serves the LCC's spiders only")
    return worker
