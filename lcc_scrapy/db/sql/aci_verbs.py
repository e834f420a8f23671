"""Verbs about documents that wait for the annotation engine, and what it found."""

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import and_, bindparam, delete, exists, func, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import ACI_NUMBER
from lcc_scrapy.db.sql.counter_verbs import CounterVerbs
from lcc_scrapy.db.sql.rows import RowsOf, chunks
from lcc_scrapy.domain.acis import Aci, AlertState, Waiting
from lcc_scrapy.domain.urds import Process

_WAITING = RowsOf(t.aequeue, Waiting)
_ACIS = RowsOf(t.aci, Aci)
_EXPIRE = (
    update(t.aci)
    .where(
        t.aci.c.urlkey == bindparam("key"),
        t.aci.c.seq == bindparam("version"),
        t.aci.c.owner == bindparam("whose"),
    )
    .values(expired=True)
)

AciKey = tuple[bytes, int, str]
"""``urlkey``, ``seq`` and owner."""


class AciVerbs(CounterVerbs):
    """Verbs about documents that wait for the annotation engine, and what it found."""

    def waiting_count(self) -> int:
        """Count the documents that wait."""
        return int(self._c.execute(select(func.count()).select_from(t.aequeue)).scalar_one())

    def waiting_documents(self, limit: int) -> list[Waiting]:
        """Return the documents that wait, by position."""
        return _WAITING.read(self._c, _WAITING.select().order_by(t.aequeue.c.position).limit(limit))

    def waiting_rows(self, urlkeys: Iterable[bytes]) -> dict[bytes, Waiting]:
        """Return those of these documents that wait."""
        return {row.urlkey: row for row in _WAITING.by_keys(self._c, urlkeys)}

    def enqueue(self, rows: Sequence[Waiting]) -> None:
        """Let documents wait; a row replaces the one of the same document."""
        _WAITING.replace(self._c, rows)

    def dequeue(self, urlkeys: Sequence[bytes]) -> None:
        """Let documents wait no more."""
        _WAITING.delete(self._c, urlkeys)

    def put_acis(self, rows: Sequence[Aci]) -> None:
        """Add ACIs; none of them is there already."""
        _ACIS.insert(self._c, rows)

    def told_contents(
        self, urlkeys: Iterable[bytes], docbases: Collection[str]
    ) -> set[tuple[bytes, str, str]]:
        """Return (urlkey, owner, docbase) of the ACIs of these documents that name one of these contents."""
        c = t.aci.c
        query = select(c.urlkey, c.owner, c.docbase).where(c.docbase.in_(docbases))
        return {(bytes(key), owner, docbase) for key, owner, docbase in self._rows(query, c.urlkey, urlkeys)}

    def unexpired(self, urlkeys: Iterable[bytes]) -> list[tuple[AciKey, str]]:
        """Return the keys of these documents' ACIs that have not expired, each with its docbase."""
        c = t.aci.c
        query = select(c.urlkey, c.seq, c.owner, c.docbase).where(c.expired.is_(False))
        return [((bytes(row[0]), row[1], row[2]), row[3]) for row in self._rows(query, c.urlkey, urlkeys)]

    def expire_acis(self, keys: Sequence[AciKey]) -> None:
        """Note that the documents of these ACIs have another content now, or are gone."""
        if keys:
            rows = [{"key": key, "version": seq, "whose": owner} for key, seq, owner in sorted(keys)]
            self._c.execute(_EXPIRE, rows)

    def forget_acis(self, before: int, limit: int) -> int:
        """Forget some expired ACIs made before a moment of which nobody is still to be told; return how many.

        The ACI of a content that is still there stays, or its owner would be told of it again.
        """
        c, of_alert = t.aci.c, t.alerts.c
        waits = exists().where(of_alert.number == c.number, of_alert.state == AlertState.WAITING.value)
        old = select(c.number).where(c.expired.is_(True), c.made < before, ~waits)
        numbers = list(self._c.execute(old.order_by(c.made).limit(limit)).scalars())
        for part in chunks(numbers):
            self._c.execute(delete(t.aci).where(c.number.in_(part)))
        return len(numbers)

    def acis_after(self, number: int, owner: str | None, limit: int) -> list[Aci]:
        """Return ACIs (of one owner, None = of all) with higher numbers, by rising number."""
        c = t.aci.c
        which = c.number > number if owner is None else and_(c.owner == owner, c.number > number)
        return _ACIS.read(self._c, _ACIS.select().where(which).order_by(c.number).limit(limit))

    def aci(self, number: int) -> Aci | None:
        """Return an ACI by its number."""
        return next(iter(_ACIS.read(self._c, _ACIS.select().where(t.aci.c.number == number))), None)

    def acis_of_number(self, numbers: Iterable[int]) -> dict[int, Aci]:
        """Return the ACIs with these numbers."""
        found = {}
        for part in chunks(sorted(numbers)):
            for row in _ACIS.read(self._c, _ACIS.select().where(t.aci.c.number.in_(part))):
                found[row.number] = row
        return found

    def has_urds_of_changes(self) -> bool:
        """Tell whether anybody wants to know what changes."""
        query = select(t.urd.c.urdid).where(t.urd.c.processtype == Process.CHANGE.value)
        return self._c.execute(query.limit(1)).scalar() is not None

    def last_aci_number(self) -> int:
        """Return the number of the newest ACI, 0 = there was none; from the counter, also if it is gone."""
        return self.peek(ACI_NUMBER)
