"""The Queue Manager: leases, windows, turns, one unit of work per commit, group commit, settlement.

It knows neither Scrapy nor sockets.
"""
