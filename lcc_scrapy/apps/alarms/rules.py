"""Alarms: when somebody on call is told that something is wrong, and when that it is over.

A rule looks at facts. What it finds has to last for a while (``steady`` seconds) before an alarm begins, and
to be gone as long before it ends: so a value at its bound does not flap. Each of both is told once.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from lcc_scrapy.apps.alarms.settings import AlarmRules

FEW_FETCHES = 20
"""Fetches of an hour from which on a share of failures says something."""

LOGINS = 5
"""Logins of a provider from which on there is a usual time between two of them."""

LEAST_SILENCE = 3600
"""Seconds of silence that are nothing unusual for anybody."""

_NAMED = 10


class Rule(StrEnum):
    """What may be wrong; the names are those of `lcc alarms list`."""

    STALLED = "stalled"
    FAILURES = "failures"
    DISK = "disk"
    HELD = "held"
    SILENT = "silent"
    WORKERS = "workers"


TITLES: Mapping[Rule, str] = {
    Rule.STALLED: "no URL is fetched though some are due",
    Rule.FAILURES: "many fetches fail",
    Rule.DISK: "a disk is nearly full",
    Rule.HELD: "removals are held",
    Rule.SILENT: "providers are silent for longer than usual",
    Rule.WORKERS: "crawl processes are missing",
}

ADVICE: Mapping[Rule, str] = {
    Rule.STALLED: "see `lcc status`, and `lcc explain URL` for one of the waiting URLs",
    Rule.FAILURES: "see `lcc status`, and `lcc errors PID`",
    Rule.DISK: "make room; intake and fetching stop when it is full",
    Rule.HELD: "`lcc provider confirm-removals PID` carries them out; see `lcc status` for whose they are",
    Rule.SILENT: "ask their owners whether their `lcccp` still runs; see `lcc provider show PID`",
    Rule.WORKERS: "start `lcc crawl`; its log says why it ended",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules look at.

    ``idle``: seconds since a fetch last ended, 0 where none is due. ``tried`` and ``failed`` are fetches of
    the last hour. ``free`` are bytes by folder, ``short`` says why intake has stopped. ``silent`` are
    the pids of some providers, of ``silent_count`` in all.
    """

    idle: float = 0.0
    tried: int = 0
    failed: int = 0
    free: Mapping[str, int] | None = None
    short: str = ""
    held: int = 0
    silent: tuple[int, ...] = ()
    silent_count: int = 0
    workers: int = 0


def wrong(facts: Facts, rules: AlarmRules) -> dict[Rule, str]:
    """Return what is wrong, in words."""
    found = {
        Rule.STALLED: _stalled(facts, rules),
        Rule.FAILURES: _failures(facts, rules),
        Rule.DISK: _disk(facts, rules),
        Rule.HELD: f"{facts.held} removals are held" if 0 < rules.held <= facts.held else "",
        Rule.SILENT: _silent(facts, rules),
        Rule.WORKERS: _workers(facts, rules),
    }
    return {rule: text for rule, text in found.items() if text}


def _stalled(facts: Facts, rules: AlarmRules) -> str:
    if not 0 < rules.stalled <= facts.idle:
        return ""
    return f"URLs are due, and no fetch has ended for {facts.idle / 60:.0f} min"


def _failures(facts: Facts, rules: AlarmRules) -> str:
    share = facts.failed / facts.tried if facts.tried >= FEW_FETCHES else 0.0
    if not 0 < rules.failures <= share:
        return ""
    return f"{facts.failed} of {facts.tried} fetches of the last hour failed ({share:.0%})"


def _disk(facts: Facts, rules: AlarmRules) -> str:
    if facts.short:
        return f"intake and fetching have stopped: {facts.short}"
    low = [(folder, free) for folder, free in sorted((facts.free or {}).items()) if free < rules.free]
    return ", ".join(f"{free / 1e9:.1f} GB free at {folder}" for folder, free in low)


def _silent(facts: Facts, rules: AlarmRules) -> str:
    if not rules.silent or not facts.silent_count:
        return ""
    named = ", ".join(map(str, facts.silent[:_NAMED]))
    more = facts.silent_count - min(len(facts.silent), _NAMED)
    return f"provider{'s' if facts.silent_count > 1 else ''} {named}{f' and {more} more' if more else ''}"


def _workers(facts: Facts, rules: AlarmRules) -> str:
    if facts.workers >= rules.workers:
        return ""
    return f"{facts.workers} crawl processes are at work, {rules.workers} are expected"


# --- when to tell -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Alarm:
    """How an alarm stands. ``number`` counts how often it has begun or ended.

    ``bad`` is what the rule found last, ``since`` (epoch seconds) when that changed. ``on``: it has begun, at
    ``at``. ``left`` are the channels that do not know yet whether it is on.
    """

    number: int = 0
    bad: bool = False
    since: int = 0
    on: bool = False
    at: int = 0
    left: tuple[int, ...] = ()

    @classmethod
    def read(cls, text: str) -> "Alarm":
        """Read what ``text`` gives; an empty text is an alarm that never began."""
        if not text:
            return cls()
        number, bad, since, on, at, left = json.loads(text)
        return cls(number, bad, since, on, at, tuple(left))

    @property
    def text(self) -> str:
        """Return it as it is kept."""
        values = (self.number, self.bad, self.since, self.on, self.at, list(self.left))
        return json.dumps(values, separators=(",", ":"))

    def seen(self, now: int, steady: float, channels: Collection[int], *, bad: bool) -> "Alarm":
        """Return it after a look at ``now``; ``channels`` are all that there are.

        One that has not been told of the last change needs not be told of this one: it knows no other state.
        """
        same = self if bad == self.bad else replace(self, bad=bad, since=now)
        left = tuple(one for one in same.left if one in channels)
        if same.bad == same.on or now - same.since < steady:
            return replace(same, left=left)
        untold = tuple(one for one in sorted(channels) if one not in left)
        return replace(same, number=same.number + 1, on=same.bad, at=now, left=untold)

    def told(self, channel: int) -> "Alarm":
        """Return it when a channel was told."""
        return replace(self, left=tuple(one for one in self.left if one != channel))


@dataclass(frozen=True, slots=True)
class Notice:
    """What a channel is told: an alarm has begun, or ended. ``name`` is the same whenever this is told."""

    rule: Rule
    on: bool
    at: int
    text: str
    name: str

    @property
    def subject(self) -> str:
        """One line."""
        return f"alarm: {TITLES[self.rule]}" if self.on else f"over: {TITLES[self.rule]}"

    @property
    def body(self) -> str:
        """Some lines: what is wrong, and what to do."""
        if not self.on:
            return f"{self.subject}\n"
        return f"{self.subject}\n{self.text}\n{ADVICE[self.rule]}\n"


@dataclass(frozen=True, slots=True)
class Fetching:
    """Whether fetches end: their number, and since when (epoch seconds) it is that though some are due.

    Both are 0 while none is due.
    """

    ended: int = 0
    since: int = 0

    def seen(self, ended: int, now: int, *, due: bool) -> "Fetching":
        """Return it after a look."""
        if not due:
            return Fetching()
        return self if ended == self.ended and self.since else Fetching(ended, now)

    def idle(self, now: int) -> float:
        """Return for how many seconds no fetch has ended though some are due."""
        return float(max(now - self.since, 0)) if self.since else 0.0
