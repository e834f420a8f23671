"""From an accepted set to rows of the queue: open logins, order, absorption, dry runs.

It knows the spool, but no sockets.
"""
