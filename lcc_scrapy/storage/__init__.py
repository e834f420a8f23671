"""Where the LCC keeps its rows: SQL through SQLAlchemy Core, and a twin in memory.

``tx`` says what a transaction can do, ``sql`` and ``memory`` do it; ``batch``, ``intake``, ``turnstile``
and ``settling`` are written once over it.
"""
