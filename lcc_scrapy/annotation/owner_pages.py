"""``/my``: the pages of an owner in ``lcc web``: alerts, profiles, recipients. They need no script."""

import json
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from lcc_scrapy.annotation import owner_html, profile_forms
from lcc_scrapy.annotation.aci_routes import feed_address
from lcc_scrapy.annotation.annotating import Finding
from lcc_scrapy.annotation.feed_keys import FeedKeys
from lcc_scrapy.annotation.interests import Interests
from lcc_scrapy.annotation.recipients import Recipients, Wanted
from lcc_scrapy.annotation.signing_in import (
    COOKIE,
    FORM_KEY,
    SESSIONS,
    NotSignedIn,
    Visitor,
    check_form,
    sign_in,
    sign_out,
    visitor,
)
from lcc_scrapy.annotation.try_out import TryOut
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.acis import Aci, Channel
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.errors import BadField, LccError, StoreUnavailable
from lcc_scrapy.domain.tokens import ANNOTATE, NotAllowed, Refused, check
from lcc_scrapy.domain.urd_rules import URDS_MAX, NoSuchUrd
from lcc_scrapy.domain.urds import Urd
from lcc_scrapy.login.sessions import Sessions
from lcc_scrapy.web import html
from lcc_scrapy.web.access import lcc_of
from lcc_scrapy.web.cookies import cookie
from lcc_scrapy.web.forms import CrossSite, check_origin, read_form
from lcc_scrapy.web.own_address import own_address

ALERTS, PROFILES = 20, 50
"""Of one page."""

BODY_BYTES = 1024 * 1024
"""Of a form: keywords in several lines, each character written as up to nine."""

SIGN_IN_BYTES = 1024
"""Of the form with a token, which anybody may send."""

TRIES = 2
"""Profiles that are tried at a time: each takes a processor."""

_NUMBER_MAX = 2**62
_NO_FIELDS: frozenset[str] = frozenset()
_RECIPIENT = frozenset({"channel", "address", "format", "digest"})

Values = dict[str, str]
Handler = Callable[[Request, Visitor, Values], Response]


class _NotThere(LccError):
    """There is no such page."""


_STATUSES: dict[type[LccError], HTTPStatus] = {
    CrossSite: HTTPStatus.FORBIDDEN,
    NoSuchUrd: HTTPStatus.NOT_FOUND,
    _NotThere: HTTPStatus.NOT_FOUND,
    StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}


def make_pages(store: Store, recipients: Recipients, web_url: str) -> APIRouter:
    """Return the routes; ``web_url`` is how browsers see this server, "" = as each request says."""
    router = APIRouter(include_in_schema=False, max_body_size=BODY_BYTES)
    made = _Pages(store, recipients, web_url)

    def add(
        path: str, handler: Handler, fields: frozenset[str] | None = None, lines: frozenset[str] = _NO_FIELDS
    ) -> None:
        async def answer(request: Request) -> Response:
            return await made.answered(request, handler, fields, lines)

        methods = ["GET"] if fields is None else ["POST"]
        router.add_api_route(f"/my{path}", answer, methods=methods, response_class=Response)

    add("", made.home)
    router.add_api_route("/my/sign-in", made.ask, methods=["GET"], response_class=Response)
    router.add_api_route(
        "/my/sign-in", made.sign_in, methods=["POST"], response_class=Response, max_body_size=SIGN_IN_BYTES
    )
    add("/sign-out", made.sign_out, _NO_FIELDS)
    add("/alerts", made.alerts)
    add("/profiles", made.profiles)
    add("/profiles/new", made.new_profile)
    add("/profiles/new", made.save_profile, profile_forms.FIELDS, profile_forms.SEVERAL)
    add("/profiles/{number}", made.profile)
    add("/profiles/{number}", made.save_profile, profile_forms.FIELDS, profile_forms.SEVERAL)
    add("/profiles/{number}/remove", made.remove_profile, _NO_FIELDS)
    add("/recipients", made.recipients)
    add("/recipients", made.add_recipient, _RECIPIENT)
    add("/recipients/{number}", made.change_recipient, frozenset({"do"}))
    return router


