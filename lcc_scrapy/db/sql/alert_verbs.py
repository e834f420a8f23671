"""Verbs about alerts and their recipients."""

from collections.abc import Collection

from sqlalchemy import select

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.sql.rows import OnConnection
from lcc_scrapy.domain.acis import AlertState

_WAITING = AlertState.WAITING.value
_ANY_WAITING = select(t.alerts.c.number).where(t.alerts.c.state == _WAITING).limit(1)


class AlertVerbs(OnConnection):
    """Verbs about alerts and their recipients."""

    def open_alerts(self, urlkeys: Collection[bytes]) -> set[tuple[bytes, int]]:
        """Return the versions (urlkey, seq) of documents that somebody is still to be told of.

        One short look where nothing waits at all, as removals ask it every time.
        """
        if not urlkeys or self._c.execute(_ANY_WAITING).first() is None:
            return set()
        of_aci, of_alert = t.aci.c, t.alerts.c
        acis = self._rows(select(of_aci.number, of_aci.urlkey, of_aci.seq), of_aci.urlkey, urlkeys)
        versions = {int(number): (bytes(key), int(seq)) for number, key, seq in acis}
        waiting = select(of_alert.number).where(of_alert.state == _WAITING)
        return {versions[int(number)] for (number,) in self._rows(waiting, of_alert.number, versions)}
