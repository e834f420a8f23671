"""``/dashboard``: the pages of operators in ``lcc web``, and who is let in. They need no script."""

from collections.abc import Iterator

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response

from lcc_scrapy.app.opening import here
from lcc_scrapy.apps.dashboard import changes
from lcc_scrapy.apps.dashboard.access import FORM_KEY, PATH, Access, NotSignedIn, Visitor, check_form
from lcc_scrapy.apps.dashboard.actions import FIELDS
from lcc_scrapy.apps.dashboard.answers import now_of, sign_in_page, to, trouble
from lcc_scrapy.apps.dashboard.events import Events
from lcc_scrapy.apps.dashboard.pages import Handler, Pages, Terms, Values
from lcc_scrapy.apps.dashboard.password_checks import PasswordChecks
from lcc_scrapy.apps.dashboard.settings import DashboardRules
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.users import Action
from lcc_scrapy.listeners.peers import neighbourhood
from lcc_scrapy.web.forms import check_origin, read_form
from lcc_scrapy.web.parts import ApiRoutes
from lcc_scrapy.web.sharing import address_of

BODY_BYTES = 16 * 1024
"""Of a form."""

ACTING = 2
"""Actions at a time: some take long, and pages have the other threads."""


def terms_of(config: Config) -> Terms:
    """Return what the dashboard goes by."""
    return Terms(
        config.of(DashboardRules), config.login, config.policy, config.queue_max, config.timezone,
        config.web.proxies, config.web_url, here(config), config.turns.paced, config.crawls_expected,
        tuple(config.apps.parts("troubles")),
    )  # fmt: skip


def _api_routes(config: Config, store: Store) -> Iterator[APIRouter]:
    yield make_dashboard(store, terms_of(config))


ROUTES: ApiRoutes = _api_routes


def make_dashboard(store: Store, terms: Terms) -> APIRouter:
    """Return the routes."""
    router = APIRouter(include_in_schema=False, max_body_size=BODY_BYTES)
    made, pages = _Dashboard(store, terms), Pages(store, terms)

    def add(path: str, handler: Handler, fields: frozenset[str] | None = None) -> None:
        async def answer(request: Request) -> Response:
            return await made.answered(request, handler, fields)

        methods = ["GET"] if fields is None else ["POST"]
        router.add_api_route(f"{PATH}{path}", answer, methods=methods, response_class=Response)

    router.add_api_route(f"{PATH}/sign-in", made.ask, methods=["GET"], response_class=Response)
    router.add_api_route(f"{PATH}/sign-in", made.sign_in, methods=["POST"], response_class=Response)
    add("/sign-out", made.sign_out, frozenset())
    add("", pages.home)
    add("/find", pages.find)
    add("/search", pages.search)
    add("/providers", pages.providers)
    add("/providers/{number}", pages.provider)
    add(f"/providers/{{number}}/{Action.CONFIRM_REMOVALS}", pages.held)
    for action in Action:
        add(f"/providers/{{number}}/{action}", pages.doer(action), FIELDS[action])
    add("/urls", pages.url)
    add("/urls/{docid}/text", pages.text)
    add("/urls/{docid}/changes", pages.compared)
    add("/urls/{docid}/content", pages.content)
    add("/urls/{docid}/picture", pages.picture)
    add("/urls/links-to", pages.links_to)
    add("/workers", pages.workers)
    add("/changes", pages.newest)
    router.add_api_route(f"{PATH}/changes/events", made.live.answer, methods=["GET"], response_class=Response)
    router.add_api_route(f"{PATH}/changes.js", made.script, methods=["GET"], response_class=Response)
    add("/audit", pages.audit)
    return router


class _Dashboard:
    def __init__(self, store: Store, terms: Terms) -> None:
        self._store = store
        self._terms = terms
        self._access = Access(store, terms.rules, terms.proxies, terms.web_url)
        self._checks = PasswordChecks(terms.login)
        self._acting: CapacityLimiter | None = None
        self.live = Events(store, self._access)

    async def answered(self, request: Request, handler: Handler, fields: frozenset[str] | None) -> Response:
        """Answer a request of who is signed in; what goes wrong is a page too."""
        whose: Visitor | None = None
        try:
            whose = await to_thread.run_sync(self._access.visitor, request, now_of(request))
            if fields is None:
                return await to_thread.run_sync(handler, request, whose, {})
            values = check_form(request, whose, await read_form(request, fields | {FORM_KEY}))
            if self._acting is None:
                self._acting = CapacityLimiter(ACTING)  # it belongs to the loop that runs
            return await to_thread.run_sync(handler, request, whose, values, limiter=self._acting)
        except NotSignedIn as error:
            return sign_in_page(request, error)
        except LccError as error:
            return trouble(error, whose)

    # --- signing in ------------------------------------------------------------------------------

    async def ask(self, request: Request) -> Response:
        """Ask for name and password."""
        try:
            self._access.check_private(request)
        except LccError as error:
            return trouble(error, None)
        return sign_in_page(request)

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
                return sign_in_page(request, NotSignedIn("this name and password do not belong together"))
            return await to_thread.run_sync(self._access.begin, request, to(PATH), user, now_of(request))
        except LccError as error:
            return trouble(error, None)

    def sign_out(self, request: Request, whose: Visitor, values: Values) -> Response:
        """End the session."""
        del whose, values
        return self._access.end(request, to(f"{PATH}/sign-in"))

    async def script(self) -> Response:
        """Return the only script."""
        return Response(changes.SCRIPT, media_type="text/javascript", headers={"Cache-Control": "no-cache"})
