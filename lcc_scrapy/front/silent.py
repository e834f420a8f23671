"""Which sub-LCCs do not answer, for the log of a server: each is told once, and again when it answers."""

import logging
import threading
from collections.abc import Mapping

_log = logging.getLogger(__name__)


class Silent:
    """Which sub-LCCs do not answer; why is for the log, once, and not for clients. Threads may share it."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def note(self, failed: Mapping[str, str]) -> None:
        """Log what is new."""
        with self._lock:
            before, self._names = self._names, set(failed)
        for name in sorted(failed.keys() - before):
            _log.warning("left out: %s", failed[name])
        for name in sorted(before - failed.keys()):
            _log.warning("sub-LCC %s answers again", name)
