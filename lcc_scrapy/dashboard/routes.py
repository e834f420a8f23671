"""``/dashboard``: the pages of operators in ``lcc web``. They need no script."""

import re
from collections.abc import Callable, Mapping
from datetime import tzinfo
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlencode

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from markupsafe import Markup

from lcc_scrapy.dashboard import (
    audit_log,
    changes,
    content_page,
    overview,
    provider_list,
    provider_page,
    url_page,
    workers,
)
from lcc_scrapy.dashboard.access import (
    COOKIE,
    FORM_KEY,
    PATH,
    Access,
    NotPrivate,
    NotSignedIn,
    Visitor,
    check_form,
)
from lcc_scrapy.dashboard.actions import FIELDS, Actions, Wish
from lcc_scrapy.dashboard.events import Events
from lcc_scrapy.dashboard.layout import find_form, page, shown
from lcc_scrapy.dashboard.password_checks import PasswordChecks
from lcc_scrapy.db.records import FEED
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.alarm_rules import AlarmRules
from lcc_scrapy.domain.dashboard_rules import DashboardRules
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.shares import ShareUsedUp
from lcc_scrapy.domain.users import Action
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone, ContentLost
from lcc_scrapy.listeners.peers import neighbourhood
from lcc_scrapy.machine.data_directory import running_workers
from lcc_scrapy.ops.status import Here
from lcc_scrapy.providers.registration import NoSuchProvider, find
from lcc_scrapy.queue.explanation import Surroundings
from lcc_scrapy.web import html
from lcc_scrapy.web.access import lcc_of
from lcc_scrapy.web.forms import CrossSite, check_origin, read_form
from lcc_scrapy.web.sharing import address_of

BODY_BYTES = 16 * 1024
"""Of a form."""

ACTING = 2
"""Actions at a time: some take long, and pages have the other threads."""


class NotForYou(LccError):
    """Somebody is signed in whose role does not permit this."""

    def __init__(self, action: str) -> None:
        super().__init__(f"your role does not permit `{action}`")


class NoSuchPage(LccError):
    """There is no such page."""

    def __init__(self) -> None:
        super().__init__("there is no such page")


_NUMBER_MAX = 2**62
_DIGITS_MAX = 18
_DOCID = re.compile("[0-9a-fA-F]{32}")
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

Values = dict[str, str]
Handler = Callable[[Request, Visitor, Values], Response]


class Terms(NamedTuple):
    """What the dashboard goes by.

    ``zone`` is that of providers without one of their own; ``here`` is what of the LCC lies on this machine.
    ``paced``: how many bodies a worker may have under way that are behind a limit.
    """

    rules: DashboardRules
    login: ThrottleRules
    policy: QueuePolicy
    queue_max: int
    zone: tzinfo
    proxies: Networks
    web_url: str
    here: Here
    alarms: AlarmRules
    paced: int


def make_dashboard(store: Store, terms: Terms) -> APIRouter:
    """Return the routes."""
    router = APIRouter(include_in_schema=False, max_body_size=BODY_BYTES)
    made = _Dashboard(store, terms)

    def add(path: str, handler: Handler, fields: frozenset[str] | None = None) -> None:
        async def answer(request: Request) -> Response:
            return await made.answered(request, handler, fields)

        methods = ["GET"] if fields is None else ["POST"]
        router.add_api_route(f"{PATH}{path}", answer, methods=methods, response_class=Response)

    router.add_api_route(f"{PATH}/sign-in", made.ask, methods=["GET"], response_class=Response)
    router.add_api_route(f"{PATH}/sign-in", made.sign_in, methods=["POST"], response_class=Response)
    add("/sign-out", made.sign_out, frozenset())
    add("", made.home)
    add("/find", made.find)
    add("/providers", made.providers)
    add("/providers/{number}", made.provider)
    add(f"/providers/{{number}}/{Action.CONFIRM_REMOVALS}", made.held)
    for action in Action:
        add(f"/providers/{{number}}/{action}", made.doer(action), FIELDS[action])
    add("/urls", made.url)
    add("/urls/{docid}/text", made.text)
    add("/urls/{docid}/changes", made.compared)
    add("/workers", made.workers)
    add("/changes", made.newest)
    router.add_api_route(f"{PATH}/changes/events", made.live.answer, methods=["GET"], response_class=Response)
    router.add_api_route(f"{PATH}/changes.js", made.script, methods=["GET"], response_class=Response)
    add("/audit", made.audit)
    return router


