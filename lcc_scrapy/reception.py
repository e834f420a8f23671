"""The UNS of one process, with its spool and its intake; ``lcc uns`` runs nothing else."""

import logging
import math
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail, inlineCallbacks
from twisted.internet.task import deferLater

from lcc_scrapy.absorber import Absorber, Terms
from lcc_scrapy.config import Config
from lcc_scrapy.content.disk import on_disk
from lcc_scrapy.domain.entries import RefusedUrl
from lcc_scrapy.domain.errors import InUse, StoreUnavailable
from lcc_scrapy.loginbook import BEAT, LoginBook
from lcc_scrapy.storage.desk import Desk, DeskRules
from lcc_scrapy.storage.gate import GateRules
from lcc_scrapy.storage.intake import Step
from lcc_scrapy.storage.spooled import AbsorbableSpool, open_spooled, record_loss
from lcc_scrapy.storage.thread import StoreThread
from lcc_scrapy.storage.tx import Store
from lcc_scrapy.uns import openfiles, ports
from lcc_scrapy.uns.limits import Limits
from lcc_scrapy.uns.service import Doors, UnsService
from lcc_scrapy.uns.spool import ReadySet, SpoolFolder

_log = logging.getLogger(__name__)

LOCK_PATIENCE = 5.0
"""Seconds for which a spool is waited for that another process has, which may be about to end."""

_LOCK_RETRY = 0.2
_BEATS_OF_PATIENCE = 5


class Reception:
    """Takes sets from providers and brings them into the queue: ``claim``, ``begin``, ``listen``, ``stop``.

    It may listen before it begins: then logins are answered with 103 until it does. ``accepted`` is called
    with every set that was accepted, ``absorbed`` after every step of intake; ``stop_seconds`` is what
    conversations have to end by themselves.
    """

    def __init__(
        self,
        config: Config,
        lcc_id: str,
        store: Store,
        thread: StoreThread,
        reactor: Any,
        *,
        accepted: Callable[[ReadySet], None],
        absorbed: Callable[[Step], None],
        means: ports.Means = ports.PLENTY,
        stop_seconds: float = 5.0,
    ) -> None:
        self.spool = SpoolFolder(config.spool_dir, config.spool_max_bytes)
        self._config = config
        self._lcc_id = lcc_id
        self._store = store
        self._thread = thread
        self._reactor = reactor
        self._accepted = accepted
        self._absorbed = absorbed
        self._means = means
        self._front = _FrontDesk()
        self.stop_seconds = stop_seconds
        self._service = UnsService(
            reactor,
            self._front,
            self,
            self.spool,
            doors=_doors(config, stop_seconds),
            limits=limits_of(config),
            means=means,
        )
        self._absorber: Absorber | None = None
        self._book: LoginBook | None = None
        self._desk: Desk | None = None
        self._files: StoreThread | None = None
        self._stopping = False

    # --- life ------------------------------------------------------------------------------------

    @inlineCallbacks
    def claim(self) -> Any:
        """Take the spool; fails with ``InUse`` when another process does not let go of it in some seconds."""
        until = self._reactor.seconds() + LOCK_PATIENCE
        while True:
            try:
                yield self._thread.run(self.spool.lock)
            except InUse:
                if self._stopping or self._reactor.seconds() >= until:
                    raise
                yield deferLater(self._reactor, _LOCK_RETRY)
            else:
                return

    def listen(self) -> Deferred[list[Any]]:
        """Open the doors; the result is the list of addresses."""
        self._open_files()
        return self._service.start()

    @inlineCallbacks
    def begin(self) -> Any:
        """Let providers in and absorb their sets; to be called again when the database was not there."""
        ready: list[ReadySet] = yield self._thread.run(self._recover)
        absorber = self._absorber = self._make_absorber()
        for waiting in ready:
            absorber.add(waiting)
        self._book = self._make_book(absorber)
        for waiting in ready:
            self._book.complete(waiting.pid, waiting.seq)
        self._book.start()
        self._desk = self._front.behind = self._make_desk()
        absorber.look()

    def apply(self, config: Config) -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self._config = config
        self.spool.max_bytes = config.spool_max_bytes
        self._open_files()
        self._service.apply(_doors(config, self.stop_seconds), limits_of(config))
        if self._absorber is not None:
            self._absorber.apply(config.policy, self._terms())
        if self._desk is not None:
            self._desk.apply(self._rules())

    def _open_files(self) -> None:
        if self._config.uns_endpoints:
            openfiles.make_room(self._config.connections_max)

    def renew_certificates(self) -> Deferred[int]:
        """Read the certificates again (see ``UnsService``)."""
        renewing: Deferred[int] = self._service.renew_certificates()
        return renewing

    @inlineCallbacks
    def stop(self) -> Any:
        """Let conversations end, absorb no more, give the spool up."""
        self._stopping = True
        yield self._service.stop()
        if self._desk is not None:
            self._desk.close()
        if self._absorber is not None:
            yield self._absorber.stop()
        if self._book is not None:
            self._book.stop()
        if self._files is not None:
            yield self._files.run(lambda: None)
            self._files.close()
        self.spool.unlock()

    def _recover(self) -> list[ReadySet]:
        with on_disk(f"spool folder {self.spool.path}"):
            self.spool.recover(self._set_lost)
            return self.spool.ready()

    def _set_lost(self, waiting: ReadySet, reason: str) -> None:
        what = {"pid": waiting.pid, "seq": waiting.seq, "reason": reason}
        _log.error("an accepted set is set aside and its provider asked for everything: %(reason)s", what)
        record_loss(self._store, waiting.pid, waiting.seq)

    # --- what it is made of ----------------------------------------------------------------------

    def _make_absorber(self) -> Absorber:
        return Absorber(
            AbsorbableSpool(self.spool, self._set_lost, self._beside),
            self._store,
            self._thread,
            self._reactor,
            policy=self._config.policy,
            terms=self._terms(),
            absorbed=self._absorbed,
            short=lambda: self._means.short,
            put_away=self.no_set_came,
            sending_before=self._service.sending_before,
        )

    def _beside(self, job: Callable[[], None]) -> None:
        """Run what only touches files; unlinking waits for the file system's journal (any thread)."""
        self._reactor.callFromThread(self._run_beside, job)

    def _run_beside(self, job: Callable[[], None]) -> None:
        if self._files is None:
            self._files = StoreThread(self._reactor, self._means.notice, name="lcc-spool")
        self._files.run(job).addErrback(
            lambda failure: _log.error("absorbed sets stay in the spool: %s", failure.getErrorMessage())
        )

    def _terms(self) -> Terms:
        config = self._config
        return Terms(
            self.spool.identity, config.queue_max, config.poll, config.uns_patience, config.idle_seconds
        )

    def _rules(self) -> DeskRules:
        config = self._config
        return DeskRules(
            self._lcc_id, config.mimetypes, config.timeofday_slots, config.policy, gate_rules_of(config)
        )

    def _make_book(self, absorber: Absorber) -> LoginBook:
        return LoginBook(
            self._store,
            self._thread,
            self._reactor,
            uns=self.spool.identity,
            note=socket.gethostname()[:255],
            beat=min(BEAT, self._config.uns_patience / _BEATS_OF_PATIENCE),
            poll=self._config.poll,
            knows=lambda login: self._service.in_conversation(*login) or login in absorber,
            logged_in=self._service.logged_in,
            forgotten=absorber.look,
        )

    def _make_desk(self) -> Desk:
        return Desk(
            self._store,
            self._thread,
            self._reactor,
            self._rules(),
            open_spooled,
            uns=self.spool.identity,
            is_full_for=self.spool.is_full_for,
            full_sets=self.spool.full_sets.of,
        )

    # --- what the UNS tells ----------------------------------------------------------------------

    def set_arrived(self, path: Path) -> None:
        """Take note of a set that was accepted."""
        waiting = ReadySet.named(path.parent, path.name)
        assert waiting is not None
        assert self._absorber is not None
        assert self._book is not None
        self._accepted(waiting)
        self._book.complete(waiting.pid, waiting.seq)
        self._absorber.add(waiting)
        self._absorber.look()

    def no_set_came(self, pid: int, seq: int) -> None:
        """Take note that a login brings nothing (more): sets of later ones need not wait for it."""
        assert self._book is not None
        self._book.forget(pid, seq)


