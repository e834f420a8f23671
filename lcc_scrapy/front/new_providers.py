"""A new provider gets a sub-LCC: first the front's row, then the row there. It blocks.

PMDB has a pid once, so its row decides between two who add a provider at the same time. A kill between the
two rows leaves a pid that logs in nowhere. Whoever adds it again goes on in the sub-LCC that PMDB names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.front import FrontError, SubLcc, place
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.sub_stores import SubStores
from lcc_scrapy.providers import registration


@dataclass(frozen=True, slots=True)
class Place:
    """Where a provider goes. ``there``: what its sub-LCC has of it already, with its roots."""

    sub: SubLcc
    assigned: bool
    there: tuple[Provider, list[str]] | None = None


@dataclass(frozen=True, slots=True)
class NewProviders:
    """Adds providers to sub-LCCs; ``subs`` are those whose databases answer, opened to write."""

    directory: Directory
    subs: SubStores

    def find(self, pid: int, name: str | None) -> Place:
        """Return where a provider goes: where it was placed already, else ``name``, else the least full one.

        Raises ``FrontError`` for a pid that may not be given, or where no sub-LCC can take it.
        """
        if moving := self.directory.moving(pid):
            raise FrontError(f"provider {pid} exists already: it moves to sub-LCC {moving.target}")
        known = self.directory.sub_of(pid)
        if known is None:
            self._insist_on_new(pid)
            return Place(self._chosen(name), assigned=False)
        if name not in {None, known.name}:
            raise FrontError(f"provider {pid} is assigned to sub-LCC {known.name}: say --sub {known.name}")
        there = _there(self._store(known), pid)
        if there is None:
            self._insist_on_new(pid)
        return Place(known, assigned=True, there=there)

    def add(
        self, place: Place, provider: Provider, roots: Sequence[str], within: Callable[[Store], Store]
    ) -> Place:
        """Add a provider where ``find`` said; returns the place with what was there before, None = it is new.

        ``within`` gives the store to write with (the audit log).
        """
        if place.there is not None:
            return place
        if not place.assigned:
            self.directory.assign(provider.pid, place.sub.name)
        store = self._store(place.sub)
        try:
            registration.add(within(store), provider, roots)
        except LccError:
            there = _there(store, provider.pid)  # somebody else added it meanwhile
            if there is None:
                raise
            return Place(place.sub, assigned=True, there=there)
        return place

    def _chosen(self, name: str | None) -> SubLcc:
        if name is not None:
            sub = self.directory.sub(name)
            self._store(sub)
            return sub
        subs = [one for one in self.directory.subs() if one.name in self.subs.stores]
        return place(subs, self.subs.urls, self.directory.providers())

    def _store(self, sub: SubLcc) -> Store:
        if not sub.database:
            raise FrontError(
                f"sub-LCC {sub.name}: set its database, `lcc front set {sub.name} --database URL`"
            )
        if sub.name not in self.subs.stores:
            raise FrontError(f"sub-LCC {sub.name}: {self.subs.silent.get(sub.name, 'it was just added')}")
        return self.subs.stores[sub.name]

    def _insist_on_new(self, pid: int) -> None:
        """Raise ``FrontError`` if a sub-LCC has or had a provider with this pid."""
        for name, store in self.subs.stores.items():
            why = registration.used_pids(store, [pid]).get(pid)
            if why is None:
                continue
            has_it = _there(store, pid) is not None
            what = f"`lcc front assign {pid} --to {name}` tells the front" if has_it else "take another"
            raise FrontError(f"sub-LCC {name}: {why}; {what}")


def _there(store: Store, pid: int) -> tuple[Provider, list[str]] | None:
    with store.read() as tx:
        provider = tx.provider(pid)
        return (provider, tx.roots(pid)) if provider else None
