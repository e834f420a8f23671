"""The sources of an LCC: which there are, which are due, and who runs one. All verbs are blocking.

One process runs a source at a time: it claims it, and says so again while it does. A claim of a process that
ended, or was silent for too long, is taken over.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from lcc_scrapy.apps.sources import websub
from lcc_scrapy.apps.sources.rules import (
    CLAIM,
    ERROR_MAX,
    KEY_MAX,
    LEAST_EVERY,
    LEAST_EVERY_OF_REDIS,
    Kind,
    Report,
    Source,
    SourceFile,
)
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.apps.sources.tables import SOURCEID
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.retries import due_after_failures
from lcc_scrapy.domain.roots import HttpUrl, Root, hosts
from lcc_scrapy.kit.claims import has_ended

LOOKED_AT = 50
"""Due sources that are looked at in one transaction."""

SOON = 60
"""Seconds until a run goes on that the queue had no room for."""

LEAVING = 86_400
"""Seconds in which a hub may confirm the end of a subscription; then the source goes all the same."""

MOST = 1000
"""Sources of one provider."""


class NoSuchSource(LccError):
    """There is no source with this number."""


class SourceRefused(LccError):
    """A source cannot be added, or run now; the text says why."""


class RunElsewhere(SourceRefused):
    """Another process runs the source at this moment."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The sources in one store. ``owner`` is the claiming process; ``zone`` is that of providers without one.

    ``backoff``: seconds until a source that failed once is looked at again.
    """

    store: Store
    owner: str
    zone: tzinfo
    backoff: float = 60.0

    # --- which there are -------------------------------------------------------------------------

    def add(self, pid: int, kind: Kind, url: str, every: int, now: int) -> Source:
        """Add a source, which is due at once; raises ``SourceRefused``."""
        least = LEAST_EVERY_OF_REDIS if kind is Kind.REDIS else LEAST_EVERY
        if every < least:
            raise SourceRefused(f"--every: at least {least} seconds")
        with self.store.begin() as tx:
            if tx.lock_providers([pid]).get(pid) is None:
                raise SourceRefused(f"there is no provider {pid}: see `lcc provider list`")
            place = _key(url) if kind is Kind.REDIS else _place(url, tx.roots(pid))
            its = rows_in(tx).sources(pid)
            same = next((one for one in its if (one.kind, one.url) == (kind, place)), None)
            if same is not None:
                raise SourceRefused(f"it is source {same.sourceid} already")
            if len(its) >= MOST:
                raise SourceRefused(f"provider {pid} has {MOST} sources already")
            made = Source(tx.take(SOURCEID, 1), pid, str(kind), place, every, created=now, due=now)
            rows_in(tx).put_source(made)
            return made

    def all(self, pid: int | None = None) -> list[Source]:
        """Return the sources of a provider, or all."""
        with self.store.read() as tx:
            return rows_in(tx).sources(pid)

    def get(self, sourceid: int) -> Source:
        """Return a source; raises ``NoSuchSource``."""
        with self.store.read() as tx:
            return _found(tx, sourceid)

    def files(self, sourceid: int) -> list[SourceFile]:
        """Return what is known of the files of a source."""
        with self.store.read() as tx:
            return rows_in(tx).source_files(sourceid)

    def remove(self, sourceid: int) -> Source:
        """Forget a source; its documents stay."""
        with self.store.begin() as tx:
            gone = _found(tx, sourceid)
            rows_in(tx).delete_source(sourceid)
            return gone

    # --- who runs one ----------------------------------------------------------------------------

    def claim_due(self, now: int) -> Source | None:
        """Claim the source that has been due for longest and may run now; None = there is none.

        Of one provider, one runs at a time: a slow site takes one place, and its bandwidth is not multiplied.
        """
        with self.store.read() as tx:
            if not rows_in(tx).startable_sources(now, 1):
                return None
        with self._claiming() as tx:
            for one in rows_in(tx).startable_sources(now, LOOKED_AT):
                provider = tx.provider(one.pid)
                later = self._not_before(provider, one, now)
                if one.asked == websub.UNSUBSCRIBE:
                    rows_in(tx).delete_source(one.sourceid)
                elif later:
                    rows_in(tx).put_source(replace(one, due=later))
                else:
                    return self._claimed(tx, one, now)
        return None

    def wake(self, now: int) -> None:
        """Make due what a machine whose clock was ahead has put off."""
        with self._claiming() as tx:
            rows_in(tx).wake_sources(now)

    def claim(self, sourceid: int, now: int) -> Source:
        """Claim a source, whether it is due or not; raises ``SourceRefused`` while another one runs it."""
        with self._claiming() as tx:
            one = _found(tx, sourceid)
            if one.asked == websub.UNSUBSCRIBE:
                raise SourceRefused(f"source {sourceid} {one.error}")
            if now < one.claimed <= now + CLAIM and not has_ended(one.owner):
                raise RunElsewhere(f"source {sourceid} is run by process {one.owner} now")
            return self._claimed(tx, one, now)

    def keep(self, source: Source, now: int) -> bool:
        """Go on; tells whether the source is still this process's."""
        with self._claiming() as tx:
            one = rows_in(tx).source(source.sourceid)
            if one is None or one.owner != self.owner:
                return False
            self._claimed(tx, one, now)
        return True

    @contextmanager
    def _claiming(self) -> Iterator[Tx]:
        with self.store.begin() as tx:
            tx.take(SOURCEID, 0)
            yield tx

    def _claimed(self, tx: Tx, one: Source, now: int) -> Source:
        claimed = replace(one, owner=self.owner, claimed=now + CLAIM, due=now + CLAIM)
        rows_in(tx).put_source(claimed)
        return claimed

    def _not_before(self, provider: Provider | None, one: Source, now: int) -> int:
        """Return when a source may run at the earliest, 0 = now."""
        if provider is None or provider.state != State.ACTIVE:
            return now + one.every
        zone = ZoneInfo(provider.timezone) if provider.timezone else self.zone
        opens = timeslots.next_permitted(provider.timeofday, now, zone)
        if opens == float("inf"):
            return now + one.every
        return int(opens) + 1 if opens > now else 0

    # --- subscriptions ---------------------------------------------------------------------------

    def prepared(self, sourceid: int, hub: str, topic: str) -> Source:
        """Note that a hub is about to be asked for a subscription."""
        with self._claiming() as tx:
            one = websub.prepared(_found(tx, sourceid), hub, topic)
            rows_in(tx).put_source(one)
            return one

    def called_back(self, callback: str) -> Source | None:
        """Return the source of a callback."""
        with self.store.read() as tx:
            return rows_in(tx).source_called_back(callback)

    def verified(self, callback: str, said: Mapping[str, str], now: int) -> str:
        """Note what a hub verifies, and return what it is answered; "" = it was not asked for that."""
        if self.called_back(callback) is None:  # names that anybody makes up lock nothing
            return ""
        with self._claiming() as tx:
            one = rows_in(tx).source_called_back(callback)
            if one is None:
                return ""
            verdict = websub.verified(one, said, now)
            if verdict.source is None:
                rows_in(tx).delete_source(one.sourceid)
            elif verdict.source != one:
                due = _before_lease_ends(one.due, verdict.source.lease, now)
                rows_in(tx).put_source(replace(verdict.source, due=due))
            return verdict.challenge

    def pinged(self, sourceid: int, report: Report, now: int) -> None:
        """Note what a hub's content brought; what the queue had no room for is looked at again soon."""
        with self._claiming() as tx:
            one = rows_in(tx).source(sourceid)
            if one is not None and (report.sets or report.refused):
                one = replace(_with_counts(one, report), changed=now)
                rows_in(tx).put_source(one)
            if one is not None and report.held_up:
                rows_in(tx).put_source(replace(one, due=min(one.due, now + SOON)))

    def expect(self, sourceid: int, now: int) -> None:
        """Note that a source is to be looked at soon, also if this process ends before it does."""
        with self._claiming() as tx:
            one = rows_in(tx).source(sourceid)
            if one is not None and one.due > now + SOON:
                rows_in(tx).put_source(replace(one, due=now + SOON))

    def leave(self, sourceid: int, now: int) -> Source | None:
        """Note that a hub is asked to end its subscription; None = there is none, the source is gone."""
        with self._claiming() as tx:
            one = _found(tx, sourceid)
            if not one.hub or not one.lease or one.asked == websub.UNSUBSCRIBE:
                rows_in(tx).delete_source(sourceid)
                return None
            why = "waits for its hub to end the subscription"
            leaving = replace(one, asked=websub.UNSUBSCRIBE, error=why, due=now + LEAVING)
            rows_in(tx).put_source(leaving)
            return leaving

    # --- how a run ended -------------------------------------------------------------------------

    def succeeded(self, source: Source, report: Report, listed: int, now: int) -> Source | None:
        """Note a run that came to its end; ``notes`` stay to be seen."""
        due = now + SOON if report.held_up else now + source.every
        why = "; ".join(report.notes)
        return self._end(
            source, report, {"at": now, "due": due, "failures": 0, "error": why, "listed": listed}
        )

    def failed(
        self, source: Source, why: str, report: Report, now: int, retry_after: float = 0.0
    ) -> Source | None:
        """Note a run that failed: it is tried again, later each time."""
        failures = source.failures + 1
        due = due_after_failures(failures, now, self.backoff, retry_after)
        return self._end(source, report, {"at": now, "due": due, "failures": failures, "error": why})

    def released(self, source: Source, now: int) -> None:
        """Give a source back, as this process stops: another may run it."""
        with self._claiming() as tx:
            one = rows_in(tx).source(source.sourceid)
            if one is not None and one.owner == self.owner:
                rows_in(tx).put_source(replace(one, owner="", claimed=0, due=now))

    def _end(self, source: Source, report: Report, values: dict[str, Any]) -> Source | None:
        """Note how a run ended, and what it did; None where the source is another's by now, or gone."""
        with self._claiming() as tx:
            one = rows_in(tx).source(source.sourceid)
            if one is None or one.owner != self.owner:
                return None
            error = _fit(values.pop("error"))
            values["due"] = _before_lease_ends(values["due"], one.lease, values["at"])
            ended = replace(one, owner="", claimed=0, error=error, **values)
            if report.sets or report.refused:
                ended = _with_counts(ended, report)
            rows_in(tx).put_source(ended)
            return ended


