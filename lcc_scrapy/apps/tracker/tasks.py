"""Which servers are due, and who scans one. All verbs are blocking.

One process scans a server at a time: it claims it, and says so again while it does. A claim of a process that
ended, or was silent for too long, is taken over. Of the servers of one host, one is scanned at a time.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any

from lcc_scrapy.apps.tracker.registry import HOSTID, NotTracked, ServerRefused, found_domain
from lcc_scrapy.apps.tracker.rules.scans import CLAIM, ScanRules, after_success, check, not_before
from lcc_scrapy.apps.tracker.rules.tracked import Host, Place
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.retries import due_after_failures
from lcc_scrapy.kit.claims import has_ended

LOOKED_AT = 200
"""Due servers of a domain that are looked at in one transaction."""

ERROR_MAX = 255


class ScannedElsewhere(ServerRefused):
    """Another process scans the server, or another one of its host, at this moment."""


@dataclass(frozen=True, slots=True)
class Task:
    """A server that this process has claimed, and how it may be scanned."""

    host: Host
    rules: ScanRules


@dataclass(frozen=True, slots=True)
class Tasks:
    """The scans of one store. ``owner`` is the claiming process, ``zone`` that of masks without one.

    ``backoff``: seconds until a server that failed once is tried again; ``every``: between two scans.
    """

    store: Store
    owner: str
    zone: tzinfo
    backoff: float
    every: float

    # --- rules ---------------------------------------------------------------------------------------

    def rules(self, hostid: int) -> ScanRules:
        """Return the rules of a server."""
        with self.store.read() as tx:
            _found(tx, hostid)
            return rows_in(tx).scan_rules([hostid])[hostid]

    def put_rules(self, rules: ScanRules) -> None:
        """Set the rules of a server; they hold from its next scan on. Raises ``BadRules``."""
        check(rules)
        with self.store.begin() as tx:
            _found(tx, rules.hostid)
            rows_in(tx).put_scan_rules(rules)

    # --- who scans one -------------------------------------------------------------------------------

    def domains(self) -> list[str]:
        """Return the domains whose servers are scanned here."""
        with self.store.read() as tx:
            return [one.domain for one in rows_in(tx).tracked_domains() if not one.peer]

    def claim_due(self, domain: str, now: int, due_by: int | None = None) -> Task | None:
        """Claim the server of a domain that has been due for longest and may be scanned; None = none.

        Only what was due at ``due_by``, if that is given (epoch seconds).
        """
        due_by = now if due_by is None else due_by
        with self.store.read() as tx:
            rows = rows_in(tx)
            if not (rows.due_hosts_of(domain, due_by, 1) or rows.claimed_hosts(now)):
                return None
        with self._claiming() as tx:
            rows = rows_in(tx)
            busy, left = _divided(rows.claimed_hosts(now))
            mine = [one for one in left if one.domain == domain]
            due = mine + rows.due_hosts_of(domain, due_by, LOOKED_AT)
            rules = rows.scan_rules([one.hostid for one in due])
            for one in due:
                later = not_before(rules[one.hostid], now, self.zone)
                if later:
                    rows.put_host(replace(one, owner="", claimed=0, due=later))
                elif _name(one) not in busy:
                    return Task(self._claimed(tx, one, now), rules[one.hostid])
        return None

    def claim(self, hostid: int, now: int) -> Task:
        """Claim a server, whether it is due or not; raises ``ServerRefused`` while that cannot be."""
        with self._claiming() as tx:
            one = _found(tx, hostid)
            peer = found_domain(tx, one.domain).peer
            if peer:
                raise ServerRefused(f"server {hostid} is scanned by the tracker {peer}")
            busy, _ = _divided(rows_in(tx).claimed_hosts(now))
            if _name(one) in busy:
                raise ScannedElsewhere(f"{_name(one)} is scanned by process {busy[_name(one)]} now")
            return Task(self._claimed(tx, one, now), rows_in(tx).scan_rules([hostid])[hostid])

    def keep(self, task: Task, now: int) -> bool:
        """Go on; tells whether the server is still this process's."""
        with self._claiming() as tx:
            one = self._own(tx, task)
            if one is not None:
                self._claimed(tx, one, now)
        return one is not None

    @contextmanager
    def _claiming(self) -> Iterator[Tx]:
        with self.store.begin() as tx:
            tx.take(HOSTID, 0)  # locks the counter: one claims at a time
            yield tx

    def _claimed(self, tx: Tx, one: Host, now: int) -> Host:
        claimed = replace(one, owner=self.owner, claimed=now + CLAIM, due=now + CLAIM)
        rows_in(tx).put_host(claimed)
        return claimed

    def _own(self, tx: Tx, task: Task) -> Host | None:
        one = rows_in(tx).host(task.host.hostid, lock=True)
        return one if one is not None and one.owner == self.owner else None

    # --- how a scan ended ----------------------------------------------------------------------------

    def succeeded(self, task: Task, now: int, *, unchanged: bool = False) -> None:
        """Note a scan that came to its end; ``unchanged``: the server has what it had."""
        values: dict[str, Any] = {"scanned": now} if unchanged else {}
        self._end(task, due=after_success(task.rules, now, self.every), failures=0, error="", **values)

    def failed(self, task: Task, why: str, now: int, retry_after: float = 0.0) -> None:
        """Note a scan that failed: the server is tried again, later each time."""
        failures = task.host.failures + 1
        due = due_after_failures(failures, now, self.backoff, retry_after)
        self._end(task, due=due, failures=failures, error=fit(why))

    def released(self, task: Task, now: int) -> None:
        """Give a server back, as this process stops: another may scan it."""
        self._end(task, due=now)

    def _end(self, task: Task, **values: Any) -> None:
        with self._claiming() as tx:
            one = self._own(tx, task)
            if one is not None:
                rows_in(tx).put_host(replace(one, owner="", claimed=0, **values))


def _divided(claimed: Collection[Host]) -> tuple[dict[str, str], list[Host]]:
    """Return which hosts are being scanned, each with the process; and servers whose process has ended."""
    left = [one for one in claimed if has_ended(one.owner)]
    busy = {_name(one): one.owner for one in claimed if one not in left}
    return busy, left


def _name(one: Host) -> str:
    return Place.parse(one.url).host


def _found(tx: Tx, hostid: int) -> Host:
    one = rows_in(tx).host(hostid)
    if one is None:
        raise NotTracked(f"there is no server {hostid}: see `lcc tracker server list`")
    return one


def fit(text: str) -> str:
    """Return an error as a column holds it."""
    return " ".join(text.split()).encode("ascii", "backslashreplace").decode()[:ERROR_MAX]
