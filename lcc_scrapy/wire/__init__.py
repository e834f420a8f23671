"""Messages between content providers and the UNS, and their writing.

Both sides import it, so it imports the standard library only. Reading is in ``uns`` and ``push``.
"""
