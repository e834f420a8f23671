"""Another tracker over HTTP: the manifest of a domain, and the files that it names.

Nothing of it is believed: what comes is counted and summed up while it does. Redirects are not followed.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from typing import IO

from lcc_scrapy.apps.tracker.exchange import MANIFEST_MAX, File, Manifest, manifest_name
from lcc_scrapy.apps.tracker.rules.tracked import VALIDATOR_MAX
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.http_dates import retry_after_seconds
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.http.outgoing import NoConnection, NotPublic, Outgoing
from lcc_scrapy.http.request import Origin, Request
from lcc_scrapy.kit.fetching import reason

PLACE = "exchange/"
"""Where a tracker serves its files, below its URL."""

_OK, _NOT_MODIFIED = 200, 304


class PeerFailed(LccError):
    """A tracker does not give what it should; the text says why.

    ``retry_after``: seconds that it asks for, 0 = none.
    """

    def __init__(self, text: str, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Offer:
    """What a tracker has of a domain, and the ETag of its manifest, empty = none that can be kept."""

    manifest: Manifest
    validator: str


@dataclass(frozen=True, slots=True)
class PeerHttp:
    """A tracker at the URL ``base``, which ends with "/"; ``private``: its addresses may be private.

    ``patience``: seconds of a silence; ``deadline``: those that one answer may take.
    """

    outgoing: Outgoing
    base: HttpUrl
    agent: str
    patience: float
    deadline: float
    private: bool = False

    async def manifest(self, domain: str, validator: str) -> Offer | None:
        """Ask for a manifest; None = it is still that with the validator. Raises as ``file``."""
        known = [(b"If-None-Match", validator.encode())] if validator else []
        async with self._asked(manifest_name(domain), known) as connection:
            status = connection.answer.status
            if status == _NOT_MODIFIED and known:
                return None
            self._check(manifest_name(domain), connection)
            text = BytesIO()
            await _pour(connection, text, MANIFEST_MAX)
            tag = next((value for name, value in connection.answer.headers if name.lower() == b"etag"), b"")
        return Offer(Manifest.parse_of(domain, text.getvalue()), _kept(tag))

    async def file(self, described: File, into: IO[bytes]) -> None:
        """Fetch a file; raises ``PeerFailed``, and ``BadExchange`` for a manifest that is none."""
        async with self._asked(described.name, []) as connection:
            self._check(described.name, connection)
            digest, size = await _pour(connection, into, described.bytes)
        if (digest, size) != (described.sha256, described.bytes):
            raise PeerFailed(f"{self._url(described.name)} is not what the manifest says")

    def _url(self, name: str) -> HttpUrl:
        base = self.base
        return HttpUrl(base.scheme, base.host, base.port, f"{base.path}{PLACE}{name}", "")

    @asynccontextmanager
    async def _asked(self, name: str, fields: list[tuple[bytes, bytes]]) -> AsyncIterator[Connection]:
        url = self._url(name)
        head = [(b"User-Agent", self.agent.encode()), (b"Accept-Encoding", b"identity"), *fields]
        request = Request(Origin(url.host, url.port, url.scheme == "https"), url.path, head)
        pool = self.outgoing.pool(private=self.private)
        try:
            connection = await pool.ask(request, patience=self.patience, deadline=self.deadline)
            try:
                yield connection
            finally:
                pool.release(connection)
        except (HttpError, NoConnection, TimeoutError, ValueError, OSError) as error:
            raise PeerFailed(f"{url}: {_reason(error)}") from None

    def _check(self, name: str, connection: Connection) -> None:
        answer = connection.answer
        if answer.status == _OK:
            return
        said = {field.lower(): value.decode("latin-1") for field, value in answer.headers}
        wait = retry_after_seconds(said.get(b"retry-after", ""), said.get(b"date", ""), time.time())
        raise PeerFailed(f"{self._url(name)} answers {answer.status}", wait)


async def _pour(connection: Connection, into: IO[bytes], most: int) -> tuple[str, int]:
    """Write a body into a file, and return its SHA-256 and size; raises ``ValueError`` where it is longer."""
    digest, size = sha256(), 0
    while pieces := await connection.more():
        for piece in pieces:
            size += len(piece)
            if size > most:
                raise ValueError(f"more than {most} bytes")
            digest.update(piece)
            into.write(piece)
            await asyncio.sleep(0)
    return digest.hexdigest(), size


def _kept(tag: bytes) -> str:
    text = tag.decode("latin-1")
    return text if len(text) <= VALIDATOR_MAX and text.isascii() and text.isprintable() else ""


def _reason(error: BaseException) -> str:
    if isinstance(error, NoConnection) and isinstance(error.cause, NotPublic):
        return "its address is private (LCC_TRACKER_PEERS_PRIVATE)"
    return reason(error)
