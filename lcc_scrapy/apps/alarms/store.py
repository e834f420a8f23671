"""How alarms stand, kept among the facts about the LCC, and which providers are silent."""

from collections.abc import Iterator

from sqlalchemy import and_, select

from lcc_scrapy.apps.alarms.rules import ADVICE, LEAST_SILENCE, LOGINS, TITLES, Alarm, Rule
from lcc_scrapy.db import tables as t
from lcc_scrapy.db.sql.rows import OnConnection
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.shown import moment
from lcc_scrapy.ops.status import Troubles


def alarm_of(tx: Tx, rule: Rule) -> Alarm:
    """Return how an alarm stands."""
    return Alarm.read(tx.info(_name(rule)) or "")


def keep(tx: Tx, rule: Rule, alarm: Alarm) -> None:
    """Note how an alarm stands."""
    tx.set_info(_name(rule), alarm.text)


def _name(rule: Rule) -> str:
    return f"alarm {rule.value}"


def _troubles(tx: Tx) -> Iterator[str]:
    alarms = {rule: alarm_of(tx, rule) for rule in Rule}
    for rule, alarm in alarms.items():
        if alarm.on:
            yield f"alarm since {moment(alarm.at)}: {TITLES[rule]}; {ADVICE[rule]}"


TROUBLES: Troubles = _troubles


class AlarmRows(OnConnection):
    """What one transaction can ask for alarms."""

    def silent_providers(self, now: int, times: int) -> list[int]:
        """Return active providers (rising) that have not logged in for so many times their usual interval.

        That is the mean of all their logins, where there were ``LOGINS`` of them; ``LEAST_SILENCE`` is
        always usual.
        """
        p = t.pidb.c
        silence, known = now - p.lastconntime, p.lastconntime - p.created
        unusual = and_(silence > LEAST_SILENCE, silence * p.lastconnseq > times * known)
        query = select(p.pid).where(p.state == State.ACTIVE, p.lastconnseq >= LOGINS, unusual)
        return list(self._c.execute(query.order_by(p.pid)).scalars())


def rows_in(tx: Tx) -> AlarmRows:
    """Return the rows that alarms look at in a transaction."""
    return AlarmRows.over(tx)
