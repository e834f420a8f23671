"""Intake: a set goes from the spool into the queue in small, restartable steps.

Each step is one transaction that also notes how far it came, so that a kill anywhere costs at most one
step's work. A full set takes four phases: its keys are marked as seen, everything unseen is counted and then
removed, or held by the guard, then its updates queue up (seed 003 section 6 "Arriving URLs"). A partial
set with more than a few removals is counted first, so that the guard lets all of them pass or none.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from lcc_scrapy.cache import full_set_requests
from lcc_scrapy.cache.misses import settle_all_late
from lcc_scrapy.db.records import (
    ABSORBED,
    ABSORBING_ABSENT,
    ABSORBING_COUNT,
    ABSORBING_ENTRIES,
    ABSORBING_HOLDS,
    ABSORBING_KEYS,
    ABSORBING_REMOVALS,
    LAST_KEY,
    LAST_NUMBER,
    Overtaking,
    ProviderSet,
    SetName,
)
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain import removal_guard
from lcc_scrapy.domain.arrivals import keys_of
from lcc_scrapy.domain.entries import Origin, UrlEntry
from lcc_scrapy.domain.errors import PassedOver
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.intake.arrivals import Arriving, arrive, sort_out
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.uns.spool_file import REMOVE, Record

CHUNK = 500
"""Entries that are taken together; a step is one such chunk, or several while there is time.

So many of known documents take some 50 ms: what a job may take.
"""

NEW_CHUNK = 2000
"""The same while at most ``CHUNK`` of them are known: what is new costs a tenth."""

SPAN = 5000
"""Keys of a provider that are looked through together for what a full set does not name: some 10 ms."""

PSETID = "psetid"

_log = logging.getLogger(__name__)


class SpooledSet(Protocol):
    """A set on disk, as the spool's reader shows it."""

    @property
    def pid(self) -> int:
        """The provider."""

    @property
    def connseq(self) -> int:
        """The number of the login that brought the set."""

    @property
    def setid(self) -> str:
        """The provider's own id of the set, or nothing."""

    @property
    def digest(self) -> str:
        """A digest of the entries, the same for an exact resend."""

    @property
    def full(self) -> bool:
        """Whether the set stands for everything the provider has."""

    @property
    def charged(self) -> bool:
        """Whether a full set counts against what its provider may send, as was decided at its login."""

    @property
    def ifabsent(self) -> bool:
        """Whether only URLs that are not known yet are meant."""

    @property
    def removals(self) -> int:
        """How many removals it holds."""

    @property
    def urls(self) -> int:
        """How many URLs it names, refused ones with a readable key included."""

    @property
    def unreadable(self) -> int:
        """How many of its URLs were refused without a readable key."""

    @property
    def end(self) -> int:
        """The offset behind the last entry."""

    def entries(self, offset: int) -> Iterator[tuple[UrlEntry, int]]:
        """Yield entries from a byte offset (0 = first) on, each with the offset behind it."""

    def records(self, offset: int, limit: int) -> tuple[list[Record], int]:
        """Return the next of them as records, ``limit`` at most, and the offset behind them."""

    def close(self) -> None:
        """Reading is over."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step did to a provider's queue; ``removed`` are (key, reason) of documents that went."""

    pid: int
    finished: bool
    entries: int = 0
    removed: tuple[tuple[bytes, str], ...] = ()
    held: int = 0

    def then(self, more: "Step") -> "Step":
        """Return this step and a further one as one."""
        removed = self.removed + more.removed
        return Step(self.pid, more.finished, self.entries + more.entries, removed, more.held or self.held)


def resends_since(policy: QueuePolicy, now: int) -> int:
    """Return from when on (epoch seconds) a set with the same name was the same set."""
    return now - int(policy.resend_period)


