"""Small sets of different providers are absorbed in one transaction, with few statements for all of them.

What becomes of each is what ``Intake`` makes of it alone, by the same rules. A set is small when one step of
``Intake`` would be enough: not a full one, without many removals, no longer than ``SMALL``, and not begun.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile

from lcc_scrapy.db.records import ABSORBED
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain import removal_guard
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.intake import absorbing
from lcc_scrapy.intake.absorbing import PSETID, Intake, SpooledSet, Step, resends_since
from lcc_scrapy.intake.arrivals import Arriving, Sorted, arrive, sort_out
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.uns.spool_file import Record

SMALL = 200
"""URLs of a set that is absorbed together with others, at most."""


@dataclass(frozen=True, slots=True)
class SmallSet:
    """A set with all its records; ``intake`` takes what turns out not to be new."""

    spooled: SpooledSet
    records: Sequence[Record]
    intake: Intake

    @property
    def login(self) -> tuple[int, int]:
        """The provider and the number of the login."""
        return self.spooled.pid, self.spooled.connseq


def read_small(spooled: SpooledSet) -> Sequence[Record] | None:
    """Return all records of a set that may be absorbed together with others; None = it is not small."""
    many_urls = spooled.urls > min(SMALL, absorbing.CHUNK)
    if spooled.full or many_urls or spooled.removals > removal_guard.FEW:
        return None
    records, upto = spooled.records(0, SMALL)
    return records if upto >= spooled.end else None  # long ones are not read all at once


def absorb_together(store: Store, sets: Sequence[SmallSet], policy: QueuePolicy, now: int) -> list[Step]:
    """Absorb sets of different providers; raises what ``Intake.step`` does, and nothing happened then.

    No set of an earlier login of one of these providers may come any more. When many of their URLs are known
    already, or one of the sets was begun or overtaken, the last ones are left for another time: their steps
    are not ``finished``.
    """
    with store.begin() as tx:
        steps = _steps(tx, sets, policy, now)
        done = [one.login for one, step in zip(sets, steps, strict=True) if step.finished]
        tx.drop_logins(done)
        return steps


def _steps(tx: Tx, sets: Sequence[SmallSet], policy: QueuePolicy, now: int) -> list[Step]:
    batch = UnitOfWork(tx, [one.spooled.pid for one in sets], [], now, policy)
    logins = [one.login for one in sets]
    rows, begun = tx.logins(logins), tx.psets_of(logins)
    odd = {login for login, row in rows.items() if row.passed or row.overtaken} | begun.keys()
    if sets[0].login in odd:
        return [sets[0].intake.step_in(tx, now), *_left(sets[1:])]
    plain = list(takewhile(lambda one: one.login not in odd, sets))
    known = [one for one in plain if one.spooled.pid in batch.providers]
    arriving = sort_out(tx, _arriving(tx, _first_sent(batch, known), now))
    together = _seen_at_once(arriving)
    absorbed = _absorb(batch, together)
    left = {one.arriving.pset.pid for one in arriving[len(together) :]}
    return [
        absorbed.get(one.login) or Step(one.spooled.pid, finished=one.spooled.pid not in left)
        for one in plain
    ] + _left(sets[len(plain) :])


def _left(sets: Sequence[SmallSet]) -> list[Step]:
    """Leave sets for another time: of what is written together, ``FEED`` has to be the last."""
    return [Step(one.spooled.pid, finished=False) for one in sets]


def _first_sent(batch: UnitOfWork, sets: Sequence[SmallSet]) -> list[SmallSet]:
    """Leave out exact resends."""
    names = [name for one in sets if (name := one.intake.name)]
    again = batch.tx.sent_before(names, resends_since(batch.policy, batch.now))
    return [one for one in sets if one.intake.name not in again]


def _seen_at_once(arriving: Sequence[Sorted]) -> Sequence[Sorted]:
    """Return as many of the first sets as the rules may see in one transaction, but one of them at least."""
    known = accumulate(one.known for one in arriving)
    return arriving[: max(1, sum(count <= absorbing.CHUNK for count in known))]


def _arriving(tx: Tx, sets: Sequence[SmallSet], now: int) -> list[Arriving]:
    if not sets:
        return []
    first = tx.take(PSETID, len(sets))
    psets = [one.intake.new_pset(number, now) for number, one in enumerate(sets, first)]
    return [Arriving(pset, one.records, one.spooled.ifabsent) for pset, one in zip(psets, sets, strict=True)]


def _absorb(batch: UnitOfWork, arriving: Sequence[Sorted]) -> dict[tuple[int, int], Step]:
    if not arriving:
        return {}
    sets = [one.arriving for one in arriving]
    arrive(batch, arriving)
    batch.flush()
    held = batch.newly_held
    psets = [
        replace(one.pset, phase=ABSORBED, absorbed=len(one.records), held=held[one.pset.pid]) for one in sets
    ]
    batch.tx.insert_psets(psets)
    removed = batch.removals_by_pid()
    return {
        (pset.pid, pset.connseq): Step(
            pset.pid, finished=True, entries=pset.absorbed, removed=removed.get(pset.pid, ()), held=pset.held
        )
        for pset in psets
    }
