"""What the mirror tracker is asked over HTTP, as one application (``lcc tracker serve``)."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread
from fastapi import APIRouter, FastAPI

from lcc_scrapy import __version__
from lcc_scrapy.apps.tracker import exchange_routes, lookup_routes, urn_routes
from lcc_scrapy.apps.tracker.cache_peer import CachePeer
from lcc_scrapy.apps.tracker.caches import Caches
from lcc_scrapy.apps.tracker.current_policy import CurrentPolicy
from lcc_scrapy.apps.tracker.exporting import Exports
from lcc_scrapy.apps.tracker.resolver import Resolver
from lcc_scrapy.apps.tracker.settings import TrackerRules
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.web import problems
from lcc_scrapy.web.guards import CompressText, Guards
from lcc_scrapy.web.own_address import take_either_spelling
from lcc_scrapy.web.sharing import ShareOut

THREADS = 10
"""In which routes that are no coroutines look up: fewer than the connections of a store."""

BODY_BYTES = 16 * 1024
"""Of a request: nobody has to send one."""


@dataclass(frozen=True, slots=True)
class Serving:
    """An application; ``renew`` reads the policy again, and blocks."""

    app: FastAPI
    renew: Callable[[], None]


def make_app(config: Config, store: Store) -> Serving:
    """Return what is served for a tracker; raises ``ConfigurationError`` for a policy that cannot be read.

    The store stays its caller's to close.
    """
    policy = CurrentPolicy(config.of(TrackerRules).policy_file)
    caches = Caches(config, store, policy)
    return Serving(app_of(_routers(config, store, policy, caches), config.web, caches), policy.renew)


def _routers(config: Config, store: Store, policy: CurrentPolicy, caches: Caches) -> Iterator[APIRouter]:
    """Yield all routes that there are; routes block (``def``), and so are called in threads."""
    rules = config.of(TrackerRules)
    resolver = Resolver(store, policy, rules.replicas, config.web.proxies)
    yield lookup_routes.make_router(resolver, rules.url)
    yield urn_routes.make_router(resolver)
    if rules.exports:
        yield exchange_routes.make_router(Exports(store, Path(rules.exports)), rules.url)
    yield from caches.routers()


def app_of(routers: Iterable[APIRouter], bounds: Bounds, caches: Caches) -> FastAPI:
    """Return an application of routers: bodies, time and each client's share are bounded."""
    app = FastAPI(
        title="Mirror tracker",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=partial(_living, caches),
        max_body_size=BODY_BYTES,
    )
    routers = list(routers)
    for router in routers:
        app.include_router(router)
    problems.install(app, routers)
    app.add_middleware(CachePeer, find=caches.better, address_of=caches.address_of)
    app.add_middleware(CompressText)
    app.add_middleware(ShareOut, bounds=bounds)
    app.add_middleware(Guards, bounds=bounds)
    take_either_spelling(app)
    return app


@asynccontextmanager
async def _living(caches: Caches, _app: FastAPI) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    async with caches.answering():
        yield
