"""Registration: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "registration",
    "site owners become providers by a proof that they can alter their site",
    prefixes=("REGISTRATION", "PUBLIC_UNS"),
    settings="lcc_scrapy.apps.registration.settings:RegistrationRules",
    tables="lcc_scrapy.apps.registration.tables:METADATA",
    migrations="lcc_scrapy.apps.registration.migrations",
    commands={
        "registration": "lcc_scrapy.apps.registration.commands:registration",
        "front registration": "lcc_scrapy.apps.registration.front_commands:registration",
    },
    public_routes="lcc_scrapy.apps.registration.serving:ROUTES",
    jobs="lcc_scrapy.apps.registration.jobs:JOBS",
)
