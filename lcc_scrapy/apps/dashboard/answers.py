"""What pages of the dashboard have in common: errors and their pages, and where a browser goes next."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from lcc_scrapy.apps.dashboard.access import COOKIE, NotPrivate, Visitor
from lcc_scrapy.apps.dashboard.layout import page
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.shares import ShareUsedUp
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone, ContentLost
from lcc_scrapy.providers.registration import NoSuchProvider
from lcc_scrapy.web import html
from lcc_scrapy.web.access import lcc_of
from lcc_scrapy.web.cookies import cookie
from lcc_scrapy.web.forms import CrossSite

NUMBER_MAX = 2**62
DIGITS_MAX = 18


class NotForYou(LccError):
    """Somebody is signed in whose role does not permit this."""

    def __init__(self, action: str) -> None:
        super().__init__(f"your role does not permit `{action}`")


class NoSuchPage(LccError):
    """There is no such page."""

    def __init__(self) -> None:
        super().__init__("there is no such page")


_STATUSES: Mapping[type[LccError], HTTPStatus] = {
    NotPrivate: HTTPStatus.FORBIDDEN,
    CrossSite: HTTPStatus.FORBIDDEN,
    NoSuchProvider: HTTPStatus.NOT_FOUND,
    StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    ShareUsedUp: HTTPStatus.TOO_MANY_REQUESTS,
    NotForYou: HTTPStatus.FORBIDDEN,
    NoSuchPage: HTTPStatus.NOT_FOUND,
    ContentGone: HTTPStatus.NOT_FOUND,
    ContentElsewhere: HTTPStatus.NOT_FOUND,
    ContentLost: HTTPStatus.NOT_FOUND,
}


def now_of(request: Request) -> int:
    """Return the time (epoch seconds)."""
    return int(lcc_of(request).now())


def number(text: str, digits: int = DIGITS_MAX) -> int:
    """Read a number of an address; raises ``NoSuchPage``."""
    if not (text.isascii() and text.isdigit() and len(text) <= digits and int(text) <= NUMBER_MAX):
        raise NoSuchPage
    return int(text)


def sign_in_page(request: Request, error: LccError | None = None) -> Response:
    """Return the page on which somebody signs in, with why that has to be."""
    said = Markup("") if error is None else html.alert(str(error))
    form = Markup(
        '<form class="sign" method="post" action="/dashboard/sign-in">{}{}<button>Sign in</button></form>'
    ).format(
        html.field("name", "Name", "", required=True),
        html.field(
            "password", "Password", "The operator gave it: lcc user add", kind="password", required=True
        ),
    )
    again = Markup("")
    if error is not None and request.method == "GET" and not cookie(request, COOKIE):
        # a browser that follows a link of another site does not show the cookie
        again = html.paragraph('<a href="{path}">I am signed in already: go on</a>', path=request.url.path)
    status = HTTPStatus.OK if error is None else HTTPStatus.UNAUTHORIZED
    return page("Sign in", said + form + again, None, status)


def trouble(error: LccError, whose: Visitor | None) -> Response:
    """Return the page of an error."""
    status = next(
        (its for kind, its in _STATUSES.items() if isinstance(error, kind)), HTTPStatus.UNPROCESSABLE_ENTITY
    )
    away = isinstance(error, StoreUnavailable)
    text = "the database does not answer: try again in some minutes" if away else str(error)
    told = page("Not done", html.alert(text), whose, status)
    if isinstance(error, ShareUsedUp):
        told.headers["Retry-After"] = str(error.seconds)
    return told


def to(path: str) -> Response:
    """Let a browser go on elsewhere."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
