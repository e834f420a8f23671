"""The look for the file with the secret, through the guarded client."""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace

from lcc_scrapy.apps.registration.rules import BODY_MAX, FILE, proves, redirected, root_of
from lcc_scrapy.apps.registration.service import NotProved
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.domain.errors import BadField
from lcc_scrapy.domain.http_status import MOVED
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.connection import Connection, Unclosed
from lcc_scrapy.http.cookies import Cookies
from lcc_scrapy.http.outgoing import NoConnection, Outgoing, tls_context
from lcc_scrapy.http.pool import Pool
from lcc_scrapy.http.request import Origin, Request

SILENCE = 5.0
"""Seconds for a connection, for the head of an answer, and for the next piece of its body."""

DEADLINE = 15.0
"""Seconds for all of it, redirects and name servers included."""

REDIRECTS = 3
_OK = 200
_WINDOW = 8192
"""Bytes that a site may send in advance: a file that is too large is not taken in."""

_HEADERS = (
    (b"User-Agent", b"lcc-registration"),
    (b"Accept", b"text/plain, */*;q=0.1"),
    (b"Accept-Encoding", b"identity"),
    (b"Cache-Control", b"no-cache"),
    (b"Connection", b"close"),
)


class Prover:
    """Looks whether sites show secrets. Must be used inside a running event loop."""

    def __init__(self, rules: RegistrationRules) -> None:
        self._rules = rules
        self._tls = tls_context()

    async def root(self, digest: str, folder: HttpUrl) -> str:
        """Return the root that the file in a folder proves for a secret; raises ``NotProved``.

        ``digest`` is the SHA-256 of the secret.
        """
        outgoing = Outgoing(1, self._tls)
        try:
            async with asyncio.timeout(DEADLINE):
                return await self._root(outgoing.pool(private=self._rules.private), digest, folder)
        except BadField as error:
            raise NotProved(str(error)) from error
        except TimeoutError as error:
            raise NotProved("it took too long") from error
        except (HttpError, NoConnection) as error:
            raise NotProved(f"{type(error).__name__}: {error}") from error
        finally:
            await outgoing.close()

    async def _root(self, pool: Pool, digest: str, folder: HttpUrl) -> str:
        asked = target = replace(folder, path=f"{folder.path.removesuffix('/')}/{FILE}")
        cookies = Cookies()
        for _ in range(REDIRECTS + 1):
            status, location, body = await _ask(pool, target, cookies)
            if status in MOVED:
                target = redirected(target, location, self._rules.ports)
                continue
            if status != _OK:
                raise NotProved(f"{target} answers {status}")
            if not proves(digest, body):
                raise NotProved(f"{target} is not exactly the secret")
            return root_of(asked, target)
        raise NotProved("too many redirects")


async def _ask(pool: Pool, url: HttpUrl, cookies: Cookies) -> tuple[int, bytes, bytes]:
    """Return status, Location and body of an answer; of a longer body, a little more than is permitted."""
    connection = await pool.ask(
        Request(
            Origin(url.host, url.port, url.scheme == "https"),
            url.path,
            [*_HEADERS, *cookies.carried_to(url)],
        ),
        patience=SILENCE,
        deadline=DEADLINE,
        window=_WINDOW,
        largest=_WINDOW,
    )
    try:
        answer = connection.answer
        cookies.take(url, answer.headers, time.time())
        if answer.status != _OK:
            return answer.status, _location(connection), b""
        if answer.field(b"content-encoding").strip().lower() not in {"", "identity"}:
            raise NotProved(f"{url} is compressed, which was not asked for")
        return _OK, b"", await _body(connection)
    finally:
        connection.close()
        pool.release(connection)


async def _body(connection: Connection) -> bytes:
    body = bytearray()
    with suppress(Unclosed):  # what is exactly the secret is not cut
        while len(body) <= BODY_MAX and (pieces := await connection.more()):
            for piece in pieces:
                body += piece
    if len(body) > BODY_MAX:
        raise NotProved(f"the file has more than {BODY_MAX} bytes")
    return bytes(body)


def _location(connection: Connection) -> bytes:
    found = (value for name, value in connection.answer.headers if name.lower() == b"location")
    return next(found, b"")
