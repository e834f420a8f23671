"""``lcc uns``: the UNS and intake as a process of their own; crawls then only fetch."""

import logging
import os
import signal
from typing import TYPE_CHECKING, Any

import click
from twisted.internet.defer import inlineCallbacks
from twisted.internet.task import deferLater

from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from lcc_scrapy.config import Config
    from lcc_scrapy.storage.home import Home

_log = logging.getLogger(__name__)

LAST_WORDS = 10.0
"""Seconds after ``LCC_STOP_TIMEOUT`` for what is left to be done; then a database that hangs is left."""


@click.command()
@pass_lcc
@never_to_be_tried_again()
def uns(lcc: Lcc) -> None:
    """Listen for providers and bring their sets into the queue; fetch nothing.

    Crawls that share the database fetch what comes in. Start them with an empty LCC_UNS_ENDPOINTS, so
    that they leave listening and the spool to this process. It runs until SIGTERM or Ctrl-C; the log goes
    to stderr, or to LOG_FILE.

    \b
    lcc uns
    LCC_UNS_ENDPOINTS=tcp:9000 LCC_UNS_ALLOW_PLAIN_REMOTE=yes lcc uns
    lcc -s LCC_DATA_DIR=/srv/lcc uns
    scrapy crawl lcc_push -s LCC_UNS_ENDPOINTS=       # beside it: fetches only
    """  # noqa: D301
    from scrapy.utils.reactor import install_reactor

    from lcc_scrapy import logs
    from lcc_scrapy.settings import ASYNCIO_REACTOR

    config, home = lcc.config, lcc.home
    if not config.uns_endpoints:
        raise ConfigurationError("LCC_UNS_ENDPOINTS is empty: say where to listen")
    logs.begin(lcc.settings, config.log_format)
    install_reactor(ASYNCIO_REACTOR)  # asyncio's own loop in any case: decision 44
    from twisted.internet import reactor  # noqa: TID251 - just installed

    UnsProcess(config, home, reactor, lcc.settings).run()


class UnsProcess:
    """From start to end on a reactor that does not run yet.

    What can never work is refused before it listens. A database that only does not answer is waited for:
    logins get 103 until it does.
    """

    def __init__(self, config: "Config", home: "Home", reactor: Any, settings: "BaseSettings") -> None:
        from lcc_scrapy.reception import Reception
        from lcc_scrapy.reloading import Reloader
        from lcc_scrapy.storage.thread import StoreThread, keep_timers_steady
        from lcc_scrapy.wiring import means_of, unchecked_store

        self.config = config
        self._home = home
        self._reactor = reactor
        keep_timers_steady(reactor)
        self._store = unchecked_store(config)
        self._means = means_of(config, reactor, config.spool_dir)
        self._thread = StoreThread(reactor, self._means.notice)
        self._reception = Reception(
            config,
            home.lcc_id,
            self._store,
            self._thread,
            reactor,
            accepted=lambda _: None,
            absorbed=lambda _: None,
            means=self._means,
            stop_seconds=config.stop_timeout,
        )
        self._reloader = Reloader(reactor, settings, self)
        self._ending = False
        self._refusal: BaseException | None = None
        self._trouble = ""

    def run(self) -> None:
        """Run until a signal ends it; raises what kept it from starting."""
        self._reactor.callWhenRunning(lambda: self._start().addErrback(self._refuse))
        self._reactor.addSystemEventTrigger("before", "shutdown", self._end)
        self._reloader.install()
        self._reactor.run()
        self._reloader.restore()
        if self._refusal is not None:
            raise self._refusal

    def apply(self, config: "Config") -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self.config = config
        self._reception.stop_seconds = config.stop_timeout
        self._reception.apply(config)

    def renew_certificates(self) -> "Deferred[int]":
        """Read the certificates again; the result is how many there are."""
        return self._reception.renew_certificates()

    @inlineCallbacks
    def _start(self) -> Any:
        yield self._thread.run(self._means.look)
        self._means.start()
        yield self._reception.claim()
        begun = yield self._begin()
        addresses = yield self._reception.listen()
        _log.info("listening on %s", ", ".join(map(_shown, addresses)))
        while not begun:
            yield deferLater(self._reactor, self.config.poll)
            begun = yield self._begin()

    @inlineCallbacks
    def _begin(self) -> Any:
        """Begin if the database is there, and say whether it is; refuses one not to be worked with."""
        try:
            yield self._thread.run(self._check)
            yield self._reception.begin()
        except StoreUnavailable as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.warning("the database does not answer, logins get 103 until it does: %s", error)
            return False
        if self._trouble:
            _log.info("the database answers: providers are let in")
        return True

    def _check(self) -> None:
        from lcc_scrapy.wiring import check_owner, check_store

        check_store(self.config, self._store)
        check_owner(self._home, self._store)

    def _refuse(self, failure: "Failure") -> None:
        if not self._ending:
            self._refusal = failure.value
            self._reactor.stop()

    @inlineCallbacks
    def _end(self) -> Any:
        self._ending = True
        self._reloader.stop()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        self._reactor.callLater(self.config.stop_timeout + LAST_WORDS, _leave)
        if self._refusal is None:
            _log.info("stopping: conversations have %g s to end", self.config.stop_timeout)
        self._means.stop()
        yield self._reception.stop()
        yield self._thread.run(self._store.close)
        self._thread.close()


def _leave() -> None:
    """End with the store's thread stuck: nothing is lost that a kill would not lose."""
    _log.warning("the database hangs and is left behind")
    logging.shutdown()
    os._exit(0)


def _shown(address: Any) -> str:
    host, port = getattr(address, "host", None), getattr(address, "port", None)
    if host is None:
        return str(getattr(address, "name", address))
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
