"""Fetching files over HTTP: guarded, bounded, within robots.txt, at the pace of a provider's limit.

Files lie on hosts of the provider's roots. So does every redirect on the way to them. Bodies go to a
temporary file as they arrive.
"""

import asyncio
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import IO, Self

from lcc_scrapy.content import decoding
from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.http_dates import retry_after_seconds
from lcc_scrapy.domain.http_status import MOVED
from lcc_scrapy.domain.references import redirect
from lcc_scrapy.domain.robots import MAX_BYTES as ROBOTS_BYTES
from lcc_scrapy.domain.robots import Robots, product_token
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.http.cookies import Cookies
from lcc_scrapy.http.credentials import Credentials, request_to
from lcc_scrapy.http.digest import DigestSession
from lcc_scrapy.http.draining import drained
from lcc_scrapy.http.outgoing import NoConnection, Outgoing, why
from lcc_scrapy.http.request import Request

MOST_BYTES = 50_000_000
"""Bytes of one file, as transferred and decoded: 50 MB, as the Sitemaps protocol has it."""

REDIRECTS = 5
IN_MEMORY = 256 * 1024
PIECE = 64 * 1024
CONNECTIONS = 8
HOSTS = 200
"""Hosts whose robots.txt is remembered."""

ROBOTS_KEPT = 86_400.0
"""Seconds for which it is (RFC 9309 section 2.4)."""

LINKS = 16
"""Link headers of an answer that are looked at."""

TOO_MANY_REQUESTS = 429
_NO_RULES = Robots()
_NOT_MODIFIED, _OK, _UNKNOWN, _FAILING = 304, 200, 401, 500


