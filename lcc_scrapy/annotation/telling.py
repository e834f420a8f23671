"""Whose turn it is, and what becomes of it: the database's part of delivery. Blocking (decision 151).

A message is sent first, and then noted in a transaction. A kill between the two sends this one message again,
under the same name, and loses none. A recipient is claimed until ``not_before``: nobody else tells it
meanwhile, and a process that is killed leaves it to others when that has passed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lcc_scrapy.annotation.couriers import TellLater, TellNever
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.acis import Aci, Alert, AlertState, Channel, Recipient
from lcc_scrapy.domain.alerts import (
    AT_ONCE_MAX,
    GIVEN_UP,
    NEVER,
    Standing,
    is_hopeless,
    is_told,
    kept_counter,
    late_counter,
    level_of,
    messages,
    wait,
)

SWEEP = 1000
"""Alerts that are given up, or forgotten, by one transaction."""

Outcome = TellLater | TellNever | None
"""Why a message was not taken; None = it was."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one recipient is to be told: alerts, message by message, and the ACIs that they are about."""

    recipient: Recipient
    messages: Sequence[Sequence[Alert]]
    acis: dict[int, Aci]


@dataclass(slots=True)
class Telling:
    """Claims recipients and notes what they were told. ``retry``: seconds that an alert is tried."""

    store: Store
    retry: float

    def due(self, channel: Channel, now: int, limit: int) -> list[int]:
        """Return whom something is due for; times are epoch milliseconds."""
        with self.store.read() as tx:
            return tx.due_recipients(channel, now, limit)

    def claim(self, recipientid: int, now: int, lease: float) -> Turn | None:
        """Take a recipient's turn for ``lease`` seconds; None = there is none now."""
        with self.store.begin() as tx:
            at = tx.lock_recipient(recipientid)
            recipient = tx.recipient(recipientid)
            if at is None or recipient is None or max(at.due, at.not_before) > now:
                return None
            alerts = self._alerts(tx, recipient, at, now)
            acis = tx.acis_of_number({one.number for one in alerts})
            _give_up(tx, [one for one in alerts if one.number not in acis])
            there = [one for one in alerts if one.number in acis]
            tx.put_standing(replace(at, not_before=now + int(lease * 1000) if there else 0))
        its = messages(there, cut=len(alerts) == AT_ONCE_MAX)
        return Turn(recipient, its, acis) if there else None

    def _alerts(self, tx: Tx, recipient: Recipient, at: Standing, now: int) -> list[Alert]:
        """Return what is due; what was tried for too long, or nobody will ever take, is given up first."""
        if not is_told(recipient) or at.tries:
            before = now - int(self.retry * 1000) if is_told(recipient) else NEVER
            _count(tx, {GIVEN_UP: tx.give_up_alerts(recipient.recipientid, before, SWEEP)})
        return tx.due_alerts(recipient.recipientid, now, AT_ONCE_MAX) if is_told(recipient) else []

    def note(self, turn: Turn, message: Sequence[Alert], outcome: Outcome, now: int, lease: float) -> None:
        """Note what became of a message. The turn goes on for ``lease`` seconds; with 0 it is over."""
        with self.store.begin() as tx:
            at = tx.lock_recipient(turn.recipient.recipientid)
            if at is None:  # it was removed, and its alerts with it
                return
            rows = [self._after(one, outcome, now) for one in message]
            tx.put_alerts(rows)
            if isinstance(outcome, TellNever):
                self._refuse(tx, turn.recipient, outcome)
            tx.put_standing(_standing(at, outcome, now, lease))
            _count(tx, _counts(turn, rows))

    def _after(self, alert: Alert, outcome: Outcome, now: int) -> Alert:
        tried = replace(alert, tries=alert.tries + 1)
        if outcome is None:
            return replace(tried, state=AlertState.SENT, sent=now)
        if isinstance(outcome, TellNever) or is_hopeless(alert, now, self.retry):
            return replace(tried, state=AlertState.GIVEN_UP)
        # longer than its recipient waits: others have their turn before this one fails again
        return replace(tried, not_before=now + wait(tried.tries + 1) * 1000)

    def _refuse(self, tx: Tx, recipient: Recipient, outcome: TellNever) -> None:
        """Tell this recipient nothing more, unless its owner changed it meanwhile."""
        stored = tx.recipient(recipient.recipientid)
        if stored is not None and stored.address == recipient.address:
            tx.update_recipient(replace(stored, refused=str(outcome)[:255] or "refused"))
            _count(tx, {GIVEN_UP: tx.give_up_alerts(recipient.recipientid, NEVER, SWEEP)})

    def forget(self, before: int) -> int:
        """Forget what is older than a moment: alerts nobody waits for, and expired ACIs; return how many."""
        with self.store.begin() as tx:
            return tx.forget_alerts(before, SWEEP) + tx.forget_acis(before, SWEEP)


def _standing(at: Standing, outcome: Outcome, now: int, lease: float) -> Standing:
    if outcome is None:
        return replace(at, tries=0, not_before=now + int(lease * 1000) if lease else 0)
    after = outcome.after if isinstance(outcome, TellLater) else 0
    return replace(at, tries=at.tries + 1, not_before=now + max(wait(at.tries + 1), after) * 1000)


def _counts(turn: Turn, rows: Sequence[Alert]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for one in rows:
        level = level_of(turn.acis[one.number], turn.recipient)
        if one.state == AlertState.SENT:
            counts[kept_counter(level) if one.sent <= one.deadline else late_counter(level)] += 1
        elif one.state == AlertState.GIVEN_UP:
            counts[GIVEN_UP] += 1
    return counts


def _give_up(tx: Tx, alerts: Sequence[Alert]) -> None:
    tx.put_alerts([replace(one, state=AlertState.GIVEN_UP) for one in alerts])
    _count(tx, {GIVEN_UP: len(alerts)})


def _count(tx: Tx, counts: Mapping[str, int]) -> None:
    """Count last in a transaction, in one order: others wait while a counter is locked."""
    for name, count in sorted(counts.items()):
        if count:
            tx.take(name, count)
