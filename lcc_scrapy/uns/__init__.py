"""The Update Notification Server: protocol, session, codec and spool.

No database: the wiring decides what stands behind ``uns.ports``.
"""