class Intake:
    """Absorbs one spooled set; call ``step`` until it says ``finished``."""

    def __init__(self, store: Store, spooled: SpooledSet, policy: QueuePolicy) -> None:
        self._store = store
        self._set = spooled
        self._policy = policy
        self._login = (spooled.pid, spooled.connseq)
        self._overtakes = self._overtaken = False
        self._chunk = NEW_CHUNK
        self._tells = False

    def step(
        self, now: int, more: Callable[[int], bool] = lambda _: False, *, overtakes: bool = False
    ) -> Step:
        """Do the next chunk of work in one transaction (``now`` in epoch seconds).

        While ``more`` says so, which hears how many entries were taken, the next chunk is added to it,
        unless content users hear of this one. The last step also forgets the login, so that sets of later
        ones may go on. ``overtakes``: the set of an earlier login may still come. Raises ``PassedOver``.
        """
        with self._store.begin() as tx:
            step = self.step_in(tx, now, overtakes=overtakes)
            while not (step.finished or self._tells) and more(step.entries):  # nothing is locked behind FEED
                step = step.then(self.step_in(tx, now, overtakes=overtakes))
            if step.finished:
                tx.drop_logins([self._login])
            return step

    def step_in(self, tx: Tx, now: int, *, overtakes: bool = False) -> Step:
        """Do the next chunk of work within a transaction, without forgetting the login."""
        provider = tx.lock_providers([self._set.pid]).get(self._set.pid)
        if provider is None:
            return Step(self._set.pid, finished=True)
        login = tx.logins([self._login]).get(self._login)
        if login is not None and login.passed:
            raise PassedOver("sets of later logins were absorbed while this UNS was away")
        pset = tx.pset_of(*self._login) or self._begin(tx, provider, now)
        if pset is None or pset.phase == ABSORBED:
            return Step(self._set.pid, finished=True)
        self._tells = False
        self._overtakes, self._overtaken = overtakes, login is not None and login.overtaken
        if overtakes:
            tx.overtake(*self._login)
        if self._overtaken and tx.full_set_after(*self._login):
            return self._supersede(tx, pset)
        return self._PHASES[pset.phase](self, tx, pset, now)

    def close(self) -> None:
        """Close the set."""
        self._set.close()

    # --- sets that do not take effect in the order of their logins -----------------------------------

    def _supersede(self, tx: Tx, pset: ProviderSet) -> Step:
        """End a set that a later full set has overtaken: that one named everything."""
        _log.info(
            "dropped the set of login %d of provider %d: a later full set was absorbed before it",
            pset.connseq,
            pset.pid,
        )
        tx.update_pset(replace(pset, phase=ABSORBED))
        return Step(pset.pid, finished=True)

    def _standing(self, tx: Tx, records: list[Record]) -> list[Record]:
        """Leave out what sets of later logins named that overtook this one: their word stands."""
        if not self._overtaken:
            return records
        keys = keys_of(self._set.pid, records)
        later = tx.named_later(keys, self._set.connseq)
        return [record for key, record in zip(keys, records, strict=True) if key not in later]

    def _name(self, tx: Tx, records: list[Record]) -> None:
        """Keep what an overtaking set names; of what is meant if absent, theirs is the last word."""
        if self._overtakes and not self._set.full and not self._set.ifabsent:
            keys = dict.fromkeys(keys_of(self._set.pid, records))
            tx.put_overtaking([Overtaking(key, *self._login) for key in keys])

    def _see_later(self, tx: Tx, pset: ProviderSet, now: int) -> bool:
        """Mark the next of what sets of later logins named as seen; False = there is no more."""
        keys = tx.overtaking(*self._login, pset.upto or b"", CHUNK) if self._overtaken else []
        tx.mark_seen(keys, pset.psetid, now)
        if keys:
            tx.update_pset(replace(pset, upto=keys[-1]))
        return bool(keys)

    # --- the first step --------------------------------------------------------------------------

    def _begin(self, tx: Tx, provider: Provider, now: int) -> ProviderSet | None:
        again = self.name and tx.sent_before([self.name], resends_since(self._policy, now))
        if again and not self._is_wanted_again(provider):
            return None
        pset = self.new_pset(tx.take(PSETID, 1), now)
        tx.insert_psets([pset])
        if pset.full and self._set.charged:
            self._charge_full_set(tx, provider, now)
        return pset

    def new_pset(self, number: int, now: int) -> ProviderSet:
        """Return the row of a set whose absorption begins."""
        spooled = self._set
        digest = spooled.digest if spooled.setid else ""
        return ProviderSet(
            number, spooled.pid, spooled.connseq, spooled.setid, digest, spooled.full, spooled.urls,
            self._first_phase(), 0, started=now,
        )  # fmt: skip

    def _first_phase(self) -> str:
        if self._set.full:
            return ABSORBING_KEYS
        return ABSORBING_COUNT if self._set.removals > removal_guard.FEW else ABSORBING_ENTRIES

    @property
    def name(self) -> SetName | None:
        """What an exact resend has as well; a set without an id has none."""
        spooled = self._set
        return SetName(spooled.pid, spooled.setid, spooled.digest) if spooled.setid else None

    def _is_wanted_again(self, provider: Provider) -> bool:
        """Tell whether a full set answers a request: what the same set brought before may be lost."""
        asked = provider.fullsetwanted and self._set.connseq > provider.wantedseq
        return self._set.full and bool(asked)

    def _charge_full_set(self, tx: Tx, provider: Provider, now: int) -> None:
        running = now - provider.fullsetsince < self._policy.fullset_period
        values = {
            "fullsetsused": provider.fullsetsused + 1 if running else 1,
            "fullsetsince": provider.fullsetsince if running else now,
        }
        tx.update_provider(provider.pid, values)

    # --- phases ----------------------------------------------------------------------------------

    def _count(self, tx: Tx, pset: ProviderSet, now: int) -> Step:
        """Count the documents that a partial set removes; one that is named twice is one document."""
        chunk, progress = self._set.records(pset.progress, CHUNK)
        keys = keys_of(pset.pid, (one for one in self._standing(tx, chunk) if one[0] == REMOVE))
        removing = pset.counted + tx.name_cached(keys, pset.psetid)
        if chunk:
            tx.update_pset(replace(pset, progress=progress, counted=removing))
            return Step(pset.pid, finished=False, entries=len(chunk))
        hold = UnitOfWork(tx, [pset.pid], [], now, self._policy).held_by_guard(pset.pid, removing)
        held = removing if hold else 0
        self._tell_held(held, "removed by")
        tx.update_pset(replace(pset, phase=ABSORBING_ENTRIES, progress=0, held=held))
        return Step(pset.pid, finished=False, held=held)

    def _keys(self, tx: Tx, pset: ProviderSet, now: int) -> Step:
        chunk, progress = self._set.records(pset.progress, CHUNK)
        keys = keys_of(pset.pid, (record for record in chunk if record[0] != REMOVE))
        tx.mark_seen(keys, pset.psetid, now)
        if tx.lock_providers([pset.pid])[pset.pid].heldremovals:
            standing = keys_of(pset.pid, (one for one in self._standing(tx, chunk) if one[0] != REMOVE))
            tx.add_to_provider(pset.pid, {"heldremovals": -tx.release(standing)})
        if chunk:
            tx.update_pset(replace(pset, progress=progress))
            return Step(pset.pid, finished=False, entries=len(chunk))
        if self._see_later(tx, pset, now):
            return Step(pset.pid, finished=False)
        if settle_all_late(tx, pset.pid, now, self._policy.push_grace):
            return Step(pset.pid, finished=False)
        pset = replace(pset, phase=ABSORBING_ABSENT, progress=0, upto=None)
        return self._count_absent(tx, pset, now)

    def _count_absent(self, tx: Tx, pset: ProviderSet, now: int) -> Step:
        """Count the next of what the full set does not name; behind the last, decide about all of it."""
        if pset.progress < LAST_NUMBER:
            pset = self._count_unfetched(tx, pset)
        if pset.progress == LAST_NUMBER:
            after = pset.upto or b""
            upto = tx.reach(pset.pid, after, SPAN)
            found = tx.count_absent(pset.pid, pset.psetid, after, upto)
            pset = replace(pset, upto=upto, absent=pset.absent + found)
        if pset.upto == LAST_KEY:
            return self._decide(tx, pset, now)
        tx.update_pset(pset)
        return Step(pset.pid, finished=False)

    def _count_unfetched(self, tx: Tx, pset: ProviderSet) -> ProviderSet:
        """Count the next of what waits; what is fetched before the documents are counted has its mark."""
        upto = tx.reach_waiting(pset.pid, pset.progress, SPAN)
        waiting = tx.count_waiting(pset.pid, pset.progress, upto)
        absent = tx.mark_unfetched(pset.pid, pset.psetid, pset.progress, upto)
        return replace(pset, progress=upto, counted=pset.counted + waiting, unfetched=pset.unfetched + absent)

    def _decide(self, tx: Tx, pset: ProviderSet, now: int) -> Step:
        """Decide whether what the full set does not name is removed or held; earlier holds end."""
        for earlier in tx.held_psets(pset.pid):
            tx.update_pset(replace(earlier, held=0))
        batch = UnitOfWork(tx, [pset.pid], [], now, self._policy)
        # what was fetched since it was counted is among the documents
        waiting = min(pset.counted, batch.providers[pset.pid].nurlproc)
        pset = replace(pset, progress=0, upto=None, counted=waiting)
        guard = batch.held_by_guard(pset.pid, pset.absent + pset.unfetched, waiting)
        if guard or removal_guard.doubts(self._set.urls - self._set.removals, self._set.unreadable):
            tx.update_pset(replace(pset, phase=ABSORBING_HOLDS, held=pset.absent))
            self._tell_held(pset.absent, "not in")
            return Step(pset.pid, finished=False, held=pset.absent)
        tx.update_pset(replace(pset, phase=ABSORBING_REMOVALS))
        return Step(pset.pid, finished=False)

    def _absent(self, tx: Tx, pset: ProviderSet, now: int) -> Step:
        """Remove or hold the next of what the full set does not name."""
        keys, pset = self._next_absent(tx, pset)
        if not keys and pset.upto == LAST_KEY:
            tx.update_pset(replace(pset, phase=ABSORBING_ENTRIES, progress=0, upto=None))
            return Step(pset.pid, finished=False)
        later = tx.named_later(keys, pset.connseq) if self._overtaken else ()
        batch = UnitOfWork(tx, [pset.pid], keys, now, self._policy)
        for key in keys:
            if key not in later:
                self._leave_out(batch, key, pset)
        batch.flush()
        self._tells = batch.tells
        held = batch.newly_held[pset.pid] if pset.phase == ABSORBING_REMOVALS else 0
        self._tell_held(held, "not in")
        tx.update_pset(replace(pset, held=pset.held + held))
        return Step(pset.pid, finished=False, removed=batch.removals())

    def _next_absent(self, tx: Tx, pset: ProviderSet) -> tuple[list[bytes], ProviderSet]:
        """Return the next of what waits, and of the documents behind that; and the set behind these.

        What is fetched meanwhile is found again among the documents, or was cancelled.
        """
        if pset.progress < LAST_NUMBER:
            number = tx.reach_waiting(pset.pid, pset.progress, SPAN)
            waiting = tx.unseen_waiting(pset.pid, pset.psetid, pset.progress, number, CHUNK)
            pset = replace(pset, progress=waiting[-1][0] if len(waiting) == CHUNK else number)
            if waiting or pset.progress < LAST_NUMBER:
                return [key for _, key in waiting], pset
        after = pset.upto or b""
        upto = tx.reach(pset.pid, after, SPAN)
        keys = tx.unseen(pset.pid, pset.psetid, after, upto, CHUNK)
        return keys, replace(pset, upto=keys[-1] if len(keys) == CHUNK else upto)

    def _leave_out(self, batch: UnitOfWork, key: bytes, pset: ProviderSet) -> None:
        """Remove or hold one; what fetches found gone since the judgement may have used the day up."""
        pushed = key in batch.cached and batch.cached[key].origin == Origin.PUSH
        if pset.phase == ABSORBING_HOLDS:
            if pushed:
                batch.hold(key, pset.psetid)
        elif pushed:
            hold = batch.held_by_guard(pset.pid, 1, pset.counted)
            batch.remove_pushed(key, pset.psetid, "not in the full set", hold=hold)
        else:
            batch.cancel(key, pset.psetid)

    def _entries(self, tx: Tx, pset: ProviderSet, now: int) -> Step:
        chunk, progress = self._set.records(pset.progress, self._chunk)
        if not chunk:
            return self._finish(tx, pset)
        (arriving,) = sort_out(tx, [Arriving(pset, self._standing(tx, chunk), self._set.ifabsent)])
        if self._chunk > CHUNK and arriving.known > CHUNK:
            self._chunk = CHUNK
            return self._entries(tx, pset, now)
        self._chunk = NEW_CHUNK if arriving.known * NEW_CHUNK <= CHUNK * len(chunk) else CHUNK
        self._name(tx, chunk)
        batch = UnitOfWork(tx, [pset.pid], [], now, self._policy)
        arrive(batch, [arriving])
        batch.flush()
        self._tells = batch.tells
        told = not pset.full and 0 < pset.counted <= pset.held
        held = 0 if told else batch.newly_held[pset.pid]
        self._tell_held(held, "removed by")
        absorbed = pset.absorbed + len(chunk)
        pset = replace(pset, progress=progress, absorbed=absorbed, held=pset.held + held)
        step = Step(pset.pid, finished=False, entries=len(chunk), removed=batch.removals())
        if progress >= self._set.end:
            return replace(step, finished=True, held=self._finish(tx, pset).held)
        tx.update_pset(pset)
        return step

    def _finish(self, tx: Tx, pset: ProviderSet) -> Step:
        tx.update_pset(replace(pset, phase=ABSORBED))
        if pset.full and self._set.urls > self._set.removals:
            full_set_requests.fulfil(tx, pset.pid, pset.connseq)
        return Step(pset.pid, finished=True, held=pset.held)

    def _tell_held(self, count: int, why: str) -> None:
        if not count:
            return
        kind = "full set" if self._set.full else "set"
        why = f"{why} the {kind} of login {self._set.connseq}, which names {self._set.urls} URLs"
        told = removal_guard.notice(self._set.pid, count, why)
        _log.warning("%(notice)s", {"notice": told, "pid": self._set.pid, "seq": self._set.connseq})

    _PHASES: ClassVar[dict[str, Callable[["Intake", Tx, ProviderSet, int], Step]]] = {
        ABSORBING_COUNT: _count,
        ABSORBING_KEYS: _keys,
        ABSORBING_ABSENT: _count_absent,
        ABSORBING_REMOVALS: _absent,
        ABSORBING_HOLDS: _absent,
        ABSORBING_ENTRIES: _entries,
    }
