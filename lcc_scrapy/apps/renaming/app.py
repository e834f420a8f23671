"""Renaming: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "renaming",
    "a root of a provider gets another URL, and nothing is fetched again",
    commands={"provider rename-root": "lcc_scrapy.apps.renaming.commands:rename_root"},
)
