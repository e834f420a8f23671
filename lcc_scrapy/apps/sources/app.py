"""Sources: how the core reaches them."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "sources",
    "sitemaps, feeds and the like are read for providers that do not push",
    worker="lcc_scrapy.apps.sources.worker:PART",
)
