"""The process that listens for providers, apart from its command: it needs Twisted."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import inlineCallbacks

from lcc_scrapy.cli.server_process import ServerProcess
from lcc_scrapy.machine.garbage_collection import collect_seldom

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from lcc_scrapy.config.config import Config
    from lcc_scrapy.machine.data_directory import DataDirectory


class UnsProcess(ServerProcess):
    """The UNS with its spool and its intake."""

    last_words = 10.0
    without_database = "logins get 103"
    under_way = "conversations"

    def __init__(
        self, config: "Config", home: "DataDirectory", reactor: Any, settings: "BaseSettings"
    ) -> None:
        from lcc_scrapy.app.intake_service import IntakeService
        from lcc_scrapy.app.wiring import resources_of
        from lcc_scrapy.db.thread import StoreThread
        from lcc_scrapy.machine.wake_redis import waker

        super().__init__(config, home, reactor, settings)
        config = self._of_the_uns(config)
        self._resources = resources_of(config, reactor, config.spool_dir)
        self._thread = StoreThread(reactor, self._resources.notice)
        wake = waker(config.data_dir, config.wake_redis)
        self._intake_service = IntakeService(
            config,
            home.lcc_id,
            self._store,
            self._thread,
            reactor,
            accepted=lambda _: None,
            absorbed=lambda _: wake(),
            resources=self._resources,
            stop_seconds=config.stop_timeout,
        )

    def apply(self, config: "Config") -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self.config = config
        self._intake_service.stop_seconds = config.stop_timeout
        self._intake_service.apply(self._of_the_uns(config))

    def _of_the_uns(self, config: "Config") -> "Config":
        """Return the settings as the UNS of this process has them."""
        return config

    def renew_certificates(self) -> "Deferred[int]":
        """Read the certificates again; the result is how many there are."""
        return self._intake_service.renew_certificates()

    def _in_thread(self, work: Callable[[], Any]) -> "Deferred[Any]":
        return self._thread.run(work)

    @inlineCallbacks
    def _prepare(self) -> Any:
        collect_seldom()
        yield self._thread.run(self._resources.look)
        self._resources.start()
        yield self._intake_service.claim()

    def _begin(self) -> Any:
        return self._intake_service.begin()

    def _listen(self) -> "Deferred[Any]":
        listening: Deferred[Any] = self._intake_service.listen()
        return listening

    @inlineCallbacks
    def _stop(self) -> Any:
        self._resources.stop()
        yield self._intake_service.stop()
        yield self._thread.run(self._store.close)
        self._thread.close()
