"""Signing in to the pages of owners: a session in a cookie that no script and no other site can use.

The cookie is ``HttpOnly`` and ``SameSite=Strict``; the database knows its SHA-256, and the token that began
the session, with which it ends. Each form carries an HMAC that only who is signed in can have, and has to
come from a page of this server.
"""

import hmac
from dataclasses import dataclass

from fastapi import Request, Response

from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.tokens import ANNOTATE, Token, Tokens, check_known
from lcc_scrapy.login.sessions import Sessions
from lcc_scrapy.web.cookies import cookie
from lcc_scrapy.web.forms import CrossSite, check_origin

COOKIE = "lcc_owner"
PATH = "/my"
LASTS = 30 * 86_400
"""Seconds for which a session lasts; its token may end before."""

SESSIONS = "owner "
"""Of whom these sessions are."""

FORM_KEY = "form"
"""The field of each form that only this server's own pages have."""


class NotSignedIn(LccError):
    """Nobody is signed in."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: the owner of a token that is good."""

    token: Token
    form_key: str

    @property
    def owner(self) -> str:
        """The name of the owner."""
        return self.token.label


def visitor(request: Request, sessions: Sessions, tokens: Tokens, now: int) -> Visitor:
    """Return who asks; raises ``NotSignedIn``, ``Refused`` or ``NotAllowed``. Blocking."""
    shown = cookie(request, COOKIE)
    session = sessions.find(shown, now)
    if session is None:
        raise NotSignedIn("sign in with the token that the operator gave you")
    token = check_known(tokens, tokens.find(session.name), ANNOTATE, now)
    return Visitor(token, _form_key(shown))


def check_form(request: Request, whose: Visitor, given: dict[str, str]) -> dict[str, str]:
    """Return the fields of a form without its key; raises ``CrossSite`` where it is of another page."""
    check_origin(request)
    if not hmac.compare_digest(given.pop(FORM_KEY, "").encode(), whose.form_key.encode()):
        raise CrossSite
    return given


def sign_in(
    request: Request, answer: Response, sessions: Sessions, token: Token, now: int, *, secure: bool
) -> Response:
    """Begin a session for the holder of a good token. Blocking."""
    made = sessions.begin(token.digest, cookie(request, COOKIE), now, LASTS)
    answer.set_cookie(COOKIE, made, LASTS, path=PATH, secure=secure, httponly=True, samesite="strict")
    return answer


def sign_out(request: Request, answer: Response, sessions: Sessions, *, secure: bool) -> Response:
    """End the session of a browser. Blocking."""
    sessions.end(cookie(request, COOKIE))
    answer.delete_cookie(COOKIE, path=PATH, secure=secure, httponly=True, samesite="strict")
    return answer


def _form_key(shown: str) -> str:
    return hmac.digest(shown.encode(), b"form of the pages of an owner", "sha256").hex()