class _FrontDesk:
    """The desk as the UNS sees it: nobody is let in before the database has been seen."""

    behind: ports.ProviderDesk | None = None

    def login(self, provider_id: str, password: str, ip: str) -> Deferred[ports.Login]:
        if self.behind is None:
            return fail(StoreUnavailable("the database has not answered yet"))
        return self.behind.login(provider_id, password, ip)

    def farewell(self, login: ports.Login, refused: int = 0) -> Deferred[None]:
        assert self.behind is not None
        return self.behind.farewell(login, refused)

    def note_refused(self, login: ports.Login, refused: Sequence[RefusedUrl]) -> Deferred[None]:
        assert self.behind is not None
        return self.behind.note_refused(login, refused)

    def dry_run(self, login: ports.Login, spooled: Path) -> Deferred[ports.Foreseen]:
        assert self.behind is not None
        return self.behind.dry_run(login, spooled)


def limits_of(config: Config) -> Limits:
    """Return what one connection to the UNS may use."""
    return Limits(
        login_bytes=config.login_bytes,
        login_seconds=config.login_seconds,
        element_bytes=config.element_bytes,
        depth=config.element_depth,
        attributes=config.element_attributes,
        names=config.unknown_names,
        url_length=config.url_length,
        set_urls=config.set_max_urls,
        set_bytes=config.set_max_bytes,
        idle_seconds=config.idle_seconds,
        rate=config.min_rate,
        rate_grace_seconds=config.min_rate_grace,
        total_seconds=config.conversation_seconds,
        reply_bytes=config.reply_bytes,
        replies_bytes=config.replies_bytes,
        linger_seconds=config.linger_seconds,
        linger_bytes=config.linger_bytes,
        retry_after=math.ceil(config.retry_after),
    )


def gate_rules_of(config: Config) -> GateRules:
    """Return what guessing at passwords may cost."""
    return GateRules(
        per_address=config.login_failures_per_address,
        per_id=config.login_failures_per_id,
        checks=config.login_checks,
        waiting=config.logins_waiting,
    )


def _doors(config: Config, stop_seconds: float) -> Doors:
    return Doors(
        config.uns_endpoints,
        config.uns_allow_plain_remote,
        config.connections_per_address,
        config.connections_per_provider,
        config.connections_max,
        stop_seconds,
        config.uns_proxies,
    )
