"""The query socket: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "query",
    "content users ask over a socket, and get XML",
    prefixes=("QUERY",),
    settings="lcc_scrapy.apps.query.settings:QuerySettings",
    commands={
        "query": "lcc_scrapy.apps.query.commands:query",
        "front query": "lcc_scrapy.apps.query.commands:front_query",
        "ask": "lcc_scrapy.apps.query.ask:ask",
    },
    checks="lcc_scrapy.apps.query.commands:CHECK",
)
