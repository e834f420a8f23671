"""ResourceSync (ANSI/NISO Z39.99-2017): the feed as documents that standard harvesters follow.

It reads the feed; routes only, no server.
"""
