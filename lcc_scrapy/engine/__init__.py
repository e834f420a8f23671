"""What the LCC changes in Scrapy: undocumented names, custom components, ignored settings, statistics.

No LCC rules; whatever is undocumented in Scrapy stands here and nowhere else.
"""
