"""/etc/lcc/lcc_settings.py (root, 0644): settings of all lcc-*.service and of ``lcc-run``; no secrets.

``systemctl reload lcc-uns lcc-crawl`` reads it again. Where the UNS listens stands in its unit.
"""

from lcc_scrapy.settings import *  # noqa: F403

# LCC_CONTACT = "https://www.example.org/lcc"
# LCC_BANDWIDTH = "10M"
