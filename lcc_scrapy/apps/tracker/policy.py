"""Reads the policy file (``LCC_TRACKER_POLICY``)."""

from pathlib import Path

from lcc_scrapy.apps.tracker.rules.policy import Policy
from lcc_scrapy.domain.errors import ConfigurationError

POLICY_MAX = 1_000_000
"""Bytes."""


def read_policy(path: str) -> Policy:
    """Return the policy in a file, "" = no policy; raises ``ConfigurationError``."""
    if not path:
        return Policy()
    try:
        with Path(path).open("rb") as file:
            text = file.read(POLICY_MAX + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "") or "it is not UTF-8"
        raise ConfigurationError(f"LCC_TRACKER_POLICY: {path}: {reason}") from None
    if len(text) > POLICY_MAX:
        raise ConfigurationError(f"LCC_TRACKER_POLICY: {path}: more than {POLICY_MAX} bytes")
    return Policy.parse(text)
