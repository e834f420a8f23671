"""The domains and servers that are tracked. All verbs are blocking."""

from dataclasses import dataclass, replace

from lcc_scrapy.apps.tracker.loading import hide, raise_generation
from lcc_scrapy.apps.tracker.rules.tracked import SITE_MAX, Host, Place, TrackedDomain, checked_domain
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import LccError

HOSTID = "tr_host"
"""The counter of servers."""

MOST_DOMAINS = 10_000
MOST_SERVERS = 100_000
MOST_OF_SITE = 1_000
"""Servers with one scheme, host and port: a look-up reads them all."""


class NotTracked(LccError):
    """There is no such domain or server."""


class ServerRefused(LccError):
    """A domain or server cannot be added; the text says why."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The domains and servers in one store."""

    store: Store

    def domains(self) -> list[TrackedDomain]:
        """Return all domains, by name."""
        with self.store.read() as tx:
            return rows_in(tx).tracked_domains()

    def add_domain(self, name: str, now: int, peer: str = "") -> TrackedDomain:
        """Add a domain; with a ``peer``, what its servers have comes from that tracker alone."""
        made = TrackedDomain(checked_domain(name), now, str(Place.parse(peer)) if peer else "")
        with self.store.begin() as tx:
            rows = rows_in(tx)
            if rows.tracked_domain(made.domain) is not None:
                raise ServerRefused(f"domain {made.domain} is there already")
            if len(rows.tracked_domains()) >= MOST_DOMAINS:
                raise ServerRefused(f"there are {MOST_DOMAINS} domains already")
            rows.put_tracked_domain(made)
        return made

    def remove_domain(self, name: str) -> TrackedDomain:
        """Forget a domain with all of its servers."""
        with self.store.begin() as tx:
            rows = rows_in(tx)
            gone = found_domain(tx, name)
            for host in rows.hosts(gone.domain):
                hide(tx, host)
                rows.delete_host(host.hostid)
            rows.delete_tracked_domain(gone.domain)
            return gone

    def servers(self, domain: str | None = None) -> list[Host]:
        """Return the servers of a domain, or all, by number."""
        with self.store.read() as tx:
            return rows_in(tx).hosts(domain)

    def add_server(self, url: str, domain: str, now: int) -> Host:
        """Add a server by the URL of its base; it is listed at once. Raises ``ServerRefused``."""
        with self.store.begin() as tx:
            its = found_domain(tx, domain)
            if its.peer:
                raise ServerRefused(f"the servers of domain {its.domain} come from {its.peer}")
            # others that add one wait until this is done
            rows_in(tx).put_tracked_domain(replace(its, generation=its.generation))
            return new_host(tx, url, its.domain, now)

    def remove_server(self, hostid: int) -> Host:
        """Forget a server and what it has."""
        with self.store.begin() as tx:
            gone = rows_in(tx).host(hostid, lock=True)
            if gone is None:
                raise NotTracked(f"there is no server {hostid}: see `lcc tracker server list`")
            hide(tx, gone)
            rows_in(tx).delete_host(hostid)
            if gone.dirs:
                raise_generation(tx, gone.domain)
            return gone


def found_domain(tx: Tx, name: str) -> TrackedDomain:
    """Return a domain, locked; raises ``NotTracked``."""
    found = rows_in(tx).tracked_domain(checked_domain(name), lock=True)
    if found is None:
        raise NotTracked(f"there is no domain {name}: see `lcc tracker domain list`")
    return found


def base_of(url: str) -> Place:
    """Return the place of a server's base; raises ``ServerRefused`` or ``UrlRefused``."""
    place = Place.parse(url if url.endswith("/") else f"{url}/")
    if place.query:
        raise ServerRefused(f"{url}: the base of a server has no query")
    if len(place.site) > SITE_MAX:
        raise ServerRefused(f"{url}: a host name that is too long")
    return place


def new_host(tx: Tx, url: str, domain: str, now: int) -> Host:
    """Add a server to a domain; raises as ``Registry.add_server`` does."""
    rows = rows_in(tx)
    place = base_of(url)
    there = rows.hosts_at(place.site)
    same = next((one for one in there if one.url == str(place)), None)
    if same is not None:
        raise ServerRefused(f"{place} is server {same.hostid} of domain {same.domain} already")
    if len(there) >= MOST_OF_SITE:
        raise ServerRefused(f"{place.site} has {MOST_OF_SITE} servers already")
    hostid = tx.take(HOSTID, 1)
    if len(rows.hosts(domain)) >= MOST_SERVERS:
        raise ServerRefused(f"domain {domain} has {MOST_SERVERS} servers already")
    made = Host(hostid, domain, str(place), place.site, now, due=now)
    rows.put_host(made)
    return made
