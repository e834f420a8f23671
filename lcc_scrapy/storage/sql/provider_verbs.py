"""Verbs about providers, what is kept for them, and their sets."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import and_, delete, insert, or_, select, update

from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.storage import tables as t
from lcc_scrapy.storage.records import (
    ABSORBED,
    LastOutcome,
    ProviderSet,
    UrlErrorRecord,
)
from lcc_scrapy.storage.sql import many
from lcc_scrapy.storage.sql.rows import OnConnection, RowsOf, chunks

_PROVIDERS = RowsOf(t.pidb, Provider)
_OUTCOMES = RowsOf(t.outcomes, LastOutcome)
_PSETS = RowsOf(t.psets, ProviderSet)
_ERRORS = RowsOf(t.urlerrors, UrlErrorRecord)


class ProviderVerbs(OnConnection):
    """Verbs about providers, what is kept for them, and their sets."""

    def provider(self, pid: int) -> Provider | None:
        return next(iter(_PROVIDERS.by_keys(self._c, [pid])), None)

    def lock_providers(self, pids: Iterable[int]) -> dict[int, Provider]:
        return {row.pid: row for row in _PROVIDERS.by_keys(self._c, set(pids), lock=True)}

    def providers(self, after: int = -1, limit: int = 1000) -> list[Provider]:
        query = _PROVIDERS.select().where(t.pidb.c.pid > after).order_by(t.pidb.c.pid).limit(limit)
        return _PROVIDERS.read(self._c, query)

    def insert_provider(self, provider: Provider, roots: Sequence[str]) -> None:
        _PROVIDERS.insert(self._c, [provider])
        self._insert_roots(provider.pid, roots)

    def update_provider(self, pid: int, values: Mapping[str, object]) -> None:
        if values:
            self._c.execute(update(t.pidb).where(t.pidb.c.pid == pid).values(**values))

    def add_to_provider(self, pid: int, deltas: Mapping[str, int]) -> None:
        self.add_to_providers({pid: deltas})

    def add_to_providers(self, deltas: Mapping[int, Mapping[str, int]]) -> None:
        many.add(self._c, t.pidb.name, "pid", deltas)

    def delete_provider(self, pid: int) -> None:
        told_of_it = (t.urlerrors, t.outcomes, t.psets, t.logins, t.spidered, t.owners, t.scans)
        for table in (t.pidb, t.proots, *told_of_it, t.misses, t.suspects):
            self._c.execute(delete(table).where(table.c.pid == pid))

    def members(self, turnkeys: Iterable[str]) -> list[Provider]:
        found: list[Provider] = []
        for part in chunks(turnkeys):
            pids = [int(key) for key in part if key.isdecimal()]
            alone = and_(t.pidb.c.pid.in_(pids), t.pidb.c.turngroup == "")
            together = t.pidb.c.turngroup.in_([key for key in part if not key.isdecimal()])
            found.extend(_PROVIDERS.read(self._c, _PROVIDERS.select().where(or_(alone, together))))
        return sorted(found, key=lambda provider: provider.pid)

    def changed_providers(self, revision: int) -> list[Provider]:
        query = _PROVIDERS.select().where(t.pidb.c.revision > revision)
        return _PROVIDERS.read(self._c, query.order_by(t.pidb.c.pid))

    def roots_of(self, pids: Iterable[int]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        r = t.proots.c
        for part in chunks(pids):
            query = select(r.pid, r.root).where(r.pid.in_(part)).order_by(r.rootid)
            for pid, root in self._c.execute(query):
                found.setdefault(pid, []).append(root)
        return found

    def roots(self, pid: int) -> list[str]:
        query = select(t.proots.c.root).where(t.proots.c.pid == pid).order_by(t.proots.c.rootid)
        return list(self._c.execute(query).scalars())

    def replace_roots(self, pid: int, roots: Sequence[str]) -> None:
        self._c.execute(delete(t.proots).where(t.proots.c.pid == pid))
        self._insert_roots(pid, roots)

    def _insert_roots(self, pid: int, roots: Sequence[str]) -> None:
        if roots:
            self._c.execute(insert(t.proots), [{"pid": pid, "root": root} for root in roots])

    def add_errors(self, rows: Sequence[UrlErrorRecord], keep: int) -> None:
        if not rows:
            return
        fresh = [_ERRORS.as_dict(row) for row in rows]
        for row in fresh:
            del row["errorid"]
        self._c.execute(insert(t.urlerrors), fresh)
        e = t.urlerrors.c
        for pid in {row.pid for row in rows}:
            query = select(e.errorid).where(e.pid == pid).order_by(e.errorid.desc()).offset(keep).limit(1)
            newest_too_many = self._c.execute(query).scalar()
            if newest_too_many is not None:
                self.forget_errors(pid, newest_too_many)

    def errors(self, pid: int, limit: int) -> list[UrlErrorRecord]:
        e = t.urlerrors.c
        query = _ERRORS.select().where(e.pid == pid).order_by(e.errorid.desc()).limit(limit)
        return _ERRORS.read(self._c, query)[::-1]

    def forget_errors(self, pid: int, upto: int) -> None:
        e = t.urlerrors.c
        self._c.execute(delete(t.urlerrors).where(e.pid == pid, e.errorid <= upto))

    def put_outcomes(self, rows: Sequence[LastOutcome]) -> None:
        _OUTCOMES.replace(self._c, rows)

    def outcome(self, key: bytes) -> LastOutcome | None:
        return next(iter(_OUTCOMES.by_keys(self._c, [key])), None)

    def forget_outcomes(self, before: int) -> None:
        self._c.execute(delete(t.outcomes).where(t.outcomes.c.at < before))

    def pset_of(self, pid: int, connseq: int) -> ProviderSet | None:
        p = t.psets.c
        return next(
            iter(_PSETS.read(self._c, _PSETS.select().where(p.pid == pid, p.connseq == connseq))), None
        )

    def pset_named(self, pid: int, setid: str, digest: str, since: int) -> ProviderSet | None:
        p = t.psets.c
        query = _PSETS.select().where(p.pid == pid, p.setid == setid, p.digest == digest, p.started >= since)
        return next(iter(_PSETS.read(self._c, query.limit(1))), None)

    def set_ids(self, pid: int, since: int) -> list[str]:
        p = t.psets.c
        query = select(p.setid).where(p.pid == pid, p.full.is_(True), p.started >= since, p.setid != "")
        return list(self._c.execute(query.order_by(p.psetid.desc()).limit(1000)).scalars())

    def insert_pset(self, pset: ProviderSet) -> None:
        _PSETS.insert(self._c, [pset])

    def update_pset(self, pset: ProviderSet) -> None:
        _PSETS.update(self._c, [pset])

    def held_psets(self, pid: int) -> list[ProviderSet]:
        p = t.psets.c
        return _PSETS.read(self._c, _PSETS.select().where(p.pid == pid, p.held > 0).order_by(p.psetid))

    def forget_psets(self, before: int) -> None:
        p = t.psets.c
        self._c.execute(delete(t.psets).where(p.started < before, p.phase == ABSORBED, p.held == 0))
