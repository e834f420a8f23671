"""ACIs and alerts as rows, written into any store as the annotation engine would."""

from dataclasses import replace

from lcc_scrapy.db import tables as t
from lcc_scrapy.domain.acis import Aci, Alert, AlertState
from tests.memory_store import MemoryStore


def alert(store, urlkey, seq, owner="anna", pid=7):
    """Let an alert wait on a version of a document; returns its number."""
    number = _last_number(store) + 1
    aci = Aci(
        urlkey, seq, owner, number, 1, pid, "html", "text/html", 5, 0, 1, "http://www.example.org/", 1, "1/1",
        False, "", "", "{}", 0,
    )  # fmt: skip
    waiting = Alert(number, 1, AlertState.WAITING, 0, 0, 0, 0)
    if isinstance(store, MemoryStore):
        with store.begin() as tx:
            tx._t.aci[urlkey, seq, owner] = aci
            tx._t.alerts[number, 1] = waiting
        return number
    with store.engine.begin() as connection:
        connection.execute(t.aci.insert(), _row(aci))
        connection.execute(t.alerts.insert(), _row(waiting))
    return number


def deliver(store, number):
    """Note that an alert was sent."""
    if isinstance(store, MemoryStore):
        with store.begin() as tx:
            tx._t.alerts[number, 1] = replace(tx._t.alerts[number, 1], state=AlertState.SENT)
        return
    with store.engine.begin() as connection:
        connection.execute(t.alerts.update().where(t.alerts.c.number == number).values(state="sent"))


def _last_number(store):
    if isinstance(store, MemoryStore):
        with store.read() as tx:
            return max((one.number for one in tx._t.aci.values()), default=0)
    with store.engine.connect() as connection:
        rows = connection.execute(t.aci.select()).all()
    return max((row.number for row in rows), default=0)


def _row(value):
    return {name: getattr(value, name) for name in value.__slots__}
