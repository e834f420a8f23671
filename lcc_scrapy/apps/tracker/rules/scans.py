"""How a server of the mirror tracker may be scanned, and when it is next."""

from dataclasses import dataclass
from datetime import tzinfo
from zoneinfo import ZoneInfo

from lcc_scrapy.apps.tracker.rules.tracked import TrackedDomain
from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.retries import HOST_BACKOFF_MAX, RETRY_AFTER_MAX

LEAST_EVERY = 60
"""Seconds between two scans of a server at least."""

CLAIM = 120
"""Seconds for which a process has a server to itself; it claims it anew while it scans it."""

ZONE_MAX = 64


class BadRules(LccError):
    """A server may not be scanned so."""


@dataclass(frozen=True, slots=True)
class ScanRules:
    """One row of ``tr_rules``; a server without one has these defaults.

    ``every``: seconds between scans, 0 = LCC_TRACKER_EVERY. ``timeofday``: mask of the hours in which a scan
    may begin, empty = always; ``timezone`` is that of the mask, empty = LCC_TIMEZONE. ``bandwidth``: bytes
    per second, 0 = no limit. ``private``: its addresses may be private.
    """

    hostid: int
    every: int = 0
    timeofday: str = ""
    timezone: str = ""
    bandwidth: int = 0
    private: bool = False


def check(rules: ScanRules) -> ScanRules:
    """Return the rules; raises ``BadRules``."""
    if 0 < rules.every < LEAST_EVERY:
        raise BadRules(f"--every: at least {LEAST_EVERY} seconds")
    if timeslots.never_opens(rules.timeofday):
        raise BadRules("--hours: no hour is permitted")
    return rules


def not_before(rules: ScanRules, now: int, zone: tzinfo) -> int:
    """Return when a scan may begin at the earliest (epoch seconds), 0 = now."""
    its = ZoneInfo(rules.timezone) if rules.timezone else zone
    opens = timeslots.next_permitted(rules.timeofday, now, its)
    return int(opens) + 1 if opens > now else 0


def after_success(rules: ScanRules, now: int, every: float) -> int:
    """Return when a server is scanned next."""
    return now + (rules.every or max(LEAST_EVERY, int(every)))


def is_due(domain: TrackedDomain, now: int, *, is_left: bool) -> bool:
    """Tell whether the peer of a domain is to be asked; ``is_left``: whoever asked it has ended."""
    if not domain.peer:
        return False
    return is_left or not now < domain.claimed


def is_busy(domain: TrackedDomain, now: int, *, is_left: bool) -> bool:
    """Tell whether somebody asks the peer of a domain now."""
    return bool(domain.owner) and not is_left and now < domain.claimed <= now + CLAIM


def after_peer_failure(before: TrackedDomain, now: int, first: float, retry_after: float) -> int:
    """Return when a peer is asked again that failed: after twice the wait that it had ``before``."""
    waited = max(0, before.claimed - before.checked) if before.error and not before.owner else 0
    delay = min(max(first, 2.0 * waited), HOST_BACKOFF_MAX)
    return now + max(1, int(max(delay, min(retry_after, RETRY_AFTER_MAX))))
