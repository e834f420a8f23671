"""Who may push or sign in: passwords, people, sessions, the throttle, the service that the UNS asks.

No sockets, no parsing.
"""
