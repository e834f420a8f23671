"""This machine: the data directory, free space, file descriptors, fsync, logs, garbage collection.

No database, no network, no rule but ``domain.free_space``.
"""
