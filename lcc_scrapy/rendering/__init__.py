"""Pages that need a browser: Chromium makes of them what people would see.

The browser has no network. Whatever a page asks for is asked by the crawl, as all its requests are.
"""
