"""``lcc uns``: the UNS and intake as a process of their own; crawls then only fetch."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from twisted.internet.defer import inlineCallbacks

from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.cli.serving import ServerProcess
from lcc_scrapy.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from lcc_scrapy.config import Config
    from lcc_scrapy.storage.home import Home


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


class UnsProcess(ServerProcess):
    """The UNS with its spool and its intake."""

    last_words = 10.0
    without_database = "logins get 103"
    under_way = "conversations"

    def __init__(self, config: "Config", home: "Home", reactor: Any, settings: "BaseSettings") -> None:
        from lcc_scrapy.reception import Reception
        from lcc_scrapy.storage.thread import StoreThread
        from lcc_scrapy.wiring import means_of

        super().__init__(config, home, reactor, settings)
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

    def apply(self, config: "Config") -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self.config = config
        self._reception.stop_seconds = config.stop_timeout
        self._reception.apply(config)

    def renew_certificates(self) -> "Deferred[int]":
        """Read the certificates again; the result is how many there are."""
        return self._reception.renew_certificates()

    def _in_thread(self, work: Callable[[], Any]) -> "Deferred[Any]":
        return self._thread.run(work)

    @inlineCallbacks
    def _prepare(self) -> Any:
        from lcc_scrapy.wiring import collect_seldom

        collect_seldom()
        yield self._thread.run(self._means.look)
        self._means.start()
        yield self._reception.claim()

    def _begin(self) -> Any:
        return self._reception.begin()

    def _listen(self) -> "Deferred[Any]":
        listening: Deferred[Any] = self._reception.listen()
        return listening

    @inlineCallbacks
    def _stop(self) -> Any:
        self._means.stop()
        yield self._reception.stop()
        yield self._thread.run(self._store.close)
        self._thread.close()
