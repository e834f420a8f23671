"""The process that listens for providers, apart from its command: it needs Twisted."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import inlineCallbacks

from lcc_scrapy.cli.serving import ServerProcess
from lcc_scrapy.collecting import collect_seldom

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from lcc_scrapy.config import Config
    from lcc_scrapy.storage.home import Home


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
