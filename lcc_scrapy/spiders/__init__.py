"""The LCC's spiders."""

from lcc_scrapy.spiders.base import LccSpider

__all__ = ["LccSpider"]
