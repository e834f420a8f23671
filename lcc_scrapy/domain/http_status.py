"""Statuses of answers (RFC 9110 section 15). Codes of the wire share a part of their range."""

KNOWN = range(100, 600)
"""Statuses of the five classes."""

LARGEST = 999
"""The largest status that can be written."""

SERVER_ERROR = 500

MOVED = frozenset({301, 302, 303, 307, 308})
"""Redirects that are followed."""


def understood(status: int) -> int:
    """Return the status that counts: 600 to 999 are server errors; 0 is no status at all."""
    if status in KNOWN:
        return status
    return SERVER_ERROR if KNOWN.stop <= status <= LARGEST else 0
