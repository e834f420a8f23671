"""What strangers may ask of LCC_PUSH_ENDPOINTS, as far as the settings have it."""

from collections.abc import Iterator

from fastapi import APIRouter

from lcc_scrapy.annotation.recipients import SUBSCRIBERS
from lcc_scrapy.mail import routes as mail
from lcc_scrapy.mail.unsubscribing import Unsubscribing
from lcc_scrapy.web.parts import Public
from lcc_scrapy.web.public import Unbounded


def public_routes(public: Public) -> Iterator[APIRouter | Unbounded]:
    """Yield the routes of links in mail, and those of apps."""
    config, store = public.config, public.store
    for part in config.apps.parts("public_routes"):
        yield from part.routes(public)
    if config.public_url:
        kinds = (SUBSCRIBERS, *config.apps.parts("subscribers"))
        yield mail.make_router(Unsubscribing(store, config.public_url, kinds))
