"""The dashboard of ``lcc web``: pages and actions for operators, thin layers over what the commands do.

``routes.make_dashboard`` makes it.
"""
