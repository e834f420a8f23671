"""Sources: how the core reaches them."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "sources",
    "sitemaps, feeds and the like are read for providers that do not push",
    prefixes=("SOURCE", "REDIS"),
    settings="lcc_scrapy.apps.sources.settings:SourceSettings",
    tables="lcc_scrapy.apps.sources.tables:METADATA",
    migrations="lcc_scrapy.apps.sources.migrations",
    commands={"source": "lcc_scrapy.apps.sources.commands:source"},
    public_routes="lcc_scrapy.apps.sources.serving:ROUTES",
    provider="lcc_scrapy.apps.sources.providers:REMOVAL",
    renaming="lcc_scrapy.apps.sources.providers:RENAMING",
    worker="lcc_scrapy.apps.sources.worker:PART",
    checks="lcc_scrapy.apps.sources.checks:CHECK",
)
