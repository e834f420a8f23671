"""Sources: sitemaps, feeds and the like, which are read for providers that do not push."""
