"""The UNS of one process, with its spool and its intake; ``lcc uns`` runs nothing else."""

import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.task import deferLater

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.thread import StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import InUse
from lcc_scrapy.intake.absorber import Absorber, Terms
from lcc_scrapy.intake.absorbing import Step
from lcc_scrapy.intake.open_logins import BEAT, OpenLogins
from lcc_scrapy.intake.spooled import AbsorbableSpool, SpooledFile, record_loss
from lcc_scrapy.login.login_service import LoginRules, LoginService
from lcc_scrapy.machine import open_files
from lcc_scrapy.machine.disk import on_disk
from lcc_scrapy.uns import ports
from lcc_scrapy.uns.service import UnsService
from lcc_scrapy.uns.spool import ReadySet, SpoolFolder

_log = logging.getLogger(__name__)

LOCK_PATIENCE = 5.0
"""Seconds for which a spool is waited for that another process has, which may be about to end."""

_LOCK_RETRY = 0.2
_BEATS_OF_PATIENCE = 5


class IntakeService:
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
        resources: ports.Resources = ports.UNLIMITED,
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
        self._resources = resources
        self.stop_seconds = stop_seconds
        self._service = UnsService(
            reactor,
            None,
            self,
            self.spool,
            listen_rules=replace(config.uns_listen, stop_seconds=stop_seconds),
            limits=config.uns,
            resources=resources,
        )
        self._absorber: Absorber | None = None
        self._book: OpenLogins | None = None
        self._login_service: LoginService | None = None
        self._files: StoreThread | None = None
        self._stopping = False

    # --- life ------------------------------------------------------------------------------------

    @inlineCallbacks
    def claim(self) -> Any:
        """Take the spool; fails with ``InUse`` when another process does not let go of it in some seconds."""
        until = self._reactor.seconds() + LOCK_PATIENCE
        told = False
        while True:
            try:
                yield self._thread.run(self.spool.lock)
            except InUse:
                if self._stopping or self._reactor.seconds() >= until:
                    raise
                if not told:
                    _log.info("the spool is in use: waiting %g s for the other process", LOCK_PATIENCE)
                told = True
                yield deferLater(self._reactor, _LOCK_RETRY)
            else:
                return

    @property
    def uns(self) -> UnsService:
        """The UNS, for connections that others accepted."""
        return self._service

    def listen(self) -> Deferred[list[Any]]:
        """Begin to listen; the result is the list of addresses."""
        self._open_files()
        return self._service.start()

    @inlineCallbacks
    def begin(self) -> Any:
        """Let providers in and absorb their sets; to be called again when the database was not there."""
        ready: list[ReadySet] = yield self._thread.run(self._recover)
        absorber = self._absorber = self._make_absorber()
        for waiting in ready:
            absorber.add(waiting)
        self._book = self._make_open_logins(absorber)
        for waiting in ready:
            self._book.complete(waiting.pid, waiting.seq)
        self._book.start()
        self._login_service = self._make_login_service()
        self._service.let_in(self._login_service)
        absorber.look()

    def apply(self, config: Config) -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self._config = config
        self.spool.max_bytes = config.spool_max_bytes
        self._open_files()
        self._service.apply(replace(config.uns_listen, stop_seconds=self.stop_seconds), config.uns)
        if self._absorber is not None:
            self._absorber.apply(config.policy, self._terms())
        if self._login_service is not None:
            self._login_service.apply(self._rules())

    def _open_files(self) -> None:
        if self._config.uns_listen.endpoints:
            open_files.make_room(self._config.uns_listen.connections_max)

    def renew_certificates(self) -> Deferred[int]:
        """Read the certificates again (see ``UnsService``)."""
        renewing: Deferred[int] = self._service.renew_certificates()
        return renewing

    @inlineCallbacks
    def stop(self) -> Any:
        """Let conversations end, absorb no more, give the spool up."""
        self._stopping = True
        yield self._service.stop()
        if self._login_service is not None:
            self._login_service.close()
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
        _log.error("a damaged set goes to quarantine, its provider is asked for a full set: %(reason)s", what)
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
            short=lambda: self._resources.short,
            put_away=self.no_set_came,
            sending_before=self._service.conversations.sending_before,
        )

    def _beside(self, job: Callable[[], None]) -> None:
        """Run what only touches files; unlinking waits for the file system's journal (any thread)."""
        self._reactor.callFromThread(self._run_beside, job)

    def _run_beside(self, job: Callable[[], None]) -> None:
        if self._files is None:
            self._files = StoreThread(self._reactor, self._resources.notice, name="lcc-spool")
        self._files.run(job).addErrback(
            lambda failure: _log.error(
                "cannot remove absorbed sets from the spool now: %s", failure.getErrorMessage()
            )
        )

    def _terms(self) -> Terms:
        config = self._config
        return Terms(
            self.spool.identity, config.queue_max, config.poll, config.uns_patience, config.uns.idle_seconds
        )

    def _rules(self) -> LoginRules:
        config = self._config
        return LoginRules(
            self._lcc_id, config.policy.mimetypes, config.timeofday_slots, config.policy, config.login
        )

    def _make_open_logins(self, absorber: Absorber) -> OpenLogins:
        return OpenLogins(
            self._store,
            self._thread,
            self._reactor,
            uns=self.spool.identity,
            note=socket.gethostname()[:255],
            beat=min(BEAT, self._config.uns_patience / _BEATS_OF_PATIENCE),
            poll=self._config.poll,
            knows=lambda login: self._service.conversations.is_open(*login) or login in absorber,
            logged_in=self._service.conversations.logged_in,
            forgotten=absorber.look,
        )

    def _make_login_service(self) -> LoginService:
        return LoginService(
            self._store,
            self._thread,
            self._reactor,
            self._rules(),
            SpooledFile,
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
