"""Verbs about providers, what is kept for them, and their sets."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, delete, insert, or_, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import (
    ABSORBED,
    OUTCOME_FAILED,
    OUTCOME_RETRYING,
    OUTCOME_WITHDRAWN,
    LastOutcome,
    Login,
    ProviderSet,
    SetName,
    UrlErrorRecord,
)
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import NAMEHASHES, OnConnection, RowsOf, chunks
from lcc_scrapy.domain.providers import Provider, State

_PROVIDERS = RowsOf(t.pidb, Provider)
OUTCOMES = RowsOf(t.outcomes, LastOutcome, NAMEHASHES)
_PSETS = RowsOf(t.psets, ProviderSet)
_ERRORS = RowsOf(t.urlerrors, UrlErrorRecord)
_NOTED = ("lastconnseq", "lastconnip", "lastconntime", "confirmed")
_NOTE_LOGIN = (
    update(t.pidb).where(t.pidb.c.pid == bindparam("of")).values({name: bindparam(name) for name in _NOTED})
)


def _is_member(turnkeys: Sequence[str]) -> Any:
    """Return the condition that a provider's turn is one of these."""
    pids = [int(key) for key in turnkeys if key.isdecimal()]
    alone = and_(t.pidb.c.pid.in_(pids), t.pidb.c.turngroup == "")
    return or_(alone, t.pidb.c.turngroup.in_([key for key in turnkeys if not key.isdecimal()]))


