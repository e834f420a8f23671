"""The HTTP API for content users, made of one LCC's database and content files."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI

from lcc_scrapy.annotation import aci_routes, recipient_routes, urd_routes
from lcc_scrapy.annotation.owner_pages import make_pages
from lcc_scrapy.annotation.recipients import Recipients
from lcc_scrapy.app.opening import contents_of, other_machines
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.content import Content, StoredContent
from lcc_scrapy.feed.library import Library
from lcc_scrapy.feed.named_cursors import StoreCursors
from lcc_scrapy.feed.store_feed import StoreFeed
from lcc_scrapy.feed.tokens import StoreTokens
from lcc_scrapy.ops.metrics import measures
from lcc_scrapy.web import app
from lcc_scrapy.web.ports import Lcc

if TYPE_CHECKING:
    from lcc_scrapy.config.config import Config
    from lcc_scrapy.db.sql.store import SqlStore


def alert_routes(config: "Config", store: Store) -> Iterator[APIRouter]:
    """Yield the routes of what was found for owners, and how they are told."""
    recipients = Recipients(store, config.alerts.recipients, config.alerts.private)
    yield aci_routes.make_router(store, config.web_url)
    yield recipient_routes.make_router(recipients)
    yield make_pages(store, recipients, config.web_url)


def routes_of_apps(config: "Config", store: Store) -> Iterator[APIRouter]:
    """Yield the routes of the apps at work."""
    for part in config.apps.parts("api_routes"):
        yield from part(config, store)


@dataclass(frozen=True, slots=True)
class Api:
    """An application; ``close`` gives connections to other machines back."""

    app: FastAPI
    close: Callable[[], None]

    def stop(self) -> None:
        """End all waiting for changes."""
        app.stop(self.app)


def _addresses(contents: Content, seconds: int) -> Callable[[CachedUrl | Version], str | None]:
    """Return what gives a URL, good for so many seconds, of a content in object storage; 0 = of none."""
    if not (seconds and isinstance(contents, StoredContent)):
        return lambda _row: None
    return partial(contents.address, seconds=seconds)


def make_api(config: "Config", store: "SqlStore", reads: "SqlStore") -> Api:
    """Return the API; content users read from ``reads``. The stores stay their caller's to close."""
    others = other_machines(config, store)
    feed = StoreFeed(reads, lags=reads is not store)
    contents = contents_of(config, store, others)
    library = Library(feed, contents)
    lcc = Lcc(
        library.feed,
        library.open,
        StoreTokens(store),
        StoreCursors(store),
        lambda: measures(store, config.spool_dirs, int(time.time()), config.policy.push_grace),
        bounds=config.web,
        primary=StoreFeed(store),
        address=_addresses(contents, config.content_redirect),
        https=config.web_url.startswith("https://"),
    )
    routers = [
        urd_routes.make_router(store),
        *alert_routes(config, store),
        *routes_of_apps(config, store),
    ]
    made = app.make_app(lcc, routers)
    return Api(made, lambda: None if others is None else others.close())
