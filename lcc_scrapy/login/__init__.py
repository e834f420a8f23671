"""Who may push: passwords, the throttle for failed logins, the service that the UNS asks.

No sockets, no parsing.
"""