class ProviderVerbs(OnConnection):
    """Verbs about providers, what is kept for them, and their sets."""

    def provider(self, pid: int) -> Provider | None:
        """Return a provider without locking it."""
        return next(iter(_PROVIDERS.by_keys(self._c, [pid])), None)

    def providers_of(self, pids: Iterable[int]) -> dict[int, Provider]:
        """Return some providers without locking them."""
        return {row.pid: row for row in _PROVIDERS.by_keys(self._c, set(pids))}

    def note_logins(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Set ``lastconnseq``, ``lastconnip``, ``lastconntime`` and ``confirmed`` of providers (``pid``)."""
        if rows:
            self._c.execute(
                _NOTE_LOGIN, [{"of": row["pid"], **{name: row[name] for name in _NOTED}} for row in rows]
            )

    def lock_providers(self, pids: Iterable[int], *, free: bool = False) -> dict[int, Provider]:
        """Return providers and keep others from changing them until the end of the transaction.

        Those in transit to another LCC are left out: nothing of them may change. ``free``: so are those that
        somebody else has locked, and nobody is waited for.
        """
        found = _PROVIDERS.by_keys(self._c, set(pids), lock=True, skip=free)
        return {row.pid: row for row in found if row.state != State.IN_TRANSIT}

    def lock_moving(self, pid: int) -> Provider | None:
        """Do the same with a provider that may be in transit: for those who move it."""
        return next(iter(_PROVIDERS.by_keys(self._c, {pid}, lock=True)), None)

    def providers(self, after: int = -1, limit: int = 1000) -> list[Provider]:
        """Return providers by rising pid."""
        query = _PROVIDERS.select().where(t.pidb.c.pid > after).order_by(t.pidb.c.pid).limit(limit)
        return _PROVIDERS.read(self._c, query)

    def narrowing_pids(self, after: int, limit: int) -> list[int]:
        """Return the providers (rising) whose roots changed, while their rows were not looked at for that."""
        p = t.pidb.c
        query = select(p.pid).where(p.pid > after, p.narrowing.is_(True)).order_by(p.pid).limit(limit)
        return list(self._c.execute(query).scalars())

    def unconfirmed(self, before: int, after: int, limit: int) -> list[Provider]:
        """Return providers by rising pid that have documents, and have confirmed none since ``before``."""
        p = t.pidb.c
        silent = and_(p.confirmed <= before, p.fileused > 0)
        query = _PROVIDERS.select().where(p.pid > after, silent)
        return _PROVIDERS.read(self._c, query.order_by(p.pid).limit(limit))

    def insert_provider(self, provider: Provider, roots: Sequence[str]) -> None:
        """Add a provider."""
        self.insert_providers([(provider, roots)])

    def insert_providers(self, rows: Sequence[tuple[Provider, Sequence[str]]]) -> None:
        """Add several, each with its roots."""
        _PROVIDERS.insert(self._c, [provider for provider, _ in rows])
        self._insert_roots([(provider.pid, root) for provider, roots in rows for root in roots])

    def known_pids(self, pids: Sequence[int]) -> set[int]:
        """Return those of the pids that providers have."""
        p = t.pidb.c.pid
        return {pid for (pid,) in self._rows(select(p), p, pids)}

    def update_provider(self, pid: int, values: Mapping[str, object]) -> None:
        """Set columns of a provider."""
        if values:
            self._c.execute(update(t.pidb).where(t.pidb.c.pid == pid).values(**values))

    def add_to_provider(self, pid: int, deltas: Mapping[str, int]) -> None:
        """Add to counters of a provider."""
        self.add_to_providers({pid: deltas})

    def add_to_providers(self, deltas: Mapping[int, Mapping[str, int]]) -> None:
        """Add to counters of providers, by pid; they have to be locked."""
        many.add(self._c, t.pidb.name, "pid", deltas)

    def delete_provider(self, pid: int) -> None:
        """Remove a provider and all that the core keeps of it, but its documents and what waits."""
        told_of_it = (t.urlerrors, t.outcomes, t.psets, t.logins, t.overtaking, t.spidered, t.owners)
        by_pid = (
            t.scans,
            t.misses,
            t.suspects,
            t.fetchcounts,
            t.linkwords,
            t.irrelevant,
        )
        for table in (t.pidb, t.proots, *told_of_it, *by_pid):
            self._c.execute(delete(table).where(table.c.pid == pid))

    def members(self, turnkeys: Iterable[str]) -> list[Provider]:
        """Return the providers whose turns these are, by rising pid."""
        found: list[Provider] = []
        for part in chunks(turnkeys):
            found.extend(_PROVIDERS.read(self._c, _PROVIDERS.select().where(_is_member(part))))
        return sorted(found, key=lambda provider: provider.pid)

    def member_pids(self, turnkeys: Iterable[str]) -> set[int]:
        """Return the pids of the providers whose turns these are."""
        queries = (select(t.pidb.c.pid).where(_is_member(part)) for part in chunks(turnkeys))
        return {pid for query in queries for pid in self._c.execute(query).scalars()}

    def changed_providers(self, revision: int, limit: int = 1000) -> list[Provider]:
        """Return the providers that changed after a revision, by rising revision."""
        query = _PROVIDERS.select().where(t.pidb.c.revision > revision)
        return _PROVIDERS.read(self._c, query.order_by(t.pidb.c.revision).limit(limit))

    def roots_of(self, pids: Iterable[int]) -> dict[int, list[str]]:
        """Return the roots of providers, as far as they have any, in the order they were given."""
        found: dict[int, list[str]] = {}
        r = t.proots.c
        for pid, root in self._rows(select(r.pid, r.root).order_by(r.rootid), r.pid, pids):
            found.setdefault(pid, []).append(root)
        return found

    def rooted_at(self, host: str) -> list[tuple[int, str]]:
        """Return (pid, root) of all roots in whose text this host stands, by rising pid."""
        r = t.proots.c
        query = select(r.pid, r.root).where(r.root.contains(host, autoescape=True))
        return [(int(pid), root) for pid, root in self._c.execute(query.order_by(r.pid, r.rootid))]

    def roots(self, pid: int) -> list[str]:
        """Return the roots of a provider in the order they were given."""
        query = select(t.proots.c.root).where(t.proots.c.pid == pid).order_by(t.proots.c.rootid)
        return list(self._c.execute(query).scalars())

    def replace_roots(self, pid: int, roots: Sequence[str]) -> None:
        """Set the roots of a provider."""
        self._c.execute(delete(t.proots).where(t.proots.c.pid == pid))
        self._insert_roots([(pid, root) for root in roots])

    def _insert_roots(self, rows: Sequence[tuple[int, str]]) -> None:
        many.insert(self._c, t.proots.name, ("pid", "root"), rows)

    def add_errors(self, rows: Sequence[UrlErrorRecord], keep: int) -> None:
        """Keep final failures for their providers, the newest ``keep`` of each."""
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
        """Return the newest kept failures, oldest of them first."""
        e = t.urlerrors.c
        query = _ERRORS.select().where(e.pid == pid).order_by(e.errorid.desc()).limit(limit)
        return _ERRORS.read(self._c, query)[::-1]

    def forget_errors(self, pid: int, upto: int) -> None:
        """Remove failures that were delivered."""
        e = t.urlerrors.c
        self._c.execute(delete(t.urlerrors).where(e.pid == pid, e.errorid <= upto))

    def put_outcomes(self, rows: Sequence[LastOutcome]) -> None:
        """Keep the last outcome of each URL."""
        OUTCOMES.replace(self._c, rows)

    def outcome(self, key: bytes) -> LastOutcome | None:
        """Return the last outcome of a URL."""
        return next(iter(OUTCOMES.by_keys(self._c, [key])), None)

    def outcomes_of(self, keys: Iterable[bytes]) -> dict[bytes, LastOutcome]:
        """Return the last outcomes of some URLs, by their keys."""
        return {row.urlkey: row for row in OUTCOMES.by_keys(self._c, list(keys))}

    def with_outcomes(self, pids: Iterable[int]) -> set[int]:
        """Return those of some providers of whose URLs any outcome is kept."""
        p, o = t.pidb.c, t.outcomes.c
        query = select(p.pid).where(select(o.urlkey).where(o.pid == p.pid).exists())
        return {int(pid) for (pid,) in self._rows(query, p.pid, pids)}

    def tried(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return those of the keys of which an outcome is kept."""
        return many.known(self._c, [t.outcomes.name], "urlkey", keys)

    def outcomes_named(self, url: str) -> list[LastOutcome]:
        """Return the last outcomes of a URL given as curl, fetch URL or docid, whosever it is."""
        return OUTCOMES.named(self._c, url)

    def outcomes_in(
        self, pid: int, state: str, after: tuple[int, bytes], upto: int, limit: int
    ) -> list[LastOutcome]:
        """Return a provider's outcomes in a state behind (at, urlkey), up to a time, in this order."""
        o, (at, key) = t.outcomes.c, after
        behind = or_(o.at > at, and_(o.at == at, o.urlkey > key))
        query = OUTCOMES.select().where(o.pid == pid, o.state == state, o.at >= at, o.at <= upto, behind)
        return OUTCOMES.read(self._c, query.order_by(o.at, o.urlkey).limit(limit))

    def withdraw_outcomes(self, keys: Sequence[bytes]) -> None:
        """Note that these URLs, as far as they failed, were removed by their providers since."""
        o = t.outcomes.c
        failed = update(t.outcomes).where(o.state.in_([OUTCOME_FAILED, OUTCOME_RETRYING]))
        self._change(failed.values(state=OUTCOME_WITHDRAWN), o.urlkey, keys)

    def trim_outcomes(self, pid: int, state: str, keep: int, limit: int = 1000) -> None:
        """Remove a provider's oldest outcomes in a state beyond the newest ``keep``, ``limit`` at most."""
        o = t.outcomes.c
        query = select(o.urlkey).where(o.pid == pid, o.state == state)
        newest_first = query.order_by(o.at.desc(), o.urlkey.desc())
        OUTCOMES.delete(self._c, list(self._c.execute(newest_first.offset(keep).limit(limit)).scalars()))

    def forget_outcomes(self, before: int, limit: int = 1000) -> int:
        """Remove some of the outcomes older than ``before``; return how many."""
        o = t.outcomes.c
        old = list(self._c.execute(select(o.urlkey).where(o.at < before).limit(limit)).scalars())
        OUTCOMES.delete(self._c, old)
        return len(old)

    def pset_of(self, pid: int, connseq: int) -> ProviderSet | None:
        """Return the set that a login brought, if its absorption began."""
        p = t.psets.c
        return next(
            iter(_PSETS.read(self._c, _PSETS.select().where(p.pid == pid, p.connseq == connseq))), None
        )

    def sent_before(self, names: Collection[SetName], since: int) -> set[SetName]:
        """Return those names that sets have whose absorption began at ``since`` or later."""
        rows = _PSETS.matching(
            self._c, "pid = ? AND setid = ? AND digest = ?", names, f"started >= {since:d}"
        )
        return {SetName(row.pid, row.setid, row.digest) for row in rows}

    def set_ids(self, pid: int, since: int) -> list[str]:
        """Return the ids of a provider's full sets of late, the newest thousand at most."""
        p = t.psets.c
        query = select(p.setid).where(p.pid == pid, p.full.is_(True), p.started >= since, p.setid != "")
        return list(self._c.execute(query.order_by(p.psetid.desc()).limit(1000)).scalars())

    def insert_psets(self, psets: Sequence[ProviderSet]) -> None:
        """Note that sets are being absorbed."""
        _PSETS.insert(self._c, psets)

    def psets_of(self, logins: Collection[Login]) -> dict[Login, ProviderSet]:
        """Return the sets that some logins brought, as far as their absorption began."""
        rows = _PSETS.matching(self._c, "pid = ? AND connseq = ?", logins)
        return {(row.pid, row.connseq): row for row in rows}

    def full_set_after(self, pid: int, connseq: int) -> bool:
        """Tell whether absorption of a full set of a later login of a provider began."""
        p = t.psets.c
        query = select(p.psetid).where(p.pid == pid, p.connseq > connseq, p.full.is_(True)).limit(1)
        return self._c.execute(query).scalar() is not None

    def update_pset(self, pset: ProviderSet) -> None:
        """Note how far its absorption is."""
        _PSETS.update(self._c, [pset])

    def held_psets(self, pid: int) -> list[ProviderSet]:
        """Return sets whose removals are held, oldest first."""
        p = t.psets.c
        return _PSETS.read(self._c, _PSETS.select().where(p.pid == pid, p.held > 0).order_by(p.psetid))

    def forget_psets(self, before: int, named_before: int, after: int = 0, limit: int = 1000) -> int:
        """Remove notes of sets absorbed before ``before``, except those with held removals.

        Those with an id, by which a resend is known, stay until ``named_before``. Looks at the next sets
        after the number ``after``; returns the last number, 0 = all were looked at.
        """
        p = t.psets.c
        query = select(p.psetid, p.phase, p.held, p.setid, p.started).where(
            p.psetid > after, p.started < before
        )
        rows = self._c.execute(query.order_by(p.psetid).limit(limit)).all()
        over = [
            row.psetid
            for row in rows
            if row.phase == ABSORBED and not row.held and (not row.setid or row.started < named_before)
        ]
        _PSETS.delete(self._c, over)
        return rows[-1].psetid if len(rows) == limit else 0
