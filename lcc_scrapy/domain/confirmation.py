"""How long nobody has said that a document is still right (design section 5 "Confirmation and expiry").

A document is confirmed by a skip, a fetch, a 304 or a full set, which its own row notes, or by its
provider's login while no full set is wanted, which the provider's row notes for all of them.
"""

from enum import IntEnum

from lcc_scrapy.domain.policy import QueuePolicy


class Age(IntEnum):
    """What is to be done about a document."""

    FRESH = 0
    STALE = 1
    """A full set is wanted: "old files"."""
    EXPIRED = 2
    """The document goes, and a full set is wanted: "expired files"."""


def age(row_confirmed: int, provider_confirmed: int, now: int, policy: QueuePolicy) -> Age:
    """Return the age of a document; all times in epoch seconds."""
    unconfirmed = now - max(row_confirmed, provider_confirmed)
    if policy.expire_after and unconfirmed >= policy.expire_after:
        return Age.EXPIRED
    if policy.stale_after and unconfirmed >= policy.stale_after:
        return Age.STALE
    return Age.FRESH
