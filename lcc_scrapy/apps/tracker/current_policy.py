"""The policy as it is now: its file is read again at SIGHUP, as certificates are."""

import logging

from lcc_scrapy.apps.tracker.policy import read_policy
from lcc_scrapy.apps.tracker.rules.policy import Policy
from lcc_scrapy.domain.errors import ConfigurationError

_log = logging.getLogger(__name__)


class CurrentPolicy:
    """The policy in a file ("" = none); raises ``ConfigurationError`` at first if it cannot be read."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._policy = read_policy(path)

    def __call__(self) -> Policy:
        """Return the policy."""
        return self._policy

    def renew(self) -> None:
        """Read the file again; if it is no good, the log tells and the old policy stays. Blocking."""
        try:
            self._policy = read_policy(self._path)
        except ConfigurationError as error:
            _log.error("%(error)s: the old policy stays in use", {"error": error})
        else:
            _log.info("the policy was read again")
