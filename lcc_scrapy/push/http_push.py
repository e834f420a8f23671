"""A conversation with an LCC over HTTP: ``POST /v1/push``, once to log in and once for the set.

The first request has an empty body: its answer says what a login says. The second one brings the set. Both
have the password; the LCC counts each as a login.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from lcc_scrapy.push import web
from lcc_scrapy.push.answers import AnswerReader, NotAnAnswer
from lcc_scrapy.push.client import Verdict, blocks
from lcc_scrapy.push.http_reader import HttpReader
from lcc_scrapy.push.link import Lost, Unreachable
from lcc_scrapy.wire.messages import Init, InitAccepted, InitRejected, SetRejected, SetStart, UrlError

PATH = "/v1/push"
DETAIL_MAX = 64 * 1024
"""Bytes of an answer that is no XML; more is not read."""
_SHOWN = 500
_REFUSED, _TOO_MANY = frozenset({401, 403}), 429
_NOT_AUTHORISED, _LATER, _NOT_UNDERSTOOD = 101, 103, 105


@dataclass(frozen=True)
class HttpServer:
    """An LCC that takes pushes over HTTP; ``url`` is that of its push endpoint."""

    url: web.HttpUrl

    @classmethod
    def parse(cls, text: str) -> HttpServer:
        """Read ``https://lcc.example.org/``, maybe with a folder; raises ValueError."""
        url = web.HttpUrl.parse(text)
        if "?" in url.path:
            raise ValueError(text)
        path = url.path if url.path.endswith(PATH) else url.path.rstrip("/") + PATH
        return cls(replace(url, path=path))

    def __str__(self) -> str:
        return str(self.url)

    @property
    def logins_of_a_set(self) -> int:
        """The request with the set logs in again."""
        return 1

    def connect(self, timeout: float, tls: ssl.SSLContext | None) -> HttpConversation:
        """Return a conversation; each of its requests has a connection of its own."""
        return HttpConversation(self.url, web.Dial(timeout, tls))


class HttpConversation:
    """Used once, from `login` to `close`."""

    def __init__(self, url: web.HttpUrl, dial: web.Dial) -> None:
        self._url = url
        self._dial = dial
        self._who = Init("", "")
        self.later_login: InitAccepted | None = None

    def login(self, message: Init) -> InitAccepted | InitRejected:
        """Introduce oneself; raises `Unreachable` when this is no LCC, `Lost` when it goes away."""
        self._who = message
        said = self._post(lambda _is_sent: b"", lambda _error: None)
        if said.login is not None:
            return said.login
        if said.status in _REFUSED:
            return InitRejected(_NOT_AUTHORISED, said.reason)
        if said.is_busy:
            return InitRejected(_LATER, said.reason, said.retry_after)
        where = f"{self._url}: {said.reason}"
        if said.location:
            raise Unreachable(f"{where}: it redirects to {said.location}; name that server instead")
        raise Unreachable(f"{where}: what answers there takes no pushes")

    def submit(self, start: SetStart, urls: Iterable[bytes], on_error: Callable[[UrlError], None]) -> Verdict:
        """Send a set; ``on_error`` is called for each refused URL as its refusal comes in.

        Raises `Lost` when there is no verdict: the set may have been taken or not.
        """
        said = self._post(lambda is_sent: blocks(start, urls, is_sent), on_error)
        if isinstance(said.login, InitAccepted):
            self.later_login = said.login
        if said.verdict is not None:
            return said.verdict
        if isinstance(said.login, InitRejected):
            return SetRejected(said.login.code, said.login.reason, said.login.retry_after)
        if said.is_busy:
            return SetRejected(_LATER, said.reason, said.retry_after)
        if said.status >= 400:  # noqa: PLR2004 - all that the HTTP of a client's fault is
            return SetRejected(_NOT_AUTHORISED if said.status in _REFUSED else _NOT_UNDERSTOOD, said.reason)
        raise Lost(f"the answer of {self._url} says nothing of the set ({said.reason})")

    def _post(
        self,
        body: Callable[[Callable[[bytes], None]], bytes | Iterable[bytes]],
        on_error: Callable[[UrlError], None],
    ) -> _Said:
        """Ask; ``body`` makes the body, and hands each block of a set to its argument before it goes out."""
        pair = f"{self._who.provider_id}:{self._who.password}".encode()
        headers = {
            "Authorization": "Basic " + base64.b64encode(pair).decode(),
            "Content-Type": "application/xml",
            "Accept": "application/xml",
        }
        said = _Said(on_error)
        request = web.Request(self._url, "POST", headers, body(said.reader.is_sent))
        said.ended(web.exchange(request, self._dial, said.take, said.is_settled))
        return said

    def close(self) -> None:
        """Nothing is open any more."""


class _Said:
    """What the LCC answers to one request."""

    def __init__(self, on_error: Callable[[UrlError], None]) -> None:
        self._on_error = on_error
        self.reader = AnswerReader()
        self._other = bytearray()
        self.login: InitAccepted | InitRejected | None = None
        self.verdict: Verdict | None = None
        self.status = 0
        self.is_busy = False
        self.retry_after = 0
        self.reason = ""
        self.location = ""

    def is_settled(self, _reader: HttpReader) -> bool:
        return (
            self.verdict is not None or isinstance(self.login, InitRejected) or len(self._other) >= DETAIL_MAX
        )

    def take(self, reader: HttpReader, body: bytes) -> None:
        kind = reader.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in {"application/xml", "text/xml"}:
            self._other.extend(body[: DETAIL_MAX - len(self._other)])
            return
        try:
            for answer in self.reader.feed(body):
                self._note(answer)
        except NotAnAnswer as error:
            raise Lost(f"the answer cannot be read ({error})") from None

    def _note(self, answer: InitAccepted | InitRejected | UrlError | Verdict) -> None:
        if isinstance(answer, UrlError):
            self._on_error(answer)
        elif isinstance(answer, (InitAccepted, InitRejected)):
            self.login = self.login or answer
        else:
            self.verdict = self.verdict or answer

    def ended(self, reader: HttpReader) -> None:
        self.status, self.retry_after = reader.status, web.retry_after(reader)
        self.is_busy = reader.status == _TOO_MANY or reader.is_passing
        self.location = reader.headers.get("location", "")[:_SHOWN] if 300 <= reader.status < 400 else ""  # noqa: PLR2004
        self.reason = f"HTTP {reader.said}{detail(bytes(self._other))}"
        if isinstance(self.login, InitRejected) and not self.login.retry_after:
            self.login = replace(self.login, retry_after=self.retry_after)
        if isinstance(self.verdict, SetRejected) and not self.verdict.retry_after:
            self.verdict = replace(self.verdict, retry_after=self.retry_after)


def detail(body: bytes) -> str:
    """Return what a problem document (RFC 9457) says, behind a colon; "" for anything else."""
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
        if isinstance(found, dict):
            said = found.get("detail") or found.get("title") or ""
            return f": {str(said)[:_SHOWN]}" if said else ""
    return ""
