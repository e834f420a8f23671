"""The download handler: Scrapy's requests and responses around ``client``."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Self

from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured, UnsupportedURLSchemeError
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from lcc_scrapy.app.wiring import worker_of
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import HttpUrl, parsed_again
from lcc_scrapy.domain.sniffing import type_for
from lcc_scrapy.fetch.client import Fields, Getter, Reply

BODY = "lcc_body"
"""Key of ``request.meta`` under which the ``Body`` of the answer is found."""

REASON = "lcc_reason"
"""Key of ``request.meta``: the words behind the status of the answer, which a ``Response`` does not have."""

RENDITION = "lcc_rendition"
"""Key of ``request.meta`` under which the ``Body`` is found that a browser made of the page, if one did."""

TURN = "lcc_turn"
"""Key of ``request.meta`` with the ``TurnPass`` of the turn whose bandwidth pays for a request."""

PRIVATE_HOSTS = "lcc_private_hosts"
"""Key of ``request.meta``: ``host:port`` of the roots that were approved for private addresses."""

HEAD = "lcc_head"
"""Key of ``request.meta``: the first bytes of a document of which the site says no type; None = it does."""

ROW = "lcc_row"
"""Key of ``request.meta``: the row of the queue that tells what is declared of the document."""

TYPES = "lcc_types"
"""Key of ``request.meta``: patterns of the mimetypes that are wanted; a document of another is not read."""

CONDITIONAL = "lcc_conditional"
"""Key of ``request.meta``: whether a request asks for its URL only if that is not what the cache has."""

IN_MEMORY = "lcc_in_memory"
"""Key of ``request.meta``: the largest body in bytes, all of it wanted in memory."""

OF_A_PAGE = "lcc_of_a_page"
"""Key of ``request.meta``: whether a page asks for this while it is rendered.

Limits of bandwidth hold up its body although that is wanted in memory. The ``Crawl-delay`` of its host, often
another one, changes nothing.
"""

STREAMED = "lcc-streamed"
"""Flag of a response whose body lies in a file instead of ``response.body``."""

CUT = "dataloss"
"""Flag of a response whose status says all, and whose body is not all of it; Scrapy's own word."""


class LazyHeaders:
    """Gives a request or a response its headers when somebody asks for them.

    Until then they are ``fields``: None as soon as they may have been changed.
    """

    fields: Fields | None = None
    _made: Headers | None = None

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make one that Scrapy does not track: its weak references cost more than the object."""
        return object.__new__(cls)

    def __init__(self, *args: Any, headers: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if headers is not None:
            self.headers = headers

    @property
    def headers(self) -> Headers:
        """The headers as Scrapy has them."""
        if self._made is None:
            self.headers = self.fields
        assert self._made is not None
        return self._made

    @headers.setter
    def headers(self, value: Any) -> None:
        self._made, self.fields = value if isinstance(value, Headers) else Headers(value or ()), None

    def carry(self, fields: Fields) -> None:
        """Have these headers, and no others."""
        self._made, self.fields = None, fields


class TicketRequest(LazyHeaders, Request):
    """A request of the queue's."""


def fields_of(message: Request | Response) -> Fields:
    """Return the headers of a request or a response as they stand on the wire."""
    fields: Fields | None = getattr(message, "fields", None)
    if fields is not None:
        return fields
    return [(name, value) for name, values in message.headers.items() for value in values]


def give(request: Request, fields: Fields) -> None:
    """Let a request have these headers, and no others."""
    if isinstance(request, LazyHeaders):
        request.carry(fields)
    else:
        request.headers = Headers(fields)


def header_of(message: Request | Response, name: str) -> str:
    """Return the first header of a name, empty = none."""
    return _first(message, name.lower().encode()).decode("latin-1")


def location_of(response: Response) -> bytes:
    """Return where an answer redirects to, in the octets of the site; empty = nowhere."""
    return _first(response, b"location").strip()


