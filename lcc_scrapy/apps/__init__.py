"""The apps: one folder each, of which nothing else knows but the line below."""

APPS = (
    "lcc_scrapy.apps.registration.app",
    "lcc_scrapy.apps.tracker.app",
    "lcc_scrapy.apps.renaming.app",
    "lcc_scrapy.apps.indexnow.app",
    "lcc_scrapy.apps.query.app",
    "lcc_scrapy.apps.alarms.app",
    "lcc_scrapy.apps.exports.app",
    "lcc_scrapy.apps.resourcesync.app",
    "lcc_scrapy.apps.mail.app",
    "lcc_scrapy.apps.sources.app",
    "lcc_scrapy.apps.object_storage.app",
    "lcc_scrapy.apps.push_http.app",
    "lcc_scrapy.apps.dashboard.app",
)  # fmt: skip
"""The modules that define them, in the order in which their parts are called."""
