"""What a tracker tells caches that have it as a ``cache_peer``: its digest, and where a URL is to be had.

A cache asks in absolute form, as it asks a proxy: ``GET ftp://ftp.example.org/x HTTP/1.1``. It is redirected
to a better replica, or told 504. The tracker fetches nothing for anybody.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate

from anyio import to_thread
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from lcc_scrapy.apps.tracker.redirection import FETCHED, Better
from lcc_scrapy.apps.tracker.rules.cache_digest import HEADER, MIME_TYPE
from lcc_scrapy.apps.tracker.served_digest import LIFE, Made, ServedDigests
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.listeners.peers import Networks, is_among
from lcc_scrapy.web.working import current

DIGEST_PATH = "/squid-internal-periodic/store_digest"
OWN_PATHS = (DIGEST_PATH, "/uri-res/")
"""What is asked of the tracker itself, in absolute form too."""

PAUSE = 1.0
"""Seconds between the beginning of a digest and the rest of it: see ``_slowly``."""

RETRY = 60
"""Seconds after which a digest that is being made should be there."""

Find = Callable[[str, str], Better | None]


class CachePeer:
    """Answers requests in absolute form; passes all others on, and those in absolute form for the tracker."""

    def __init__(self, app: ASGIApp, find: Find, address_of: Callable[[Request], str]) -> None:
        self._app = app
        self._find = find
        self._address_of = address_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or not scope["path"].startswith(FETCHED):
            await self._app(scope, receive, send)
        elif (path := _path_of(scope["path"])).startswith(OWN_PATHS):
            await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)
        else:
            answer = await to_thread.run_sync(self._answer, Request(scope))
            await answer(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        if request.method not in {"GET", "HEAD"}:
            return PlainTextResponse(
                "nothing is sent through a mirror tracker\n", 405, {"Allow": "GET, HEAD"}
            )
        try:
            found = self._find(_target(request.scope), self._address_of(request))
        except StoreUnavailable:
            return PlainTextResponse("the database does not answer\n", 503)
        except LccError:
            found = None
        if found is None:  # caches ask elsewhere then
            return PlainTextResponse("no better replica is known\n", 504)
        return PlainTextResponse(f"{found.url}\n", 302, {"Location": found.url})


def _path_of(url: str) -> str:
    """Return the path of a URL that may be malformed."""
    return "/" + url.partition("://")[2].partition("/")[2]


def _target(scope: Scope) -> str:
    """Return the URL of a request in absolute form, as it was sent."""
    path, query = (bytes(scope[part]).decode("latin-1") for part in ("raw_path", "query_string"))
    return f"{path}?{query}" if query else path


def make_router(digests: ServedDigests, address_of: Callable[[Request], str], clients: Networks) -> APIRouter:
    """Return the route of the digest, which ``clients`` get and nobody else."""
    router = APIRouter()

    @router.get(DIGEST_PATH)
    async def digest(request: Request) -> Response:
        address = address_of(request)
        if not is_among(address, clients):
            return PlainTextResponse("the digest is for LCC_TRACKER_ICP_CLIENTS\n", 403)
        if (slot := current.get()) is not None:
            slot.leave()  # it only waits
        made = await digests.of(address)
        if made is None:
            return PlainTextResponse("the digest is being made\n", 503, {"Retry-After": str(RETRY)})
        return _digest_answer(made)

    return router


def _digest_answer(made: Made) -> Response:
    headers = {
        "Content-Length": str(len(made.data)),
        "Last-Modified": formatdate(made.at, usegmt=True),
        "Expires": formatdate(made.at + LIFE, usegmt=True),
        "Cache-Control": f"max-age={LIFE}",
    }
    return StreamingResponse(_slowly(made.data), headers=headers, media_type=MIME_TYPE)


async def _slowly(data: bytes) -> AsyncIterator[bytes]:
    """Yield the header of a digest and some of its filter, and the rest when a cache has read them.

    Squid (bug 5510, in all versions up to 7) confuses a filter when more than its first 128 bytes arrive
    together with what comes before it.
    """
    yield data[:HEADER]
    if data[HEADER:]:
        await asyncio.sleep(PAUSE)
        yield data[HEADER:]
