"""Domains, servers, their directories, and the rules of their scans, as rows."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Table, delete, select

from lcc_scrapy.apps.tracker import tables as t
from lcc_scrapy.apps.tracker.rules.scans import ScanRules
from lcc_scrapy.apps.tracker.rules.tracked import Host, Staged, TrackedDirectory, TrackedDomain, tag_of
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf, chunks
from lcc_scrapy.db.tx import Store, Tx

_DOMAINS = RowsOf(t.tr_domain, TrackedDomain)
_HOSTS = RowsOf(t.tr_host, Host)
_RULES = RowsOf(t.tr_rules, ScanRules)
_STAGED = RowsOf(t.tr_load, Staged)
_DIRECTORY = TrackedDirectory._fields
_COLUMNS = [t.tr_dir.c[name] for name in _DIRECTORY]

PAIRS = 5_000
"""Links or digests that are read at a time: one directory may have millions."""

At = tuple[int, bytes]
"""The number of a directory, and a name in it; empty = before all of them."""

Pair = tuple[int, bytes, bytes]
"""The same, and what is there: the target of a link, or the digest of a file."""

_Behind = Callable[["TrackerRows", At, int, int], list[Pair]]


class TrackerRows(OnConnection):
    """What one transaction can do with them."""

    def tracked_domains(self) -> list[TrackedDomain]:
        """Return all domains, by name."""
        return _DOMAINS.read(self._c, _DOMAINS.select().order_by(t.tr_domain.c.domain))

    def tracked_domain(self, domain: str, *, lock: bool = False) -> TrackedDomain | None:
        """Return a domain; ``lock`` keeps others from changing it until the end of the transaction."""
        return next(iter(_DOMAINS.by_keys(self._c, [domain], lock=lock)), None)

    def put_tracked_domain(self, domain: TrackedDomain) -> None:
        """Add or replace a domain."""
        _DOMAINS.replace(self._c, [domain])

    def delete_tracked_domain(self, domain: str) -> None:
        """Forget a domain, not its servers."""
        _DOMAINS.delete(self._c, [domain])

    def hosts(self, domain: str | None = None) -> list[Host]:
        """Return the servers of a domain, or all, by number."""
        query = _HOSTS.select() if domain is None else _HOSTS.select().where(t.tr_host.c.domain == domain)
        return _HOSTS.read(self._c, query.order_by(t.tr_host.c.hostid))

    def host(self, hostid: int, *, lock: bool = False) -> Host | None:
        """Return a server; ``lock`` as above."""
        return next(iter(_HOSTS.by_keys(self._c, [hostid], lock=lock)), None)

    def hosts_at(self, site: str) -> list[Host]:
        """Return the servers with this scheme, host and port, by number."""
        return sorted(_HOSTS.matching(self._c, "site = ?", [(site,)]), key=lambda one: one.hostid)

    def hosts_by_id(self, hostids: Collection[int]) -> dict[int, Host]:
        """Return servers by number."""
        return {one.hostid: one for one in _HOSTS.by_keys(self._c, sorted(hostids))}

    def put_host(self, host: Host) -> None:
        """Add or replace a server."""
        _HOSTS.replace(self._c, [host])

    def delete_host(self, hostid: int) -> None:
        """Forget a server and its rules, not its directories."""
        _HOSTS.delete(self._c, [hostid])
        self._c.execute(delete(t.tr_rules).where(t.tr_rules.c.hostid == hostid))

    # --- scans ---------------------------------------------------------------------------------------

    def claimed_hosts(self, now: int) -> list[Host]:
        """Return the servers that are claimed beyond ``now`` (epoch seconds), by number."""
        query = _HOSTS.select().where(t.tr_host.c.claimed > now)
        return _HOSTS.read(self._c, query.order_by(t.tr_host.c.hostid))

    def due_hosts_of(self, domain: str, now: int, limit: int) -> list[Host]:
        """Return servers of a domain that were due at ``now``, earliest first; none of a peer's domain."""
        c = t.tr_host.c
        own = select(t.tr_domain.c.domain).where(t.tr_domain.c.peer == "")
        query = _HOSTS.select().where(c.domain == domain, c.due <= now, c.domain.in_(own))
        return _HOSTS.read(self._c, query.order_by(c.due, c.hostid).limit(limit))

    def scan_rules(self, hostids: Collection[int]) -> dict[int, ScanRules]:
        """Return the rules of servers by number; of one without rules, the defaults."""
        found = {one.hostid: one for one in _RULES.by_keys(self._c, hostids)}
        return {hostid: found.get(hostid, ScanRules(hostid)) for hostid in hostids}

    def put_scan_rules(self, rules: ScanRules) -> None:
        """Add or replace the rules of a server."""
        _RULES.replace(self._c, [rules])

    # --- what nobody is shown --------------------------------------------------------------------

    def staged(self, first: int, *, lock: bool = False) -> Staged | None:
        """Return what is known of directories from a number on that no server shows; ``lock`` as above."""
        return next(iter(_STAGED.by_keys(self._c, [first], lock=lock)), None)

    def staged_before(self, claimed_before: int, limit: int) -> list[Staged]:
        """Return some whose claim has ended by then, by number."""
        c = t.tr_load.c
        query = _STAGED.select().where(c.claimed < claimed_before).order_by(c.first)
        return _STAGED.read(self._c, query.limit(limit))

    def put_staged(self, staged: Staged) -> None:
        """Add or replace one."""
        _STAGED.replace(self._c, [staged])

    def delete_staged(self, first: int) -> None:
        """Forget one, not its directories."""
        _STAGED.delete(self._c, [first])

    def insert_directories(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add directories, in the order of the fields of ``TrackedDirectory``."""
        many.insert(self._c, t.tr_dir.name, _DIRECTORY, rows)

    def insert_tracked_links(self, rows: Sequence[tuple[int, bytes, bytes]]) -> None:
        """Add symbolic links: the number of the directory, name, target."""
        many.insert(self._c, t.tr_link.name, ("dirid", "name", "target"), rows)

    def insert_digests(self, rows: Sequence[tuple[int, bytes, bytes]]) -> None:
        """Add digests of files: the number of the directory, name, digest."""
        many.insert(self._c, t.tr_hash.name, ("dirid", "name", "digest"), rows)

    def delete_directories(self, first: int, upto: int) -> None:
        """Remove what belongs to directories from ``first`` on, below ``upto``."""
        for table in (t.tr_dir, t.tr_link, t.tr_hash):
            c = table.c.dirid
            self._c.execute(delete(table).where(c >= first, c < upto))

    # --- look-up ---------------------------------------------------------------------------------

    def directories(self, dirids: Collection[int]) -> dict[int, TrackedDirectory]:
        """Return directories by number."""
        found = {}
        for part in chunks(sorted(dirids)):
            for row in many.select(self._c, t.tr_dir.name, _DIRECTORY, "dirid", part):
                found[row[0]] = _directory(row)
        return found

    def directory_named(self, first: int, upto: int, name: bytes) -> TrackedDirectory | None:
        """Return the directory of this name among numbers from ``first`` on, below ``upto``."""
        found = self._directories("dirid >= ? AND dirid < ? AND name = ?", (first, upto, name), 1)
        return next(iter(found), None)

    def directories_with(
        self, md5: bytes, sha: bytes, limit: int, but: tuple[int, int] = (0, 0)
    ) -> list[TrackedDirectory]:
        """Return directories with this identity, in no order; servers may show them no more.

        Not from the number ``but[0]`` on, below ``but[1]``: an index of tags has the numbers behind them, so
        that a million of these cost nothing.
        """
        its = "tag = ? AND md5 = ? AND sha = ?"
        key, (first, upto) = (tag_of(md5), md5, sha), but
        if first == upto:
            return self._directories(its, key, limit)
        around = f"({its} AND dirid < ?) OR ({its} AND dirid >= ?)"
        return self._directories(around, (*key, first, *key, upto), limit)

    def directories_named_by(self, md5: bytes, limit: int) -> list[TrackedDirectory]:
        """Return directories with this ``md5``, as above; their ``sha`` may differ."""
        return self._directories("tag = ? AND md5 = ?", (tag_of(md5), md5), limit)

    def _directories(self, condition: str, values: many.Row, limit: int) -> list[TrackedDirectory]:
        """Return rows that meet a condition; nothing is compiled, for a walk asks many times."""
        what = many.select_from(self._c, t.tr_dir.name, _DIRECTORY)
        [(which, given)] = many.where_any(self._c, condition, [values])
        rows = self._c.exec_driver_sql(f"{what} WHERE {which} LIMIT {limit:d}", given)
        return [_directory(row) for row in rows]

    def tracked_link(self, dirid: int, name: bytes) -> bytes | None:
        """Return where the symbolic link of this name in a directory leads."""
        c = t.tr_link.c
        found = self._c.execute(select(c.target).where(c.dirid == dirid, c.name == name)).scalar()
        return None if found is None else bytes(found)

    def digests_differ(self, first: int, upto: int, other: int) -> bool:
        """Tell whether a file has another digest elsewhere, of the same kind.

        Directories from ``first`` on, below ``upto``, are compared with those from ``other`` on.
        """
        [(which, given)] = many.where_any(
            self._c, "here.dirid >= ? AND here.dirid < ? AND there.digest <> here.digest", [(first, upto)]
        )
        there = f"there.dirid = here.dirid + ({other - first:d}) AND there.name = here.name"
        both = f"tr_hash here JOIN tr_hash there ON {there} AND length(there.digest) = length(here.digest)"
        question = f"SELECT 1 FROM {both} WHERE {which} LIMIT 1"  # noqa: S608 - names of ours, and a number
        return self._c.exec_driver_sql(question, given).first() is not None

    def digests_of(self, dirids: Collection[int], name: bytes) -> dict[int, bytes]:
        """Return the digests of files of this name, by the numbers of their directories."""
        c = t.tr_hash.c
        query = select(c.dirid, c.digest).where(c.name == name)
        return {row.dirid: bytes(row.digest) for row in self._rows(query, c.dirid, sorted(dirids))}

    def behind(self, first: int, upto: int) -> list[TrackedDirectory]:
        """Return directories from ``first`` on, below ``upto``, by number."""
        c = t.tr_dir.c.dirid
        query = select(*_COLUMNS).where(c >= first, c < upto).order_by(c)
        return [_directory(row) for row in self._c.execute(query)]

    def links_behind(self, after: At, upto: int, limit: int) -> list[Pair]:
        """Return links behind a place in directories below ``upto``, in order."""
        return self._pairs(t.tr_link, after, upto, limit)

    def digests_behind(self, after: At, upto: int, limit: int) -> list[Pair]:
        """Return digests of files in the same way."""
        return self._pairs(t.tr_hash, after, upto, limit)

    def _pairs(self, table: Table, after: At, upto: int, limit: int) -> list[Pair]:
        """Read the rest of one directory, then others: so all databases read the index from there."""
        c, (dirid, name) = table.c, after
        rest = select(table).where(c.dirid == dirid, c.name > name).order_by(c.name)
        others = select(table).where(c.dirid > dirid, c.dirid < upto).order_by(c.dirid, c.name)
        rows = list(self._c.execute(rest.limit(limit)))
        if dirid + 1 < upto and len(rows) < limit:
            rows += self._c.execute(others.limit(limit - len(rows)))
        return [(row[0], bytes(row[1]), bytes(row[2])) for row in rows]


def each_link(store: Store, first: int, upto: int) -> Iterator[Pair]:
    """Yield the links of directories from ``first`` on, below ``upto``: ``PAIRS`` of each transaction."""
    return _each(store, TrackerRows.links_behind, first, upto)


def each_digest(store: Store, first: int, upto: int) -> Iterator[Pair]:
    """Yield the digests of their files in the same way."""
    return _each(store, TrackerRows.digests_behind, first, upto)


def _each(store: Store, behind: _Behind, first: int, upto: int) -> Iterator[Pair]:
    after, more = (first, b""), True
    while more:
        with store.read() as tx:
            found = behind(rows_in(tx), after, upto, PAIRS)
        yield from found
        more = len(found) == PAIRS
        after = found[-1][:2] if more else after


def rows_in(tx: Tx) -> TrackerRows:
    """Return the rows of this app in a transaction."""
    return TrackerRows.over(tx)


def _directory(row: Sequence[Any]) -> TrackedDirectory:
    """Make the value of a row as a driver gives it."""
    dirid, hostid, parent, first, dirs, name, md5, sha, tag = row
    return TrackedDirectory(dirid, hostid, parent, first, dirs, bytes(name), _bytes(md5), _bytes(sha), tag)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
