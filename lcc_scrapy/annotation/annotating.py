"""Profiles: all URDs, ready to be compared with pages, and changed while pages are compared.

A change costs as much as the changes before it that are not merged yet, not as much as all URDs: there is a
large index and a small one for what changed since. ``merge`` makes one of them, in a thread if you like.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from threading import Lock

from lcc_scrapy.annotation.findings import Finding, findings_in
from lcc_scrapy.annotation.index import Index
from lcc_scrapy.annotation.pages import Page, PageInWork
from lcc_scrapy.domain.urds import Urd

__all__ = ["Finding", "Page", "Profiles"]

CHANGES_MAX = 1000
"""Changes from which on it is time to merge."""


@dataclass(frozen=True, slots=True)
class _State:
    """``base`` without the URDs ``withdrawn`` (urdids), and those ``added`` since, which ``small`` holds."""

    base: Index
    withdrawn: frozenset[int] = frozenset()
    added: dict[int, Urd] = field(default_factory=dict)
    small: Index = field(default_factory=lambda: Index(()))

    def urds(self) -> list[Urd]:
        """Return the URDs that count."""
        kept = [urd for urd in self.base.urds if urd.urdid not in self.withdrawn]
        return [*kept, *self.added.values()]


class Profiles:
    """The URDs of one process that annotates.

    One thread may look for findings while another one changes or merges: each page is compared with the URDs
    of one moment. ``link_texts``: what links show counts as text of their page. Raises ``MissingExtra``.
    """

    def __init__(self, urds: Iterable[Urd] = (), *, link_texts: bool = True) -> None:
        self._link_texts = link_texts
        self._changing = Lock()
        self._merging = Lock()
        self._state = _State(Index({urd.urdid: urd for urd in urds}.values()))

    def __len__(self) -> int:
        state = self._state
        return len(state.base) - len(state.withdrawn) + len(state.added)

    def findings(
        self, page: Page, owners: Collection[str], now: int, only: Collection[int] = ()
    ) -> list[Finding]:
        """Return to which URDs a page matters, by urdid: those at or above their threshold.

        ``owners``: those of the page in the table ``owners``; ``now`` in epoch milliseconds; ``only`` these
        URDs (empty = all). The time grows with the page and with what is found, not with all URDs.
        """
        state, these, of_page = self._state, frozenset(only), frozenset(owners)
        work = PageInWork(page, link_texts=self._link_texts)

        def in_scope(urd: Urd) -> bool:
            if (these and urd.urdid not in these) or urd.has_expired(now):
                return False
            return urd.owner in of_page or urd.names(page.url)

        def in_scope_still(urd: Urd) -> bool:
            return urd.urdid not in state.withdrawn and in_scope(urd)

        found = findings_in(state.base, work, of_page, in_scope_still)
        found += findings_in(state.small, work, of_page, in_scope)
        return sorted(found, key=lambda one: one.urd.urdid)

    def change(self, put: Iterable[Urd] = (), removed: Iterable[int] = ()) -> None:
        """Take URDs that are new or changed, and withdraw others; it acts on the next page."""
        with self._changing:
            state, new, gone = self._state, {urd.urdid: urd for urd in put}, set(removed)
            added = {key: urd for key, urd in {**state.added, **new}.items() if key not in gone}
            withdrawn = state.withdrawn | (state.base.ids & (gone | new.keys()))
            self._state = _State(state.base, withdrawn, added, Index(added.values()))

    @property
    def wants_merging(self) -> bool:
        """Tell whether there are so many changes that each further one costs much."""
        state = self._state
        return len(state.added) + len(state.withdrawn) > CHANGES_MAX

    def merge(self) -> None:
        """Make one index of all; meanwhile pages are compared and URDs change as before.

        Returns at once where another thread does it already.
        """
        if self._merging.acquire(blocking=False):
            try:
                self._merge()
            finally:
                self._merging.release()

    def _merge(self) -> None:
        begun = self._state
        base = Index(begun.urds())
        with self._changing:
            now = self._state
            touched = begun.added.keys() | now.added.keys() | now.withdrawn - begun.withdrawn
            added = {key: urd for key, urd in now.added.items() if begun.added.get(key) is not urd}
            gone = touched - now.added.keys() if touched else set()
            withdrawn = frozenset(base.ids & (added.keys() | gone))
            self._state = replace(
                now, base=base, withdrawn=withdrawn, added=added, small=Index(added.values())
            )
