"""The dashboard of ``lcc web``: pages and actions for operators, thin layers over what the commands do.

``routes`` says who is let in, ``pages`` has a handler for each page, ``actions`` does what the commands do.
"""
