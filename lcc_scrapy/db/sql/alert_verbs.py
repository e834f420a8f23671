"""Verbs about alerts and their recipients."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import case, delete, func, or_, select, tuple_, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks
from lcc_scrapy.domain.acis import Aci, Alert, AlertState, Channel, Recipient
from lcc_scrapy.domain.alerts import NEVER, Standing

_RECIPIENTS = RowsOf(t.recipients, Recipient)
_STANDINGS = RowsOf(t.recipients, Standing)
_ALERTS = RowsOf(t.alerts, Alert)
_ACIS = RowsOf(t.aci, Aci)
_KEYS = ("number", "recipientid")
_CHANGES = {name: many.REPLACE for name in _ALERTS.names if name not in _KEYS}
_WAITING = AlertState.WAITING.value
_ANY_WAITING = select(t.alerts.c.number).where(t.alerts.c.state == _WAITING).limit(1)


class AlertVerbs(OnConnection):
    """Verbs about recipients and what they are told."""

    def insert_recipient(self, recipient: Recipient) -> Recipient:
        """Add a recipient, for whom nothing waits; return it with the number that it got."""
        row = _STANDINGS.as_dict(Standing(0)) | _RECIPIENTS.as_dict(recipient)
        del row["recipientid"]
        key = self._c.execute(t.recipients.insert(), row).inserted_primary_key
        assert key is not None
        return replace(recipient, recipientid=int(key[0]))

    def update_recipient(self, recipient: Recipient) -> None:
        """Replace what its owner says of a recipient; what waits for it stays."""
        _RECIPIENTS.update(self._c, [recipient])

    def delete_recipient(self, recipientid: int) -> None:
        """Forget a recipient and all that it was told, or was to be told."""
        self._c.execute(delete(t.alerts).where(t.alerts.c.recipientid == recipientid))
        _RECIPIENTS.delete(self._c, [recipientid])

    def recipient(self, recipientid: int) -> Recipient | None:
        """Return a recipient."""
        return next(iter(_RECIPIENTS.by_keys(self._c, [recipientid])), None)

    def lock_recipient(self, recipientid: int) -> Standing | None:
        """Return how far a recipient is, and keep it from others until the end of the transaction."""
        return next(iter(_STANDINGS.by_keys(self._c, [recipientid], lock=True)), None)

    def recipients(self, owner: str | None, after: int, limit: int) -> list[Recipient]:
        """Return recipients behind a number, by number; of one owner, or (None) of all."""
        c = t.recipients.c
        query = _RECIPIENTS.select().where(c.recipientid > after)
        query = query if owner is None else query.where(c.owner == owner)
        return _RECIPIENTS.read(self._c, query.order_by(c.recipientid).limit(limit))

    def recipients_of(self, owners: Collection[str]) -> list[Recipient]:
        """Return the recipients of some owners, also those that are off, by number."""
        c = t.recipients.c
        rows = self._rows(_RECIPIENTS.select(), c.owner, sorted(set(owners)))
        return sorted((_RECIPIENTS.make(tuple(row)) for row in rows), key=lambda one: one.recipientid)

    def put_alerts(self, alerts: Sequence[Alert]) -> None:
        """Note what recipients are to be told, or what became of it; new ones bring their recipients' turn.

        A recipient that is gone by then gets nothing, and its alerts are forgotten with ``forget_alerts``.
        """
        rows = [_ALERTS.in_order(one) for one in alerts]
        many.insert(self._c, t.alerts.name, _ALERTS.names, rows, keys=_KEYS, changes=_CHANGES)
        first: dict[int, tuple[int, int]] = {}
        for one in alerts:
            if one.state == AlertState.WAITING:
                due, deadline = first.get(one.recipientid, (NEVER, NEVER))
                first[one.recipientid] = min(due, one.not_before), min(deadline, one.deadline)
        for recipientid, (due, deadline) in sorted(first.items()):
            self._bring_forward(recipientid, due, deadline)

    def _bring_forward(self, recipientid: int, due: int, deadline: int) -> None:
        c = t.recipients.c
        change = update(t.recipients).where(c.recipientid == recipientid)
        change = change.where(or_(c.due > due, c.deadline > deadline))
        self._c.execute(
            change.values(
                due=case((c.due > due, due), else_=c.due),
                deadline=case((c.deadline > deadline, deadline), else_=c.deadline),
            )
        )

    def put_standing(self, standing: Standing) -> None:
        """Note how far a recipient is; ``due`` and ``deadline`` are read anew from its alerts.

        Whoever calls it has locked the recipient.
        """
        a = t.alerts.c
        which = (a.recipientid == standing.recipientid, a.state == _WAITING)
        due = self._c.execute(select(func.min(a.not_before)).where(*which)).scalar()
        deadline = self._c.execute(select(func.min(a.deadline)).where(*which)).scalar()
        following = replace(standing, due=_or_never(due), deadline=_or_never(deadline))
        _STANDINGS.update(self._c, [following])

    def due_recipients(self, channel: Channel, now: int, limit: int) -> list[int]:
        """Return whom something is due for and who may be told now; the earliest deadline first."""
        c = t.recipients.c
        query = select(c.recipientid).where(c.channel == channel.value, c.due <= now, c.not_before <= now)
        return list(self._c.execute(query.order_by(c.deadline, c.recipientid).limit(limit)).scalars())

    def due_alerts(self, recipientid: int, now: int, limit: int) -> list[Alert]:
        """Return what a recipient is to be told now, the earliest deadline first."""
        a = t.alerts.c
        query = _ALERTS.select().where(a.recipientid == recipientid, a.state == _WAITING, a.not_before <= now)
        return _ALERTS.read(self._c, query.order_by(a.deadline, a.number).limit(limit))

    def acis_before(self, number: int, owner: str | None, limit: int) -> list[Aci]:
        """Return ACIs (of one owner, None = of all) with lower numbers, newest first."""
        c = t.aci.c
        query = _ACIS.select().where(c.number < number)
        query = query if owner is None else query.where(c.owner == owner)
        return _ACIS.read(self._c, query.order_by(c.number.desc()).limit(limit))

    def alerts_told(
        self, owner: str | None, state: AlertState | None, before: int, limit: int
    ) -> list[tuple[Alert, Recipient]]:
        """Return alerts of ACIs below a number, newest first, each with its recipient."""
        a, r = t.alerts.c, t.recipients.c
        joined = t.alerts.join(t.recipients, a.recipientid == r.recipientid)
        query = select(*_ALERTS.columns, *_RECIPIENTS.columns).select_from(joined).where(a.number < before)
        query = query if owner is None else query.where(r.owner == owner)
        query = query if state is None else query.where(a.state == state.value)
        rows = self._c.execute(query.order_by(a.number.desc(), a.recipientid).limit(limit))
        width = len(_ALERTS.columns)
        return [(_ALERTS.make(row[:width]), _RECIPIENTS.make(row[width:])) for row in map(tuple, rows)]

    def give_up_alerts(self, recipientid: int, before: int, limit: int) -> int:
        """Give up some alerts of a recipient whose deadline was before a moment; return how many."""
        a = t.alerts.c
        query = select(a.number).where(
            a.recipientid == recipientid, a.state == _WAITING, a.deadline <= before
        )
        numbers = list(self._c.execute(query.order_by(a.deadline).limit(limit)).scalars())
        change = update(t.alerts).where(a.recipientid == recipientid)
        return self._change(change.values(state=AlertState.GIVEN_UP.value), a.number, numbers)

    def open_alerts(self, urlkeys: Collection[bytes]) -> set[tuple[bytes, int]]:
        """Return the versions (urlkey, seq) of documents that somebody is still to be told of.

        One short look where nothing waits at all, as removals ask it every time.
        """
        if not urlkeys or self._c.execute(_ANY_WAITING).first() is None:
            return set()
        of_aci, of_alert = t.aci.c, t.alerts.c
        columns = select(of_aci.number, of_aci.urlkey, of_aci.seq)
        acis = self._rows(columns, of_aci.urlkey, sorted(set(urlkeys)))
        versions = {int(number): (bytes(key), int(seq)) for number, key, seq in acis}
        waiting = select(of_alert.number).where(of_alert.state == _WAITING)
        return {versions[int(row[0])] for row in self._rows(waiting, of_alert.number, sorted(versions))}

    def count_waiting_alerts(self, now: int) -> tuple[int, int]:
        """Count the alerts that wait, and those of them that are late."""
        a = t.alerts.c
        late = func.coalesce(func.sum(case((a.deadline < now, 1), else_=0)), 0)
        query = select(func.count(), late).select_from(t.alerts).where(a.state == _WAITING)
        count, overdue = self._c.execute(query).one()
        return int(count), int(overdue)

    def forget_alerts(self, before: int, limit: int) -> int:
        """Forget some alerts that nobody waits for, with deadlines before a moment; return how many."""
        a = t.alerts.c
        gone = 0
        for state in (AlertState.SENT.value, AlertState.GIVEN_UP.value):
            query = select(a.number, a.recipientid).where(a.state == state, a.deadline < before)
            keys = [tuple(row) for row in self._c.execute(query.limit(limit - gone))]
            for part in chunks(keys, 100):
                self._c.execute(delete(t.alerts).where(tuple_(a.number, a.recipientid).in_(part)))
            gone += len(keys)
        return gone


def _or_never(found: int | None) -> int:
    return NEVER if found is None else int(found)
