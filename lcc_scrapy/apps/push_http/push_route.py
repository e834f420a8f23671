"""``POST /v1/push``: one request is one conversation with the UNS."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from lcc_scrapy.apps.push_http.body_codings import CODINGS, Gzip, Plain
from lcc_scrapy.apps.push_http.credentials import BadCredentials, init_of
from lcc_scrapy.apps.push_http.exchange import Exchange
from lcc_scrapy.apps.push_http.json_answers import JsonAnswers
from lcc_scrapy.apps.push_http.json_reader import JsonLines, JsonObject
from lcc_scrapy.apps.push_http.whole_body import WholeBody
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.dialect import Answers, Dialect, Reader
from lcc_scrapy.uns.service import UnsService
from lcc_scrapy.web.problems import problem
from lcc_scrapy.web.sharing import address_of
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import Init

JSON, LINES, XML = "application/json", "application/x-ndjson", "application/xml"

_READERS: dict[str, Callable[[Limits], Reader]] = {
    JSON: JsonObject,
    LINES: JsonLines,
    "application/jsonl": JsonLines,
}
_XML = frozenset({"", XML, "text/xml", "application/octet-stream", "application/x-www-form-urlencoded"})
"""Types of an XML body; the last is what curl says of ``--data-binary`` when nobody says another."""

LOG_IN = {"WWW-Authenticate": 'Basic realm="lcc", charset="UTF-8", Bearer realm="lcc"'}


class NotTaken(Exception):
    """A request that begins no conversation: its status, what to do, and headers."""

    def __init__(self, status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class _Terms:
    """How a request is read and answered."""

    init: Init | None
    reader: Reader
    answers: Answers
    answer_type: str
    coding: Plain | Gzip


class PushRoute:
    """The ASGI application of the path. ``proxies`` are believed about the client's address."""

    def __init__(self, uns: UnsService, proxies: Networks) -> None:
        self._uns = uns
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a push."""
        try:
            terms = self._terms(scope["method"], Headers(scope=scope))
            exchange = self._begin(address_of(scope, self._proxies), terms)
        except NotTaken as error:
            await problem(error.status, str(error), headers=error.headers)(scope, receive, send)
            return
        await exchange.run(receive, send)

    def _begin(self, peer: str, terms: _Terms) -> Exchange:
        dialect = Dialect(terms.reader, terms.answers)
        conversation = self._uns.converse(peer, dialect, terms.init)
        if conversation is None:
            later = {"Retry-After": str(self._uns.limits.retry_after)}
            raise NotTaken(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections: try again later", later)
        return Exchange(conversation, terms.coding, terms.answer_type, LOG_IN)

    def _terms(self, method: str, headers: Headers) -> _Terms:
        if method != "POST":
            raise NotTaken(HTTPStatus.METHOD_NOT_ALLOWED, "POST a set of URLs", {"Allow": "POST"})
        init = _login(headers)
        reader, in_json = _reader(headers, self._uns.limits, init)
        as_json = in_json or JSON in headers.get("accept", "")
        coding = CODINGS.get(headers.get("content-encoding", "").strip().lower())
        if coding is None:
            known = {"Accept-Encoding": "gzip"}
            raise NotTaken(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Encoding: gzip, or none", known)
        return _Terms(
            init,
            reader,
            JsonAnswers() if as_json else writing,
            JSON if as_json else f"{XML}; charset=utf-8",
            coding(),
        )


def _login(headers: Headers) -> Init | None:
    try:
        return init_of(headers.get("authorization", "").encode("latin-1"))
    except BadCredentials as error:
        raise NotTaken(HTTPStatus.UNAUTHORIZED, str(error), LOG_IN) from None


def _reader(headers: Headers, limits: Limits, init: Init | None) -> tuple[Reader, bool]:
    """Return what reads the body, and whether that is JSON; only XML can hold a login."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _XML:
        return WholeBody(limits, logged_in=init is not None), False
    made = _READERS.get(kind)
    if made is None:
        raise NotTaken(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type is {XML}, {JSON} or {LINES}")
    if init is None:
        raise NotTaken(HTTPStatus.UNAUTHORIZED, "a login is needed: Authorization: Basic or Bearer", LOG_IN)
    return made(limits), True