def _first(message: Request | Response, name: bytes) -> bytes:
    found = (value for field, value in fields_of(message) if field.lower() == name)
    return next(found, b"")


def looks_like(meta: Mapping[str, Any]) -> str:
    """Return the type of a document of which its site says none; empty = it says one, or there is none."""
    head, row = meta.get(HEAD), meta.get(ROW)
    return "" if head is None or row is None else type_for(row.mimetype, head)


class LccDownloadHandler(BaseDownloadHandler):
    """Fetches the http and https URLs of the LCC's turns."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        worker = worker_of(crawler)
        if worker is None:
            raise NotConfigured("the LCC's download handler serves the LCC's spiders only")
        verify = crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES", default=True)
        self._getter = Getter(worker, verify=verify)

    async def download_request(self, request: Request) -> Response:
        """Fetch one request; raises as ``Getter.get`` does."""
        meta = request.meta
        reply = await self._getter.get(
            _target(request.url),
            fields_of(request),
            turn=meta.get(TURN),
            private_hosts=meta.get(PRIVATE_HOSTS, ()),
            types=meta.get(TYPES),
            row=meta.get(ROW),
            in_memory=meta.get(IN_MEMORY, 0),
            paced=meta.get(OF_A_PAGE, False),
            method=request.method,
            data=request.body,
            proxy=meta.get("proxy"),
        )
        meta[BODY], meta[REASON], meta[HEAD] = reply.body, reply.reason, reply.head
        return _response(request, reply)

    async def close(self) -> None:
        """Close all connections."""
        await self._getter.close()


def may_be_private(url: HttpUrl, request: Request) -> bool:
    """Tell whether the host of ``url`` may have a private address: it is one of the approved roots'."""
    return url.netloc in request.meta.get(PRIVATE_HOSTS, ())


def _target(url: str) -> HttpUrl:
    """Read a URL as the roots do, so that nobody goes where somebody else has read another host."""
    try:
        return parsed_again(url)
    except UrlRefused as error:
        raise UnsupportedURLSchemeError(f"{url[:200]}: {error}") from error


def _response(request: Request, reply: Reply) -> Response:
    data = reply.body.data or b""
    response: Response = _kind(reply, request.url, data)(
        request.url,
        status=reply.status,
        body=data,
        request=request,
        flags=_flags(reply),
        ip_address=_address(reply.peer),
        protocol=_PROTOCOLS.get(reply.version),
    )
    response.fields = reply.headers  # type: ignore[attr-defined]
    return response


def _flags(reply: Reply) -> list[str]:
    if not reply.whole:
        return [CUT]
    return [STREAMED] if reply.body.path else []


_PROTOCOLS = {version: f"HTTP/{version}" for version in ("1.0", "1.1")}


def _kind(reply: Reply, url: str, data: bytes) -> type[Response]:
    """Return the class of a response, as Scrapy finds it."""
    said = [field for field in reply.headers if field[0].lower() in _KIND_TELLERS]
    find = _kind_said if sum(len(value) for _, value in said) < _USUAL else _kind_said.__wrapped__
    kind = find(tuple(said))
    if kind is Response:
        kind = responsetypes.from_args(url=url, body=data[:5000])
    return _lazy(kind)  # type: ignore[arg-type]


_USUAL = 200
"""Bytes of the headers that tell a class from which on it is not remembered what they told."""

_KIND_TELLERS = frozenset({b"content-type", b"content-encoding", b"content-disposition"})


@lru_cache(maxsize=1000)
def _kind_said(fields: Fields) -> type[Response]:
    return responsetypes.from_headers(Headers(fields))


@lru_cache(maxsize=100)
def _lazy(kind: type[Response]) -> type[Response]:
    return type(kind.__name__, (LazyHeaders, kind), {"__module__": kind.__module__})


@lru_cache(maxsize=1000)
def _address(peer: str) -> IPv4Address | IPv6Address | None:
    return ip_address(peer) if peer else None
