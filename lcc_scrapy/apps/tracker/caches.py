"""What ``lcc tracker serve`` does for caches (Squid): ICP, the cache digest, and redirects to replicas."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from fastapi import APIRouter
from starlette.requests import Request

from lcc_scrapy.apps.tracker import cache_peer
from lcc_scrapy.apps.tracker.answering import Answering
from lcc_scrapy.apps.tracker.icp import answering_icp, bound_socket
from lcc_scrapy.apps.tracker.redirection import Better, better
from lcc_scrapy.apps.tracker.resolver import client_of
from lcc_scrapy.apps.tracker.rules.policy import Policy
from lcc_scrapy.apps.tracker.served_digest import ServedDigests
from lcc_scrapy.apps.tracker.settings import TrackerRules
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store


class Caches:
    """Serves caches; listens for ICP from the beginning. Raises ``ConfigurationError`` if it cannot."""

    def __init__(self, config: Config, store: Store, policy: Callable[[], Policy]) -> None:
        self._rules = config.of(TrackerRules)
        self._proxies = config.web.proxies
        self._store = store
        self._policy = policy
        endpoint = self._rules.icp_endpoint
        self._icp = None if endpoint is None else bound_socket(endpoint)
        self._digests = ServedDigests(self._answering, self._rules.digest_urls)

    def better(self, url: str, address: str) -> Better | None:
        """Return a better replica of a URL for an address; see ``redirection.better``."""
        return better(self._answering(), url, address)

    def address_of(self, request: Request) -> str:
        """Return the address of a client, "" for who has none."""
        return client_of(request, self._proxies)

    def routers(self) -> Iterator[APIRouter]:
        """Yield the route of the digest, unless it is turned off."""
        if self._rules.digest_urls:
            clients = self._rules.icp_clients
            yield cache_peer.make_router(self._digests, self.address_of, clients)

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Answer ICP queries meanwhile, if that is turned on; no digest is made afterwards."""
        try:
            async with self._answering_icp():
                yield
        finally:
            self._digests.close()

    @asynccontextmanager
    async def _answering_icp(self) -> AsyncIterator[None]:
        if self._icp is None:
            yield
            return
        async with answering_icp(self._icp, self._is_known, self._rules.icp_clients):
            yield

    def _is_known(self, url: str, address: str) -> bool:
        return self.better(url, address) is not None

    def _answering(self) -> Answering:
        return Answering(self._store, self._policy(), self._rules.replicas)
