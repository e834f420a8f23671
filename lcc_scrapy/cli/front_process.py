"""The process of the front-end UNS, apart from its command: it needs Twisted."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import inlineCallbacks
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.cli.server_process import ServerProcess

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from twisted.internet.defer import Deferred

    from lcc_scrapy.config.config import Config


class FrontProcess(ServerProcess):
    """The front-end UNS: until the front's database answers, logins get 103."""

    last_words = 5.0
    without_database = "logins get 103"
    under_way = "conversations"

    def __init__(self, config: "Config", reactor: Any, settings: "BaseSettings") -> None:
        from lcc_scrapy.front.directory import Directory
        from lcc_scrapy.front.service import FrontService

        super().__init__(config, None, reactor, settings)
        self._directory = Directory(config.front_database_url)
        self._service = FrontService(
            reactor, self._directory, listen_rules=config.uns_listen, limits=config.uns
        )

    def apply(self, config: "Config") -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self.config = config
        self._service.apply(config.uns_listen, config.uns)

    def renew_certificates(self) -> "Deferred[int]":
        """Read the certificates again; the result is how many there are."""
        renewing: Deferred[int] = self._service.renew_certificates()
        return renewing

    def _in_thread(self, work: Callable[[], Any]) -> "Deferred[Any]":
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), work)

    def _check(self) -> None:
        self._directory.check()

    def _prepare(self) -> None:
        from lcc_scrapy.machine import open_files

        open_files.make_room(self.config.uns_listen.connections_max)

    def _begin(self) -> None:
        """Nothing more is needed."""

    def _listen(self) -> "Deferred[Any]":
        return self._service.start()

    @inlineCallbacks
    def _stop(self) -> Any:
        yield self._service.stop()
        yield self._in_thread(self._directory.close)
