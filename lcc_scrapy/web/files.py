"""The content files of one machine, for other machines: as they are stored, to holders of a token.

``GET /v1/files/{machine}/{file}`` gives the bytes of a file. A file never changes, and a number is never used
again, so there is nothing to ask about it but whether it is there. Plain ASGI: a base install serves it.
"""

import asyncio
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

from lcc_scrapy.content.files import relative_path
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.tokens import FILES, NotAllowed, Refused, Tokens, check

PIECE = 64 * 1024
_NUMBER = r"([1-9][0-9]{0,18})"
_PATH = re.compile(rf"/v1/files/{_NUMBER}/{_NUMBER}", re.ASCII)
_MOST = 2**63 - 1
_BEARER = "bearer "
_SHOWN_TO_NO_BROWSER = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
_STATUS: dict[type[LccError], tuple[HTTPStatus, str]] = {
    Refused: (HTTPStatus.UNAUTHORIZED, 'Bearer realm="lcc"'),
    NotAllowed: (HTTPStatus.FORBIDDEN, 'Bearer realm="lcc", error="insufficient_scope"'),
}

_log = logging.getLogger(__name__)
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class _Problem(Exception):
    """A request cannot be answered with a file."""

    def __init__(self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})


class FilesApp:
    """The application for a content folder; ``now`` in epoch seconds. Queries are not logged, nor tokens."""

    def __init__(self, folder: Path, tokens: Tokens, now: Callable[[], float]) -> None:
        self._folder = folder
        self._tokens = tokens
        self._now = now

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        status = HTTPStatus.OK
        try:
            stream, size = await asyncio.to_thread(self._open, scope)
        except _Problem as problem:
            status = problem.status
            await _tell(problem, send)
        else:
            with stream:
                await _give(stream, size, send)
        facts = {"peer": (scope.get("client") or ("-",))[0], "path": scope["path"], "code": int(status)}
        _log.info("%(peer)s %(path)s %(code)d", facts)

    def _open(self, scope: Mapping[str, Any]) -> tuple[IO[bytes], int]:
        self._check(dict(scope["headers"]))
        if scope["method"] != "GET":
            raise _Problem(HTTPStatus.METHOD_NOT_ALLOWED, "files are read only", {"Allow": "GET"})
        match = _PATH.fullmatch(scope["path"])
        numbers = tuple(map(int, match.groups())) if match else ()
        if not numbers or max(numbers) > _MOST:
            raise _Problem(HTTPStatus.NOT_FOUND, "there are only /v1/files/{machine}/{file}")
        try:
            stream = (self._folder / relative_path(*numbers)).open("rb")
        except FileNotFoundError:
            raise _Problem(HTTPStatus.NOT_FOUND, "there is no such file") from None
        return stream, os.fstat(stream.fileno()).st_size

    def _check(self, headers: Mapping[bytes, bytes]) -> None:
        shown = headers.get(b"authorization", b"").decode("latin-1")
        secret = shown[len(_BEARER) :].strip() if shown.lower().startswith(_BEARER) else ""
        try:
            check(self._tokens, secret, FILES, int(self._now()))
        except (Refused, NotAllowed) as error:
            status, asked = _STATUS[type(error)]
            raise _Problem(status, str(error), {"WWW-Authenticate": asked}) from None
        except StoreUnavailable:
            raise _Problem(
                HTTPStatus.SERVICE_UNAVAILABLE, "the database does not answer", {"Retry-After": "10"}
            ) from None


async def _give(stream: IO[bytes], size: int, send: Send) -> None:
    """Send a file; one that is shorter than it was ends without its end, which the client sees."""
    await _begin(HTTPStatus.OK, {"Content-Type": "application/octet-stream"}, size, send)
    left = size
    while left:
        data = await asyncio.to_thread(stream.read, min(PIECE, left))
        if not data:
            raise OSError("the content file became shorter")
        left -= len(data)
        await send({"type": "http.response.body", "body": data, "more_body": left > 0})
    if not size:
        await send({"type": "http.response.body", "body": b""})


async def _tell(problem: _Problem, send: Send) -> None:
    """Answer as RFC 9457 has it."""
    facts = {"title": problem.status.phrase, "status": int(problem.status), "detail": str(problem)}
    body = json.dumps(facts).encode()
    headers = {"Content-Type": "application/problem+json", **problem.headers}
    await _begin(problem.status, headers, len(body), send)
    await send({"type": "http.response.body", "body": body})


async def _begin(status: HTTPStatus, headers: Mapping[str, str], size: int, send: Send) -> None:
    everything = {**_SHOWN_TO_NO_BROWSER, **headers, "Content-Length": str(size)}
    encoded = [(name.lower().encode(), value.encode()) for name, value in everything.items()]
    await send({"type": "http.response.start", "status": int(status), "headers": encoded})


async def _live(receive: Receive, send: Send) -> None:
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
