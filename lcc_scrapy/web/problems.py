"""Errors as the client sees them: problem details (RFC 9457), which say what to do."""

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from lcc_scrapy.domain.alerts import BadRecipient, NoSuchRecipient, TooManyRecipients
from lcc_scrapy.domain.cursor import BadCursor, StartOver
from lcc_scrapy.domain.errors import LccError, StorageAway, StoreUnavailable
from lcc_scrapy.domain.named_cursors import TooMany
from lcc_scrapy.domain.shares import ShareUsedUp
from lcc_scrapy.domain.tokens import NotAllowed, Refused
from lcc_scrapy.domain.urd_rules import BadUrd, NoSuchUrd, TooManyUrds
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone, ContentLost
from lcc_scrapy.web.own_address import AddressNotSaid

MEDIA_TYPE = "application/problem+json"
BINARY = "application/octet-stream"
_SHOWN = 3


class Busy(LccError):
    """As much is being done as may be at a time."""


class BodyTooSlow(TimeoutError):
    """The body of a request did not come in time."""


class NotThere(LccError):
    """There is nothing of that name, or nothing that this token may see."""


class Problem(BaseModel):
    """What went wrong. `error` is for programs; `detail` says what to do."""

    title: str
    status: int
    detail: str
    error: str


_AUTHENTICATE = {"WWW-Authenticate": 'Bearer realm="lcc"'}
_LATER = {"Retry-After": "10"}

_KINDS: dict[type[LccError], tuple[int, str, Mapping[str, str]]] = {
    Refused: (HTTPStatus.UNAUTHORIZED, "unauthorized", _AUTHENTICATE),
    NotAllowed: (
        HTTPStatus.FORBIDDEN,
        "not-allowed",
        {"WWW-Authenticate": 'Bearer realm="lcc", error="insufficient_scope"'},
    ),
    NotThere: (HTTPStatus.NOT_FOUND, "not-there", {}),
    NoSuchUrd: (HTTPStatus.NOT_FOUND, "not-there", {}),
    BadCursor: (HTTPStatus.UNPROCESSABLE_ENTITY, "bad-cursor", {}),
    StartOver: (HTTPStatus.GONE, "start-over", {}),
    ContentGone: (HTTPStatus.GONE, "content-gone", {}),
    ContentElsewhere: (HTTPStatus.SERVICE_UNAVAILABLE, "content-elsewhere", _LATER),
    ContentLost: (HTTPStatus.INTERNAL_SERVER_ERROR, "content-lost", {"Cache-Control": "no-store"}),
    AddressNotSaid: (HTTPStatus.INTERNAL_SERVER_ERROR, "address-not-said", {}),
    StorageAway: (HTTPStatus.SERVICE_UNAVAILABLE, "storage-away", _LATER),
    StoreUnavailable: (HTTPStatus.SERVICE_UNAVAILABLE, "database-away", _LATER),
    Busy: (HTTPStatus.SERVICE_UNAVAILABLE, "busy", _LATER),
    TooMany: (HTTPStatus.CONFLICT, "too-many", {}),
    TooManyUrds: (HTTPStatus.CONFLICT, "too-many", {}),
    BadRecipient: (HTTPStatus.UNPROCESSABLE_ENTITY, "bad-recipient", {}),
    NoSuchRecipient: (HTTPStatus.NOT_FOUND, "not-there", {}),
    TooManyRecipients: (HTTPStatus.CONFLICT, "too-many", {}),
    BadUrd: (HTTPStatus.UNPROCESSABLE_ENTITY, "bad-urd", {}),
}
_UNTOLD = {
    StorageAway: "the object storage does not answer: try again later",
    StoreUnavailable: "the database does not answer: try again later",
    ContentElsewhere: "the machine that has this content does not answer: try again later",
}
"""Errors whose text is about the inside of the LCC."""


def problem(status: int, detail: str, error: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer that tells of a problem."""
    title = HTTPStatus(status).phrase
    facts = {"title": title, "status": int(status), "detail": detail, "error": error or _kebab(title)}
    return Response(json.dumps(facts), status, dict(headers or {}), MEDIA_TYPE)


def _kebab(title: str) -> str:
    return title.lower().replace(" ", "-")


def share_used_up(error: ShareUsedUp) -> Response:
    """Return the answer to a client that has as much as it may have."""
    later = {"Retry-After": str(error.seconds)}
    return problem(HTTPStatus.TOO_MANY_REQUESTS, str(error), "share-used-up", later)


def _of_ours(_request: Request, error: Exception) -> Response:
    return problem_of(error)


def problem_of(error: Exception) -> Response:
    """Return the answer that tells of an error of ours; raises any other one."""
    if isinstance(error, ShareUsedUp):
        return share_used_up(error)
    kind = next((known for known in _KINDS if isinstance(error, known)), None)
    if kind is None:
        raise error
    status, name, headers = _KINDS[kind]
    return problem(status, _UNTOLD.get(kind, str(error)), name, headers)


def _of_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, UnicodeError):  # of a body; other bad ones are a RequestValidationError
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "body: not UTF-8", "bad-parameter")
    return problem(error.status_code, str(error.detail), headers=error.headers)


def _of_request(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    told = "; ".join(_wrong(one) for one in error.errors()[:_SHOWN])
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, told, "bad-parameter")


def _of_a_slow_body(_request: Request, _error: Exception) -> Response:
    told = "the body did not come in time: send it again"
    return problem(HTTPStatus.REQUEST_TIMEOUT, told, headers={"Connection": "close"})


def _of_who_left(_request: Request, _error: Exception) -> Response:
    return Response()  # nobody reads it


def _of_a_bug(_request: Request, _error: Exception) -> Response:
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "an error in the LCC itself: its log tells more", "bug")


def _wrong(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"][1:]) or str(error["loc"][0])
    return f"{place}: {error['msg']}"


def install(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Let all errors of an application be told so; ``routers`` are all that it has."""
    routes = [one for router in routers for one in router.routes if isinstance(one, APIRoute)]

    def not_allowed(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        of_path = (one.methods or () for one in routes if one.path_regex.match(request.url.path))
        taken = sorted({method for methods in of_path for method in methods})
        # all methods of the path (RFC 9110, section 15.5.6); a page that is no route of ours has told its own
        headers = {"Allow": ", ".join(taken)} if taken else error.headers
        return problem(HTTPStatus.METHOD_NOT_ALLOWED, "see Allow for what this path takes", headers=headers)

    app.add_exception_handler(HTTPStatus.METHOD_NOT_ALLOWED, not_allowed)
    app.add_exception_handler(LccError, _of_ours)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestValidationError, _of_request)
    app.add_exception_handler(BodyTooSlow, _of_a_slow_body)
    app.add_exception_handler(ClientDisconnect, _of_who_left)
    app.add_exception_handler(Exception, _of_a_bug)


def as_bytes(*types: str) -> dict[str, Any]:
    """Describe bytes of some types, for OpenAPI.

    octet-stream stands first: programs that make clients know no other type for bytes.
    """
    return {one: {"schema": {"type": "string", "format": "binary"}} for one in (BINARY, *types)}


def told(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe answers with these statuses, and those that every request may get, for OpenAPI."""
    everywhere = (401, 403, 422, 429, 503)
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in sorted({*statuses, *everywhere})
    }
