"""ResourceSync: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "resourcesync",
    "standard harvesters follow lists and dumps over HTTP",
    needs=("exports",),
    api_routes="lcc_scrapy.apps.resourcesync.routes:ROUTES",
)
