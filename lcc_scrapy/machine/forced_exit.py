"""The last way out of a process that was told to stop: what hangs is left behind."""

import logging
import os

_log = logging.getLogger(__name__)


def leave() -> None:
    """End with a thread stuck: nothing is lost that a kill would not lose."""
    _log.warning("what hangs, database or file, is left behind")
    logging.shutdown()
    os._exit(0)
