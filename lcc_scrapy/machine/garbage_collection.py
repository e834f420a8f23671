"""The garbage collector: runs less often than by default, and skips what was imported.

Where a program has set its own thresholds, they stay.
"""

import atexit
import gc

_AS_SHIPPED = (700, 10, 10)
COLLECT_AFTER = 100_000
"""Objects made and not freed after which Python looks for garbage; as shipped, after 700.

More than all pages together that wait for a commit (80 objects each): else it would look during each commit.
"""

_SELDOM = (COLLECT_AFTER, *_AS_SHIPPED[1:])


def spare_imports() -> None:
    """Spare a command that begins: looking through all that it imports takes half as long as importing it.

    At the end of the process nothing is looked through either, for all of it goes.
    """
    if gc.get_threshold() == _AS_SHIPPED:
        gc.set_threshold(*_SELDOM)
    atexit.register(gc.freeze)


def collect_seldom() -> None:
    """Let Python look for garbage less often, and never among what is loaded by now: a fourth of a page."""
    if gc.get_threshold() in {_AS_SHIPPED, _SELDOM}:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_SELDOM)
