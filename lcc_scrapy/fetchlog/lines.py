"""The lines of the fetch log: one JSON object for each outcome of a fetch, in the order of settling.

Every value is cut to a length, so that no line is longer than ``LINE_MAX`` bytes. Control characters and
what is not ASCII are escaped, as JSON has it; passwords in URLs are blanked.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii

from lcc_scrapy.domain.entries import MIMETYPE_MAX
from lcc_scrapy.domain.errors import text_of
from lcc_scrapy.domain.printable import without_passwords
from lcc_scrapy.domain.queue import Cancelled, Failed, NotModified, Outcome, Served
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.queue.settlement import DISCARDED, LOST, Settled

REASON_MAX = 300
"""Characters of a reason."""

LINE_MAX = 32_768
"""Bytes of a line: two URLs, a reason and a type, every character of them escaped, and 2 kB beside."""

_NOT_MODIFIED = 304
_WHY = {
    DISCARDED: "not needed any more: something newer was submitted",
    LOST: "the turn belonged to another worker by then: fetched again",
}


def lines_of(settled: Iterable[Settled], now: float) -> list[str]:
    """Return a line for each outcome of a fetch; ``now`` (epoch seconds) is when they were made durable.

    What was cancelled before it was fetched has none.
    """
    time = written(now)
    return [_line(one, time) for one in settled if not isinstance(one.outcome, Cancelled)]


def written(at: float) -> str:
    """Return epoch seconds as lines have them: in UTC, to be compared as texts."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _line(settled: Settled, time: str) -> str:
    outcome = settled.outcome
    ticket = outcome.ticket
    row, trip = ticket.row, ticket.trip
    final = outcome.answer.final_url if trip.hops and isinstance(outcome, Served) else ""
    line = (
        f'{{"time":"{time}","pid":{row.pid},"result":"{settled.result}","code":{_code(settled)},'
        f'"bytes":{trip.transferred},"ms":{trip.ms},"url":{_text(row.furl, URL_MAX)},'
        f'"type":{_text(_type(settled), MIMETYPE_MAX)},"digest":"{_digest(settled)}","hops":{trip.hops},'
        f'"reason":{_text(_reason(settled), REASON_MAX)},"psetid":{row.psetid},"tries":{row.tries}'
        f"{_final(final)}}}"
    )
    return line.replace("\x7f", "\\u007f")


def _final(url: str) -> str:
    return f',"final":{_text(url, URL_MAX)}' if url else ""


def _text(text: str, most: int) -> str:
    return encode_basestring_ascii(without_passwords(text)[:most] if "@" in text else text[:most])


def _code(settled: Settled) -> int:
    if settled.code:
        return settled.code
    outcome = settled.outcome
    if isinstance(outcome, Served):
        return outcome.answer.status
    return _NOT_MODIFIED if isinstance(outcome, NotModified) else _given(outcome)


def _given(outcome: Outcome) -> int:
    return int(getattr(outcome, "code", 0))


def _type(settled: Settled) -> str:
    outcome = settled.outcome
    if isinstance(outcome, Served):
        return outcome.answer.served_type
    return settled.row.served_type if settled.row is not None and isinstance(outcome, NotModified) else ""


def _digest(settled: Settled) -> str:
    outcome = settled.outcome
    if isinstance(outcome, Served):
        return f"sha256:{outcome.body.sha256}"
    confirmed = settled.row if isinstance(outcome, NotModified) else None
    return f"sha256:{confirmed.sha256}" if confirmed is not None else ""


def _reason(settled: Settled) -> str:
    """Return why it is not simply stored; empty where it is."""
    outcome = settled.outcome
    said = _WHY.get(settled.result, "")
    if not settled.code:
        return said
    detail = said or (outcome.detail if isinstance(outcome, Failed) else getattr(outcome, "detail", ""))
    text = text_of(settled.code)
    return f"{text}: {detail}" if detail else text
