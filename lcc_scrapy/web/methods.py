"""The methods of a path, over all its routes: ``Allow`` of a 405 (RFC 9110, section 15.5.6)."""

from collections.abc import Iterable

from fastapi import APIRouter
from fastapi.routing import APIRoute


class Methods:
    """The methods of all paths of some routers."""

    def __init__(self, routers: Iterable[APIRouter]) -> None:
        self._routes = [one for router in routers for one in router.routes if isinstance(one, APIRoute)]

    def of(self, path: str) -> str:
        """Return what ``Allow`` says; empty where no route takes this path."""
        taken = {
            method for route in self._routes if route.path_regex.match(path) for method in route.methods or ()
        }
        return ", ".join(sorted(taken))
