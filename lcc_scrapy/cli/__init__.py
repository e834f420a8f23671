"""The ``lcc`` command line: thin groups of commands over ``app``, ``ops`` and ``feed``.

No rules and no SQL.
"""
