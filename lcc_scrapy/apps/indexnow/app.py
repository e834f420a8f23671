"""IndexNow: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "indexnow",
    "sites tell what changed with one HTTP request",
    prefixes=("INDEXNOW",),
    settings="lcc_scrapy.apps.indexnow.settings:IndexNowRules",
    tables="lcc_scrapy.apps.indexnow.tables:METADATA",
    migrations="lcc_scrapy.apps.indexnow.migrations",
    commands={"indexnow": "lcc_scrapy.apps.indexnow.commands:indexnow"},
    public_routes="lcc_scrapy.apps.indexnow.serving:ROUTES",
)
