"""Mail to providers: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "mail",
    "providers are told by mail what went wrong with their URLs",
    worker="lcc_scrapy.apps.mail.worker:PART",
)
