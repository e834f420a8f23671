"""Sources: sitemaps, feeds and change lists of sites that do not push.

What is new, changed or gone in them becomes sets of their provider.
"""
