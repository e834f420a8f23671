"""Verbs about who has an interest in which URLs, and about withdrawals."""

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, select, tuple_, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import Ownership, Withdrawal
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks
from lcc_scrapy.domain.directives import NOBODY

_OWNERS = RowsOf(t.owners, Ownership)
_WITHDRAWALS = RowsOf(t.withdrawals, Withdrawal)
_ANY_OWNER = select(t.owners.c.furlkey).limit(1)
_BY_NAME = func.row_number().over(partition_by=t.owners.c.furlkey, order_by=t.owners.c.owner)
_NAMED = (
    select(t.owners.c.furlkey, t.owners.c.owner, _BY_NAME.label("place"))
    .where(t.owners.c.furlkey.in_(bindparam("keys", expanding=True)), t.owners.c.owner != NOBODY)
    .subquery()
)
_FIRST_OWNERS = (
    select(_NAMED.c.furlkey, _NAMED.c.owner)
    .where(_NAMED.c.place <= bindparam("most"))
    .order_by(_NAMED.c.furlkey, _NAMED.c.place)
)
PAIRS = 300
"""Pairs per statement."""


class OwnerVerbs(OnConnection):
    """Verbs about who has an interest in which URLs, and about withdrawals."""

    def owners_of(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[Ownership]]:
        """Return who has an interest in these URLs, as far as somebody has, by owner."""
        c = t.owners.c
        found: dict[bytes, list[Ownership]] = {}
        for part in chunks(furlkeys):
            for row in _OWNERS.read(self._c, _OWNERS.select().where(c.furlkey.in_(part))):
                found.setdefault(row.furlkey, []).append(row)
        return {key: sorted(rows, key=attrgetter("owner")) for key, rows in found.items()}

    def has_owners(self) -> bool:
        """Tell whether anybody has an interest in any URL."""
        return self._c.execute(_ANY_OWNER).first() is not None

    def first_owners(self, furlkeys: Iterable[bytes], limit: int) -> dict[bytes, list[str]]:
        """Return the names of who has an interest in these URLs, by name, ``limit`` of each at most.

        Those whose name is empty are nobody.
        """
        found: dict[bytes, list[str]] = {}
        for part in chunks(furlkeys):
            for key, owner in self._c.execute(_FIRST_OWNERS, {"keys": part, "most": limit}):
                found.setdefault(bytes(key), []).append(owner)
        return found

    def owners_behind(self, key: bytes, after: str, limit: int) -> list[str]:
        """Return the names of who has an interest in a URL, those behind a name; "" = from the first on."""
        c = t.owners.c
        query = select(c.owner).where(c.furlkey == key, c.owner > after).order_by(c.owner)
        return list(self._c.execute(query.limit(limit)).scalars())

    def ownerships(self, pairs: Iterable[tuple[bytes, str]]) -> dict[tuple[bytes, str], Ownership]:
        """Return the interests among these pairs of furlkey and owner."""
        found: dict[tuple[bytes, str], Ownership] = {}
        for part in chunks(pairs, PAIRS):
            rows = _OWNERS.read(self._c, _OWNERS.select().where(_among(part)))
            found |= {(row.furlkey, row.owner): row for row in rows}
        return found

    def put_owners(self, rows: Sequence[Ownership]) -> None:
        """Add or replace interests."""
        for part in chunks(((row.furlkey, row.owner) for row in rows), PAIRS):
            self._c.execute(delete(t.owners).where(_among(part)))
        _OWNERS.insert(self._c, rows)

    def let_dig(self, furlkeys: Iterable[bytes]) -> None:
        """Make interests in these URLs due where they go on to what is linked there."""
        c = t.owners.c
        self._change(update(t.owners).where(c.reach > 0).values(due=True), c.furlkey, furlkeys)

    def to_dig(self, pid: int, limit: int) -> list[Ownership]:
        """Return interests in a provider's URLs that are due, by furlkey."""
        c = t.owners.c
        query = _OWNERS.select().where(c.pid == pid, c.due.is_(True))
        return _OWNERS.read(self._c, query.order_by(c.furlkey, c.owner).limit(limit))

    # --- of one owner ----------------------------------------------------------------------------

    def next_owned(self, owner: str, after: int) -> int | None:
        """Return the first provider behind ``after`` in whose URLs an owner has an interest."""
        c = t.owners.c
        return self._c.execute(select(func.min(c.pid)).where(c.owner == owner, c.pid > after)).scalar()

    def owned_by(self, owner: str, pid: int, after: bytes, limit: int) -> list[Ownership]:
        """Return an owner's interests in a provider's URLs, by rising furlkey."""
        c = t.owners.c
        query = _OWNERS.select().where(c.owner == owner, c.pid == pid, c.furlkey > after)
        return _OWNERS.read(self._c, query.order_by(c.furlkey).limit(limit))

    def delete_owners(self, pairs: Iterable[tuple[bytes, str]]) -> None:
        """Remove interests, by furlkey and owner."""
        for part in chunks(pairs, PAIRS):
            self._c.execute(delete(t.owners).where(_among(part)))

    # --- withdrawals -----------------------------------------------------------------------------

    def put_withdrawals(self, owners: Iterable[str]) -> None:
        """Note that the interests of these owners are to be computed anew, from the beginning."""
        rows = [(owner, 0) for owner in sorted(set(owners))]
        changes = {"changes": "OLD + 1"}
        many.insert(self._c, t.withdrawals.name, _WITHDRAWALS.names, rows, keys=("owner",), changes=changes)

    def note_risen(self, owners: Collection[str]) -> None:
        """Note for withdrawals under way that interests of these owners were added or go farther now."""
        c = t.withdrawals.c
        self._change(update(t.withdrawals).values(changes=c.changes + 1), c.owner, sorted(owners))

    def withdrawal(self, owner: str, *, lock: bool = False) -> Withdrawal | None:
        """Return the withdrawal of an owner, if there is one."""
        return next(iter(_WITHDRAWALS.by_keys(self._c, [owner], lock=lock)), None)

    def withdrawals(self, limit: int) -> list[Withdrawal]:
        """Return withdrawals, by owner."""
        return _WITHDRAWALS.read(self._c, _WITHDRAWALS.select().order_by(t.withdrawals.c.owner).limit(limit))

    def end_withdrawal(self, owner: str) -> None:
        """Note that the interests of an owner were computed."""
        _WITHDRAWALS.delete(self._c, [owner])


def _among(pairs: Sequence[tuple[bytes, str]]) -> ColumnElement[bool]:
    """Return the condition on ``owners``; MariaDB looks rows up by its first half."""
    c = t.owners.c
    return and_(c.furlkey.in_(list({key for key, _ in pairs})), tuple_(c.furlkey, c.owner).in_(pairs))
