"""Alarms: how the core reaches them."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "alarms",
    "somebody on call is told that something is wrong, and that it is over",
    prefixes=("ALARM",),
    settings="lcc_scrapy.apps.alarms.settings:AlarmRules",
    commands={"alarms": "lcc_scrapy.apps.alarms.commands:alarms"},
    troubles="lcc_scrapy.apps.alarms.store:TROUBLES",
)
