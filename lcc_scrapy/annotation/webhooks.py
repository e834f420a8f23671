"""Calling webhooks as Standard Webhooks 1.0 says: signed, with a name by which a repetition is known.

Three headers (``webhook-id``, ``webhook-timestamp``, ``webhook-signature``) say what the call is, when it was
sent, and that it comes from here: HMAC-SHA256 of id, timestamp and body. Redirects are not followed. Private
addresses are refused when a connection is made, after DNS. Of an answer only its status counts.
"""

import asyncio
import hmac
import secrets
import time
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from dataclasses import dataclass

from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.http_dates import retry_after_seconds
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.http.draining import drained
from lcc_scrapy.http.outgoing import NoConnection, Outgoing, why
from lcc_scrapy.http.request import Origin, Request

_PREFIX = "whsec_"
_RANDOM_BYTES = 24
_WAIT_MAX = 86_400
_OK = range(200, 300)
_MOVED = range(300, 400)
_GONE = 410


class HookFailed(LccError):
    """A call was not taken; ``retry_after``: seconds for which the hook asks, 0 = it does not."""

    def __init__(self, text: str, retry_after: int = 0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class HookGone(LccError):
    """The hook says that it is gone for good (410): it need not be called again."""


def new_secret() -> str:
    """Make a secret, in the form that libraries of Standard Webhooks take."""
    return _PREFIX + b64encode(secrets.token_bytes(_RANDOM_BYTES)).decode()


def signature(secret: str, name: str, at: int, body: bytes) -> str:
    """Return the signature of a call; ``at`` in epoch seconds."""
    try:
        key = b64decode(secret.removeprefix(_PREFIX), validate=True)
    except BadBase64:
        key = secret.encode()
    signed = b"%s.%d.%s" % (name.encode(), at, body)
    return f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


@dataclass(frozen=True, slots=True)
class Call:
    """What a hook is told. ``name`` is the same whenever this is sent."""

    url: str
    secret: str
    name: str
    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Calls hooks over ``outgoing``, in one event loop."""

    outgoing: Outgoing
    agent: str

    async def call(self, call: Call, at: int, *, seconds: float, private: bool) -> None:
        """Call a hook; it was taken when this returns. Raises ``HookFailed`` or ``HookGone``.

        ``at`` is the time that is signed (epoch seconds). After ``seconds`` no answer is waited for.
        """
        try:
            request = self._request(call, at)
            status, wait = await self._exchange(request, seconds, private=private)
        except UrlRefused as error:
            raise HookFailed(f"its address cannot be used: {error.detail}") from None
        except (HttpError, NoConnection, TimeoutError, ValueError, OSError) as error:
            raise HookFailed(why(error, "its address is private: LCC_ALERT_PRIVATE permits that")) from error
        _judge(status, wait)

    def _request(self, call: Call, at: int) -> Request:
        url = HttpUrl.parse(call.url)
        head = {
            "User-Agent": self.agent,
            "Content-Type": call.media_type,
            "Accept-Encoding": "identity",
            "webhook-id": call.name,
            "webhook-timestamp": str(at),
            "webhook-signature": signature(call.secret, call.name, at, call.body),
            "Idempotency-Key": f'"{call.name}"',
        }
        fields = [(name.encode(), value.encode("latin-1", "replace")) for name, value in head.items()]
        target = url.target
        origin = Origin(url.host, url.port, url.scheme == "https", owner=call.url)
        return Request(origin, target, fields, "POST", call.body)

    async def _exchange(self, request: Request, seconds: float, *, private: bool) -> tuple[int, int]:
        """Send a call; returns the status of the answer, and the seconds for which it asks."""
        pool = self.outgoing.pool(private=private)
        async with asyncio.timeout(seconds):
            connection = await pool.ask(request, patience=seconds, deadline=seconds)
        try:
            await drained(connection)  # the status is enough
            return connection.answer.status, _wait(connection)
        finally:
            pool.release(connection)

    async def close(self) -> None:
        """Close all connections."""
        await self.outgoing.close()


def _wait(connection: Connection) -> int:
    fields = {name.lower(): value.decode("latin-1") for name, value in connection.answer.headers}
    said = fields.get(b"retry-after", "")
    return int(min(retry_after_seconds(said, fields.get(b"date", ""), time.time()), _WAIT_MAX)) if said else 0


def _judge(status: int, wait: int) -> None:
    if status in _OK:
        return
    if status == _GONE:
        raise HookGone("it answers 410 Gone")
    if status in _MOVED:
        raise HookFailed(f"it answers {status}: redirects are not followed, name the final address")
    raise HookFailed(f"it answers {status}", wait)
