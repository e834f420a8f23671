"""Reading links out of documents: pages, sitemaps, feeds, and what they say to robots (seed 002).

No database, no network; every reader is bounded.
"""
