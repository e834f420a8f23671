"""The application: routes, and what holds for every request."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI

from lcc_scrapy import __version__
from lcc_scrapy.web import (
    changes,
    confirmations,
    cursors,
    document_parts,
    documents,
    events,
    health,
    page,
    problems,
)
from lcc_scrapy.web.guards import CompressText, Guards
from lcc_scrapy.web.own_address import take_either_spelling
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import Problem
from lcc_scrapy.web.sharing import ShareOut
from lcc_scrapy.web.watching import Watcher

THREADS = 10
"""That read database and files: fewer than the connections of a store."""

BODY_BYTES = 16 * 1024
"""Of a request: no body is more than a cursor."""

_ROUTERS = (
    changes.router, events.router, confirmations.router, documents.router, document_parts.router,
    cursors.router, health.router, page.router,
)  # fmt: skip


def make_app(lcc: Lcc, more: Iterable[APIRouter] = ()) -> FastAPI:
    """Return the application for an LCC; ``more`` are routes of other features."""
    app = _App(
        title="Local Content Cache",
        version=__version__,
        description="What changed, and the content of it. Each request needs a token.",
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=_living,
        max_body_size=BODY_BYTES,
    )
    app.state.lcc = lcc
    routers = (*_ROUTERS, *more)
    for router in routers:
        app.include_router(router)
    problems.install(app, routers)
    app.add_middleware(CompressText)
    app.add_middleware(ShareOut, bounds=lcc.bounds)
    app.add_middleware(Guards, bounds=lcc.bounds, https=lcc.https)
    take_either_spelling(app)
    return app


class _App(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Return the description, with the problems that no route has for its model."""
        described = super().openapi()
        described["components"]["schemas"]["Problem"] = Problem.model_json_schema()
        return described


@asynccontextmanager
async def _living(app: FastAPI) -> AsyncIterator[None]:
    lcc: Lcc = app.state.lcc
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    app.state.exports = CapacityLimiter(lcc.bounds.exports)
    app.state.probe = CapacityLimiter(1)
    app.state.watcher = Watcher(lcc.feed.head, lcc.bounds.poll, lcc.bounds.waiters)
    app.state.watchers = [app.state.watcher]
    yield
    stop(app)


def stop(app: FastAPI) -> None:
    """End all waiting for changes, at shutdown. Call it in the application's loop."""
    for watcher in app.state.watchers:
        watcher.close()
