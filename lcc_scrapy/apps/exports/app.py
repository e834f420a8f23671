"""Exports and indexers: how the core reaches them."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "exports",
    "documents with their contents in one file, or in the index of a search engine",
    commands={
        "export": "lcc_scrapy.apps.exports.commands:export",
        "front export": "lcc_scrapy.apps.exports.front_commands:front_export",
    },
    api_routes="lcc_scrapy.apps.exports.routes:ROUTES",
)