def _before_lease_ends(due: int, lease: int, now: int) -> int:
    """Return when a source is looked at next, in time to renew its subscription."""
    return min(due, now + max(LEAST_EVERY, (lease - now) // 2)) if lease > now else due


def _with_counts(ended: Source, report: Report) -> Source:
    return replace(
        ended,
        changed=ended.at,
        queued=report.queued,
        removed=report.removed,
        held=report.held,
        refused=sum(report.refused.values()),
    )


def _found(tx: Tx, sourceid: int) -> Source:
    one = rows_in(tx).source(sourceid)
    if one is None:
        raise NoSuchSource(f"there is no source {sourceid}: see `lcc source list`")
    return one


def _place(url: str, roots: list[str]) -> str:
    """Return where a source lies; raises ``SourceRefused`` unless that is on a host of the roots."""
    try:
        place = HttpUrl.parse(url)
    except UrlRefused as error:
        raise SourceRefused(f"{url[:200]}: {error}") from None
    allowed = hosts(tuple(map(Root.parse, roots)))
    if place.netloc not in allowed:
        named = ", ".join(sorted(allowed)[:5]) or "none"
        raise SourceRefused(f"{place} does not lie on a host of the provider's roots ({named})")
    return str(place)


def _key(name: str) -> str:
    """Return a name of a Redis key as it is; raises ``SourceRefused``."""
    if not name.strip() or not name.isprintable() or len(name) > KEY_MAX:
        raise SourceRefused(f"--redis-key: 1 to {KEY_MAX} printable characters, not blank")
    return name


def _fit(text: str) -> str:
    plain = " ".join(text.split()).encode("ascii", "backslashreplace").decode()
    return plain[:ERROR_MAX]
