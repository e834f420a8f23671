"""The fetch log: one JSON line for each fetch that ended, written by crawls and read by ``lcc log``.

Files only, no database: nothing in the LCC depends on what is logged.
"""
