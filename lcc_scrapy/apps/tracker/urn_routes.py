"""``/uri-res/N2L?urn:x-tracker:HEX``: directories that have a name (RFC 2169; seed 004)."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from hashlib import sha256

from fastapi import APIRouter, Request, Response

from lcc_scrapy.apps.tracker import lookup_pages
from lcc_scrapy.apps.tracker.answering import URN, BadUrn, identity_of
from lcc_scrapy.apps.tracker.comparison import COMPARED
from lcc_scrapy.apps.tracker.lookup import Replica
from lcc_scrapy.apps.tracker.lookup_routes import READING
from lcc_scrapy.apps.tracker.resolver import Resolver, cacheable, to_follow
from lcc_scrapy.apps.tracker.rules.questions import preferred
from lcc_scrapy.web.problems import problem

Replicas = tuple[Replica, ...]
Service = Callable[[Request, str, Replicas], Response]

_HTML, _JSON, _TEXT, _LIST = "text/html", "application/json", "text/plain", "text/uri-list"


def make_router(resolver: Resolver) -> APIRouter:
    """Return the routes of N2L (the best URL), N2Ls (all URLs) and N2Rs (the same as alternatives)."""
    router = APIRouter(prefix="/uri-res")

    def add(path: str, service: Service, at_least: int = 0) -> None:
        def route(request: Request) -> Response:
            return _resolved(resolver, request, service, at_least)

        router.add_api_route(path, route, methods=READING, response_class=Response)

    add("/N2L", _best, COMPARED)
    add("/N2Ls", _all)
    add("/N2Rs", _alternatives)
    return router


def _resolved(resolver: Resolver, request: Request, service: Service, at_least: int) -> Response:
    try:
        urn = request.scope["query_string"].decode("latin-1")
        replicas = resolver.of_urn(request, urn, at_least)
        name = f"{URN}{identity_of(urn).hex()}"  # equivalent names get identical answers (section 2)
    except BadUrn as error:
        return problem(422, str(error), "bad-urn")
    if not replicas:
        return cacheable(request, problem(404, "no directory that is known has this name", "no-replicas"))
    return cacheable(request, service(request, name, replicas))


def _best(request: Request, _name: str, replicas: Replicas) -> Response:
    """Redirect to the best one (section 3.1); for who wants text, as Squid does, a line with its URL."""
    best = to_follow(replicas) or replicas[0]
    made = Response(f"{best.url}\r\n", media_type=_TEXT)
    if preferred(request.headers.get("accept", ""), (_HTML, _TEXT)) != _TEXT:
        made.status_code = 302 if request.scope["http_version"] == "1.0" else 303
        made.headers["Location"] = best.url
    return made


def _all(request: Request, name: str, replicas: Replicas) -> Response:
    """List all of them, best first, as ``text/uri-list`` if nothing else is liked better (section 3.2)."""
    wanted = preferred(request.headers.get("accept", ""), (_LIST, _HTML, _JSON, _TEXT))
    if wanted == _HTML:
        return lookup_pages.list_page(name, replicas)
    if wanted == _JSON:
        listed = {"urn": name, "replicas": [asdict(one) for one in replicas]}
        return Response(json.dumps(listed), media_type=_JSON)
    lines = [f"# {name}", *(one.url for one in replicas)]
    return Response("".join(f"{line}\r\n" for line in lines), media_type=wanted)


def _alternatives(_request: Request, name: str, replicas: Replicas) -> Response:
    """List them as parts of ``multipart/alternative`` (section 3.4), which name their URLs (RFC 2017).

    The best is the last one (RFC 2046, section 5.1.4).
    """
    boundary = sha256("".join(one.url for one in replicas).encode()).hexdigest()[:32]
    parts = (f"--{boundary}\r\n{part}\r\n" for part in _parts(name, replicas))
    return Response(
        f"{''.join(parts)}--{boundary}--\r\n", media_type=f'multipart/alternative; boundary="{boundary}"'
    )


def _parts(name: str, replicas: Replicas) -> Iterator[str]:
    digits = name.removeprefix(URN)
    for number in range(len(replicas), 0, -1):
        lines = (
            f'Content-Type: message/external-body; access-type=URL; URL="{replicas[number - 1].url}"',
            "",
            "Content-Type: application/octet-stream",
            f"Content-ID: <{digits}.{number}@x-tracker>",
            "",
        )
        yield "".join(f"{line}\r\n" for line in lines)
