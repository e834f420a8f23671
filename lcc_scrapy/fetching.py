"""The download handler: Scrapy's requests and responses around ``getting``."""

from ipaddress import ip_address

from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured, UnsupportedURLSchemeError
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.getting import Getter, Reply
from lcc_scrapy.wiring import worker_of

BODY = "lcc_body"
"""Key of ``request.meta`` under which the ``Body`` of the answer is found."""

REASON = "lcc_reason"
"""Key of ``request.meta``: the words behind the status of the answer, which a ``Response`` does not have."""

TURN = "lcc_turn"
"""Key of ``request.meta`` with the ``TurnPass`` of the turn whose bandwidth pays for a request."""

PRIVATE_HOSTS = "lcc_private_hosts"
"""Key of ``request.meta``: ``host:port`` of the roots that were approved for private addresses."""

TYPES = "lcc_types"
"""Key of ``request.meta``: patterns of the mimetypes that are wanted; a document of another is not read."""

IN_MEMORY = "lcc_in_memory"
"""Key of ``request.meta``: the largest body in bytes, all of it wanted in memory."""

STREAMED = "lcc-streamed"
"""Flag of a response whose body lies in a file instead of ``response.body``."""


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
            [(name, value) for name, values in request.headers.items() for value in values],
            turn=meta.get(TURN),
            private_hosts=meta.get(PRIVATE_HOSTS, ()),
            types=meta.get(TYPES),
            in_memory=meta.get(IN_MEMORY, 0),
            method=request.method,
            data=request.body,
            proxy=meta.get("proxy"),
        )
        meta[BODY], meta[REASON] = reply.body, reply.reason
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
        return HttpUrl.parse(url)
    except UrlRefused as error:
        raise UnsupportedURLSchemeError(f"{url[:200]}: {error}") from error


def _response(request: Request, reply: Reply) -> Response:
    headers, data = Headers(reply.headers), reply.body.data or b""
    kind = responsetypes.from_args(headers=headers, url=request.url, body=data[:5000])
    return kind(
        request.url,
        status=reply.status,
        headers=headers,
        body=data,
        request=request,
        flags=[STREAMED] if reply.body.path else [],
        ip_address=ip_address(reply.peer) if reply.peer else None,
        protocol=f"HTTP/{reply.version}" if reply.version else None,
    )
