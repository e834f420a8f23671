"""What a crawl and its settling process say to each other: JSON, and bodies as they are.

Messages are those of ``machine.framed_pipes``. Parts are bodies on the way there; on the way back there is
one, all cached rows. Bodies in files are told by their path.

    ["begin", url, folder, holder, content url, factory, pause]  → ["ready"]
    ["commit", now, policy or null, outcomes]    → ["settled", results, logs]
                                                 → ["failed", kind, text, blocks, traceback, logs]
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import Any

from lcc_scrapy.db.sql.sessions import LONGEST_SILENCE
from lcc_scrapy.domain.cache import Answer, Body, CachedUrl, LazyBody, fitting
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import (
    Cancelled,
    Delayed,
    Failed,
    HostNoted,
    NotModified,
    Outcome,
    QueuedUrl,
    Served,
    Ticket,
    bodies_of,
)
from lcc_scrapy.domain.retries import Backoff, Blamed
from lcc_scrapy.domain.revisits import Bounds
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.machine.framed_pipes import encode, written
from lcc_scrapy.queue.committing import Holder
from lcc_scrapy.queue.settlement import Settled

BEGIN, READY, COMMIT, SETTLED, FAILED = "begin", "ready", "commit", "settled", "failed"

# --- the beginning -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a settling process has to know: the database, where contents lie, and who it settles for.

    ``content_factory``: the part of an app that makes the contents at ``content_url``. ``pause``: seconds
    that it may stand still within a commit.
    """

    url: str
    folder: str
    holder: Holder
    content_url: str = ""
    content_factory: str = ""
    pause: float = LONGEST_SILENCE

    def said(self) -> list[Any]:
        """Return it as a message."""
        contents = self.content_url, self.content_factory
        return [BEGIN, self.url, self.folder, asdict(self.holder), *contents, self.pause]


def beginning_of(said: Sequence[Any]) -> Beginning:
    """Make it of what was said."""
    _, url, folder, holder, content_url, content_factory, pause = said
    return Beginning(url, folder, Holder(**holder), content_url, content_factory, pause)


# --- outcomes ------------------------------------------------------------------------------------

_queued: Any = attrgetter(*(field.name for field in fields(QueuedUrl)[1:]))
_answer: Any = attrgetter(*(field.name for field in fields(Answer)))


def commit(outcomes: Sequence[Outcome], now: int, policy: QueuePolicy | None) -> list[bytes]:
    """Return a message with outcomes that are to be settled; ``policy`` where it is another one."""
    bodies = [one.body.to_store for one in bodies_of(outcomes) if not one.body.path]
    said = [COMMIT, now, policy and asdict(policy), [_outcome(one) for one in outcomes]]
    return written(said, bodies)


