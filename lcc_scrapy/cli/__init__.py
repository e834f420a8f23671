"""The ``lcc`` command line: thin groups of commands over ``wiring`` and ``storage``."""
