"""Intake: a set goes from the spool into the queue in small, restartable steps.

Each step is one transaction that also notes how far it came, so that a kill anywhere costs at most one
step's work. A full set takes three phases: its keys are marked as seen, then everything unseen is
removed, or held by the guard, then its updates queue up (seed 003 section 6 "Arriving URLs"). A partial
set with more than a few removals is counted first, so that the guard lets all of them pass or none.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from lcc_scrapy.domain import removal_guard
from lcc_scrapy.domain.arrivals import keys_of
from lcc_scrapy.domain.entries import Origin, UrlEntry
from lcc_scrapy.domain.errors import PassedOver
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import Place
from lcc_scrapy.storage import wishes
from lcc_scrapy.storage.arrivals import queue_new
from lcc_scrapy.storage.batch import Batch
from lcc_scrapy.storage.batch import keys_of as keys_of_arrival
from lcc_scrapy.storage.misses import settle_late
from lcc_scrapy.storage.records import (
    ABSORBED,
    ABSORBING_COUNT,
    ABSORBING_ENTRIES,
    ABSORBING_HOLDS,
    ABSORBING_KEYS,
    ABSORBING_REMOVALS,
    ProviderSet,
)
from lcc_scrapy.storage.tx import Store, Tx
from lcc_scrapy.uns.spoolfile import REMOVE, Record, entry_of

CHUNK = 2000
"""Entries that are taken together; a step is one such chunk, or several while there is time."""

PSETID = "psetid"
EVERY_SET = 1 << 62
"""A set number above all, so that no URL counts as seen."""

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


class Intake:
    """Absorbs one spooled set; call ``step`` until it says ``finished``."""

    def __init__(self, store: Store, spooled: SpooledSet, policy: QueuePolicy) -> None:
        self._store = store
        self._set = spooled
        self._policy = policy
        self._upto = b""

    def step(self, now: int, more: Callable[[int], bool] = lambda _: False) -> Step:
        """Do the next chunk of work in one transaction (``now`` in epoch seconds).

        While ``more`` says so, which hears how many entries were taken, the next chunk is added to it. The
        last step also forgets the login, so that sets of later ones may go on. Raises ``PassedOver``.
        """
        with self._store.begin() as tx:
            step = self._step(tx, now)
            while not step.finished and more(step.entries):
                step = step.then(self._step(tx, now))
            if step.finished:
                tx.drop_login(self._set.pid, self._set.connseq)
            return step

    def _step(self, tx: Tx, now: int) -> Step:
        provider = tx.lock_providers([self._set.pid]).get(self._set.pid)
        if provider is None:
            return Step(self._set.pid, finished=True)
        login = tx.login(self._set.pid, self._set.connseq)
        if login is not None and login.passed:
            raise PassedOver("sets of later logins were absorbed while this UNS was away")
        pset = tx.pset_of(self._set.pid, self._set.connseq) or self._begin(tx, provider, now)
        if pset is None or pset.phase == ABSORBED:
            return Step(self._set.pid, finished=True)
        return self._PHASES[pset.phase](self, tx, pset, now)

    def close(self) -> None:
        """Close the set."""
        self._set.close()

    # --- the first step --------------------------------------------------------------------------

    def _begin(self, tx: Tx, provider: Provider, now: int) -> ProviderSet | None:
        spooled = self._set
        if self._is_resend(tx, now) and not self._is_wanted_again(provider):
            return None
        digest = spooled.digest if spooled.setid else ""
        pset = ProviderSet(
            tx.take(PSETID, 1), spooled.pid, spooled.connseq, spooled.setid, digest, spooled.full,
            spooled.urls, self._first_phase(), 0, started=now,
        )  # fmt: skip
        tx.insert_pset(pset)
        if spooled.full and spooled.charged:
            self._charge_full_set(tx, provider, now)
        return pset

    def _first_phase(self) -> str:
        if self._set.full:
            return ABSORBING_KEYS
        return ABSORBING_COUNT if self._set.removals > removal_guard.FEW else ABSORBING_ENTRIES

    def _is_resend(self, tx: Tx, now: int) -> bool:
        since = now - int(self._policy.resend_period)
        earlier = self._set.setid and tx.pset_named(self._set.pid, self._set.setid, self._set.digest, since)
        return bool(earlier)

    def _is_wanted_again(self, provider: Provider) -> bool:
        """Tell whether a full set answers a wish: what the same set brought before may be lost."""
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
        keys = keys_of(pset.pid, (record for record in chunk if record[0] == REMOVE))
        removing = pset.counted + tx.name_cached(keys, pset.psetid)
        if chunk:
            tx.update_pset(replace(pset, progress=progress, counted=removing))
            return Step(pset.pid, finished=False, entries=len(chunk))
        hold = Batch(tx, [pset.pid], [], now, self._policy).held_by_guard(pset.pid, removing)
        held = removing if hold else 0
        self._tell_held(held, "removed by")
        tx.update_pset(replace(pset, phase=ABSORBING_ENTRIES, progress=0, held=held))
        return Step(pset.pid, finished=False, held=held)

    def _keys(self, tx: Tx, pset: ProviderSet, now: int) -> Step:
        chunk, progress = self._set.records(pset.progress, CHUNK)
        keys = keys_of(pset.pid, (record for record in chunk if record[0] != REMOVE))
        tx.mark_seen(keys, pset.psetid, now)
        if tx.lock_providers([pset.pid])[pset.pid].heldremovals:
            tx.add_to_provider(pset.pid, {"heldremovals": -tx.release(keys)})
        if chunk:
            tx.update_pset(replace(pset, progress=progress))
            return Step(pset.pid, finished=False, entries=len(chunk))
        settle_late(tx, pset.pid, now, self._policy.push_grace)
        return self._judge(tx, pset, now)

    def _judge(self, tx: Tx, pset: ProviderSet, now: int) -> Step:
        """Decide whether what the full set does not name is removed or held; earlier holds end."""
        for earlier in tx.held_psets(pset.pid):
            tx.update_pset(replace(earlier, held=0))
        cached = tx.count_unseen(pset.pid, pset.psetid)
        absent = cached + tx.count_unseen_new(pset.pid, pset.psetid)
        waiting = tx.count_unseen_new(pset.pid, EVERY_SET)
        guard = Batch(tx, [pset.pid], [], now, self._policy).held_by_guard(pset.pid, absent, waiting)
        if guard or removal_guard.doubts(self._set.urls - self._set.removals, self._set.unreadable):
            tx.update_pset(replace(pset, phase=ABSORBING_HOLDS, progress=0, held=cached))
            self._tell_held(cached, "not in")
            return Step(pset.pid, finished=False, held=cached)
        tx.update_pset(replace(pset, phase=ABSORBING_REMOVALS, progress=0, counted=waiting))
        return Step(pset.pid, finished=False)

    def _absent(self, tx: Tx, pset: ProviderSet, now: int) -> Step:
        """Remove or hold the next of what the full set does not name."""
        keys = tx.unseen(pset.pid, pset.psetid, self._upto, CHUNK)
        if not keys:
            tx.update_pset(replace(pset, phase=ABSORBING_ENTRIES, progress=0))
            return Step(pset.pid, finished=False)
        batch = Batch(tx, [pset.pid], keys, now, self._policy)
        for key in keys:
            self._leave_out(batch, key, pset)
        batch.flush()
        self._upto = keys[-1]
        if pset.phase == ABSORBING_REMOVALS:
            held = batch.newly_held[pset.pid]
            self._tell_held(held, "not in")
            tx.update_pset(replace(pset, held=pset.held + held))
        return Step(pset.pid, finished=False, removed=batch.removals())

    def _leave_out(self, batch: Batch, key: bytes, pset: ProviderSet) -> None:
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
        chunk, progress = self._set.records(pset.progress, CHUNK)
        if not chunk:
            return self._finish(tx, pset)
        batch = Batch(tx, [pset.pid], [], now, self._policy)
        self._judge_entries(batch, pset, queue_new(batch, pset.pid, pset.psetid, pset.absorbed + 1, chunk))
        batch.flush()
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

    def _judge_entries(self, batch: Batch, pset: ProviderSet, numbered: Sequence[tuple[int, Record]]) -> None:
        """Apply the rules to entries one by one, in the order of the set."""
        entries = [(number, entry_of(record)) for number, record in numbered]
        batch.add(keys_of_arrival(pset.pid, (entry for _, entry in entries)))
        for number, entry in entries:
            place = Place(pset.psetid, number)
            batch.arrive(pset.pid, entry, place, ifabsent=self._set.ifabsent, hold=pset.held > 0)

    def _finish(self, tx: Tx, pset: ProviderSet) -> Step:
        tx.update_pset(replace(pset, phase=ABSORBED))
        if pset.full and self._set.urls > self._set.removals:
            wishes.fulfil(tx, pset.pid, pset.connseq)
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
        ABSORBING_REMOVALS: _absent,
        ABSORBING_HOLDS: _absent,
        ABSORBING_ENTRIES: _entries,
    }
