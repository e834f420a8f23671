"""The queue's rules (seed 003 section 6 "Arriving URLs", "Some Notes"; design section 5).

A URL waits in ``qdb`` until its update or removal has been done. Its place is that of its first
submission; its data is that of the newest; its *version* rises with every arrival, so that whoever
settles a fetch can tell whether something arrived meanwhile. An equal declaration changes neither place nor
tries: a URL is asked for a bounded number of times, however often its provider says the same.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lcc_scrapy.domain.cache import OUTSIDE_ROOTS, Answer, Body, CachedUrl
from lcc_scrapy.domain.entries import ANY_TYPE, Declared, Origin, UrlEntry, served_mimetype, urlkey
from lcc_scrapy.domain.headers import length_of
from lcc_scrapy.domain.retries import NO_BACKOFF, Backoff, Blamed
from lcc_scrapy.domain.values import quickly_made

_RECHECKS = frozenset({Origin.SAMPLE, Origin.REFETCH})
_PUSHED = frozenset({Origin.PUSH, *_RECHECKS})

FETCH = "fetch"
NOTHING = "nothing"

END_OF_SET = 1 << 40
"""Added to the position of a URL that has to try again: behind every fresh one of its set, in order."""

DUE = 1
"""In ``not_before``: the URL may try again by now. Such rows have an order of their own (``window_rows``)."""


@quickly_made
@dataclass(frozen=True, slots=True)
class QueuedUrl:
    """One row of ``qdb``.

    ``not_before`` (epoch seconds) is 0 unless the URL tries again: then it is when, ``DUE`` once that came.
    """

    urlkey: bytes
    pid: int
    curl: str
    mimetype: str
    subtype: str
    burl: str | None
    furl: str
    mtime: int | None
    len: int | None
    md5: str | None
    timeofday: str
    psetid: int
    position: int
    operation: str
    version: int
    tries: int
    not_before: int
    origin: str = Origin.PUSH
    seen: int = 0
    sent: str | None = None
    """The form of what it was submitted with (``domain.sent``); None = not known."""
    last_etag: str = ""
    """The strong entity tag of the bytes that came last, in place of what was declared."""

    @property
    def declared(self) -> Declared:
        """What the provider declared about the content now waited for."""
        return Declared(self.mtime, self.len, self.md5)


STATE = ("psetid", "position", "version", "seen", "not_before")
"""Where these are the same in two rows of a URL, all is: one was read while the other one was there."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a newly arrived URL queues: its provider set and its position in it.

    ``named``: whether that is a set that its provider, or a spider, made; an operator's names nothing, and
    keeps no URL in the cache that a full set leaves out.
    """

    psetid: int
    position: int
    origin: str = Origin.PUSH
    named: bool = True


@dataclass(slots=True)
class Trip:
    """What a fetch took, noted while it goes on; nothing but the fetch log rests on that.

    ``ms``: milliseconds with redirects, robots.txt and pauses for bandwidth; ``transferred``: bytes charged;
    ``hops``: redirects followed.
    """

    ms: int = 0
    transferred: int = 0
    hops: int = 0


@quickly_made
@dataclass(frozen=True, slots=True)
class Ticket:
    """Permission to fetch one URL once: the row as it was when leased, with the lease's token.

    ``etag`` and ``last_modified`` are set when a copy exists and the declaration does not say that it
    changed, or when other bytes came last time: the fetch is then conditional. ``validated`` is the URL whose
    answer brought them, empty = the fetch URL: no other one is asked conditionally.
    """

    row: QueuedUrl
    turnkey: str
    token: int
    etag: str = ""
    last_modified: str = ""
    validated: str = ""
    trip: Trip = field(default_factory=Trip, compare=False, repr=False)

    @property
    def is_retry(self) -> bool:
        """Whether the URL was asked for before: caches on the way are then to ask its site."""
        return self.row.tries > 0

    @property
    def host(self) -> str:
        """Return the host (``host:port``, as submitted) that is asked first."""
        return host_of(self.row.furl)


def host_of(furl: str) -> str:
    """Return the host of a fetch URL, with its port where that is not the usual one."""
    return furl.partition("://")[2].partition("/")[0]


# --- outcomes of a fetch -------------------------------------------------------------------------


@quickly_made
@dataclass(frozen=True, slots=True)
class Served:
    """A complete body was served; its ``fileid`` is given when it is settled.

    ``rendition`` is what a browser made of the page, as if that had been served.
    """

    ticket: Ticket
    answer: Answer
    body: Body
    fileid: int = 0
    rendition: "Served | None" = None


@dataclass(frozen=True, slots=True)
class NotModified:
    """The site said that the copy is still right (304)."""

    ticket: Ticket
    at: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The fetch failed with a wire code; whether it is tried again is for ``retries`` to say.

    ``alone``: its host answers, so that what looked like a failure of the host was one of this URL.
    """

    ticket: Ticket
    code: int
    detail: str
    at: int
    final: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The row said "nothing" when its turn came."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Delayed:
    """The host failed: the URL keeps its place and waits, with all others of its host (``backoff``).

    ``until`` (epoch seconds) is what the site asked for this URL alone, 0 = nothing.
    """

    ticket: Ticket
    code: int
    detail: str
    at: int
    backoff: Backoff = NO_BACKOFF
    until: int = 0


