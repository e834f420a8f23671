"""The spiders that teams start or subclass, and the base that makes an LCC crawl of them.

No rules: a spider starts the worker and turns answers into documents.
"""

from lcc_scrapy.spiders.base import LccSpider

__all__ = ["LccSpider"]
