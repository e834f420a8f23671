"""When owners are told of what the annotation engine found for them, and for how long that is tried."""

from dataclasses import dataclass
from datetime import time
from typing import Any, NamedTuple

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.settings import LIVE, setting


class Deadlines(NamedTuple):
    """Seconds from the fetch of a page to its alert, by service level."""

    digest: float
    soon: float
    at_once: float


def _deadlines(text: Any) -> Deadlines:
    given = tuple(text) if isinstance(text, Deadlines) else read.parts(text)
    if len(given) != len(Deadlines._fields):
        raise ValueError(f"{text!r}, expected three durations like 25h 10m 60s")
    return Deadlines(*map(read.period, given))


def _hour(text: Any) -> time:
    hour = read.clock_time(text)
    if hour is None:
        raise ValueError(f"{text!r}, expected an hour like 07:00")
    return hour


# fmt: off
@dataclass(frozen=True, slots=True)
class AlertRules:
    """How owners are told. Times are in seconds."""

    digest: time = setting("LCC_ALERT_DIGEST_HOUR", "07:00", _hour, "When the daily digest of [alerts](annotation.md#alerts) is sent, in LCC_TIMEZONE.", LIVE)
    deadlines: Deadlines = setting("LCC_ALERT_DEADLINES", "25h 10m 60s", _deadlines, "How long after its fetch a page is to be told at the service levels 0 (digest), 1 (soon) and 2 (at once). Nothing is dropped that is late: `lcc alerts status` counts it.", LIVE)
    retry: float = setting("LCC_ALERT_RETRY", "7d", read.period, "How long an alert is tried; then it is given up. It stays in feeds and on pages.", LIVE)
    timeout: float = setting("LCC_ALERT_TIMEOUT", "20s", read.period, "Longest time for one call of a webhook; then it is tried again later.", LIVE)
    at_a_time: int = setting("LCC_ALERT_CONCURRENCY", "16", read.at_least_one, "Recipients that are told at a time; each of them has one mail or call at a time.", LIVE)
    private: bool = setting("LCC_ALERT_PRIVATE", "no", read.flag, "Permit webhooks at private addresses, and without TLS: for an intranet.", LIVE)
    recipients: int = setting("LCC_ALERT_RECIPIENTS", "20", read.at_least_one, "Recipients that one owner may have.", LIVE)
    kept: float = setting("LCC_ALERTS_KEPT", "90d", read.period, "How long it is kept which recipient was told of what, and what was found in contents that are not there any more.", LIVE)
# fmt: on
