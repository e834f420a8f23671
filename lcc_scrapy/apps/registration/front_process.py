"""The process that registers site owners at a front, apart from its command: it needs Twisted."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.apps.registration.front import FrontRegistrations
from lcc_scrapy.apps.registration.hints import Places
from lcc_scrapy.apps.registration.serving import routes_of
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.cli.http_servers import HttpServers
from lcc_scrapy.cli.server_process import ServerProcess
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.open_subs import OpenSubs
from lcc_scrapy.web.app import THREADS
from lcc_scrapy.web.public import make_public_app
from lcc_scrapy.web.server import Server

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

    from lcc_scrapy.config.config import Config

LOOK = 10.0
"""Seconds after which it looks again which sub-LCCs answer and what became of registrations."""

_log = logging.getLogger(__name__)


class FrontRegistrationProcess(ServerProcess):
    """Registration at a front: requests get 503 until the front's database answers."""

    last_words = 5.0
    without_database = "requests get 503"
    under_way = "requests"

    def __init__(self, config: "Config", reactor: Any, settings: "BaseSettings") -> None:
        super().__init__(config, None, reactor, settings)
        rules = config.of(RegistrationRules)
        self._directory = Directory(config.front_database_url)
        self._subs = OpenSubs(self._directory, silence=max(1, round(config.front_patience)))
        self._registrations = FrontRegistrations(self._directory, self._subs, rules, fullsets=config.fullsets)
        routes = routes_of(config, self._registrations, Places(uns=rules.uns))
        self._app = make_public_app([routes], config.web)
        endpoints = config.push_endpoints
        self._servers = HttpServers(
            [Server(self._app, one, config.http, lifespan=False) for one in endpoints]
        )
        self._lives = AsyncExitStack()
        self._next_look: Any = None
        self._looking: Deferred[Any] | None = None

    def apply(self, config: "Config") -> None:
        """Go on with other settings; those that need a restart are as they were."""
        self.config = config

    def renew_certificates(self) -> "Deferred[int]":
        """Read the certificate again; the result is at how many endpoints."""
        return self._servers.renew_certificates()

    def _in_thread(self, work: Callable[[], Any]) -> "Deferred[Any]":
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), work)

    def _check(self) -> None:
        self._directory.check()
        self._subs.look()

    def _prepare(self) -> None:
        self._servers.prepare(self.config.http.connections)

    def _begin(self) -> None:
        self._look_later()

    # --- looking at sub-LCCs ---------------------------------------------------------------------

    def _look_later(self) -> None:
        self._next_look = self._reactor.callLater(LOOK, self._look)

    def _look(self) -> None:
        self._looking = self._in_thread(self._look_and_tidy)
        self._looking.addErrback(self._failed)
        self._looking.addCallback(lambda _: None if self._ending else self._look_later())

    def _look_and_tidy(self) -> None:
        self._subs.look()
        self._registrations.tidy()

    def _failed(self, failure: "Failure") -> None:
        _log.error("cannot look at the sub-LCCs now, trying again: %s", failure.getErrorMessage())

    # --- life ----------------------------------------------------------------------------------------

    def _listen(self) -> "Deferred[Any]":
        async def listen() -> list[str]:
            to_thread.current_default_thread_limiter().total_tokens = THREADS
            await self._lives.enter_async_context(self._app.living())
            return await self._servers.begin()

        return Deferred.fromFuture(asyncio.ensure_future(listen()))

    @inlineCallbacks
    def _stop(self) -> Any:
        if self._next_look is not None and self._next_look.active():
            self._next_look.cancel()
        for one in self._servers.end():
            yield Deferred.fromFuture(one)
        yield self._looking
        yield Deferred.fromFuture(asyncio.ensure_future(self._lives.aclose()))
        yield self._in_thread(self._close)

    def _close(self) -> None:
        self._subs.close()
        self._directory.close()
        self._close_stores()
