"""Fetching one URL from its site: client, robots.txt, pacing, redirects, and what the answer means.

No rows: outcomes go to the queue through ``app``.
"""
