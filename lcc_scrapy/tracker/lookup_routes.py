"""``GET /?url=``: where exact replicas of a file or directory are."""

from collections.abc import Callable

from fastapi import APIRouter, Request

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.tracker_policy import Policy
from lcc_scrapy.tracker.answering import Answering
from lcc_scrapy.web.sharing import address_of


def make_router(config: Config, store: Store, policy: Callable[[], Policy]) -> APIRouter:
    """Return the routes; ``policy`` gives the policy as it is now."""
    router = APIRouter()

    @router.get("/")
    def find(request: Request, url: str) -> dict[str, object]:
        answering = Answering(store, policy(), config.tracker.replicas)
        found = answering.of_url(url, address_of(request.scope, config.web.proxies)).found
        return {"url": url, "replicas": [one.url for one in found.replicas]}

    return router
