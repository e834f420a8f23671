"""The add-on for existing Scrapy projects: ``ADDONS = {"lcc_scrapy.addon.LccAddon": 100}``.

It makes the LCC's spiders known and changes nothing else: they carry their own settings.
"""

from scrapy.settings import BaseSettings

SPIDERS = "lcc_scrapy.spiders"


class LccAddon:
    """Registers the LCC's spiders."""

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Add the LCC's spiders to ``SPIDER_MODULES`` at the priority it has."""
        modules = settings.getlist("SPIDER_MODULES")
        if SPIDERS not in modules:
            settings.set("SPIDER_MODULES", [*modules, SPIDERS], settings.getpriority("SPIDER_MODULES") or 0)