@dataclass(frozen=True, slots=True)
class HostNoted:
    """What is known of the host of a ticket has changed. ``blamed``: URLs that failed, though it answers."""

    ticket: Ticket
    backoff: Backoff
    at: int
    blamed: tuple[Blamed, ...] = ()


Fetch = Served | NotModified | Failed | Cancelled | Delayed
Outcome = Fetch | HostNoted


def bodies_of(outcomes: Iterable[Outcome]) -> Iterator[Served]:
    """Yield all that is to have a content file: what was served, each before its rendition."""
    for one in outcomes:
        if isinstance(one, Served):
            yield one
            if one.rendition is not None:
                yield one.rendition


# --- arrival -------------------------------------------------------------------------------------


def update_row(entry: UrlEntry, key: bytes, pid: int, place: Place) -> QueuedUrl:
    """Make the row of an update that is new to the queue."""
    return QueuedUrl(
        key,
        pid,
        entry.curl,
        entry.mimetype,
        entry.subtype,
        entry.burl,
        entry.furl,
        entry.declared.mtime,
        entry.declared.length,
        entry.declared.md5,
        entry.timeofday,
        place.psetid,
        place.position,
        FETCH,
        1,
        0,
        0,
        place.origin,
        place.psetid if place.named else 0,
        entry.sent,
    )


def arrive_again(row: QueuedUrl, entry: UrlEntry, place: Place) -> QueuedUrl:
    """Give a waiting row the newest data.

    Its place is again that of its first submission, with all its tries, unless the declaration is the same.
    """
    again = _newest(row, entry, place)
    if row.operation == FETCH and row.origin == place.origin and same_declaration(row, again):
        return again
    return replace(again, position=row.position % END_OF_SET, tries=0, not_before=0, last_etag="")


def _newest(row: QueuedUrl, entry: UrlEntry, place: Place) -> QueuedUrl:
    return replace(
        row,
        subtype=entry.subtype,
        burl=entry.burl,
        furl=entry.furl,
        mtime=entry.declared.mtime,
        len=entry.declared.length,
        md5=entry.declared.md5,
        timeofday=entry.timeofday,
        operation=FETCH,
        version=row.version + 1,
        origin=place.origin,
        seen=place.psetid if place.named else row.seen,
        sent=entry.sent,
    )


def same_declaration(one: QueuedUrl, other: QueuedUrl) -> bool:
    """Tell whether two rows of a URL declare the same; the mtime does not count."""
    return (one.furl, one.md5, one.len) == (other.furl, other.md5, other.len)


def once(row: QueuedUrl, delays: Sequence[float], not_before: float, etag: str = "") -> QueuedUrl:
    """Let a new row be asked for once, for the tries of what it declares were used up before."""
    return replace(row, tries=len(delays), not_before=int(not_before), last_etag=etag)


def at_once(row: QueuedUrl) -> QueuedUrl:
    """Let a URL that waits to try again be fetched in its first place, with the tries that it has left."""
    return replace(row, position=row.position % END_OF_SET, version=row.version + 1, not_before=0)


def take_over(row: QueuedUrl, entry: UrlEntry, key: bytes, place: Place) -> QueuedUrl:
    """Give the place of a URL that a spider found to the update of it that its provider sent."""
    return replace(arrive_again(row, entry, place), urlkey=key, curl=entry.curl, mimetype=entry.mimetype)


def cancel(row: QueuedUrl, psetid: int) -> QueuedUrl:
    """Turn a waiting fetch into "nothing": a removal arrived."""
    return replace(row, operation=NOTHING, version=row.version + 1, not_before=0, seen=psetid)


def is_unchanged(entry: UrlEntry, cached: CachedUrl, *, strict_mtime: bool) -> bool:
    """Tell whether an update need not be fetched because the cache already holds what is declared.

    It is compared with what is held, not with what was declared before. What is held because it lies outside
    the roots is fetched again, from wherever it lies now.
    """
    served = Declared(cached.mtime, cached.fetched_len, cached.fetched_md5)
    same = entry.declared.same_content(served, strict_mtime=strict_mtime)
    return same and cached.held != OUTSIDE_ROOTS


