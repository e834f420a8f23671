"""The HTTP API for content users. ``app.make_app`` makes it out of what ``ports.Lcc`` names.

It reads through ``feed`` and knows no tables.
"""
