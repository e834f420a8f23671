"""The query socket (seed 003 section 9, "XML API"): a query in, a stream of results out; and its client.

It reads through ``feed`` and knows no tables. See docs/query-protocol.md.
"""
