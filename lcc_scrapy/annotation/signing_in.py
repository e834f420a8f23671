"""Signing in to the pages of owners: the token in a cookie that no script and no other site can use.

The cookie is ``HttpOnly`` and ``SameSite=Strict``. Each form carries an HMAC that only who has the token can
make, and has to come from a page of this server.
"""

import hmac
from dataclasses import dataclass

from fastapi import Request, Response

from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.tokens import ANNOTATE, Token, check
from lcc_scrapy.web.forms import CrossSite, check_origin
from lcc_scrapy.web.ports import Lcc

COOKIE = "lcc_owner"
PATH = "/my"
LASTS = 30 * 86_400
"""Seconds for which a browser keeps the cookie; the token may end before."""

FORM_KEY = "form"
"""The field of each form that only this server's own pages have."""


class NotSignedIn(LccError):
    """There is no cookie with a token."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: the owner of a token that is good."""

    token: Token
    form_key: str

    @property
    def owner(self) -> str:
        """The name of the owner."""
        return self.token.label


def visitor(request: Request, lcc: Lcc) -> Visitor:
    """Return who asks; raises ``NotSignedIn``, ``Refused`` or ``NotAllowed``. Blocking."""
    shown = request.cookies.get(COOKIE, "")
    if not shown:
        raise NotSignedIn("sign in with the token that the operator gave you")
    return Visitor(check(lcc.tokens, shown, ANNOTATE, int(lcc.now())), _form_key(shown))


def check_form(request: Request, whose: Visitor, given: dict[str, str]) -> dict[str, str]:
    """Return the fields of a form without its key; raises ``CrossSite`` where it is of another page."""
    check_origin(request)
    if not hmac.compare_digest(given.pop(FORM_KEY, "").encode(), whose.form_key.encode()):
        raise CrossSite
    return given


def sign_in(answer: Response, shown: str, *, secure: bool) -> Response:
    """Keep a token, which was found to be good, in the browser."""
    answer.set_cookie(COOKIE, shown, LASTS, path=PATH, secure=secure, httponly=True, samesite="strict")
    return answer


def sign_out(answer: Response, *, secure: bool) -> Response:
    """Take the token from the browser."""
    answer.delete_cookie(COOKIE, path=PATH, secure=secure, httponly=True, samesite="strict")
    return answer


def _form_key(shown: str) -> str:
    return hmac.digest(shown.encode(), b"form of the pages of an owner", "sha256").hex()
