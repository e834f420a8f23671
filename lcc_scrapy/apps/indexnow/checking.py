"""Checks of keys: a file of the site is fetched, and read as far as a key file can be long.

A site that answers any path with the path itself would prove everybody's key. So whoever shows a key is
asked for another name as well, which nobody can know before, and must not show that one.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from lcc_scrapy import __version__
from lcc_scrapy.apps.indexnow.rules import BAD, GOOD, KEY_FILE_MAX, PENDING, holds_key, may_follow, probe_of
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.http_status import MOVED
from lcc_scrapy.domain.references import redirect
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.connection import Connection, Unclosed
from lcc_scrapy.http.cookies import Cookies
from lcc_scrapy.http.draining import drained
from lcc_scrapy.http.outgoing import NoConnection, NotPublic, Outgoing, tls_context
from lcc_scrapy.http.request import Origin, Request

PATIENCE = 5.0
"""Seconds for a connection, and for the head of an answer."""

DEADLINE = 15.0
"""Seconds for a check as a whole: redirects, both files."""

REDIRECTS = 5
CONNECTIONS = 32

_HEADERS = (
    (b"User-Agent", f"lcc-scrapy/{__version__} (IndexNow key)".encode()),
    (b"Accept", b"text/plain, */*;q=0.1"),
    (b"Accept-Encoding", b"identity"),
)
_OK = 200
_LATER = frozenset({408, 425, 429})
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says: the key is ``GOOD`` or ``BAD``, or ``PENDING``: the site gave no answer now."""

    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    status: int
    body: bytes = b""


Check = Callable[[str, str, bool], Awaitable[Verdict]]
"""Checks a key: the URL of its file, the key, and whether the site may have a private address."""


class Checker:
    """Checks keys. Must be used inside a running event loop, and closed there."""

    def __init__(self) -> None:
        self._outgoing = Outgoing(CONNECTIONS, tls_context())

    async def check(self, location: str, key: str, private: bool) -> Verdict:
        """Tell what a site says about a key; never raises for what a site does."""
        try:
            async with asyncio.timeout(DEADLINE):
                return await self._check(location, key, private=private)
        except TimeoutError:
            return Verdict(PENDING, "no answer in time")
        except NoConnection as error:
            refused = isinstance(error.cause, NotPublic)
            return Verdict(BAD if refused else PENDING, f"no connection: {error}")
        except HttpError as error:
            return Verdict(PENDING, f"no answer: {error}")
        except ValueError as error:
            return Verdict(BAD, f"not a URL to ask for: {error}")

    async def _check(self, location: str, key: str, *, private: bool) -> Verdict:
        shown = await self._file(location, private=private)
        if shown.status in _LATER or shown.status >= _SERVER_ERROR:
            return Verdict(PENDING, f"the site answers {shown.status}")
        if shown.status != _OK:
            return Verdict(BAD, f"the site answers {shown.status}")
        if not holds_key(shown.body, key):
            return Verdict(BAD, "the file does not hold the key and nothing else")
        if await self._echoes(location, key, private=private):
            return Verdict(BAD, "the site shows the name of any file that is asked for")
        return Verdict(GOOD)

    async def _echoes(self, location: str, key: str, *, private: bool) -> bool:
        """Tell whether a site shows a name as it shows the key."""
        other = secrets.token_hex(len(key))[: len(key)]
        probe = probe_of(location, key, other)
        if not probe:
            return False
        answer = await self._file(probe, private=private)
        return answer.status == _OK and holds_key(answer.body, other)

    async def _file(self, location: str, *, private: bool) -> _File:
        """Fetch a file, redirects within the scope of the key followed."""
        begin = target = HttpUrl.parse(location)
        cookies = Cookies()
        for _ in range(REDIRECTS + 1):
            status, body, where = await self._get(target, cookies, private=private)
            if status not in MOVED:
                return _File(status, body)
            found = _target(target, where)
            if found is None or not may_follow(begin, found):
                return _File(status)
            target = found
        return _File(status)

    async def _get(self, url: HttpUrl, cookies: Cookies, *, private: bool) -> tuple[int, bytes, bytes]:
        pool = self._outgoing.pool(private=private)
        path = url.target
        request = Request(
            Origin(url.host, url.port, url.scheme == "https"), path, [*_HEADERS, *cookies.carried_to(url)]
        )

        async def read(connection: Connection) -> tuple[int, bytes, bytes]:
            cookies.take(url, connection.answer.headers, time.time())
            return await _read(connection)

        return await pool.exchange(request, read, patience=PATIENCE, deadline=DEADLINE, window=8192)

    async def close(self) -> None:
        """Close all connections."""
        await self._outgoing.close()


def _target(base: HttpUrl, where: bytes) -> HttpUrl | None:
    with suppress(UrlRefused):
        return redirect(where, base) if where else None
    return None


async def _read(connection: Connection) -> tuple[int, bytes, bytes]:
    """Return status, body and Location of an answer; only a 200 has a body that counts."""
    answer = connection.answer
    fields = {name.lower(): value for name, value in answer.headers}
    where = fields.get(b"location", b"")
    if answer.status == _OK:
        return _OK, await _beginning(connection), where
    await drained(connection)
    return answer.status, b"", where


async def _beginning(connection: Connection) -> bytes:
    """Read a body as far as it may be a key, and one byte more; the rest is not read."""
    read = bytearray()
    with suppress(Unclosed):  # what is exactly the key is not cut
        while len(read) <= KEY_FILE_MAX and (pieces := await connection.more()):
            for piece in pieces:
                read += piece[: KEY_FILE_MAX + 1 - len(read)]
    return bytes(read)
