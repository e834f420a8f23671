"""Looks again and again whether something is wrong, keeps how alarms stand, and tells channels. Blocking.

That an alarm has begun or ended is written before anybody is told, and which channels were told after. So a
kill between a telling and its note tells that one channel again, under the same name; nothing is left out.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from lcc_scrapy.apps.alarms.channels import Channel
from lcc_scrapy.apps.alarms.rules import Alarm, Facts, Notice, Rule, wrong
from lcc_scrapy.apps.alarms.settings import AlarmRules
from lcc_scrapy.apps.alarms.store import alarm_of, keep
from lcc_scrapy.apps.alarms.webhooks import NotTold
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import StoreUnavailable

_log = logging.getLogger(__name__)


class Claim(Protocol):
    """What lets one process of an LCC watch at a time."""

    def hold(self, tx: Tx) -> None:
        """Make sure, inside a writing transaction, that nobody has taken over; raises if somebody has."""


@dataclass(frozen=True, slots=True)
class Watch:
    """One part for ``db.parts.Turns``. ``choose`` gives the settings of now with their channels."""

    store: Store
    facts: Callable[[AlarmRules, int], Facts]
    choose: Callable[[], tuple[AlarmRules, Sequence[Channel]]]
    now: Callable[[], float]
    name: str = "alarms"

    def run(self, claim: Claim, stop: Event, *, once: bool) -> None:
        """Look until told to stop, or once."""
        while not stop.is_set():
            rules, channels = self.choose()
            try:
                self.look(claim, rules, channels)
            except StoreUnavailable as error:
                _log.warning("the database does not answer, trying again: %s", error)
            if once or stop.wait(rules.every):
                return

    def look(self, claim: Claim, rules: AlarmRules, channels: Sequence[Channel]) -> None:
        """Look once, and tell what is to be told."""
        now = int(self.now())
        found = wrong(self.facts(rules, now), rules)
        alarms = self._note(claim, rules, found, now, range(len(channels)))
        left = [(rule, number) for rule, alarm in alarms.items() for number in alarm.left]
        if not left:
            return
        notices = {rule: _notice(rule, alarm, found.get(rule, "")) for rule, alarm in alarms.items()}
        with ThreadPoolExecutor(len(left)) as threads:  # no channel waits for another one
            told = threads.map(lambda one: _tell(channels[one[1]], notices[one[0]]), left)
            for (rule, number), done in zip(left, told, strict=True):
                if done:
                    self._note_told(claim, rule, number)

    def _note(
        self, claim: Claim, rules: AlarmRules, found: Mapping[Rule, str], now: int, channels: range
    ) -> dict[Rule, Alarm]:
        alarms: dict[Rule, Alarm] = {}
        with self.store.begin() as tx:
            claim.hold(tx)
            for rule in Rule:
                before = alarm_of(tx, rule)
                after = before.seen(now, rules.steady, channels, bad=rule in found)
                if after != before:
                    keep(tx, rule, after)
                if after.number != before.number:
                    _log.warning("%s", _notice(rule, after, found.get(rule, "")).body.replace("\n", "; "))
                alarms[rule] = after
        return alarms

    def _note_told(self, claim: Claim, rule: Rule, channel: int) -> None:
        with self.store.begin() as tx:
            claim.hold(tx)
            keep(tx, rule, alarm_of(tx, rule).told(channel))


def _tell(channel: Channel, notice: Notice) -> bool:
    try:
        channel.tell(notice)
    except NotTold as error:
        _log.warning("%s: %s was not told, trying again: %s", notice.subject, channel.name, error)
        return False
    return True


def _notice(rule: Rule, alarm: Alarm, text: str) -> Notice:
    return Notice(rule, alarm.on, alarm.at, text, f"{rule.value}-{alarm.number}")
