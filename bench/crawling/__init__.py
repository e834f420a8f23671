"""What ``bench/crawl.py`` is made of: the site, the crawlers, the measuring, the tables."""
