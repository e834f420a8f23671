"""The feed: what changed since a content user's last visit, and the contents of it.

It reads; nothing here changes the cache or the queue. HTTP and sockets are in ``web`` and ``query``.
"""
