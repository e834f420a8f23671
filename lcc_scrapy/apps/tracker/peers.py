"""Which domains of other trackers are to be asked for, and who does. All verbs are blocking.

One process asks for a domain at a time: it claims it, and says so again while it does. A claim of a process
that ended, or was silent for too long, is taken over.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lcc_scrapy.apps.tracker.registry import ServerRefused, found_domain
from lcc_scrapy.apps.tracker.rules.scans import (
    CLAIM,
    LEAST_EVERY,
    after_peer_failure,
    is_busy,
    is_due,
)
from lcc_scrapy.apps.tracker.rules.tracked import Place, TrackedDomain
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.apps.tracker.tasks import fit
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.kit.claims import has_ended


@dataclass(frozen=True, slots=True)
class Peers:
    """The domains of one store that come from other trackers. ``owner`` is the claiming process.

    ``backoff``: seconds until a peer that failed once is asked again; ``every``: between two questions.
    """

    store: Store
    owner: str
    backoff: float
    every: float

    def due(self, now: int) -> list[str]:
        """Return the domains whose peers are to be asked."""
        with self.store.read() as tx:
            domains = rows_in(tx).tracked_domains()
        return [one.domain for one in domains if is_due(one, now, is_left=_is_left(one))]

    def claim_due(self, domain: str, now: int) -> TrackedDomain | None:
        """Claim a domain if it is still due; returns it as it was before."""
        with self.store.begin() as tx:
            one = rows_in(tx).tracked_domain(domain, lock=True)
            if one is None or not is_due(one, now, is_left=_is_left(one)):
                return None
            self._claim(tx, one, now)
        return one

    def claim(self, domain: str, peer: str, now: int) -> TrackedDomain:
        """Claim a domain, due or not, for ``peer``, empty = whichever it was added with.

        Raises ``NotTracked`` or ``ServerRefused``.
        """
        with self.store.begin() as tx:
            one = found_domain(tx, domain)
            if not one.peer:
                raise ServerRefused(f"domain {one.domain} is this tracker's own: it has no peer")
            if peer and str(Place.parse(peer)) != one.peer:
                raise ServerRefused(f"{peer} may not speak for domain {one.domain}")
            if is_busy(one, now, is_left=_is_left(one)):
                raise ServerRefused(f"domain {one.domain} is fetched by process {one.owner} now")
            self._claim(tx, one, now)
        return one

    def keep(self, domain: str, now: int) -> bool:
        """Go on; tells whether the domain is still this process's."""
        with self._own(domain) as (tx, one):
            if one is not None:
                self._claim(tx, one, now)
        return one is not None

    def _claim(self, tx: Tx, one: TrackedDomain, now: int) -> None:
        rows_in(tx).put_tracked_domain(replace(one, owner=self.owner, claimed=now + CLAIM))

    # --- how it ended --------------------------------------------------------------------------------

    def seen(self, domain: str, validator: str) -> None:
        """Note the validator of a manifest whose generation is here."""
        with self._own(domain) as (tx, one):
            if one is not None:
                rows_in(tx).put_tracked_domain(replace(one, validator=validator))

    def succeeded(self, domain: str, now: int) -> None:
        """Note that a domain is as its peer has it."""
        due = now + max(LEAST_EVERY, int(self.every))
        self._end(domain, claimed=due, checked=now, error="")

    def failed(self, before: TrackedDomain, why: str, now: int, retry_after: float = 0.0) -> None:
        """Note a failure: the peer is asked again, later each time."""
        due = after_peer_failure(before, now, self.backoff, retry_after)
        self._end(before.domain, claimed=due, checked=now, error=fit(why))

    def released(self, before: TrackedDomain) -> None:
        """Give a domain back, as this process stops."""
        self._end(before.domain, claimed=0)

    def _end(self, domain: str, **values: Any) -> None:
        with self._own(domain) as (tx, one):
            if one is not None:
                rows_in(tx).put_tracked_domain(replace(one, owner="", **values))

    @contextmanager
    def _own(self, domain: str) -> Iterator[tuple[Tx, TrackedDomain | None]]:
        with self.store.begin() as tx:
            one = rows_in(tx).tracked_domain(domain, lock=True)
            yield tx, one if one is not None and one.owner == self.owner else None


def _is_left(one: TrackedDomain) -> bool:
    return bool(one.owner) and has_ended(one.owner)
