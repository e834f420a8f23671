"""Rows of documents and what belongs to them: file ids, versions, tombstones, deletion, missed pushes.

It knows neither the queue nor the feed.
"""
