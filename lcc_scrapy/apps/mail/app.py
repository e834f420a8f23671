"""Mail to providers: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "mail",
    "providers are told by mail what went wrong with their URLs",
    prefixes=("MAIL_DIGEST",),
    settings="lcc_scrapy.apps.mail.settings:DigestRules",
    tables="lcc_scrapy.apps.mail.tables:METADATA",
    migrations="lcc_scrapy.apps.mail.migrations",
    commands={"mail": "lcc_scrapy.apps.mail.commands:mail"},
    subscribers="lcc_scrapy.apps.mail.store:SUBSCRIBERS",
    provider_options="lcc_scrapy.apps.mail.commands:OPTIONS",
    provider="lcc_scrapy.apps.mail.store:REMOVAL",
    worker="lcc_scrapy.apps.mail.worker:PART",
)
