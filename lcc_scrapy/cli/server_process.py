"""The common base of servers that are processes of their own, from start to end."""

import logging
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from twisted.internet.defer import inlineCallbacks
from twisted.internet.task import deferLater

from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.listeners.endpoints import shown
from lcc_scrapy.machine.forced_exit import leave
from lcc_scrapy.machine.watchdog import SignsOfLife

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from lcc_scrapy.config.config import Config
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.machine.data_directory import DataDirectory

_log = logging.getLogger(__name__)


class ServerProcess(ABC):
    """A server on a reactor that does not run yet.

    What can never work is refused before it listens. A database that only does not answer is waited for.
    """

    last_words: ClassVar[float]
    """Seconds after ``LCC_STOP_TIMEOUT`` for what is left to be done; then what hangs is left behind."""
    without_database: ClassVar[str]
    """What becomes of those who come while the database does not answer."""
    under_way: ClassVar[str]
    """What has time to end when the server stops."""

    def __init__(
        self, config: "Config", home: "DataDirectory | None", reactor: Any, settings: "BaseSettings"
    ) -> None:
        from lcc_scrapy.app.opening import unchecked_store
        from lcc_scrapy.config.reloading import Reloader
        from lcc_scrapy.db.thread import keep_timers_steady

        self.config = config
        self._home = home
        self._reactor = reactor
        keep_timers_steady(reactor)
        self._store: SqlStore = unchecked_store(config)
        self._reads = self._store
        """What content users read from, where they can: LCC_READ_DATABASE_URL."""
        self._reloader = Reloader(reactor, settings, self)
        self._signs_of_life = SignsOfLife(health_file=config.health_file)
        self._ending = False
        self._refusal: BaseException | None = None
        self._trouble = ""

    @abstractmethod
    def apply(self, config: "Config") -> None:
        """Go on with other settings; those that need a restart are as they were."""

    @abstractmethod
    def renew_certificates(self) -> "Deferred[int]":
        """Read the certificates again; the result is how many there are."""

    @abstractmethod
    def _in_thread(self, work: Callable[[], Any]) -> "Deferred[Any]":
        """Run what blocks."""

    @abstractmethod
    def _prepare(self) -> Any:
        """Do what needs no database; a Deferred or None."""

    @abstractmethod
    def _begin(self) -> Any:
        """Go to work, now that the database is there; a Deferred or None."""

    @abstractmethod
    def _listen(self) -> "Deferred[Any]":
        """Listen; the result is the addresses."""

    @abstractmethod
    def _stop(self) -> "Deferred[Any]":
        """Let what is under way end within ``LCC_STOP_TIMEOUT``, and close everything."""

    def run(self) -> None:
        """Run until a signal ends it; raises what kept it from starting."""
        self._reactor.callWhenRunning(lambda: self._start().addErrback(self._refuse))
        self._reactor.addSystemEventTrigger("before", "shutdown", self._end)
        self._reloader.install()
        self._reactor.run()
        self._reloader.restore()
        if self._refusal is not None:
            raise self._refusal

    @inlineCallbacks
    def _start(self) -> Any:
        yield self._prepare()
        begun = yield self._try_to_begin()
        addresses = yield self._listen()
        _log.info("listening on %s", ", ".join(map(shown, addresses)))
        self._signs_of_life.start(self._reactor)
        while not begun:
            yield deferLater(self._reactor, self.config.poll)
            begun = yield self._try_to_begin()

    @inlineCallbacks
    def _try_to_begin(self) -> Any:
        """Begin if the database is there, and say whether it is; refuses one not to be worked with."""
        try:
            yield self._in_thread(self._check)
            yield self._begin()
        except StoreUnavailable as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.warning(
                    "the database does not answer, %s until it does: %s", self.without_database, error
                )
            return False
        if self._trouble:
            _log.info("the database answers")
        return True

    def _check(self) -> None:
        from lcc_scrapy.app.opening import check_owner, check_reads, check_store

        assert self._home is not None  # else a subclass has another database
        check_store(self._store, apps=self.config.apps)
        check_owner(self._home, self._store)
        if self._reads is not self._store:
            check_reads(self.config, self._home, self._reads)

    def _close_stores(self) -> None:
        self._store.close()
        self._reads.close()

    def _refuse(self, failure: "Failure") -> None:
        if not self._ending:
            self._refusal = failure.value
            self._reactor.stop()

    def _end(self) -> "Deferred[Any]":
        self._ending = True
        self._signs_of_life.stop()
        self._reloader.stop()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        self._reactor.callLater(self.config.stop_timeout + self.last_words, leave)
        if self._refusal is None:
            _log.info("stopping: waiting up to %g s for %s", self.config.stop_timeout, self.under_way)
        return self._stop()
