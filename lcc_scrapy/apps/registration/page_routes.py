"""``/register``: the same steps as the JSON API, as pages."""

from collections.abc import Awaitable, Callable
from functools import partial

from fastapi import APIRouter, Request, Response
from markupsafe import Markup
from starlette.background import BackgroundTask

from lcc_scrapy.apps.registration import pages
from lcc_scrapy.apps.registration.errors import told
from lcc_scrapy.apps.registration.html import page
from lcc_scrapy.apps.registration.reading import (
    BODY_BYTES,
    address_of,
    credentials,
    pid_of,
)
from lcc_scrapy.apps.registration.rules import Kind
from lcc_scrapy.apps.registration.service import Given
from lcc_scrapy.apps.registration.steps import Asked, Failed, Steps
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.web.forms import check_origin, read_form
from lcc_scrapy.web.html import alert, paragraph

_REGISTER, _THERE, _FOLDER, _LOST = "Register a site", "The file is there", "Another folder", "Lost password"
_SITE = frozenset({"site", "email", "bandwidth", "hours", "timezone", "mail"})
_ROOT = frozenset({"pid", "password", "folder"})
_PID = frozenset({"pid"})

Form = Callable[[dict[str, str]], Markup]
Step = Callable[[Request, dict[str, str]], Awaitable[Response]]


def make_pages(steps: Steps, proxies: Networks) -> APIRouter:
    """Return the routes; ``proxies`` are believed about whose request they bring."""
    router = APIRouter(include_in_schema=False, max_body_size=BODY_BYTES)
    made = _Pages(steps, proxies)

    def add(path: str, title: str, form: Form, fields: frozenset[str], step: Step) -> None:
        async def show() -> Response:
            return page(title, form({}))

        async def post(request: Request) -> Response:
            return await _posted(request, title, form, fields, step)

        router.add_api_route(path, show, methods=["GET"], response_class=Response)
        router.add_api_route(path, post, methods=["POST"], response_class=Response)

    add("/register", _REGISTER, made.registration_form, _SITE, made.register)
    add("/register/root", _FOLDER, pages.root_form, _ROOT, made.ask_for_root)
    add("/register/password", _LOST, pages.password_form, _PID, made.ask_for_password)
    for kind, path in pages.ACTIVATE.items():
        add(path, _THERE, partial(pages.proof_form, kind), _ROOT, made.prover(kind))
    return router


async def _posted(request: Request, title: str, form: Form, fields: frozenset[str], step: Step) -> Response:
    """Do a step; where it fails, its form is shown again with what was written, but for passwords."""
    values: dict[str, str] = {}
    try:
        check_origin(request)
        values = await read_form(request, fields)
        return await step(request, values)
    except LccError as error:
        status, _, text, headers = told(error)
        headers.pop("WWW-Authenticate", None)  # a form asks for the password, not the browser
        return page(title, alert(text) + form(values), status, headers)


class _Pages:
    def __init__(self, steps: Steps, proxies: Networks) -> None:
        self._steps = steps
        self._proxies = proxies

    def registration_form(self, values: dict[str, str]) -> Markup:
        return pages.registration_intro() + pages.registration_form(values, mails=self._steps.mails)

    async def register(self, request: Request, values: dict[str, str]) -> Response:
        mail = bool(values.get("mail"))
        texts = {name: value for name, value in values.items() if name not in {"mail", "site"}}
        given = await self._steps.begin(
            Asked(values.get("site", ""), **texts, mail=mail), self._whose(request)
        )
        shown = _given(given, given.password, mailed=mail)
        if mail:
            shown.background = BackgroundTask(self._steps.mail, given)
        return shown

    async def ask_for_root(self, request: Request, values: dict[str, str]) -> Response:
        who = credentials(request, pid_of(values.get("pid", "")), values)
        given = await self._steps.begin_root(who, values.get("folder", ""), self._whose(request))
        return _given(given, who.password)

    async def ask_for_password(self, request: Request, values: dict[str, str]) -> Response:
        given = await self._steps.begin_password(pid_of(values.get("pid", "")), self._whose(request))
        return _given(given, given.password)

    def prover(self, kind: Kind) -> Step:
        async def prove(request: Request, values: dict[str, str]) -> Response:
            who = credentials(request, pid_of(values.get("pid", "")), values)
            try:
                done = await self._steps.prove(who, kind, values.get("folder", ""), self._whose(request))
            except Failed as error:
                status, _, text, headers = told(error)
                return page("Not found", pages.retry_body(kind, text, values), status, headers)
            return page(
                "Done" if done.active else "Found", pages.done_body(done, self._steps.places, who.password)
            )

        return prove

    def _whose(self, request: Request) -> str:
        return address_of(request, self._proxies)


def _given(given: Given, password: str, *, mailed: bool = False) -> Response:
    title = "Put the secret on your site"
    return page(title, paragraph("Step 1 is done.") + pages.given_body(given, password, mailed=mailed), 201)
