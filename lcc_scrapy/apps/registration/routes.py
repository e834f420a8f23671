"""The routes of registration, for whichever application serves them."""

from fastapi import APIRouter

from lcc_scrapy.apps.registration.api import make_api
from lcc_scrapy.apps.registration.page_routes import make_pages
from lcc_scrapy.apps.registration.steps import Steps
from lcc_scrapy.domain.notations import Networks


def make_router(steps: Steps, proxies: Networks = ()) -> APIRouter:
    """Return pages at ``/register`` and the JSON API at ``/v1/registrations``.

    ``proxies`` are believed when they say in X-Forwarded-For whose request they bring.
    """
    router = APIRouter()
    router.include_router(make_pages(steps, proxies))
    router.include_router(make_api(steps, proxies))
    return router
