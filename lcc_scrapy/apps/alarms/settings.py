"""What alarms whom: the operator's choices."""

import shlex
from dataclasses import dataclass
from typing import Any

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain import shared_settings as shared
from lcc_scrapy.domain.mail_addresses import address
from lcc_scrapy.domain.settings import setting

MAILS_MAX = 20
"""Addresses that are told; a mailing list has more."""


def addresses(text: Any) -> tuple[str, ...]:
    """Read addresses of people, ``MAILS_MAX`` at most; raises ``ValueError``."""
    given = tuple(map(address, read.parts(text)))
    if len(given) > MAILS_MAX:
        raise ValueError(
            f"{len(given)} addresses, expected {MAILS_MAX} at most: a list of your mail server has more"
        )
    return given


def _command(text: Any) -> tuple[str, ...]:
    return tuple(text) if isinstance(text, tuple) else tuple(shlex.split(str(text)))


# fmt: off
@dataclass(frozen=True, slots=True)
class AlarmRules:
    """The rules of `lcc alarms`, and who is told. Times are in seconds; 0 turns a rule off."""

    mail: tuple[str, ...] = setting("LCC_ALARM_MAIL", "", addresses, "Who gets a mail when an [alarm](operations.md#alarms) begins and when it ends: addresses with blanks or commas between them. Needs LCC_MAIL_FROM.")
    webhooks_file: str = setting("LCC_ALARM_WEBHOOKS_FILE", "", str.strip, "File with a webhook in each line: its kind (`json`, `slack`, `matrix` or `ntfy`) and its URL.")
    command: tuple[str, ...] = setting("LCC_ALARM_COMMAND", "", _command, "Command that is run when an alarm begins and when it ends, without a shell; its environment says what happened.")
    every: float = setting("LCC_ALARM_EVERY", "15s", read.period, "Time between two looks of `lcc alarms watch`.")
    steady: float = setting("LCC_ALARM_STEADY", "2m", read.duration, "For how long something has to be wrong before an alarm begins, and right before it ends.")
    stalled: float = setting("LCC_ALARM_STALLED", "15m", read.duration, "Alarm when no fetch has ended for as long though URLs are due; 0 = never.")
    failures: float = setting("LCC_ALARM_FAILURES", "0.5", read.share, "Alarm when this share of the fetches of the last hour failed, of at least 20; 0 = never.")
    free: int = setting("LCC_ALARM_FREE", "1G", read.size, "Alarm when a disk of the LCC has fewer bytes free, or intake has stopped for want of room.")
    held: int = setting("LCC_ALARM_HELD", "1", read.whole, "Alarm when so many removals are held; 0 = never.")
    silent: int = setting("LCC_ALARM_SILENT", "5", read.whole, "Alarm when an active provider has not logged in for so many times its usual interval (the mean of all its logins, 5 at least), and an hour; 0 = never.")
    workers: int = shared.crawls_expected()
# fmt: on
