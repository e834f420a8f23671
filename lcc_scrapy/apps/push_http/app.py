"""Pushes over HTTP: how the core reaches them."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "push_http",
    "providers push their sets with HTTP requests",
    public_routes="lcc_scrapy.apps.push_http.serving:ROUTES",
)