def confirmed_by(entry: UrlEntry, cached: CachedUrl, psetid: int, now: int) -> CachedUrl:
    """Record what a provider said of an unchanged document: hours, mtime, links; never its content."""
    return replace(
        cached,
        subtype=entry.subtype,
        burl=entry.burl,
        furl=entry.furl,
        mtime=entry.declared.mtime if entry.declared.mtime is not None else cached.mtime,
        len=entry.declared.length,
        md5=entry.declared.md5,
        timeofday=entry.timeofday,
        confirmed_time=now,
        origin=Origin.PUSH,
        seen=psetid,
        held=0,
    )


def users_notice(before: CachedUrl, after: CachedUrl) -> bool:
    """Tell whether content users must hear of a change of the row."""
    return (before.subtype, before.burl, before.furl, before.fetched_fileid) != (
        after.subtype,
        after.burl,
        after.furl,
        after.fetched_fileid,
    )


# --- settling ------------------------------------------------------------------------------------


def overtaken(row: QueuedUrl | None, ticket: Ticket) -> bool:
    """Tell whether something arrived for the URL while it was being fetched, or it was settled before.

    What says which content it means, and means that which was being fetched, is no news.
    """
    if row is None or row.psetid != ticket.row.psetid:
        return True
    known = row.md5 is not None and row.len is not None
    return row.version != ticket.row.version and not (known and same_declaration(row, ticket.row))


def superseded(row: QueuedUrl, ticket: Ticket) -> bool:
    """Tell whether another declaration arrived meanwhile, so that a failure of this one is of no account."""
    same = row.psetid == ticket.row.psetid and row.origin == ticket.row.origin
    return overtaken(row, ticket) and not (same and same_declaration(row, ticket.row))


def is_found(row: QueuedUrl) -> bool:
    """Tell whether a URL was found, not pushed: its document is then stored as whatever was served."""
    return row.origin not in _PUSHED


def is_declared(row: QueuedUrl, *, is_new: bool) -> bool:
    """Tell whether a URL was declared to exist, by its provider or in a list of its site.

    IndexNow tells of URLs that are gone, too, so that holds for what is new only.
    """
    return row.origin in {Origin.PUSH, Origin.SOURCE} or (is_new and row.origin == Origin.INDEXNOW)


def is_sample(row: QueuedUrl) -> bool:
    """Tell whether a pushed document is sampled: only such looks are counted."""
    return row.origin == Origin.SAMPLE


def is_recheck(row: QueuedUrl) -> bool:
    """Tell whether a pushed document is looked at again without its provider having asked for that."""
    return row.origin in _RECHECKS


def is_among(row: QueuedUrl, keys: Container[bytes]) -> bool:
    """Tell whether a URL is among ``keys``, or the visit whose place it took over."""
    return row.urlkey in keys or urlkey(row.pid, row.furl, ANY_TYPE) in keys


def found_as(row: QueuedUrl, answer: Answer) -> QueuedUrl:
    """Return the row of a found URL under the type that was served; any other row stays as it is."""
    if not is_found(row):
        return row
    mimetype = served_mimetype(answer.served_type)
    return replace(row, urlkey=urlkey(row.pid, row.curl, mimetype), mimetype=mimetype)


def as_told(row: QueuedUrl) -> QueuedUrl:
    """Return the row of a URL that was submitted without a type as a pushed one: the type is known now."""
    return replace(row, origin=Origin.PUSH) if row.origin == Origin.INDEXNOW else row


def as_pushed(row: QueuedUrl, before: CachedUrl) -> QueuedUrl:
    """Return the row of a found URL whose document its provider had pushed: what that declared stays."""
    return replace(
        row,
        subtype=before.subtype,
        burl=before.burl,
        furl=before.furl,
        mtime=before.mtime,
        len=before.len,
        md5=before.md5,
        timeofday=before.timeofday,
        origin=before.origin,
    )


def as_rechecked(row: QueuedUrl, before: CachedUrl) -> QueuedUrl:
    """Return the row of a pushed document that was looked at again: what its provider declared stays.

    The visit does not count as a set that names it: a full set that does not still removes it.
    """
    return replace(as_pushed(row, before), seen=before.seen)


def answered_by(row: QueuedUrl, body: Body) -> bool:
    """Tell whether a newer declaration already describes the body that was just stored."""
    return row.declared.same_content(Declared(None, body.length, body.md5))


def declared_by(row: QueuedUrl, served: Served) -> QueuedUrl:
    """Return the row whose declarations a stored body takes over: the newest one that speaks of it."""
    newest = not overtaken(row, served.ticket) or answered_by(row, served.body)
    return row if newest else replace(served.ticket.row, seen=row.seen)


