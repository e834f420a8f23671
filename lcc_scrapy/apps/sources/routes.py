"""The callback of WebSub as HTTP: ``/v1/websub/{callback}``, where hubs verify intents and send content."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request, Response

from lcc_scrapy.apps.sources.callbacks import CONTENT_MAX, Busy, CallbackService
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.web.body_room import NoRoom, Place

NAME_MAX = 64
"""Characters of a callback's name; longer ones are nobody's."""

_SIGNATURES = ("x-hub-signature-256", "x-hub-signature")
_AGAIN = {"Retry-After": "5"}


def make_router(service: CallbackService) -> APIRouter:
    """Return the routes; they ask for no password, as what hubs send is signed."""

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    # Twice as much, so that who sends a little too much can read our 413.
    router = APIRouter(lifespan=living, max_body_size=2 * CONTENT_MAX)

    @router.get("/v1/websub/{callback}", include_in_schema=False)
    async def verify(callback: str, request: Request) -> Response:
        """Confirm what this LCC asked a hub for (section 5.3)."""
        if len(callback) > NAME_MAX:
            return _unknown()
        said = {name: value[:4096] for name, value in request.query_params.items() if name.startswith("hub.")}
        try:
            challenge = await service.verify(callback, said)
        except StoreUnavailable:
            return Response(status_code=503, headers=_AGAIN)
        return Response(challenge, media_type="text/plain") if challenge else _unknown()

    @router.post("/v1/websub/{callback}", include_in_schema=False)
    async def content(callback: str, request: Request) -> Response:
        """Take in what changed (section 7). What is not signed by the hub is answered alike, and ignored."""
        try:
            source = await service.source(callback) if len(callback) <= NAME_MAX else None
            if source is None:
                return _unknown()
            with service.bodies.place(source.sourceid) as place:
                body = await _body(request, place)
                if body is None:
                    return Response(status_code=413)
                await service.content(source, _signature(request), body)
        except (StoreUnavailable, Busy, NoRoom):
            return Response(status_code=503, headers=_AGAIN)
        return Response(status_code=202)

    return router


def _unknown() -> Response:
    return Response("there is no such subscription\n", 404, media_type="text/plain")


def _signature(request: Request) -> str:
    found = (request.headers.get(name, "") for name in _SIGNATURES)
    return next((one for one in found if one), "")


async def _body(request: Request, place: Place) -> bytes | None:
    """Return the body; None where there is more of it than is taken. Raises ``NoRoom``."""
    body = bytearray()
    async for piece in request.stream():
        place.add(len(piece))
        body += piece
        if len(body) > CONTENT_MAX:
            return None
    return bytes(body)