class CannotFetch(LccError):
    """A file cannot be had; the text says why. ``retry_after``: seconds that its host asks for, 0 = none."""

    def __init__(self, text: str, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Whose:
    """For whom something is fetched. ``hosts`` (``host:port``) are those of the provider's roots.

    ``anywhere``: other public hosts are good too. ``private``: addresses of ``hosts`` may be private.
    ``bandwidth``: bytes per second, 0 = no limit. ``pid``: the provider, 0 = none.
    """

    hosts: Collection[str]
    private: bool = False
    obeys: bool = True
    bandwidth: int = 0
    anywhere: bool = False
    pid: int = 0

    def permits(self, url: HttpUrl) -> bool:
        """Tell whether a URL may be asked for."""
        return self.anywhere or url.netloc in self.hosts


@dataclass(slots=True)
class Fetched(AbstractContextManager["Fetched"]):
    """An answer: 200 with a ``body``, or 304. ``url`` is where it lies, ``transferred`` bytes came."""

    status: int
    url: HttpUrl
    body: IO[bytes]
    headers: dict[bytes, list[str]]
    transferred: int = 0

    def header(self, name: bytes) -> str:
        """Return a header (its name in lower case); of several lines the first one."""
        return self.headers.get(name, [""])[0]

    def octets(self, name: bytes) -> list[bytes]:
        """Return all lines of a header (its name in lower case) as they came."""
        return [one.encode("latin-1") for one in self.headers.get(name, ())]

    @property
    def links(self) -> tuple[str, ...]:
        """Return the Link headers."""
        return tuple(self.headers.get(b"link", ())[:LINKS])

    def pieces(self) -> Iterator[bytes]:
        """Yield the body from its beginning."""
        self.body.seek(0)
        while piece := self.body.read(PIECE):
            yield piece

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.body.close()


@dataclass(slots=True)
class Fetcher:
    """Fetches over the connections of ``outgoing``. ``agent`` is the User-Agent; times are in seconds."""

    outgoing: Outgoing
    agent: str
    patience: float = 60.0
    deadline: float = 3600.0
    most: int = MOST_BYTES
    credentials: Credentials = field(default_factory=Credentials)
    _robots: dict[str, tuple[float, Robots]] = field(default_factory=dict)

    async def get(self, url: str, whose: Whose, etag: str = "", modified: str = "") -> Fetched:
        """Fetch a file, or learn that it has not changed; raises ``CannotFetch``.

        The validators are of ``url`` itself: where it redirects to, they mean nothing.
        """
        conditions = [("If-None-Match", etag), ("If-Modified-Since", modified)]
        fields = [(name, value) for name, value in conditions if value]
        target, cookies = _parsed(url), Cookies()
        for _ in range(REDIRECTS + 1):
            if not whose.permits(target):
                raise CannotFetch(f"{target} does not lie on a host of the provider's roots")
            await self._check_robots(target, whose)
            answer = await self.ask(target, whose, fields, cookies=cookies)
            if answer.status not in MOVED:
                return _complete(answer, conditional=bool(fields))
            answer.body.close()
            target, fields = joined(target, answer.header(b"location")), []
        raise CannotFetch(f"{url}: more than {REDIRECTS} redirects")

    async def _check_robots(self, url: HttpUrl, whose: Whose) -> None:
        if whose.obeys:
            rules = await self.robots(url, whose)
            if not rules.allowed(url.target):
                raise CannotFetch(f"robots.txt forbids {url}")

    async def robots(self, url: HttpUrl, whose: Whose) -> Robots:
        """Return the robots.txt of a URL's host (RFC 9309), asked for once a day."""
        viewer, now = self.credentials.viewer(whose.pid, url), time.monotonic()
        host = f"{url.scheme}://{url.netloc} {whose.private} {viewer}"
        until, rules = self._robots.get(host, (0.0, _NO_RULES))
        if until <= now:
            target = HttpUrl(url.scheme, url.host, url.port, "/robots.txt", "")
            rules = await self._look_up(target, whose)
            while len(self._robots) >= HOSTS:
                del self._robots[next(iter(self._robots))]
            self._robots[host] = (now + ROBOTS_KEPT, rules)
        return rules

    async def _look_up(self, target: HttpUrl, whose: Whose) -> Robots:
        for _ in range(REDIRECTS + 1):
            if not whose.permits(target):
                return _NO_RULES
            with await self.ask(target, whose, [], most=8 * ROBOTS_BYTES) as answer:
                if answer.status >= _FAILING or answer.status == TOO_MANY_REQUESTS:
                    raise CannotFetch(f"{target} answers {answer.status}: nothing may be fetched there now")
                if answer.status == _OK:
                    body = b"".join(answer.pieces())
                    return Robots.parse(body[: ROBOTS_BYTES + 1], product_token(self.agent))
                if answer.status not in MOVED:
                    return _NO_RULES
                target = joined(target, answer.header(b"location"))
        return _NO_RULES

    async def ask(
        self,
        url: HttpUrl,
        whose: Whose,
        fields: Sequence[tuple[str, str]],
        *,
        data: bytes = b"",
        most: int = 0,
        cookies: Cookies | None = None,
    ) -> Fetched:
        """Send one request, with ``data`` a POST; returns the answer whatever its status; no redirects.

        It brings ``cookies`` of earlier answers, and these get those that it is given.
        """
        head = {"User-Agent": self.agent, "Accept-Encoding": ", ".join(decoding.ACCEPTED), **dict(fields)}
        if cookies is not None and (cookie := cookies.field_for(url)):
            head["Cookie"] = cookie.decode("latin-1")
        encoded = [(name.encode(), value.encode("latin-1", "replace")) for name, value in head.items()]
        access = self.credentials.of(whose.pid, url)
        method = "POST" if data else "GET"
        private = whose.private and url.netloc in whose.hosts
        try:
            async with asyncio.timeout(self.deadline):
                request = request_to(url, encoded, access, method, data, pid=whose.pid)
                found = await self._exchange(url, request, whose, private=private, most=most or self.most)
                if access.digest and _challenges(found, access.digest):
                    request = request_to(url, encoded, access, method, data, pid=whose.pid)
                    found = await self._exchange(url, request, whose, private=private, most=most or self.most)
                if cookies is not None:
                    set_by_it = [(b"set-cookie", one) for one in found.octets(b"set-cookie")]
                    cookies.take(url, set_by_it, time.time())
                return found
        except (HttpError, NoConnection, TimeoutError, decoding.BadCoding, ValueError, OSError) as error:
            raise CannotFetch(f"{url}: {reason(error)}") from error

    async def _exchange(
        self, url: HttpUrl, request: Request, whose: Whose, *, private: bool, most: int
    ) -> Fetched:
        async def read(connection: Connection) -> Fetched:
            answer = _answered(url, connection)
            try:
                if answer.status == _OK:
                    await _pour(connection, answer, whose.bandwidth, most)
                else:
                    answer.body.write((await drained(connection)).body)
                    answer.transferred = connection.answer.arrived
            except BaseException:
                answer.body.close()
                raise
            return answer

        pool = self.outgoing.pool(private=private)
        return await pool.exchange(request, read, patience=self.patience, deadline=self.deadline)

    async def close(self) -> None:
        """Close all connections."""
        await self.outgoing.close()


async def _pour(connection: Connection, answer: Fetched, bandwidth: int, most: int) -> None:
    """Read a body to its end, no faster than ``bandwidth``; no more of it than ``most`` bytes."""
    decoder = decoding.decoder(connection.answer.field(b"content-encoding"))
    length = 0
    while pieces := await connection.more():
        for chunk in pieces:
            answer.transferred += len(chunk)
            _bound(answer.transferred, most)
            for piece in decoder.feed(chunk):
                length += len(piece)
                _bound(length, most)
                answer.body.write(piece)
                await asyncio.sleep(0)
        if bandwidth and not connection.answer.complete:
            connection.hold()
            await asyncio.sleep(sum(map(len, pieces)) / bandwidth)
    decoder.end()


def _bound(length: int, most: int) -> None:
    if length > most:
        raise ValueError(f"more than {most} bytes")


def _answered(url: HttpUrl, connection: Connection) -> Fetched:
    headers: dict[bytes, list[str]] = {}
    for name, value in connection.answer.headers:
        headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
    body = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - it is closed with the answer
    return Fetched(connection.answer.status, url, body, headers)


def _challenges(answer: Fetched, digest: DigestSession) -> bool:
    """Tell whether a site asks for the password by HTTP Digest; its answer is closed then."""
    if answer.status != _UNKNOWN:
        return False
    said = answer.headers.get(b"www-authenticate", ())
    asked = digest.hear((b"www-authenticate", value.encode("latin-1")) for value in said)
    if asked:
        answer.body.close()
    return asked


def _complete(answer: Fetched, *, conditional: bool) -> Fetched:
    if answer.status == _OK or (answer.status == _NOT_MODIFIED and conditional):
        return answer
    answer.body.close()
    said = answer.header(b"retry-after")
    wait = retry_after_seconds(said, answer.header(b"date"), time.time()) if said else 0.0
    raise CannotFetch(f"{answer.url} answers {answer.status}", wait)


def _parsed(url: str) -> HttpUrl:
    try:
        return HttpUrl.parse(url)
    except UrlRefused as error:
        raise CannotFetch(f"{url[:200]}: {error}") from None


def joined(base: HttpUrl, location: str) -> HttpUrl:
    """Return where a redirect leads, ``location`` as it came in Latin-1; raises ``CannotFetch``."""
    try:
        return redirect(location.encode("latin-1"), base)
    except UrlRefused as error:
        raise CannotFetch(f"{base}: unusable redirect: {error}") from None


def reason(error: BaseException) -> str:
    """Return why nothing came, in a few words."""
    return why(error, "its address is private: see `lcc provider set --allow-private`")
