"""Wiring: which store, folder and service stands behind which interface.

``Worker`` is one crawl process's share of the LCC, with a ``IntakeService`` when it takes sets from providers
too. The command line takes the same pieces one by one.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred, inlineCallbacks, succeed
from twisted.python.failure import Failure

from lcc_scrapy import signals
from lcc_scrapy.app.intake_service import IntakeService
from lcc_scrapy.app.opening import (
    check_files,
    check_owner,
    contents_of,
    contents_of_machine,
    disks_of,
    machine_number,
    open_store,
)
from lcc_scrapy.app.worker_parts import MakeWorkerPart, WorkerPart
from lcc_scrapy.cache.delete_manager import DeleteManager
from lcc_scrapy.cache.file_ids import FILEID, FileIds
from lcc_scrapy.cache.leftovers import Leftovers
from lcc_scrapy.config.config import Config
from lcc_scrapy.config.reloading import Reloader
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.store import ContentStore, factory_of
from lcc_scrapy.db.job_watch import JobWatch
from lcc_scrapy.db.thread import StoreThread, keep_timers_steady
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.breaker import Breaker
from lcc_scrapy.domain.errors import ConfigurationError, DiskFailed, LccError, StoreUnavailable
from lcc_scrapy.domain.queue import Outcome
from lcc_scrapy.domain.robots import product_token
from lcc_scrapy.fetchlog.minute import MinuteLog
from lcc_scrapy.fetchlog.writing import FetchLog, RotatingFile, file_of
from lcc_scrapy.http.credentials import Credentials
from lcc_scrapy.intake.absorbing import Step
from lcc_scrapy.listeners.endpoints import shown
from lcc_scrapy.machine.data_directory import DataDirectory, WorkerSlot
from lcc_scrapy.machine.garbage_collection import collect_seldom
from lcc_scrapy.machine.resources import Resources, provide_descriptors
from lcc_scrapy.machine.wake_file import WakeFile, Waking
from lcc_scrapy.machine.wake_redis import Publisher, Subscriber
from lcc_scrapy.machine.watchdog import SignsOfLife
from lcc_scrapy.ops.housekeeping import Housekeeper
from lcc_scrapy.queue.committing import Commits, Committer, Holder
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.heartbeat import Heartbeat
from lcc_scrapy.queue.held_turn import TurnPass
from lcc_scrapy.queue.queue_manager import QueueManager
from lcc_scrapy.queue.settlement import Settled
from lcc_scrapy.queue.settling_process.messages import Beginning
from lcc_scrapy.queue.settling_process.parent import SettlingProcess
from lcc_scrapy.queue.turn_leases import Identity
from lcc_scrapy.spidering.sampler import Sampler
from lcc_scrapy.spidering.sampling import Sampling
from lcc_scrapy.spidering.scanner import Reader, Scanner, Visits, start_pages, terms_of
from lcc_scrapy.spidering.submitting import Spidering
from lcc_scrapy.uns.spool import ReadySet, has_sets_coming

_log = logging.getLogger(__name__)

DESCRIPTORS = 64
"""Open files of a process beside those of its connections and what these write."""

STOP_GRACE = 5.0
"""Seconds for what is left to be stored when the time to stop is over; then a hanging database is left."""


BY_HAND = (
    "takes its URLs from the queue only: `lcc fetch URL --provider PID` fetches one as a crawl would,"
    " and `scrapy shell URL` or `scrapy fetch URL` without --spider as Scrapy does"
)
"""What is said where one of Scrapy's commands gives a spider its URL."""


def resources_of(config: Config, reactor: Any, *folders: Path, fetches: int = 0) -> Resources:
    """Return what looks after a process that writes to these folders, and let it open files enough."""
    connections = config.uns_listen.connections_max if config.spool_dir in folders else 0
    provide_descriptors(DESCRIPTORS + 2 * (fetches + connections))
    return Resources(disks_of(config, *folders), reactor, end_at_once)


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


