"""``/v1/registrations``: registration for programs, in JSON."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.background import BackgroundTask

from lcc_scrapy.apps.registration.errors import told
from lcc_scrapy.apps.registration.hints import file_url, hints
from lcc_scrapy.apps.registration.reading import (
    BODY_BYTES,
    address_of,
    credentials,
    read_json,
)
from lcc_scrapy.apps.registration.rules import FILE, Kind
from lcc_scrapy.apps.registration.service import Done, Given
from lcc_scrapy.apps.registration.steps import Asked, Credentials, Steps
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.web.forms import check_origin
from lcc_scrapy.web.problems import problem
from lcc_scrapy.web.rows import as_json

_NEVER_KEPT = {"Cache-Control": "no-store"}
_SITE = frozenset({"site", "email", "bandwidth", "hours", "timezone", "mail"})
_PROOF = frozenset({"password", "folder"})
_CREATED, _ACCEPTED = 201, 202

Pid = Annotated[int, Path(ge=1, le=10**18 - 1)]
Answering = Callable[..., Awaitable[Response]]


def make_api(steps: Steps, proxies: Networks) -> APIRouter:
    """Return the routes; ``proxies`` are believed about whose request they bring."""
    router = APIRouter(prefix="/v1/registrations", tags=["registration"], max_body_size=BODY_BYTES)
    routes = _Routes(steps, proxies)
    for path, route in (
        ("", routes.register),
        ("/{pid}/activate", routes.activate),
        ("/{pid}/roots", routes.ask_for_root),
        ("/{pid}/roots/activate", routes.prove_root),
        ("/{pid}/password", routes.ask_for_password),
        ("/{pid}/password/activate", routes.prove_password),
    ):
        router.add_api_route(path, _with_problems(route), methods=["POST"], response_class=Response)
    return router


def _with_problems(route: Answering) -> Answering:
    """Let errors of a route be told as problem details."""

    @wraps(route)
    async def answered(*args: Any, **given: Any) -> Response:
        try:
            return await route(*args, **given)
        except LccError as error:
            status, name, text, headers = told(error)
            return problem(status, text, name, headers | _NEVER_KEPT)

    return answered


class _Routes:
    def __init__(self, steps: Steps, proxies: Networks) -> None:
        self._steps = steps
        self._proxies = proxies

    async def register(self, request: Request) -> Response:
        """Register a site: gives out a provider id, a secret and a password."""
        given = await self._read(request, _SITE)
        mail = bool(given.pop("mail", ""))
        made = await self._steps.begin(Asked(given.pop("site", ""), **given, mail=mail), self._whose(request))
        answer = _given(made)
        if mail:
            answer.background = BackgroundTask(self._steps.mail, made)
        return answer

    async def activate(self, request: Request, pid: Pid) -> Response:
        """Look for the file now; the password is active when it was found."""
        return await self._prove(request, pid, Kind.PROVIDER)

    async def ask_for_root(self, request: Request, pid: Pid) -> Response:
        """Give out a secret for a further root."""
        given = await self._read(request, _PROOF)
        who = credentials(request, pid, given)
        made = await self._steps.begin_root(who, given.get("folder", ""), self._whose(request))
        return _given(made)

    async def prove_root(self, request: Request, pid: Pid) -> Response:
        """Look for the file now; the folder is a root when it was found."""
        return await self._prove(request, pid, Kind.ROOT)

    async def ask_for_password(self, request: Request, pid: Pid) -> Response:
        """Give out a secret and a new password, for a provider that lost its own."""
        await self._read(request, frozenset())
        return _given(await self._steps.begin_password(pid, self._whose(request)))

    async def prove_password(self, request: Request, pid: Pid) -> Response:
        """Look for the file at every root; the new password is active when it was found at each."""
        return await self._prove(request, pid, Kind.PASSWORD)

    async def _prove(self, request: Request, pid: int, kind: Kind) -> Response:
        given = await self._read(request, _PROOF)
        who = credentials(request, pid, given)
        done = await self._steps.prove(who, kind, given.get("folder", ""), self._whose(request))
        return self._done(done, who)

    async def _read(self, request: Request, known: frozenset[str]) -> dict[str, str]:
        check_origin(request)
        return await read_json(request, known)

    def _whose(self, request: Request) -> str:
        return address_of(request, self._proxies)

    def _done(self, done: Done, who: Credentials) -> Response:
        facts: dict[str, Any] = {
            "pid": done.pid,
            "state": "active" if done.active else "approval",
            "root": done.roots[0],
            "roots": list(done.roots),
        }
        told = hints(self._steps.places, done, who.password)
        facts["push"] = {"url": told.push_url, "uns": list(told.uns)}
        facts["lines"] = {"config": told.config, "lcc-push": told.lcc_push, "commands": told.commands}
        return as_json(facts, 200 if done.active else _ACCEPTED, **_NEVER_KEPT)


def _given(given: Given) -> Response:
    made = given.registration
    facts: dict[str, Any] = {"pid": made.pid, "secret": given.secret, "file": FILE, "expires": made.expires}
    if given.password:
        facts["password"] = given.password
    if made.site:
        facts["url"] = file_url(made.site)
    return as_json(facts, _CREATED, **_NEVER_KEPT)
