"""Alarms: whoever is on call is told that something is wrong, and that it is over.

The rules are in ``rules.py``. ``facts.py`` reads what they look at, ``watching.py`` looks again and again and
keeps how alarms stand; ``channels.py`` and ``webhooks.py`` tell.
"""
