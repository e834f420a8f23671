"""What strangers may ask of LCC_PUSH_ENDPOINTS beside ``POST /v1/push``, as far as the settings have it."""

from collections.abc import Iterator

from fastapi import APIRouter

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.mail import routes as mail
from lcc_scrapy.mail.unsubscribing import Unsubscribing
from lcc_scrapy.sources import routes as websub
from lcc_scrapy.sources.opening import callback_service


def public_routes(config: Config, store: Store) -> Iterator[APIRouter]:
    """Yield the routes of hubs of WebSub, links in mail, and those of apps."""
    for part in config.apps.parts("public_routes"):
        yield from part.routes(config, store)
    if config.public_url:
        yield websub.make_router(callback_service(config, store, config.agent))
        yield mail.make_router(Unsubscribing(store, config.public_url))