class Worker:
    """What one crawl process runs: store thread, queue manager, and, if it listens, UNS and intake."""

    def __init__(
        self,
        crawler: Crawler,
        config: Config,
        *,
        serves_uns: bool = False,
        stop_when_done: bool = False,
        visits: Visits | None = None,
    ) -> None:
        self.config = config
        self.closing = False
        self.aborting = False
        self.refused = False
        self.on_abort: list[Callable[[], object]] = []
        self.manager: QueueManager
        self.credentials = Credentials()
        self.content: ContentFiles
        self._contents: ContentStore
        self.resources: Resources
        self.breaker = Breaker(config.component_pause)
        self._crawler = crawler
        self._listens = serves_uns and bool(config.uns_listen.endpoints)
        self._stop_when_done = stop_when_done
        self._visits = visits
        self._scanner: Scanner | None = None
        self._sampler: Sampler | None = None
        self._intake_service: IntakeService | None = None
        self._opened = False
        self._fetch_log: FetchLog | None = None
        self._settling_process: SettlingProcess | None = None
        self._waking: Waking | None = None
        self._subscriber: Subscriber | None = None
        self._signs_of_life = SignsOfLife(health_file=config.health_file)
        self._publisher: Publisher | None = None
        self._own_threads: list[StoreThread] = []
        self._parts: list[WorkerPart] = []

    def now(self) -> int:
        """Return the time in epoch seconds."""
        return int(time.time())

    async def settle(self, outcome: Outcome) -> Settled:
        """Make an outcome durable; raises what keeps it from being settled."""
        durable: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()

        def done(result: Settled | Failure) -> None:
            if durable.done():
                return
            if isinstance(result, Failure):
                durable.set_exception(result.value or StoreUnavailable(str(result)))
            else:
                durable.set_result(result)

        self.manager.settle(outcome, done)
        return await durable

    def space(self, turn: TurnPass | None, seconds: float) -> None:
        """Leave a site alone for so long after the fetch under way, as far as the operator lets it."""
        self.manager.space(turn, min(seconds, self.config.crawl_delay_max))

    # --- what its parts see of it ----------------------------------------------------------------

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of Scrapy."""
        return self._crawler.settings

    @property
    def store(self) -> Store:
        """The store."""
        return self._store

    @property
    def thread(self) -> StoreThread:
        """Its thread."""
        return self._thread

    @property
    def reactor(self) -> Any:
        """The reactor."""
        return self._reactor

    @property
    def lcc_id(self) -> str:
        """The name of this LCC, which no other has."""
        return self._home.lcc_id

    @property
    def owner(self) -> str:
        """The name of this process among the workers."""
        return self._slot.owner

    @property
    def verifies(self) -> bool:
        """Whether certificates of sites are verified."""
        return self._crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES", default=True)

    def own_thread(self, name: str) -> StoreThread:
        """Return another thread for jobs with the database, which ends with the worker."""
        thread = StoreThread(self._reactor, name=name)
        self._own_threads.append(thread)
        return thread

    def is_short(self) -> bool:
        """Tell whether disk or memory are too short now to begin anything."""
        return self.resources.short

    # --- life ------------------------------------------------------------------------------------

    @inlineCallbacks
    def open(self, wake: Callable[[], None]) -> Any:
        """Open everything; a refusal is logged as one line and kept in ``refused``."""
        from twisted.internet import reactor  # noqa: PLC0415, TID251 - installed by Scrapy by now

        self._reactor: Any = reactor
        config = self.config
        spool = [config.spool_dir] if self._listens else []
        keep_timers_steady(reactor)
        self.resources = resources_of(
            config, reactor, config.content_dir, *spool, fetches=config.connections_out
        )
        self._thread = StoreThread(reactor, self.resources.notice, JobWatch(config.store_job_warn))
        self._window_reader = StoreThread(reactor, self.resources.notice, name="lcc-windows")
        self._hearts = StoreThread(reactor, name="lcc-heartbeat")
        self._reloader = Reloader(reactor, self._crawler.settings, self)
        self._reloader.install()
        try:
            self.credentials = Credentials(config.credentials_file, verify=self.verifies)
            if config.settling_process:
                self._settling_process = SettlingProcess()  # it imports while all else is opened
            yield self._thread.run(self._open_store)
            if self._listens:
                self._intake_service = self._make_intake_service()
                yield self._intake_service.claim()
            yield self._thread.run(self._open_folders)
            self._assemble(wake)
            if self._intake_service is not None:
                yield self._intake_service.begin()
                yield from self._listen(self._intake_service)
        except LccError as error:
            self.refused = True
            _log.critical("%s", error)
            return
        self._opened = True
        collect_seldom()
        self.resources.start()
        self.manager.start()
        self._signs_of_life.start(reactor)
        self._waking = Waking(WakeFile(config.data_dir), reactor, self.manager.look)
        self._waking.start()
        if config.wake_redis:
            self._share_news(config.wake_redis)
        if self._scanner is not None:
            self._scanner.start()
        if self._sampler is not None:
            self._sampler.start()
        for part in self._parts:
            part.start()
        if self._stop_when_done:
            self._reactor.callLater(self.config.poll, self._watch)

    def _share_news(self, redis_url: str) -> None:
        """Tell crawls of other machines when URLs were queued, and look into the queue when they tell so."""
        self._publisher = Publisher(redis_url, self._home.lcc_id)
        look = partial(self._reactor.callFromThread, self.manager.look)
        self._subscriber = Subscriber(redis_url, self._home.lcc_id, look, self._publisher.name)
        self._subscriber.start()

    def _open_store(self) -> None:
        self._home = DataDirectory.find(self.config.data_dir)
        self.resources.look()
        self._store = open_store(self.config)
        check_owner(self._home, self._store)
        self._check_writable()
        if self._visits is not None:
            with self._store.read() as tx:
                self._visits = replace(self._visits, start=start_pages(tx, self._visits))

    def _open_folders(self) -> None:
        config = self.config
        self._machineid = machine_number(config, self._store)
        check_files(config, self._store)
        self._slot = WorkerSlot(config.data_dir, self._machineid)
        self.content = ContentFiles(config.content_dir, self._machineid, self._slot.number)
        self.content.prepare()
        self._contents = contents_of_machine(config, self._machineid)
        self._fileids = FileIds(self._store, self._machineid, self._slot.owner)
        self._committer = self._begin_to_commit()

    def _begin_to_commit(self) -> Committer:
        holder = Holder(self._slot.owner, self._machineid, self._fileids.token)
        process = self._settling_process
        if process is None:
            return Commits(self._store, self._contents, holder)
        config = self.config
        folder, pause = str(config.content_dir), config.turns.lease / 2
        url, factory = config.content_url, factory_of(config.content_url, config.apps)
        process.begin(Beginning(config.database_url, folder, holder, url, factory, pause))
        return process

    def _idle(self) -> str:
        """Return why this worker hands out no URL now, "" = it does."""
        if self.resources.short:
            return self.resources.why
        if self.breaker.is_open:
            return f"fetching is paused: {self.breaker.why}"
        if self._group_commit.is_full():
            return "as many results as LCC_COMMIT_PAGES permits wait to be written to disk"
        return ""

    def _check_writable(self) -> None:
        try:
            with self._store.begin() as tx:
                tx.take(FILEID, 0)
        except StoreUnavailable as error:
            raise ConfigurationError(f"the database cannot be written to: {error}") from None

    def _assemble(self, wake: Callable[[], None]) -> None:
        config = self.config
        numbers = self._fileids.number
        self._group_commit = GroupCommit(
            self._thread, self._reactor, self._commit, numbers, config.commit_pages
        )
        self.on_abort.append(self._group_commit.give_up)
        self.manager = QueueManager(
            self._store,
            self._thread,
            self._group_commit,
            self._reactor,
            identity=Identity(self._slot.owner, self._machineid, os.getpid()),
            dead_owners=self._slot.dead_owners,
            zone=config.timezone,
            limits=config.turns,
            wake=wake,
            steady=time.monotonic,
            only=self._visits.pid if self._visits is not None else None,
            short=self.is_short,
            heartbeat=Heartbeat(
                self._store,
                self._hearts,
                self._reactor,
                lease=config.turns.lease,
                job=self._thread.watch.under_way,
            ),
            longest=lambda: self._thread.watch.longest,
            idle=self._idle,
            readers=self._window_reader,
        )
        if config.fetch_log is not None:
            path = file_of(config.fetch_log, self._slot.number)
            self._fetch_log = FetchLog(RotatingFile(path, config.fetch_log_bytes, config.fetch_log_files))
        self._minute = MinuteLog(self._reactor)
        self._minute.start()
        self._delete_manager = DeleteManager(
            self._store,
            self._thread,
            self._reactor,
            self._contents,
            outcomes_kept=config.outcomes_kept,
        )
        self._delete_manager.start()
        self._leftovers = Leftovers(
            self._store,
            self._thread,
            self._reactor,
            content=self._contents,
            mine=self._fileids,
            dead_owners=self._slot.dead_owners,
        )
        self._leftovers.start()
        self._housekeeper = Housekeeper(
            self._store,
            self._thread,
            self._reactor,
            config.policy,
            owner=self._slot.owner,
            swept=self._announce,
            further=partial(config.apps.parts, "jobs"),
        )
        self._housekeeper.start()
        if self._visits is not None and not self._visits.sample:
            self._scanner = self._make_scanner(self._visits)
        if self._visits is not None and (self._visits.sample or self._visits.every):
            self._sampler = self._make_sampler(self._visits)
        if self._visits is None:
            makers: Iterator[MakeWorkerPart] = config.apps.parts("worker")
            self._parts = [make(self) for make in makers]

    def _make_scanner(self, visits: Visits) -> Scanner:
        config, settings = self.config, self._crawler.settings
        rules = config.links(product_token(settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"]))
        terms = terms_of(rules, visits, config.queue_max)
        self._readers = StoreThread(self._reactor)
        scanner = Scanner(
            Spidering(self._store, visits.pid, terms, config.policy, adaptive=visits.adaptive),
            self._thread,
            self._readers,
            Reader(contents_of(config, self._store), rules, terms.permits),
            self._reactor,
            visits=visits,
            poll=config.poll,
            touched=lambda: self.touched(visits.pid),
            count=self._count,
            removed=lambda removed: self._announce(Step(visits.pid, finished=False, removed=removed)),
        )
        self._crawler.signals.connect(scanner.look_soon, signals.lcc_document_stored, weak=False)
        return scanner

    def _count(self, name: str, count: int) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(name, count)

    def _make_sampler(self, visits: Visits) -> Sampler:
        config = self.config
        return Sampler(
            Sampling(self._store, visits.pid, config.policy, config.queue_max),
            self._thread,
            self._reactor,
            visits=visits,
            poll=config.poll,
            touched=lambda: self.touched(visits.pid),
        )

    @staticmethod
    def _listen(intake_service: IntakeService) -> Any:
        addresses = yield intake_service.listen()
        if addresses:
            _log.info("listening for providers on %s", ", ".join(map(shown, addresses)))

    def _make_intake_service(self) -> IntakeService:
        return IntakeService(
            self.config,
            self._home.lcc_id,
            self._store,
            self._thread,
            self._reactor,
            accepted=self._accepted,
            absorbed=self._absorbed,
            resources=self.resources,
        )

    @inlineCallbacks
    def _watch(self) -> Any:
        """Close the spider when the queue is empty, and the spool of this data directory."""
        if self.closing:
            return
        try:
            done: bool = yield self._thread.run(self._is_done)
        except StoreUnavailable:
            done = False
        if done and self._leftovers.over and not self.manager.in_flight():
            yield deferred_from_coro(self._crawler.engine.close_spider_async(reason="finished"))
        else:
            self._reactor.callLater(self.config.poll, self._watch)

    def _is_done(self) -> bool:
        if self._visits is not None:
            parts = (self._scanner, self._sampler)
            return all(part.is_done() for part in parts if part is not None)
        with self._store.read() as tx:
            queued = tx.queued_total()
        if queued or any(map(has_sets_coming, self.config.spool_dirs)):
            return False
        return all(part.is_done() for part in self._parts)

    def apply(self, config: Config) -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self.config = config
        self.breaker.pause = config.component_pause
        self._thread.watch.warn = config.store_job_warn
        if self._intake_service is not None:
            self._intake_service.apply(config)
        if self._opened:
            self.manager.apply(config.turns)
            self._group_commit.most = config.commit_pages
            self._housekeeper.policy = config.policy
            if self._scanner is not None:
                self._scanner.apply(config)
            if self._sampler is not None:
                self._sampler.apply(config)
            for part in self._parts:
                part.apply(config)
            self._delete_manager.outcomes_kept = config.outcomes_kept

    def renew_certificates(self) -> Deferred[int]:
        """Read credentials again, and certificates of the UNS; the result is how many these are."""
        self._read_credentials()
        return succeed(0) if self._intake_service is None else self._intake_service.renew_certificates()

    def _read_credentials(self) -> None:
        try:
            self.credentials.read(self.config.credentials_file)
        except ConfigurationError as error:
            _log.error("SIGHUP: the old credentials stay in use: %s", error)
        else:
            if self.config.credentials_file:
                _log.info("SIGHUP: credentials read again")

    def shutdown_begins(self) -> None:
        """Start nothing new; what is in flight has ``LCC_STOP_TIMEOUT`` to end."""
        if self._opened and not self.closing:
            self.closing = True
            self.manager.begin_to_stop()
            self._reactor.callLater(self.config.stop_timeout, self._abort)

    def _abort(self) -> None:
        self.aborting = True
        for cut_off in self.on_abort:
            cut_off()
        for thread in (self._thread, self._window_reader, self._hearts, *self._own_threads):
            self._reactor.callLater(STOP_GRACE, thread.abandon)
        if self._settling_process is not None:
            self._reactor.callLater(STOP_GRACE, self._settling_process.kill)

    @inlineCallbacks
    def close(self) -> Any:
        """Settle what is under way, give turns and locks back."""
        self.shutdown_begins()
        self.closing = True
        self._signs_of_life.stop()
        self._reloader.stop()
        if self._intake_service is not None:
            yield self._intake_service.stop()
        if self._opened:
            self.resources.stop()
            if self._waking is not None:
                self._waking.stop()
            if self._subscriber is not None:
                self._subscriber.stop()
            self._delete_manager.stop()
            self._leftovers.stop()
            self._housekeeper.stop()
            if self._sampler is not None:
                yield self._sampler.stop()
            for part in self._parts:
                yield part.stop()
            if self._scanner is not None:
                yield self._scanner.stop()
                self._readers.close()
            yield self.manager.stop()
            self._minute.stop()
            self._hearts.close()
            yield self._window_reader.run(tuple).addErrback(lambda _: None)  # what it reads has ended then
            yield self._thread.run(self._close_blocking).addErrback(
                lambda failure: _log.warning(
                    "the worker did not close cleanly: %s", failure.getErrorMessage()
                )
            )
        elif self._settling_process is not None:
            self._settling_process.close()
        self._window_reader.close()
        for thread in self._own_threads:
            thread.close()
        self._thread.close()
        self._signs_of_life.end()
        self._reloader.restore()

    def _close_blocking(self) -> None:
        if self._fetch_log is not None:
            self._fetch_log.close()
        try:
            self._committer.close()
            self._fileids.release()
        finally:
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
        self.touched(step.pid)

    def touched(self, pid: int) -> None:
        """URLs of a provider were queued: tell the queue, and other machines."""
        self.manager.touched(pid)
        if self._publisher is not None:
            self._publisher.publish()

    def _announce(self, step: Step) -> None:
        for key, reason in step.removed:
            signals.announce_removal(self._crawler, step.pid, key, reason)

    def _commit(self, outcomes: Sequence[Outcome]) -> list[Settled]:
        """Settle outcomes durably (in the store's thread)."""
        try:
            settled = self._committer.commit(outcomes, self.now(), self.config.policy)
        except BaseException as error:
            self._fileids.doubt(outcomes, error)
            raise
        self._minute.note(settled)
        if self._fetch_log is not None:
            self._fetch_log.note(settled)
        return settled


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