class _Dashboard:
    def __init__(self, store: Store, terms: Terms) -> None:
        self._store = store
        self._terms = terms
        self._access = Access(store, terms.rules, terms.proxies, terms.web_url)
        self._checks = PasswordChecks(terms.login)
        self._actions = Actions(store, terms.policy, terms.queue_max)
        self._acting: CapacityLimiter | None = None
        self.live = Events(store, self._access)

    async def answered(self, request: Request, handler: Handler, fields: frozenset[str] | None) -> Response:
        """Answer a request of who is signed in; what goes wrong is a page too."""
        whose: Visitor | None = None
        try:
            whose = await to_thread.run_sync(self._access.visitor, request, _now(request))
            if fields is None:
                return await to_thread.run_sync(handler, request, whose, {})
            values = check_form(request, whose, await read_form(request, fields | {FORM_KEY}))
            if self._acting is None:
                self._acting = CapacityLimiter(ACTING)  # it belongs to the loop that runs
            return await to_thread.run_sync(handler, request, whose, values, limiter=self._acting)
        except NotSignedIn as error:
            return _sign_in_page(request, error)
        except LccError as error:
            return _trouble(error, whose)

    # --- signing in ------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Response:
        """Ask for name and password."""
        try:
            self._access.check_private(request)
        except LccError as error:
            return _trouble(error, None)
        return _sign_in_page(request)

    async def sign_in(self, request: Request) -> Response:
        """Begin a session for who knows a user's password."""
        try:
            self._access.check_private(request)
            check_origin(request)
            given = await read_form(request, frozenset({"name", "password"}))
            name, password = given.get("name", ""), given.get("password", "")
            user = await to_thread.run_sync(self._access.user, name)
            address = neighbourhood(address_of(request.scope, self._terms.proxies))
            right = await self._checks.check(address, name, user.password if user else "", password)
            if user is None or not right:
                return _sign_in_page(request, NotSignedIn("this name and password do not belong together"))
            return await to_thread.run_sync(self._access.begin, request, _to(PATH), user, _now(request))
        except LccError as error:
            return _trouble(error, None)

    def sign_out(self, request: Request, whose: Visitor, values: Values) -> Response:
        """End the session."""
        del whose, values
        return self._access.end(request, _to(f"{PATH}/sign-in"))

    # --- pages -----------------------------------------------------------------------------------

    def home(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the overview; who sees some providers only gets these."""
        del values
        if whose.user.pids is not None:
            return _to(f"{PATH}/providers")
        now = _now(request)
        shown = overview.read(self._store, self._terms.here, self._terms.alarms.workers, now)
        return page("Overview", overview.body(shown, now), whose)

    def find(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Go to a provider, a URL, or the providers that are found."""
        del whose, values
        return _to(found_at(request.query_params.get("q", "").strip()))

    def providers(self, request: Request, whose: Visitor, values: Values) -> Response:
        """List providers."""
        del values
        now = _now(request)
        wanted = provider_list.asked(request.query_params, whose.user, now)
        with self._store.read() as tx:
            listed = provider_list.read(tx, wanted)
        return page("Providers", provider_list.body(listed, wanted, now, self._terms.zone), whose)

    def provider(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show a provider."""
        del values
        now, pid = _now(request), _seen(request, whose)
        with self._store.read() as tx:
            found = provider_page.read(tx, pid, now)
        body = _done(request) + provider_page.body(found, whose, now, self._terms.zone)
        return page(provider_page.title(found.provider), body, whose)

    def held(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the held removals of a provider, to be confirmed."""
        del values
        pid = _seen(request, whose)
        if not whose.user.may(Action.CONFIRM_REMOVALS):
            raise NotForYou(Action.CONFIRM_REMOVALS)
        with self._store.read() as tx:
            one = find(tx, pid)
            rows = tx.cached(tx.held(pid, provider_page.HELD_SHOWN))
        body = provider_page.held_body(one, list(rows.values()), whose)
        return page(f"Held removals of provider {pid}", body, whose)

    def doer(self, action: Action) -> Handler:
        """Return what carries an action out."""

        def do(request: Request, whose: Visitor, values: Values) -> Response:
            pid = _seen(request, whose)
            if not whose.user.may(action):
                raise NotForYou(action)
            count = self._actions.do(Wish(whose.user, action, pid, values, _now(request)))
            return _to(f"{PATH}/providers/{pid}?done={action}&count={count}")

        return do

    def url(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show what is known of a URL."""
        del values
        url = request.query_params.get("url", "").strip()[:URL_MAX]
        form = find_form(url if url.isprintable() else "")
        if not url:
            return page("Find a URL", form, whose)
        found = url_page.read(self._store, url, self._surroundings(request), whose.user)
        title = f"URL: {shown(url)}"
        if not found:
            told = html.alert(url_page.where(self._store, url, whose.user))
            return page(title, form + told, whose, HTTPStatus.NOT_FOUND)
        return page(title, form + url_page.body(found, _now(request)), whose)

    def text(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the text of a document, or of an earlier content."""
        del values
        url, contents, place = self._content(request, whose)
        text = content_page.text_of(contents[place], lcc_of(request).open)
        return page("Text", content_page.text_body(url, contents[place], text), whose)

    def compared(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show what the content behind an earlier one changed."""
        del values
        url, contents, place = self._content(request, whose)
        opened = lcc_of(request).open
        old, new = contents[place], contents[max(place - 1, 0)]
        texts = content_page.text_of(old, opened), content_page.text_of(new, opened)
        return page("What changed", content_page.changes_body(url, old, texts), whose)

    def _content(self, request: Request, whose: Visitor) -> tuple[str, list[Version], int]:
        docid, seq = str(request.path_params["docid"]), request.query_params.get("version")
        if not _DOCID.fullmatch(docid):
            raise NoSuchPage
        with self._store.read() as tx:
            url, contents = content_page.contents_of(tx, docid, whose.user)
        return url, contents, content_page.place_of(contents, _number(seq) if seq else None)

    def _surroundings(self, request: Request) -> Surroundings:
        running = bool(running_workers(self._terms.here.data_dir))
        return Surroundings(lcc_of(request).now(), self._terms.zone, running, paced=self._terms.paced)

    def workers(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the crawl processes; for who sees some providers only there is no such page."""
        del values
        if whose.user.pids is not None:
            raise NoSuchPage
        now = _now(request)
        return page("Workers", workers.body(workers.read(self._store, self._terms.here, now), now), whose)

    def newest(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show the newest changes; a script adds what comes."""
        del request, values
        with self._store.read() as tx:
            after = tx.peek(FEED)
            found = tx.newest_changes(changes.LIMIT, changes.AMONG, whose.user.pids)
        return page("Changes", changes.body(found, after), whose, live=True)

    async def script(self) -> Response:
        """Return the only script."""
        return Response(changes.SCRIPT, media_type="text/javascript", headers={"Cache-Control": "no-cache"})

    def audit(self, request: Request, whose: Visitor, values: Values) -> Response:
        """Show who did what; provider-owners see what concerns their providers."""
        del values
        before = _number(request.query_params.get("before", str(_NUMBER_MAX)), 19)
        with self._store.read() as tx:
            found = tx.audits(before, audit_log.LIMIT + 1, whose.user.pids)
        return page("Audit log", audit_log.body(found), whose)


def found_at(text: str) -> str:
    """Return the page that a search is for: of a provider's number, a URL, a docid, or else a list."""
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX:
        return f"{PATH}/providers/{int(text)}"
    if "://" in text or _DOCID.fullmatch(text):
        return f"{PATH}/urls?{urlencode({'url': text})}"
    return f"{PATH}/providers?{urlencode({'q': text})}"


def _now(request: Request) -> int:
    return int(lcc_of(request).now())


def _seen(request: Request, whose: Visitor) -> int:
    """Return the provider that a path names; for who may not see it there is none."""
    pid = _number(str(request.path_params["number"]))
    if not whose.user.sees(pid):
        raise NoSuchProvider(pid)
    return pid


def _number(text: str, digits: int = _DIGITS_MAX) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= digits and int(text) <= _NUMBER_MAX):
        raise NoSuchPage
    return int(text)


def _done(request: Request) -> Markup:
    """Say what was done just now; of what an address tells, nothing else is repeated."""
    action, count = request.query_params.get("done", ""), request.query_params.get("count", "")
    if action not in set(Action) or not (count.isascii() and count.isdigit() and len(count) <= _DIGITS_MAX):
        return Markup("")
    many = f": {count} URLs" if action in {Action.RETRY, Action.CONFIRM_REMOVALS} else ""
    return html.good(f"Done: {action}{many}")


def _sign_in_page(request: Request, error: LccError | None = None) -> Response:
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
    if error is not None and request.method == "GET" and COOKIE not in request.cookies:
        # a browser that follows a link of another site does not show the cookie
        again = html.paragraph('<a href="{path}">I am signed in already: go on</a>', path=request.url.path)
    status = HTTPStatus.OK if error is None else HTTPStatus.UNAUTHORIZED
    return page("Sign in", said + form + again, None, status)


def _trouble(error: LccError, whose: Visitor | None) -> Response:
    status = next(
        (its for kind, its in _STATUSES.items() if isinstance(error, kind)), HTTPStatus.UNPROCESSABLE_ENTITY
    )
    away = isinstance(error, StoreUnavailable)
    text = "the database does not answer: try again in some minutes" if away else str(error)
    told = page("Not done", html.alert(text), whose, status)
    if isinstance(error, ShareUsedUp):
        told.headers["Retry-After"] = str(error.seconds)
    return told


def _to(path: str) -> Response:
    """Let a browser go on elsewhere."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
