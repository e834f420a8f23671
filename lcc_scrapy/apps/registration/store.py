"""Registrations that are not complete, as rows."""

from collections.abc import Collection

from sqlalchemy import func, select

from lcc_scrapy.apps.registration import tables as t
from lcc_scrapy.apps.registration.rules import Registration
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf
from lcc_scrapy.db.tx import Tx

_REGISTRATIONS = RowsOf(t.registrations, Registration)


class RegistrationRows(OnConnection):
    """What one transaction can do with them."""

    def insert_registration(self, registration: Registration) -> None:
        """Add a registration."""
        _REGISTRATIONS.insert(self._c, [registration])

    def update_registration(self, registration: Registration) -> None:
        """Replace a registration."""
        _REGISTRATIONS.update(self._c, [registration])

    def lock_registration(self, secret: str) -> Registration | None:
        """Return a registration, and keep others from changing it until the end of the transaction."""
        return next(iter(_REGISTRATIONS.by_keys(self._c, [secret], lock=True)), None)

    def registration_with(self, pid: int, password: str) -> Registration | None:
        """Return the registration of a pid that has this hash of a password."""
        c = t.registrations.c
        query = _REGISTRATIONS.select().where(c.pid == pid, c.password == password)
        return next(iter(_REGISTRATIONS.read(self._c, query)), None)

    def registrations_of(self, pid: int, kind: str, limit: int = 1000) -> list[Registration]:
        """Return the registrations of one kind of a pid, oldest first."""
        c = t.registrations.c
        query = _REGISTRATIONS.select().where(c.pid == pid, c.kind == kind)
        return _REGISTRATIONS.read(self._c, query.order_by(c.created, c.secret).limit(limit))

    def registrations(self, after: str = "", limit: int = 1000) -> list[Registration]:
        """Return registrations by rising digest of their secrets."""
        c = t.registrations.c
        query = _REGISTRATIONS.select().where(c.secret > after).order_by(c.secret).limit(limit)
        return _REGISTRATIONS.read(self._c, query)

    def count_registrations(self) -> int:
        """Count all of them."""
        return int(self._c.execute(select(func.count()).select_from(t.registrations)).scalar_one())

    def delete_registrations(self, secrets: Collection[str]) -> None:
        """Remove registrations."""
        _REGISTRATIONS.delete(self._c, list(secrets))

    def forget_registrations(self, now: int, limit: int = 1000) -> int:
        """Remove some of the registrations that have expired by then; return how many."""
        c = t.registrations.c
        query = select(c.secret).where(c.expires <= now).limit(limit)
        old = list(self._c.execute(query).scalars())
        _REGISTRATIONS.delete(self._c, old)
        return len(old)


def rows_in(tx: Tx) -> RegistrationRows:
    """Return the rows of this app in a transaction."""
    return RegistrationRows.over(tx)
