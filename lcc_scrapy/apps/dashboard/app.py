"""The dashboard: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "dashboard",
    "pages on which operators see what goes on, and act",
    prefixes=("DASHBOARD", "SEARCH_INDEX"),
    settings="lcc_scrapy.apps.dashboard.settings:DashboardRules",
    api_routes="lcc_scrapy.apps.dashboard.routes:ROUTES",
    checks="lcc_scrapy.apps.dashboard.checking:CHECK",
)
