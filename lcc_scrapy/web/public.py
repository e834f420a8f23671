"""The application of the public endpoint: what strangers may ask, by the routes that are handed to it."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from lcc_scrapy import __version__
from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.web import problems
from lcc_scrapy.web.guards import Guards
from lcc_scrapy.web.own_address import take_either_spelling
from lcc_scrapy.web.sharing import ShareOut

BODY_BYTES = 64 * 1024
"""Of a request to a router, unless it or its route says its own ``max_body_size``."""


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A path whose application bounds bodies, and the time for them, itself."""

    path: str
    app: ASGIApp


def make_public_app(routes: Iterable[APIRouter | Unbounded], bounds: Bounds | None = None) -> "PublicApp":
    """Return the application.

    For routers every body is bounded, and has to come within ``LCC_HTTP_SILENCE``. Each client has its
    share of all routes, and each request a line in the log. Errors of ours are told as problem details.
    """
    bounds = bounds or Bounds()
    routers, apart = list[APIRouter](), dict[str, ASGIApp]()
    for one in routes:
        if isinstance(one, Unbounded):
            apart |= {one.path: one.app, f"{one.path}/": one.app}
        else:
            routers.append(one)
    others = _make_others(routers)
    return PublicApp(Guards(ShareOut(_Routed(apart, others), bounds), bounds, apart), others)


class PublicApp:
    """The application, and the life of what its routers need, which several servers of it share."""

    def __init__(self, app: ASGIApp, others: FastAPI) -> None:
        self._app = app
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        await self._app(scope, receive, send)

    def living(self) -> AbstractAsyncContextManager[object]:
        """Begin the work of routers beside requests, and end it; once, around all servers."""
        return self._others.router.lifespan_context(self._others)


def _make_others(routers: list[APIRouter]) -> FastAPI:
    app = FastAPI(
        title="Local Content Cache, for providers",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        max_body_size=BODY_BYTES,
    )
    for router in routers:
        app.include_router(router)
    problems.install(app, routers)
    take_either_spelling(app)
    return app


class _Routed:
    """Some paths go past what bounds the bodies of all other requests."""

    def __init__(self, apart: Mapping[str, ASGIApp], others: ASGIApp) -> None:
        self._apart = apart
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._apart.get(scope["path"], self._others) if scope["type"] == "http" else self._others
        await app(scope, receive, send)
