"""Finding more: scans of documents for links, crawling directives, orphans, samples.

It fetches nothing: what it finds is submitted to the queue.
"""
