"""What changed about URDs since somebody looked last: so that a change acts on the next page."""

from dataclasses import dataclass

from lcc_scrapy.db.sql.urd_verbs import REMOVALS_KEPT
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.urds import Urd

PAGE = 1000
"""URDs that are read at once."""


@dataclass(frozen=True, slots=True)
class ProfileChanges:
    """What to do to have all URDs as of ``revision``, from which to go on.

    ``afresh``: first forget all that is known (a backup was restored, or the reader was away for long). Drop
    the URDs of the numbers ``removed``, add or replace ``changed``. ``more``: ask again at once.
    """

    revision: int
    changed: tuple[Urd, ...] = ()
    removed: tuple[int, ...] = ()
    afresh: bool = False
    more: bool = False

    def __bool__(self) -> bool:
        return self.afresh or bool(self.changed or self.removed)


def profile_changes(store: Store, seen: int, limit: int = PAGE) -> ProfileChanges:
    """Return what changed behind the revision ``seen``; 0 = nothing was seen, all URDs come, page by page.

    At most ``limit`` changes and as many removals. When nothing changed, it costs one look at a counter.
    """
    with store.read() as tx:
        if tx.urd_revision() == seen:
            return ProfileChanges(seen)
    with store.snapshot() as tx:
        return _changes(tx, seen, limit)


def _changes(tx: Tx, seen: int, limit: int) -> ProfileChanges:
    newest = tx.urd_revision()
    afresh = seen > newest or 0 < seen < newest - REMOVALS_KEPT
    after = 0 if afresh else seen
    changed = tx.urds_changed(after, limit)
    removed = tx.urds_removed(after, limit) if after else []
    # of both up to the same revision: a longer list must not go ahead of a cut one
    ends = [changed[-1].revision] if len(changed) == limit else []
    ends += [removed[-1][0]] if len(removed) == limit else []
    upto = min(ends, default=newest)
    return ProfileChanges(
        upto,
        tuple(one for one in changed if one.revision <= upto),
        tuple(urdid for revision, urdid in removed if revision <= upto),
        afresh,
        upto < newest,
    )
