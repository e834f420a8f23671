"""The requests of one fetch: the first one, and one for each redirect, within the roots of the provider.

Headers belong to one URL. Conditions go to the URL whose answer brought the validators, and to no other:
``/latest`` may lead to another document today. Each request passes the components of a project anew, without
what they added to the one before. Cookies of earlier answers go back to their host (``cookies``).
"""

import time

from scrapy import Request
from scrapy.http import Response

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.printable import without_passwords
from lcc_scrapy.domain.providers import Render
from lcc_scrapy.domain.queue import Ticket, Trip
from lcc_scrapy.domain.references import redirect
from lcc_scrapy.domain.rendering import may_be_page
from lcc_scrapy.domain.roots import HttpUrl, inside, not_below, parsed_again
from lcc_scrapy.fetch.client import Fields
from lcc_scrapy.fetch.download_handler import BODY, CONDITIONAL, fields_of, give, location_of
from lcc_scrapy.fetch.turn import FetchFailed
from lcc_scrapy.http.cookies import Cookies
from lcc_scrapy.queue.leases import Member

_OF_THE_FIRST_ORIGIN = frozenset({b"authorization", b"cookie"})
"""What a project's settings give to each request, and another origin must not get after a redirect."""


class Chain:
    """Makes the requests of one fetch, in the order in which its site leads on."""

    def __init__(self, request: Request, ticket: Ticket, member: Member) -> None:
        """Begin where a ticket begins; raises ``FetchFailed`` 704 where its fetch may no longer."""
        self._ticket = ticket
        self._member = member
        self._url = self._first = _first_target(ticket, member)
        self._fields = fields_of(request)
        self._cookies = Cookies()
        self.request = request
        self._meta = dict(request.meta)
        self._carry()

    def follow(self, response: Response) -> None:
        """Go on where an answer leads; raises ``FetchFailed`` 613 (nowhere) or 605 (outside of the roots)."""
        self._cookies.take(self._url, fields_of(response), time.time())
        self._url = redirect_target(
            self._ticket.trip, self._url, response.status, location_of(response), self._member
        )
        if not self._first.covers_origin_of(self._url):
            self._fields = [field for field in self._fields if field[0].lower() not in _OF_THE_FIRST_ORIGIN]
        self.request.meta.pop(BODY, None)
        self.request = self.request.replace(url=str(self._url), headers=None, meta=dict(self._meta))
        give(self.request, self._fields)
        self._carry()

    def _carry(self) -> None:
        """Add to the request what its URL gets."""
        conditions = conditions_at(self._ticket, self._member, self._url)
        cookie = self._cookies.field_for(self._url)
        if conditions:
            self.request.meta[CONDITIONAL] = True
        if conditions or cookie:
            give(self.request, [*_with_cookie(self._fields, cookie), *conditions])


def conditions_at(ticket: Ticket, member: Member, url: HttpUrl) -> Fields:
    """Return the conditions of a request for ``url``: the copy's validators, where it came from there.

    A page that a browser renders is asked for unconditionally.
    """
    if not (ticket.etag or ticket.last_modified):
        return ()
    if str(url) != (ticket.validated or ticket.row.furl) or renders(ticket, member):
        return ()
    said = ((b"If-None-Match", ticket.etag), (b"If-Modified-Since", ticket.last_modified))
    return [(name, value.encode("latin-1")) for name, value in said if value]


def _with_cookie(fields: Fields, cookie: bytes) -> Fields:
    """Return fields with a cookie, in the one Cookie header that a request has."""
    if not cookie:
        return fields
    own = [value for name, value in fields if name.lower() == b"cookie"]
    others = [field for field in fields if field[0].lower() != b"cookie"]
    return [*others, (b"Cookie", b"; ".join([*own, cookie]))]


def renders(ticket: Ticket, member: Member) -> bool:
    """Tell whether a browser makes something of what is fetched, where that is a page."""
    return member.provider.render == Render.YES and may_be_page(ticket.row.mimetype)


def _first_target(ticket: Ticket, member: Member) -> HttpUrl:
    url = parsed_again(ticket.row.furl)
    if not inside(url, member.roots):
        raise FetchFailed(704, not_below(member.roots, url))
    return url


def redirect_target(trip: Trip, url: HttpUrl, status: int, location: bytes, member: Member) -> HttpUrl:
    """Return where a redirect leads, and count it in its trip.

    Raises ``FetchFailed`` 613 (nowhere) or 605 (outside of the roots).
    """
    if not location:
        raise FetchFailed(613, f"status {status} without Location")
    try:
        target = redirect(location, url)
    except UrlRefused as error:
        said = without_passwords(location[:1000].decode("utf-8", "backslashreplace"))
        raise FetchFailed(613, f"{said[:200]}: {error}") from None
    if not inside(target, member.roots):
        raise FetchFailed(605, str(target)[:200])
    trip.hops += 1
    return target
