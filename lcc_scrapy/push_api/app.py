"""The application of the public endpoint: ``POST /v1/push``, and the routers that are handed to it."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from lcc_scrapy import __version__
from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.web import problems
from lcc_scrapy.web.guards import Guards
from lcc_scrapy.web.own_address import take_either_spelling
from lcc_scrapy.web.sharing import ShareOut

BODY_BYTES = 64 * 1024
"""Of a request to any other route, unless its router or route says its own ``max_body_size``."""

PUSH = "/v1/push"
_PUSHES = frozenset({PUSH, f"{PUSH}/"})


def make_push_app(
    push: ASGIApp | None, routers: Iterable[APIRouter] = (), bounds: Bounds | None = None
) -> "PushApp":
    """Return the application.

    ``push`` serves ``POST /v1/push`` and bounds its body and time itself; None = there is no such route.
    For ``routers`` every body is bounded, and has to come within ``LCC_HTTP_SILENCE``; each client has its
    share, and each request a line in the log. Errors of ours are told as problem details.
    """
    bounds = bounds or Bounds()
    others = _make_others(list(routers))
    routed = others if push is None else _Routed(push, others)
    unhurried = _PUSHES if push else ()
    return PushApp(Guards(ShareOut(routed, bounds), bounds, unhurried), others)


class PushApp:
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
    """Pushes go past what bounds the bodies of all other requests."""

    def __init__(self, push: ASGIApp, others: ASGIApp) -> None:
        self._push = push
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_push = scope["type"] == "http" and scope["path"] in _PUSHES
        await (self._push if is_push else self._others)(scope, receive, send)
