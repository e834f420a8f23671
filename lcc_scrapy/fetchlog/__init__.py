"""The fetch log: one JSON line for each fetch that ended, written by crawls and read by ``lcc log``."""
