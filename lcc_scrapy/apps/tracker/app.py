"""The mirror tracker: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "tracker",
    "exact replicas of files and directories on other servers",
    prefixes=("TRACKER",),
    settings="lcc_scrapy.apps.tracker.settings:TrackerRules",
    tables="lcc_scrapy.apps.tracker.tables:METADATA",
    views="lcc_scrapy.apps.tracker.tables:VIEWS",
    migrations="lcc_scrapy.apps.tracker.migrations",
    commands={"tracker": "lcc_scrapy.apps.tracker.commands:tracker"},
    jobs="lcc_scrapy.apps.tracker.loading:CLEARING",
)
