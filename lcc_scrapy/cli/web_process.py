"""``lcc web`` where it takes pushes: HTTP servers, a UNS and its intake on one loop; it needs Twisted."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, inlineCallbacks

from lcc_scrapy.cli.server_process import ServerProcess
from lcc_scrapy.machine import open_files
from lcc_scrapy.machine.garbage_collection import collect_seldom

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from lcc_scrapy.config.config import Config
    from lcc_scrapy.machine.data_directory import DataDirectory
    from lcc_scrapy.web.server import Server


class WebProcess(ServerProcess):
    """Serves pushes at ``LCC_PUSH_ENDPOINTS``, and content users at ``LCC_WEB_ENDPOINT`` if that is set."""

    last_words = 10.0
    without_database = "pushes get 503"
    under_way = "requests"

    def __init__(
        self, config: "Config", home: "DataDirectory", reactor: Any, settings: "BaseSettings"
    ) -> None:
        from lcc_scrapy.app.intake_service import IntakeService
        from lcc_scrapy.app.wiring import resources_of
        from lcc_scrapy.db.thread import StoreThread
        from lcc_scrapy.machine.wake_file import WakeFile

        super().__init__(config, home, reactor, settings)
        config = _with_own_spool(config)
        self._resources = resources_of(config, reactor, config.spool_dir)
        self._thread = StoreThread(reactor, self._resources.notice)
        wake = WakeFile(config.data_dir)
        self._intake_service = IntakeService(
            config,
            home.lcc_id,
            self._store,
            self._thread,
            reactor,
            accepted=lambda _: None,
            absorbed=lambda _: wake.touch(),
            resources=self._resources,
            stop_seconds=config.stop_timeout,
        )
        self._close_api: Callable[[], None] = lambda: None
        self._lives = AsyncExitStack()
        self._servers = list(self._make_servers())

    # --- what it serves ------------------------------------------------------------------------------

    def _make_servers(self) -> Iterator["Server"]:
        from lcc_scrapy.cli.public_routes import public_routes
        from lcc_scrapy.cli.web_api import make_api
        from lcc_scrapy.push_api.app import make_push_app
        from lcc_scrapy.push_api.push_route import PushRoute
        from lcc_scrapy.web.server import Server

        config = self.config
        push = PushRoute(self._intake_service.uns, config.web.proxies)
        self._push_app = make_push_app(push, public_routes(config, self._store), config.web)
        for endpoint in config.push_endpoints:
            yield Server(self._push_app, endpoint, config.http, lifespan=False)
        if config.web_endpoint is not None:
            api = make_api(config, self._store)
            self._close_api = api.close
            yield Server(api.app, config.web_endpoint, config.http, api.stop)

    # --- life ----------------------------------------------------------------------------------------

    def apply(self, config: "Config") -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self.config = config
        self._intake_service.stop_seconds = config.stop_timeout
        self._intake_service.apply(_with_own_spool(config))

    def renew_certificates(self) -> "Deferred[int]":
        """Read the certificate again; the result is at how many endpoints."""

        async def renew() -> int:
            return sum(server.renew_certificate() for server in self._servers)

        return Deferred.fromCoroutine(renew())

    def _in_thread(self, work: Callable[[], Any]) -> "Deferred[Any]":
        return self._thread.run(work)

    @inlineCallbacks
    def _prepare(self) -> Any:
        from lcc_scrapy.machine.disk import make_folders

        for server in self._servers:
            server.check_certificate()
        open_files.make_room(self.config.uns_listen.connections_max + self.config.http.connections)
        collect_seldom()
        yield self._thread.run(lambda: make_folders(self.config.push_spool_dir))
        yield self._thread.run(self._resources.look)
        self._resources.start()
        yield self._intake_service.claim()

    def _begin(self) -> Any:
        return self._intake_service.begin()

    def _listen(self) -> "Deferred[Any]":
        async def listen() -> list[str]:
            await self._intake_service.listen()
            await self._lives.enter_async_context(self._push_app.living())
            return [await server.begin() for server in self._servers]

        return Deferred.fromFuture(asyncio.ensure_future(listen()))

    @inlineCallbacks
    def _stop(self) -> Any:
        self._resources.stop()
        ended = [asyncio.ensure_future(server.end()) for server in self._servers]
        yield self._intake_service.stop()
        for one in ended:
            yield Deferred.fromFuture(one)
        yield Deferred.fromFuture(asyncio.ensure_future(self._lives.aclose()))
        yield self._thread.run(self._store.close)
        self._close_api()
        self._thread.close()


def _with_own_spool(config: "Config") -> "Config":
    """Return the settings of a UNS beside that of the crawl: it has no endpoints, and a spool of its own."""
    return replace(
        config,
        uns_listen=replace(config.uns_listen, endpoints=()),
        spool_dir=config.push_spool_dir,
    )
