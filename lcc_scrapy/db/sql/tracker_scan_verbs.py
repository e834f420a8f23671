"""Verbs about scans of the mirror tracker: who scans what, and how servers may be scanned."""

from collections.abc import Collection

from sqlalchemy import select

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.sql.rows import OnConnection, RowsOf
from lcc_scrapy.domain.tracker import Host
from lcc_scrapy.domain.tracker_rules import ScanRules

_HOSTS = RowsOf(t.tr_host, Host)
_RULES = RowsOf(t.tr_rules, ScanRules)


class TrackerScanVerbs(OnConnection):
    """Verbs about scans, and rules of servers."""

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
