"""Alerts: who is told of what, when, and for how long that is tried (seed 002: service levels, alerts).

Times are epoch milliseconds, as in the tables of the annotation engine; durations are seconds.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import time, tzinfo
from enum import StrEnum

from lcc_scrapy.domain.acis import Aci, Alert, AlertState, Channel, Recipient
from lcc_scrapy.domain.alert_limits import Deadlines
from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.mail_addresses import address
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.domain.timeslots import next_at

DIGEST_LEVEL, SOON, AT_ONCE = 0, 1, 2
"""Service levels: the ``urgency`` of a URD and its ACIs."""

LEVEL_NAMES = ("digest", "soon", "at once")

GIVEN_UP = "alerts given up"
"""The counter of alerts that were given up."""

NEVER = 2**62
"""When something is due for a recipient for whom nothing waits."""

MARGIN = 60
"""Seconds after which an alert is in the database: a younger one waits for the next digest."""

DIGEST_MAX = 200
"""Alerts of one digest; more are told in a second one behind it."""

AT_ONCE_MAX = 2 * DIGEST_MAX
"""Alerts of one recipient that are told before others have their turn."""

_FIRST_WAIT, _LONGEST_WAIT = 15, 3600
_DOUBLINGS = 12


class Format(StrEnum):
    """How an alert is written."""

    HTML = "html"
    TEXT = "text"
    XML = "xml"
    JSON = "json"


class BadRecipient(LccError):
    """What was said about a recipient cannot be used; the text says why."""


class NoSuchRecipient(LccError):
    """There is no recipient of this number, or none of this owner."""


class TooManyRecipients(LccError):
    """One owner has as many recipients as it may have."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a recipient is (columns of ``recipients``).

    ``tries`` counts failures, one after the other. Nothing is tried before ``not_before``: after a failure,
    or while a process is at it. Of the alerts that wait, ``due`` is when the first is to be told, and
    ``deadline`` the earliest of theirs; ``NEVER`` = none waits.
    """

    recipientid: int
    tries: int = 0
    not_before: int = 0
    due: int = NEVER
    deadline: int = NEVER


@dataclass(frozen=True, slots=True)
class Schedule:
    """When digests are sent (by the clock of ``zone``), and how late alerts may be."""

    digest: time
    deadlines: Deadlines
    zone: tzinfo


def alerts_of(
    aci: Aci, recipients: Iterable[Recipient], now: int, schedule: Schedule, since: int | None = None
) -> list[Alert]:
    """Return whom to tell of an ACI of their owner, and when.

    ``since`` is from when deadlines count: the fetch (None), or when an old page began to be of interest.
    """
    told = [one for one in recipients if one.owner == aci.owner and is_told(one)]
    begun = aci.updatetime if since is None else since
    return [_alert(aci.number, one, level_of(aci, one), now, since=begun, by=schedule) for one in told]


def is_told(recipient: Recipient) -> bool:
    """Tell whether a recipient gets anything: it is on, and its address was not refused."""
    return not recipient.off and not recipient.refused


def _alert(number: int, recipient: Recipient, level: int, now: int, *, since: int, by: Schedule) -> Alert:
    digest = next_at(by.digest, now // 1000 + MARGIN, by.zone) * 1000 if level == DIGEST_LEVEL else 0
    # never before now: what is told of late is tried as long as other alerts
    deadline = max(since + int(by.deadlines[level] * 1000), digest, now)
    return Alert(
        number,
        recipient.recipientid,
        AlertState.WAITING,
        tries=0,
        not_before=digest or now,
        deadline=deadline,
        sent=0,
        digest=digest,
    )


def level_of(aci: Aci, recipient: Recipient) -> int:
    """Return the service level: that of the ACI, unless everything waits for this recipient's digest."""
    return DIGEST_LEVEL if recipient.digest else min(max(aci.urgency, DIGEST_LEVEL), AT_ONCE)


def kept_counter(level: int) -> str:
    """Return the counter of alerts of a service level that kept their deadline."""
    return f"alerts kept {level}"


def late_counter(level: int) -> str:
    """Return the counter of those that were sent after it."""
    return f"alerts late {level}"


def wait(tries: int) -> int:
    """Return for how many seconds to wait after the ``tries``-th failure: 15 s, doubled up to an hour."""
    return int(min(_FIRST_WAIT * 2 ** min(max(tries, 1) - 1, _DOUBLINGS), _LONGEST_WAIT))


def is_hopeless(alert: Alert, now: int, retry: float) -> bool:
    """Tell whether it was tried for long enough: until ``retry`` seconds after its deadline."""
    return now >= alert.deadline + int(retry * 1000)


def messages(alerts: Sequence[Alert], *, cut: bool = False) -> list[tuple[Alert, ...]]:
    """Put alerts of one recipient together: one each, but those of one digest; earliest deadline first.

    ``cut``: they are the first of more. The last part of a digest may not be complete then, and is left out:
    whoever sends it again has to find the same part.
    """
    found: dict[tuple[int, int], list[Alert]] = {}
    for one in sorted(alerts, key=lambda one: (one.deadline, one.number)):
        found.setdefault((one.digest, 0 if one.digest else one.number), []).append(one)
    parts = [
        tuple(its[start : start + DIGEST_MAX])
        for its in found.values()
        for start in range(0, len(its), DIGEST_MAX)
    ]
    complete = [part for part in parts if not part[0].digest or len(part) == DIGEST_MAX]
    return (complete or parts) if cut else parts


def name_of(message: Sequence[Alert], lcc_id: str) -> str:
    """Return what a message is called: the same whenever the same alerts are told to the same recipient."""
    first = message[0]
    if not first.digest:
        return f"alert-{first.number}-{first.recipientid}.{lcc_id}"
    told = " ".join(map(str, sorted(one.number for one in message)))
    which = hashlib.sha256(told.encode()).hexdigest()[:16]
    return f"digest-{first.digest // 1000}-{first.recipientid}-{which}.{lcc_id}"


def address_for(channel: Channel, text: str, *, private: bool) -> str:
    """Return an address as it is used; raises ``BadRecipient``.

    A webhook is an https URL; with ``private`` it may be one of http.
    """
    try:
        return address(text.strip()) if channel == Channel.MAIL else _hook(text.strip(), private=private)
    except ValueError as error:
        raise BadRecipient(f"address {error}") from None


def _hook(text: str, *, private: bool) -> str:
    try:
        url = HttpUrl.parse(text)
    except UrlRefused as error:
        raise BadRecipient(f"address {text[:80]!r}: {error.detail}") from None
    if url.scheme != "https" and not private:
        raise BadRecipient(f"address {text[:80]!r}, expected https:// (LCC_ALERT_PRIVATE permits http://)")
    return str(url)


def format_for(channel: Channel, text: str) -> str:
    """Return a format by its name, the usual one for an empty name; raises ``BadRecipient``."""
    if not text:
        return Format.HTML if channel == Channel.MAIL else Format.JSON
    if text not in list(Format):
        raise BadRecipient(f"format {text[:20]!r}, expected {', '.join(Format)}")
    return text
