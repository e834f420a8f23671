"""What an app may add to the HTTP servers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fastapi import APIRouter

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.web.public import Unbounded

if TYPE_CHECKING:
    from lcc_scrapy.uns.service import UnsService


@dataclass(frozen=True, slots=True)
class Public:
    """The process that serves LCC_PUSH_ENDPOINTS, as its routes see it."""

    config: Config
    store: Store
    uns: "UnsService"
    """It has no endpoints of its own; what it accepts goes to the queue."""


class PublicRoutes(Protocol):
    """Routes for strangers, at LCC_PUSH_ENDPOINTS."""

    def settings(self, config: Config, /) -> Sequence[str]:
        """Return the settings that are set and have an effect there only; without it there is a warning."""

    def routes(self, public: Public, /) -> Iterator[APIRouter | Unbounded]:
        """Yield the routes, as far as the settings have them."""


class ApiRoutes(Protocol):
    """Routes for content users and operators, at LCC_WEB_ENDPOINT."""

    def __call__(self, config: Config, store: Store) -> Iterator[APIRouter]:
        """Yield the routes."""