class _Pages:
    def __init__(self, store: Store, recipients: Recipients, web_url: str) -> None:
        self._store = store
        self._interests = Interests(store)
        self._recipients = recipients
        self._web_url = web_url
        self._keys = FeedKeys(store)
        self._sessions = Sessions(store, SESSIONS)
        self._trying: CapacityLimiter | None = None

    async def answered(
        self, request: Request, handler: Handler, fields: frozenset[str] | None, lines: frozenset[str]
    ) -> Response:
        """Answer a request of who is signed in; what goes wrong is a page too."""
        whose: Visitor | None = None
        try:
            lcc = lcc_of(request)
            whose = await to_thread.run_sync(visitor, request, self._sessions, lcc.tokens, int(lcc.now()))
            values: Values = {}
            if fields is not None:
                values = check_form(request, whose, await read_form(request, fields | {FORM_KEY}, lines))
            return await self._work(handler, request, whose, values)
        except (NotSignedIn, Refused, NotAllowed) as error:
            return self._sign_in_page(request, error)
        except LccError as error:
            return _trouble(error, whose)

    async def _work(self, handler: Handler, request: Request, whose: Visitor, values: Values) -> Response:
        if values.get("do") != "try":
            return await to_thread.run_sync(handler, request, whose, values)
        if self._trying is None:
            self._trying = CapacityLimiter(TRIES)  # it belongs to the loop that runs
        return await to_thread.run_sync(handler, request, whose, values, limiter=self._trying)

    # --- signing in ------------------------------------------------------------------------------

    def _sign_in_page(self, request: Request, error: LccError | None = None) -> Response:
        said = Markup("") if error is None or isinstance(error, NotSignedIn) else html.alert(str(error))
        path = request.url.path if request.method == "GET" else "/my/alerts"
        form = owner_html.sign_in(path, was_signed_in=not cookie(request, COOKIE))
        status = HTTPStatus.OK if error is None else HTTPStatus.UNAUTHORIZED
        return html.page("Sign in", said + form, owner_html.nav(None), status)

    async def ask(self, request: Request) -> Response:
        """Ask for the token."""
        return self._sign_in_page(request)

    async def sign_in(self, request: Request) -> Response:
        """Begin a session for who has a good token."""
        try:
            check_origin(request)
            shown = (await read_form(request, frozenset({"token"}))).get("token", "").strip()
            return await to_thread.run_sync(self._signed_in, request, shown)
        except LccError as error:
            return self._sign_in_page(request, error)

    def _signed_in(self, request: Request, shown: str) -> Response:
        lcc = lcc_of(request)
        now, secure = int(lcc.now()), self._is_secure(request)
        token = check(lcc.tokens, shown, ANNOTATE, now)
        return sign_in(request, _to("/my/alerts"), self._sessions, token, now, secure=secure)

    def sign_out(self, request: Request, whose: Visitor, values: Values) -> Response:
        """End the session."""
        del whose, values
        return sign_out(request, _to("/my/sign-in"), self._sessions, secure=self._is_secure(request))

    def _is_secure(self, request: Request) -> bool:
        return request.url.scheme == "https" or self._web_url.startswith("https://")

    # --- alerts ----------------------------------------------------------------------------------

    def home(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Go to the alerts."""
        del request, whose, values
        return _to("/my/alerts")

    def alerts(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show what was found, newest first."""
        del values
        before = _number(request.query_params.get("before", str(_NUMBER_MAX)))
        with self._store.read() as tx:
            acis = tx.acis_before(before, whose.owner, ALERTS + 1)
        older = acis[ALERTS - 1].number if len(acis) > ALERTS else 0
        feed = feed_address(own_address(request, self._web_url), self._keys, whose.token)
        return _page("Alerts", owner_html.alerts(acis[:ALERTS], older, feed), whose)

    # --- profiles --------------------------------------------------------------------------------

    def profiles(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show what is of interest."""
        del values
        after = _number(request.query_params.get("after", "0"))
        urds = self._interests.of(whose.owner, after, PROFILES + 1)
        more = urds[PROFILES - 1].urdid if len(urds) > PROFILES else 0
        return _page("Profiles", owner_html.profiles(urds[:PROFILES], more, whose), whose)

    def new_profile(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show an empty form."""
        del request
        return _page("New profile", owner_html.profile("/my/profiles/new", values, whose), whose)

    def profile(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show a profile in its form."""
        del values
        urd = self._interests.get(_path_number(request), whose.owner)
        form = owner_html.profile(f"/my/profiles/{urd.urdid}", profile_forms.values_of(urd), whose)
        return _page(f"Profile {urd.urdid}", form, whose)

    def save_profile(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Save a profile, or try it; what cannot be used is said above the form, which stays as it is."""
        number = _path_number(request) if "number" in request.path_params else 0
        before = self._interests.get(number, whose.owner) if number else None
        form = owner_html.profile(request.url.path, values, whose)
        title = f"Profile {number}" if number else "New profile"
        try:
            urd = profile_forms.urd_of(values, whose.owner, before)
            if values.get("do") == "try":
                return _page(title, self._tried(request, urd) + form, whose)
            if before is None:
                self._interests.add(urd, URDS_MAX)
            else:
                self._interests.change(
                    number, lambda stored: replace(urd, lastcheck=stored.lastcheck), whose.owner
                )
        except StoreUnavailable:
            raise
        except LccError as error:
            status = HTTPStatus.UNPROCESSABLE_ENTITY
            return _page(title, html.alert(str(error)) + form, whose, status)
        return _to("/my/profiles")

    def _tried(self, request: Request, urd: Urd) -> Markup:
        lcc = lcc_of(request)
        now = int(lcc.now() * 1000)
        result = TryOut(lcc.feed, lcc.open).run(urd, now)
        acis = [_as_aci(row, found, now) for row, found in result.found]
        return owner_html.tried(acis, result.pages, complete=result.complete)

    def remove_profile(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Remove a profile."""
        del values
        self._interests.remove([_path_number(request)], whose.owner)
        return _to("/my/profiles")

    # --- recipients ------------------------------------------------------------------------------

    def recipients(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show how this owner is told."""
        del request
        found = self._recipients.of(whose.owner)
        return _page("Recipients", owner_html.recipients(found, whose, values), whose)

    def add_recipient(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Add a recipient; the secret of a webhook is shown once."""
        now = int(lcc_of(request).now())
        try:
            if values.get("channel") not in list(Channel):
                raise BadField("channel", "choose one of the list")
            wanted = Wanted(values.get("address", ""), values.get("format", ""), bool(values.get("digest")))
            made = self._recipients.add(whose.owner, Channel(values["channel"]), wanted, now)
        except StoreUnavailable:
            raise
        except LccError as error:
            shown = owner_html.recipients(self._recipients.of(whose.owner), whose, values)
            status = HTTPStatus.UNPROCESSABLE_ENTITY
            return _page("Recipients", html.alert(str(error)) + shown, whose, status)
        return _page("Recipients", owner_html.secret(made), whose) if made.secret else _to("/my/recipients")

    def change_recipient(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Switch a recipient on or off, remove it, or give it another secret."""
        number, wish = _path_number(request), values.get("do", "")
        if wish == "remove":
            self._recipients.remove(number, whose.owner)
            return _to("/my/recipients")
        wanted = {"on": Wanted(off=False), "off": Wanted(off=True), "secret": Wanted(new_secret=True)}.get(
            wish
        )
        if wanted is None:
            raise BadField("do", "this is no button of ours")
        changed = self._recipients.change(number, wanted, whose.owner)
        if wish == "secret":
            return _page("Recipients", owner_html.secret(changed), whose)
        return _to("/my/recipients")


def _page(title: str, body: Markup, whose: Visitor, status: int = HTTPStatus.OK) -> Response:
    return html.page(title, body, owner_html.nav(whose), status)


def _trouble(error: LccError, whose: Visitor | None) -> Response:
    status = next(
        (its for kind, its in _STATUSES.items() if isinstance(error, kind)), HTTPStatus.UNPROCESSABLE_ENTITY
    )
    away = isinstance(error, StoreUnavailable)
    text = "the cache is off-line for a moment: please try again in some minutes" if away else str(error)
    return html.page("Not done", html.alert(text), owner_html.nav(whose), status)


def _to(path: str) -> Response:
    """Let a browser go on elsewhere."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})


def _path_number(request: Request) -> int:
    return _number(str(request.path_params["number"]))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _NUMBER_MAX):  # noqa: PLR2004 - digits
        raise _NotThere("there is no such page")
    return int(text)


def _as_aci(row: CachedUrl, found: Finding, now: int) -> Aci:
    """Return what a finding would have become, as far as it is shown."""
    return Aci(
        row.urlkey, row.seq, found.urd.owner, 0, found.urd.urdid, row.pid, "", row.mimetype, found.relevance,
        (row.fetched_time or 0) * 1000, 0, row.furl, found.urd.urgency, "", False, found.title, found.summary,
        json.dumps(found.detail), now,
    )  # fmt: skip
