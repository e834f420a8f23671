"""Where this server is reached: the settings say so, never a client, whose Host header may name anything."""

from ipaddress import ip_address

from fastapi import FastAPI, Request
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from lcc_scrapy.domain.errors import LccError


class AddressNotSaid(LccError):
    """A document needs the address of this server, and the setting that says it is empty."""


def own_address(request: Request, said: str) -> str:
    """Return the URL of this server without a slash at its end: what a setting says, or of the loopback.

    Empty = not known; links are relative then.
    """
    if said:
        return said.rstrip("/")
    host, port = request.scope.get("server") or ("", None)
    if not (port and _is_loopback(host) and request.client and _is_loopback(request.client.host)):
        return ""
    return f"{request.url.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def needed_address(request: Request, said: str, setting: str) -> str:
    """Return the same for a document that cannot do without; raises ``AddressNotSaid``."""
    address = own_address(request, said)
    if not address:
        raise AddressNotSaid(f"this document has links to this server: the operator has to set {setting}")
    return address


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class EitherSpelling:
    """Serves a path with a slash at its end as the one without, if there is no route for it as it is.

    Starlette would redirect to the Host that the client named, also a POST with a password.
    """

    def __init__(self, app: ASGIApp, routes: list[BaseRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        path = scope.get("path", "")
        is_other = path.startswith("/") and path.endswith("/")  # caches ask the tracker for whole URLs
        if is_other and not any(one.matches(scope)[0] is not Match.NONE for one in self._routes):
            scope = {**scope, "path": path.rstrip("/") or "/"}
        await self._app(scope, receive, send)


def take_either_spelling(app: FastAPI) -> None:
    """Let an application, whose routes and middlewares are all there, answer both spellings of each path."""
    app.router.redirect_slashes = False
    app.add_middleware(EitherSpelling, routes=app.router.routes)
