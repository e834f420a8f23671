"""The routes of IndexNow: ``GET /indexnow?url=…&key=…`` and ``POST /indexnow``, also with a slash behind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response
from starlette.requests import ClientDisconnect

from lcc_scrapy.apps.indexnow.body import BODY_MAX
from lcc_scrapy.apps.indexnow.rules import BAD_FORM, TOO_MANY, NotTaken
from lcc_scrapy.apps.indexnow.service import IndexNow, Taken, read_get
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.listeners.peers import is_here, neighbourhood
from lcc_scrapy.web.body_room import NoRoom, Place
from lcc_scrapy.web.problems import problem
from lcc_scrapy.web.sharing import client_address

PATH = "/indexnow"
ALIASES = ("/indexnow/", "/IndexNow", "/IndexNow/")
"""What clients ask for as well: a plugin of WordPress puts a slash behind."""

_JSON = frozenset({"application/json", "text/json"})
_LATER = 10
NO_ROOM_AGAIN = 5
"""Seconds after which to come again with a large body."""

_FORWARDED = "x-forwarded-for"
_LIST = {
    "type": "array", "maxItems": 10_000, "minItems": 1, "items": {"type": "string", "maxLength": 2048}
}  # fmt: skip
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["host", "key", "urlList"],
                    "properties": {
                        "host": {"type": "string"},
                        "key": {"type": "string", "minLength": 8, "maxLength": 128},
                        "keyLocation": {"type": "string"},
                        "urlList": _LIST,
                    },
                }
            }
        },
    }
}
_TOLD: dict[int | str, dict[str, Any]] = {
    status: {"description": HTTPStatus(status).phrase} for status in (202, 400, 403, 422, 429, 503)
}


def make_router(service: IndexNow) -> APIRouter:
    """Return the routes of a service, which lives as long as the application that includes them."""

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        async with service.living():
            yield

    # Twice as much: a body of more than BODY_MAX gets the status of the protocol, from here.
    router = APIRouter(lifespan=living, tags=["IndexNow"], max_body_size=2 * BODY_MAX)

    async def one(
        request: Request,
        url: Annotated[str, Query()] = "",
        key: Annotated[str, Query()] = "",
        key_location: Annotated[str, Query(alias="keyLocation")] = "",
    ) -> Response:
        """Submit one URL that was added, changed or removed."""
        try:
            client = _knock(service, request)
            if not url or not key:
                raise NotTaken(BAD_FORM, "expected ?url=…&key=…")
            return _told(await service.submit(read_get(url, key, key_location), client))
        except LccError as error:
            return _refusal(error)

    async def many(request: Request) -> Response:
        """Submit up to 10,000 URLs of one host."""
        try:
            client = _knock(service, request)
            return _told(await _posted(service, request, client))
        except LccError as error:
            return _refusal(error)

    for path in (PATH, *ALIASES):
        shown = path == PATH
        router.get(path, include_in_schema=shown, responses=_TOLD)(one)
        router.post(path, include_in_schema=shown, responses=_TOLD, openapi_extra=_BODY)(many)
    return router


async def _posted(service: IndexNow, request: Request, client: str | None) -> Taken:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _JSON:
        raise NotTaken(BAD_FORM, "expected Content-Type: application/json")
    size = _announced(request)
    with service.bodies.place(client) as place:
        return await service.submit(await service.read(await _body(request, size, place)), client)


def _announced(request: Request) -> int:
    """Return how long a body is, or may become where that is not said; raises ``NotTaken``."""
    text = request.headers.get("content-length", "")
    if not text:
        return BODY_MAX
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(BODY_MAX)) or int(text) > BODY_MAX:
        raise NotTaken(BAD_FORM, f"a body of more than {BODY_MAX} bytes")
    return int(text)


async def _body(request: Request, most: int, place: Place) -> bytes:
    pieces = bytearray()
    try:
        async for piece in request.stream():
            place.add(len(piece))
            pieces += piece
            if len(pieces) > most:
                raise NotTaken(BAD_FORM, f"a body of more than {most} bytes")
    except (ClientDisconnect, TimeoutError):
        raise NotTaken(BAD_FORM, "the body did not come") from None
    except NoRoom as error:
        raise NotTaken(TOO_MANY, f"{error} too many large submissions at a time", NO_ROOM_AGAIN) from None
    return bytes(pieces)


def _knock(service: IndexNow, request: Request) -> str | None:
    """Count a request for its address, and return whose it is.

    Programs on this machine have no share, and None is returned: they may be proxies.
    """
    peer = request.client.host if request.client else ""
    forwarded = [part for line in request.headers.getlist(_FORWARDED) for part in line.split(",")]
    address = client_address(peer, forwarded, service.rules.proxies)
    if is_here(address):
        return None
    service.knock(neighbourhood(address))
    return neighbourhood(address)


def _told(taken: Taken) -> Response:
    if not taken.ignored:
        return Response(status_code=taken.status)
    return Response(f"ignored: {', '.join(taken.ignored)}\n", taken.status, media_type="text/plain")


def _refusal(error: LccError) -> Response:
    if isinstance(error, NotTaken):
        later = {"Retry-After": str(error.seconds)} if error.seconds else {}
        return problem(error.status, str(error), headers=later)
    told = "the database does not answer: try again later"
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, told, headers={"Retry-After": str(_LATER)})