def fitted(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return outcomes whose answers the cache can hold, which bounds what is said of them."""
    return [_fitted(one) if isinstance(one, Served) else one for one in outcomes]


def _fitted(served: Served) -> Served:
    answer = fitting(served.answer)
    if answer is served.answer:  # else that of its rendition, made of it, does not fit either
        return served
    rendition = served.rendition and _fitted(served.rendition)
    return Served(served.ticket, answer, served.body, served.fileid, rendition)


def _outcome(outcome: Outcome) -> tuple[Any, ...]:
    ticket = outcome.ticket
    row = ticket.row
    whose = (row.urlkey.hex(), _queued(row), ticket.turnkey, ticket.token)
    match outcome:
        case Served():
            body = outcome.body
            of_body = (body.length, body.digests, body.path, body.encoding)
            rendition = outcome.rendition and _outcome(outcome.rendition)
            return ("S", *whose, _answer(outcome.answer), of_body, outcome.fileid, rendition)
        case NotModified():
            return ("N", *whose, outcome.at)
        case Failed():
            return ("F", *whose, outcome.code, outcome.detail, outcome.at, outcome.final)
        case Delayed():
            backoff = _backoff_said(outcome.backoff)
            return ("D", *whose, outcome.code, outcome.detail, outcome.at, backoff, outcome.until)
        case HostNoted():
            return ("H", *whose, _backoff_said(outcome.backoff), outcome.at, _blamed_said(outcome.blamed))
        case Cancelled():
            return ("C", *whose)


def _backoff_said(backoff: Backoff) -> tuple[Any, ...]:
    blamed = _blamed_said(backoff.blamed)
    return (backoff.not_before, backoff.failures, backoff.since, backoff.wait, blamed, backoff.broken)


def _backoff_of(  # noqa: PLR0917
    not_before: float, failures: int, since: float, wait: float, blamed: list[Any], broken: list[int]
) -> Backoff:
    return Backoff(not_before, failures, since, wait, _blamed_of(blamed), tuple(broken))


def _blamed_said(blamed: Iterable[Blamed]) -> list[Any]:
    return [(key.hex(), *rest) for key, *rest in blamed]


def _blamed_of(said: Iterable[Any]) -> tuple[Blamed, ...]:
    return tuple((bytes.fromhex(key), *rest) for key, *rest in said)


def outcomes_of(said: Iterable[Any], bodies: Iterable[bytes]) -> list[Outcome]:
    """Make outcomes of what was said, with the bodies that came with it."""
    parts = iter(bodies)
    return [_outcome_of(*one, parts=parts) for one in said]


def _outcome_of(
    kind: str, urlkey: str, row: list[Any], turnkey: str, token: int, *rest: Any, parts: Iterator[bytes]
) -> Outcome:
    ticket = Ticket(QueuedUrl(bytes.fromhex(urlkey), *row), turnkey, token)
    match kind:
        case "S":
            answer, of_body, fileid, said = rest
            body = _body(*of_body, parts=parts)
            rendition = _outcome_of(*said, parts=parts) if said else None
            assert rendition is None or isinstance(rendition, Served)
            return Served(ticket, Answer(*answer), body, fileid, rendition)
        case "N":
            return NotModified(ticket, *rest)
        case "F":
            return Failed(ticket, *rest)
        case "D":
            code, detail, at, backoff, until = rest
            return Delayed(ticket, code, detail, at, _backoff_of(*backoff), until)
        case "H":
            backoff, at, blamed = rest
            return HostNoted(ticket, _backoff_of(*backoff), at, _blamed_of(blamed))
        case _:
            return Cancelled(ticket)


def _body(
    length: int, digests: list[str] | None, path: str, encoding: str, *, parts: Iterator[bytes]
) -> Body:
    if digests is None:
        return LazyBody(next(parts))
    md5, sha256 = digests
    if path:
        return Body(length, md5, sha256, path=path, encoding=encoding)
    if encoding:
        return Body(length, md5, sha256, encoding=encoding, packed=next(parts))
    return Body(length, md5, sha256, data=next(parts))


def policy_of(said: dict[str, Any]) -> QueuePolicy:
    """Make the operator's choices of what was said."""
    lists = {name: tuple(said[name]) for name in ("retry_delays", "mimetypes")}
    nested = {"versions": Keep(**said["versions"]), "revisits": Bounds(**said["revisits"])}
    return QueuePolicy(**{**said, **lists, **nested})


# --- results -------------------------------------------------------------------------------------

_cached: Any = attrgetter(*(field.name for field in fields(CachedUrl)[1:]))


class _Rows:
    """The cached rows of a commit, made when somebody looks at the first of them."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    @cached_property
    def made(self) -> list[CachedUrl | None]:
        """The row of each result."""
        return [row and CachedUrl(bytes.fromhex(row[0]), *row[1:]) for row in json.loads(self._text)]


class SettledThere(Settled):
    """What became of an outcome in the settling process."""

    __slots__ = ("_number", "_rows")
    _number: int
    _rows: _Rows

    def __init__(
        self,
        outcome: Outcome,
        result: str,
        code: int,
        *,
        removed: bool,
        again: float,
        rows: _Rows,
        number: int,
    ) -> None:
        put = object.__setattr__
        put(self, "outcome", outcome)
        put(self, "result", result)
        put(self, "code", code)
        put(self, "removed", removed)
        put(self, "again", again)
        put(self, "_rows", rows)
        put(self, "_number", number)

    @property
    def row(self) -> CachedUrl | None:
        """The cached row as it is now, if there is one."""
        return self._rows.made[self._number]


def settled(results: Sequence[Settled], logs: Sequence[Any]) -> list[bytes]:
    """Return a message with what became of outcomes."""
    said = [(one.result, one.code, one.removed, one.again, _digests(one.outcome)) for one in results]
    rows = [row and (row.urlkey.hex(), *_cached(row)) for row in (one.row for one in results)]
    return written([SETTLED, said, logs], [encode(rows).encode("ascii")])


def _digests(outcome: Outcome) -> tuple[str, str] | None:
    """Return the digests of a body that were made here, which the crawl does not know."""
    body = outcome.body if isinstance(outcome, Served) else None
    return body.digests if isinstance(body, LazyBody) else None


def settled_of(said: Sequence[Any], parts: Sequence[bytes], outcomes: Sequence[Outcome]) -> list[Settled]:
    """Make results of what was said of these outcomes, and let their bodies know their digests."""
    rows, results = _Rows(*parts), list[Settled]()
    for number, (one, outcome) in enumerate(zip(said, outcomes, strict=True)):
        result, code, removed, again, digests = one
        if digests is not None and isinstance(outcome, Served) and isinstance(outcome.body, LazyBody):
            outcome.body.learn(*digests)
        settled = SettledThere(outcome, result, code, removed=removed, again=again, rows=rows, number=number)
        results.append(settled)
    return results
