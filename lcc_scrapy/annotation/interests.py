"""The interests of owners: added, changed and removed, by operators and by owners themselves. Blocking.

Whoever changes URDs locks their revision until the transaction ends, so that each sees what others did.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lcc_scrapy.db.sql.rows import chunks
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.requests import asks_for_less
from lcc_scrapy.domain.urd_rules import BadUrd, NoSuchUrd, TooManyUrds, checked, same_interest
from lcc_scrapy.domain.urds import Urd
from lcc_scrapy.spidering.withdrawing import withdraw

BATCH = 1000
"""URDs that are written by one statement, or read at once."""


@dataclass(frozen=True, slots=True)
class Imported:
    """How many URDs of a file were added, changed, and were there already as the file says."""

    added: int
    changed: int
    unchanged: int


@dataclass(frozen=True, slots=True)
class Interests:
    """The URDs in one store."""

    store: Store

    # --- reading ---------------------------------------------------------------------------------

    def of(self, owner: str | None, after: int, limit: int) -> list[Urd]:
        """Return URDs of an owner, or of all, behind a number."""
        with self.store.read() as tx:
            return tx.all_urds(after, limit) if owner is None else tx.urds_of(owner, after, limit)

    def count(self, owner: str | None = None) -> int:
        """Count the URDs of an owner, or all."""
        with self.store.read() as tx:
            return tx.count_urds(owner)

    def get(self, urdid: int, owner: str | None = None) -> Urd:
        """Return a URD, of this owner if one is given; raises ``NoSuchUrd``."""
        with self.store.read() as tx:
            return _found(tx, [urdid], owner)[0]

    def refusals(self, urds: Iterable[Urd]) -> dict[int, str]:
        """Return why pages could not be asked for when they were due, by the numbers of URDs, if so."""
        with self.store.read() as tx:
            return tx.refusals(one.urdid for one in urds)

    # --- changing --------------------------------------------------------------------------------

    def add(self, urd: Urd, most: int | None = None) -> Urd:
        """Add a URD; raises ``BadUrd``, or ``TooManyUrds`` where its owner has ``most`` already."""
        good = checked(urd)
        with self.store.begin() as tx:
            tx.lock_urds()
            if most is not None and tx.count_urds(urd.owner) >= most:
                raise TooManyUrds(
                    f"{urd.owner} has {most} URDs, which is as many as may be: remove one first"
                )
            return tx.add_urds([good])[0]

    def change(self, urdid: int, changed: Callable[[Urd], Urd], owner: str | None = None) -> Urd:
        """Replace a URD by what ``changed`` makes of it; raises ``NoSuchUrd`` or ``BadUrd``.

        When it was last asked for stays. A URD that says the same as before stays as it is.
        """
        with self.store.begin() as tx:
            tx.lock_urds()
            (before,) = _found(tx, [urdid], owner)
            after = checked(changed(before))
            if same_interest(before, after):
                return before
            _withdraw(tx, [(before, after)])
            return tx.put_urds([after])[0]

    def remove(self, urdids: Sequence[int], owner: str | None = None) -> list[Urd]:
        """Remove URDs, all or none; raises ``NoSuchUrd``."""
        with self.store.begin() as tx:
            tx.lock_urds()
            _withdraw(tx, ((one, None) for one in _found(tx, urdids, owner)))
            return tx.remove_urds(urdids)

    def take_in(self, urds: Sequence[Urd], told: Callable[[int], None] = lambda _: None) -> Imported:
        """Add URDs, or replace those that have their numbers: all or none, in one transaction.

        They were checked one by one. Raises ``BadUrd`` where two have the same number, or one has that of
        another owner. ``told`` gets how many are done.
        """
        numbered = [urd for urd in urds if urd.urdid]
        fresh = [urd for urd in urds if not urd.urdid]
        _check_numbers(numbered)
        counts: Counter[str] = Counter()
        with self.store.begin() as tx:
            tx.lock_urds()
            # first, so that no new one gets the number of one of these
            for done, part in enumerate(chunks(numbered, BATCH), 1):
                counts.update(_put(tx, part))
                told(min(done * BATCH, len(numbered)))
            for done, part in enumerate(chunks(fresh, BATCH), 1):
                counts["added"] += len(tx.add_urds(part))
                told(len(numbered) + min(done * BATCH, len(fresh)))
        return Imported(counts["added"], counts["changed"], counts["unchanged"])


def _found(tx: Tx, urdids: Iterable[int], owner: str | None) -> list[Urd]:
    """Return URDs in the order of their numbers as given; raises ``NoSuchUrd``."""
    wanted = list(urdids)
    there = tx.urds(wanted)
    for urdid in wanted:
        if urdid not in there or owner not in {None, there[urdid].owner}:
            raise NoSuchUrd(f"there is no URD {urdid}{f' of {owner}' if owner else ''}")
    return [there[urdid] for urdid in wanted]


def _withdraw(tx: Tx, changes: Iterable[tuple[Urd, Urd | None]]) -> None:
    """Let what owners reach be computed anew, where a URD was removed (None) or asks for less than before."""
    owners = {before.owner for before, after in changes if after is None or asks_for_less(before, after)}
    if owners:
        withdraw(tx, owners)


def _check_numbers(urds: Sequence[Urd]) -> None:
    twice = next((urdid for urdid, count in Counter(one.urdid for one in urds).items() if count > 1), None)
    if twice is not None:
        raise BadUrd(f"id {twice} stands there twice")


def _put(tx: Tx, urds: Sequence[Urd]) -> Counter[str]:
    """Write URDs that have numbers; returns how many were added, changed and left as they were."""
    there = tx.urds(urd.urdid for urd in urds)
    news: list[Urd] = []
    for urd in urds:
        before = there.get(urd.urdid)
        if before is not None and before.owner != urd.owner:
            raise BadUrd(f"id {urd.urdid} is that of a URD of {before.owner}, not of {urd.owner}")
        after = urd if before is None else replace(urd, lastcheck=max(urd.lastcheck, before.lastcheck))
        if before is None or not same_interest(before, after):
            news.append(after)
    _withdraw(tx, ((there[urd.urdid], urd) for urd in news if urd.urdid in there))
    tx.put_urds(news)
    added = sum(urd.urdid not in there for urd in news)
    return Counter(added=added, changed=len(news) - added, unchanged=len(urds) - len(news))
