"""Who asks: a session in a cookie that no script and no other site can use, or what a trusted proxy says.

The cookie is ``HttpOnly`` and ``SameSite=Strict``; the database knows its SHA-256. Each sign-in makes a new
one. Each form carries an HMAC that only who is signed in can have, and has to come from a page of this
server.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request, Response

from lcc_scrapy.apps.dashboard.settings import DashboardRules
from lcc_scrapy.db.secret_facts import secret_fact
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.users import User, digest_of, is_name
from lcc_scrapy.listeners.peers import LOCAL, is_among, is_here, plain_address
from lcc_scrapy.login.sessions import Sessions
from lcc_scrapy.web.cookies import cookie
from lcc_scrapy.web.forms import CrossSite, check_origin

COOKIE = "lcc_dashboard"
PATH = "/dashboard"
FORM_KEY = "form"
"""The field of each form that only this server's own pages have."""

_FACT = "dashboard key"
_PURPOSE = b"form of the dashboard"


class NotSignedIn(LccError):
    """Nobody is signed in."""


class NotPrivate(LccError):
    """The request came over a network in plain text."""

    def __init__(self) -> None:
        super().__init__(
            "the dashboard is off beyond this machine without TLS: set LCC_HTTP_CERTIFICATE, or put a proxy"
            " with TLS in front and name it in LCC_WEB_PROXIES"
        )


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks. ``by_proxy``: a proxy says so, and there is no session to end."""

    user: User
    form_key: str
    by_proxy: bool = False


class Access:
    """Finds out who asks. Blocking."""

    def __init__(self, store: Store, rules: DashboardRules, proxies: Networks, web_url: str) -> None:
        self._store = store
        self._sessions = Sessions(store)
        self._rules = rules
        self._proxies = proxies
        self._web_url = web_url
        self._key = b""

    def check_private(self, request: Request) -> None:
        """Raise ``NotPrivate`` for what came in plain text from elsewhere, but by a trusted proxy."""
        if not (request.url.scheme == "https" or is_here(_peer(request)) or self._is_proxy(request)):
            raise NotPrivate

    def visitor(self, request: Request, now: int) -> Visitor:
        """Return who asks; raises ``NotPrivate`` or ``NotSignedIn``."""
        self.check_private(request)
        name = self._told_by_proxy(request)
        if name is not None:
            return self._of_proxy(name)
        shown = cookie(request, COOKIE)
        user = self._of_session(shown, now)
        if user is None:
            raise NotSignedIn("sign in to go on")
        return Visitor(user, hmac.digest(shown.encode(), _PURPOSE, "sha256").hex())

    def still_good(self, seen: Sequence[tuple[User, str]], now: int) -> list[bool]:
        """Tell of users with the digests of their sessions ("" = by a proxy) whether all is as it was."""
        with self._store.read() as tx:
            users = {one.name: one for one in tx.users()}
            sessions = tx.sessions({digest for _, digest in seen if digest})
        alive = {digest for digest, session in sessions.items() if now < session.expires} | {""}
        return [users.get(user.name) == user and digest in alive for user, digest in seen]

    def user(self, name: str) -> User | None:
        """Return a user; None = there is none of this name."""
        if not is_name(name):
            return None
        with self._store.read() as tx:
            return tx.user(name)

    def begin(self, request: Request, answer: Response, user: User, now: int) -> Response:
        """Begin a session, and end the one that the browser had: an id from before is never used again."""
        seconds = int(self._rules.session)
        made = self._sessions.begin(user.name, cookie(request, COOKIE), now, seconds)
        answer.set_cookie(
            COOKIE,
            made,
            seconds,
            path=PATH,
            secure=self._is_secure(request),
            httponly=True,
            samesite="strict",
        )
        return answer

    def end(self, request: Request, answer: Response) -> Response:
        """End the session of a browser."""
        self._sessions.end(cookie(request, COOKIE))
        answer.delete_cookie(
            COOKIE, path=PATH, secure=self._is_secure(request), httponly=True, samesite="strict"
        )
        return answer

    def _told_by_proxy(self, request: Request) -> str | None:
        """Return the user that a proxy names; None = none does, and what others write there is ignored."""
        if not (self._rules.user_header and self._is_proxy(request)):
            return None
        told = request.headers.getlist(self._rules.user_header)
        return told[0] if len(told) == 1 and told[0] else None

    def _of_proxy(self, name: str) -> Visitor:
        user = self.user(name)
        if user is None:
            raise NotSignedIn(
                "the proxy names a user who is not known here: see `lcc user add --no-password`"
            )
        self._key = self._key or secret_fact(self._store, _FACT)
        key = hmac.digest(self._key, _PURPOSE + b" " + name.encode(), "sha256").hex()
        return Visitor(user, key, by_proxy=True)

    def _of_session(self, shown: str, now: int) -> User | None:
        session = self._sessions.find(shown, now)
        return None if session is None else self.user(session.name)

    def _is_proxy(self, request: Request) -> bool:
        peer = _peer(request)
        return bool(self._proxies) if peer == LOCAL else is_among(peer, self._proxies)

    def _is_secure(self, request: Request) -> bool:
        return request.url.scheme == "https" or self._web_url.startswith("https://")


def session_digest(request: Request, whose: Visitor) -> str:
    """Return the digest of who is signed in, "" = a proxy says so."""
    return "" if whose.by_proxy else digest_of(cookie(request, COOKIE))


def check_form(request: Request, whose: Visitor, given: dict[str, str]) -> dict[str, str]:
    """Return the fields of a form without its key; raises ``CrossSite`` where it is of another page."""
    check_origin(request)
    if not hmac.compare_digest(given.pop(FORM_KEY, "").encode(), whose.form_key.encode()):
        raise CrossSite
    return given


def _peer(request: Request) -> str:
    return plain_address(request.client.host if request.client else "")
