"""``lcc web`` where it takes pushes: HTTP servers, a UNS and its intake on one loop; it needs Twisted."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, inlineCallbacks

from lcc_scrapy.cli.http_servers import HttpServers
from lcc_scrapy.cli.uns_process import UnsProcess

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from lcc_scrapy.config.config import Config
    from lcc_scrapy.machine.data_directory import DataDirectory
    from lcc_scrapy.web.server import Server


class WebProcess(UnsProcess):
    """Serves pushes at ``LCC_PUSH_ENDPOINTS``, and content users at ``LCC_WEB_ENDPOINT`` if that is set."""

    without_database = "pushes get 503"
    under_way = "requests"

    def __init__(
        self, config: "Config", home: "DataDirectory", reactor: Any, settings: "BaseSettings"
    ) -> None:
        super().__init__(config, home, reactor, settings)
        self._close_api: Callable[[], None] = lambda: None
        self._lives = AsyncExitStack()
        self._servers = HttpServers(list(self._make_servers()))

    # --- what it serves ------------------------------------------------------------------------------

    def _make_servers(self) -> Iterator["Server"]:
        from lcc_scrapy.app.opening import unchecked_reads
        from lcc_scrapy.cli.public_routes import public_routes
        from lcc_scrapy.cli.web_api import make_api
        from lcc_scrapy.web.parts import Public
        from lcc_scrapy.web.public import make_public_app
        from lcc_scrapy.web.server import Server

        config = self.config
        public = Public(config, self._store, self._intake_service.uns)
        self._public_app = make_public_app(public_routes(public), config.web)
        for endpoint in config.push_endpoints:
            yield Server(self._public_app, endpoint, config.http, lifespan=False)
        if config.web_endpoint is not None:
            self._reads = unchecked_reads(config, self._store)
            api = make_api(config, self._store, self._reads)
            self._close_api = api.close
            yield Server(api.app, config.web_endpoint, config.http, api.stop)

    # --- life ----------------------------------------------------------------------------------------

    def _of_the_uns(self, config: "Config") -> "Config":
        """Beside the UNS of the crawl: no endpoints, and a spool of its own."""
        return replace(
            config,
            uns_listen=replace(config.uns_listen, endpoints=()),
            spool_dir=config.push_spool_dir,
        )

    def renew_certificates(self) -> "Deferred[int]":
        """Read the certificate again; the result is at how many endpoints."""
        return self._servers.renew_certificates()

    @inlineCallbacks
    def _prepare(self) -> Any:
        from lcc_scrapy.machine.disk import make_folders

        self._servers.prepare(self.config.uns_listen.connections_max + self.config.http.connections)
        yield self._thread.run(lambda: make_folders(self.config.push_spool_dir))
        yield super()._prepare()

    def _listen(self) -> "Deferred[Any]":
        async def listen() -> list[str]:
            await self._intake_service.listen()
            await self._lives.enter_async_context(self._public_app.living())
            return await self._servers.begin()

        return Deferred.fromFuture(asyncio.ensure_future(listen()))

    @inlineCallbacks
    def _stop(self) -> Any:
        self._resources.stop()
        ended = self._servers.end()
        yield self._intake_service.stop()
        for one in ended:
            yield Deferred.fromFuture(one)
        yield Deferred.fromFuture(asyncio.ensure_future(self._lives.aclose()))
        yield self._thread.run(self._close_stores)
        self._close_api()
        self._thread.close()