def stored_row(served: Served, said: QueuedUrl, before: CachedUrl | None, machineid: int) -> CachedUrl:
    """Make the ``lccurl`` row of a stored body, declared as ``said``.

    Identical content keeps its file, time and seq. A removal that is held stays held: whatever arrives
    after it has ended the hold already. Only ``OUTSIDE_ROOTS`` ends, for nothing is fetched from there.
    """
    answer, body = served.answer, served.body
    same = before is not None and before.sha256 == body.sha256
    return CachedUrl(
        said.urlkey,
        said.pid,
        said.curl,
        said.mimetype,
        said.subtype,
        said.burl,
        said.furl,
        said.mtime,
        said.len,
        said.md5,
        said.timeofday,
        before.fetched_time if same and before else answer.answered,
        before.fetched_machineid if same and before else machineid,
        before.fetched_fileid if same and before else served.fileid,
        body.length,
        body.md5,
        body.sha256,
        answer.served_type,
        answer.served_charset,
        before.file_encoding if same and before else body.encoding,
        answer.final_url,
        answer.etag,
        answer.last_modified,
        answer.answered,
        said.origin,
        before.seq if before else 0,
        max(said.seen, before.seen) if before else said.seen,
        0 if is_found(said) else still_held(before),
        before.subtype_seq if before else 0,
        length_of(answer.headers),
        before.owners_seq if before else 0,
        before.confirmed_seq if same and before else 0,
    )


def still_held(before: CachedUrl | None) -> int:
    """Return the hold that is left on a pushed document after its site has answered."""
    return 0 if before is None or before.held == OUTSIDE_ROOTS else before.held


def confirmed_row(outcome: NotModified, seen: int, before: CachedUrl) -> CachedUrl:
    """Make the ``lccurl`` row after a 304: declared values and confirmation change, content does not."""
    ticket = outcome.ticket.row
    if is_recheck(ticket):
        return replace(before, confirmed_time=outcome.at)
    return replace(
        before,
        subtype=ticket.subtype,
        burl=ticket.burl,
        furl=ticket.furl,
        mtime=ticket.mtime,
        len=ticket.len,
        md5=ticket.md5,
        timeofday=ticket.timeofday,
        confirmed_time=outcome.at,
        origin=ticket.origin,
        seen=max(seen, before.seen),
        held=0 if is_found(ticket) else still_held(before),
    )


def unlike_declared(row: QueuedUrl, before: CachedUrl, at: int) -> CachedUrl:
    """Make the ``lccurl`` row of a copy that stays though its site serves something else than declared.

    The document exists, and the row says what was declared of it; content and the rest stay.
    """
    return replace(
        before,
        mtime=row.mtime,
        len=row.len,
        md5=row.md5,
        confirmed_time=at,
        seen=max(row.seen, before.seen),
        held=still_held(before),
    )


def try_again(row: QueuedUrl, at: float, etag: str = "") -> QueuedUrl:
    """Mark a URL "bad" and send it to the end of its set part, to be tried from ``at`` on.

    ``etag`` is that of the bytes that came in place of what was declared.
    """
    position = row.position % END_OF_SET + END_OF_SET * (row.tries + 1)
    return replace(row, tries=row.tries + 1, not_before=int(at) or DUE, position=position, last_etag=etag)


def once_more(row: QueuedUrl, at: float) -> QueuedUrl:
    """Let a URL whose last try failed be asked for once more: it was declared again during that."""
    return replace(row, not_before=int(at) or DUE, last_etag="")


# --- mismatches ----------------------------------------------------------------------------------

_SAME_TYPE = (
    frozenset({"text/xml", "application/xml"}),
    frozenset({"text/javascript", "application/javascript", "application/x-javascript"}),
    frozenset({"application/xhtml+xml", "text/html"}),
    frozenset({"application/gzip", "application/x-gzip"}),
    frozenset({"application/ms-word", "application/msword"}),
)
_SAYS_NOTHING = {"", "application/octet-stream"}


def mismatch(row: QueuedUrl, answer: Answer, body: Body) -> int:
    """Return 607 or 608 when the served document is not the declared one, else 0."""
    if answer.served_type not in _SAYS_NOTHING and not _is_type(answer.served_type, row.mimetype):
        return 607
    if row.md5 is not None and row.md5 != body.md5:
        return 608
    if row.len is not None and row.len != body.length:
        return 608
    return 0


def _is_type(served: str, declared: str) -> bool:
    if served == declared or declared == "*/*":  # noqa: PLR1714 - a set for each page takes longer
        return True
    return any(served in names and declared in names for names in _SAME_TYPE)
