"""Rules for every request and answer, whatever its route."""

import asyncio
import logging
import math
from collections.abc import Container, Mapping

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.web.problems import BodyTooSlow
from lcc_scrapy.web.sharing import address_of
from lcc_scrapy.web.streams import Broken

_log = logging.getLogger(__name__)

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-cache",
}
"""Unless an answer has them already. No browser is to run or to show what sites made."""

_OF_HTTPS = {"Strict-Transport-Security": "max-age=86400"}
"""A day, and this host alone: an operator who goes back to HTTP is not locked out for long."""

_LEVEL = 4
"""Of gzip: level 9 takes 0.3 s for 128 kB of random ``a`` and ``b``, on the event loop, to save 1 %."""


class Guards:
    """Ends bodies that do not come, tells browsers what not to do with what goes out, and logs a line.

    The query is not logged, for somebody may put a token there by mistake. The address is that of the
    client behind ``bounds.proxies``. Routes of ``unhurried`` paths look after the time of their bodies
    themselves. ``https``: clients come by HTTPS only, and browsers are to keep to it for a day.
    """

    def __init__(
        self, app: ASGIApp, bounds: Bounds, unhurried: Container[str] = (), *, https: bool = False
    ) -> None:
        self._app = app
        self._bounds = bounds
        self._unhurried = unhurried
        self._always = _ALWAYS | _OF_HTTPS if https else _ALWAYS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        silence = math.inf if scope["path"] in self._unhurried else self._bounds.silence
        whose = address_of(scope, self._bounds.proxies)
        exchange = _Exchange(scope, receive, send, silence, whose=whose, always=self._always)
        try:
            await self._app(_without_escaped_cookies(scope), exchange.receive, exchange.send)
        except Broken as error:
            _log.warning("%(path)s was cut: %(error)s", {"path": _told(scope), "error": error})
        except asyncio.CancelledError:  # by uvicorn alone, and this is the end of the task
            _log.warning("%(path)s is cut: the server stops", {"path": _told(scope)})


class _Exchange:
    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        silence: float,
        *,
        whose: str,
        always: Mapping[str, str],
    ) -> None:
        self._scope = scope
        self._whose = whose
        self._always = always
        self._receive = receive
        self._send = send
        self._is_read = False
        self._end = None if silence == math.inf else asyncio.get_running_loop().time() + silence

    async def receive(self) -> Message:
        if self._is_read:
            return await self._receive()  # that the client is gone
        try:
            async with asyncio.timeout_at(self._end):
                message = await self._receive()
        except TimeoutError:
            raise BodyTooSlow from None
        self._is_read = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begin(message)
        await self._send(message)

    def _begin(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self._always.items():
            headers.setdefault(name, value)
        facts = {"peer": self._whose, "method": self._scope["method"], "path": _told(self._scope)}
        _log.info("%(peer)s %(method)s %(path)s %(code)d", {**facts, "code": message["status"]})


def _without_escaped_cookies(scope: Scope) -> Scope:
    """Drop cookies with a backslash, which are none of ours.

    FastAPI reads all cookies of each request, and Python before 3.11.10 takes quadratic time for these
    (CVE-2024-7592).
    """
    if not any(name == b"cookie" and b"\\" in value for name, value in scope["headers"]):
        return scope
    headers = [(name, _plain(value) if name == b"cookie" else value) for name, value in scope["headers"]]
    return {**scope, "headers": headers}


def _plain(cookies: bytes) -> bytes:
    return b";".join(one for one in cookies.split(b";") if b"\\" not in one)


def _told(scope: Scope) -> str:
    """Return a path for the log; of a URL, for which proxies are asked, only the site."""
    path = str(scope["path"])
    scheme, is_url, rest = path.partition("://")
    if not is_url or path.startswith("/"):
        return path
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"


class CompressText(GZipMiddleware):
    """Compresses what the LCC itself writes; contents and exports go as they are, for their digests hold."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, compresslevel=_LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http" and scope["path"].endswith(("/content", "/export")):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)
