"""What an app may add to the HTTP servers."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from fastapi import APIRouter

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store


class PublicRoutes(Protocol):
    """Routes for strangers, at LCC_PUSH_ENDPOINTS."""

    def settings(self, config: Config) -> Sequence[str]:
        """Return the settings that are set and have an effect there only; without it there is a warning."""

    def routes(self, config: Config, store: Store) -> Iterator[APIRouter]:
        """Yield the routes, as far as the settings have them."""


class ApiRoutes(Protocol):
    """Routes for content users and operators, at LCC_WEB_ENDPOINT."""

    def __call__(self, config: Config, store: Store) -> Iterator[APIRouter]:
        """Yield the routes."""
