"""The public HTTP endpoint: what providers push over HTTP, and routes of other features for strangers.

``app.make_push_app`` makes it out of a conversation with the UNS (``ports.Uns``) and of routers.
"""
