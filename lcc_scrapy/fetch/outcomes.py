"""What an answer, or its absence, means for the URL that was fetched."""

import logging
import time
from collections.abc import Sequence

from lcc_scrapy.domain import headers, retries
from lcc_scrapy.domain.cache import CHARSET_MAX, Answer
from lcc_scrapy.domain.content_types import type_of
from lcc_scrapy.domain.entries import MIMETYPE_MAX
from lcc_scrapy.domain.http_status import KNOWN, understood
from lcc_scrapy.domain.queue import Failed, NotModified, Outcome, Ticket
from lcc_scrapy.fetch.client import DOCUMENT
from lcc_scrapy.fetch.pacing import FetchAborted
from lcc_scrapy.fetch.turn import TurnDelayed, code_of, short

_log = logging.getLogger(__name__)

NOT_MODIFIED = 304
NO_DOCUMENT = 614
NOT_STORED = 616
UNUSABLE_3XX = 613


def now() -> int:
    """Return the time in epoch seconds."""
    return int(time.time())


def not_served(ticket: Ticket, status: int, *, conditional: bool) -> Outcome | None:
    """Return what an answer means that brings no document; None when it does bring one.

    ``conditional``: whether its request was; else a 304 confirms nothing.
    """
    if status in DOCUMENT:
        return None
    if status == NOT_MODIFIED and conditional:
        return NotModified(ticket, now())
    detail = f"the site answers {status}" if status not in KNOWN else ""
    return failed(ticket, _code_of_status(status), detail)


def not_answered(ticket: Ticket, error: BaseException) -> Failed | None:
    """Return what an error means; None when the URL waits in its place and there is nothing to settle."""
    if isinstance(error, (TurnDelayed, FetchAborted)):
        return None
    code = code_of(error)
    return failed(ticket, code, repr(error) if code == NOT_STORED else str(error))


def failed(ticket: Ticket, code: int, detail: str) -> Failed:
    """Return the failure of a fetch; a host-level one gets this far only when it is final."""
    if code == NOT_STORED:
        row = ticket.row
        what = {"url": row.furl, "detail": detail, "code": code, "pid": row.pid, "psetid": row.psetid}
        _log.error("not stored, because this program failed: %(url)s (%(detail)s)", what)
    final = retries.is_host_level(code) and not retries.is_its_own(code, ticket.row.tries)
    return Failed(ticket, code, short(detail), now(), final)


def _code_of_status(status: int) -> int:
    status = understood(status)
    if status >= 400:  # noqa: PLR2004
        return status
    return UNUSABLE_3XX if status >= 300 else NO_DOCUMENT  # noqa: PLR2004


def status_line(protocol: str, status: int, reason: str) -> str:
    """Return a status line as it was served; ``reason`` are the words at its end, often none."""
    return f"{protocol or 'HTTP/1.1'} {status} {reason}".rstrip()


def answer_of(  # noqa: PLR0917
    status: int, url: str, fields: Sequence[tuple[bytes, bytes]], line: str, peer: str, untyped: str = ""
) -> Answer:
    """Return what is kept of an answer beside its body.

    ``fields`` are its headers in the order they came; ``line`` is its status line (``status_line``);
    ``untyped`` is the mimetype that counts where the site says none.
    """
    first = {name.lower(): value for name, value in reversed(fields)}
    served = type_of(fields)
    return Answer(
        status,
        url,
        (served.mimetype or untyped)[:MIMETYPE_MAX],
        served.charset.lower()[:CHARSET_MAX],
        first.get(b"etag", b"").decode("latin-1"),
        first.get(b"last-modified", b"").decode("latin-1"),
        headers.kept(fields),
        line,
        peer,
        now(),
    )
