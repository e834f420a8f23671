"""A new provider gets a sub-LCC: first the front's row, then the row there. It blocks.

PMDB has a pid once, so its row decides between two who add a provider at the same time. A kill between the
two rows leaves a pid that logs in nowhere. Whoever adds it again goes on in the sub-LCC that PMDB names.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
            return Place(self.directory.sub(self.chooser(name)()), assigned=False)
        if name not in {None, known.name}:
            raise FrontError(f"provider {pid} is assigned to sub-LCC {known.name}: say --sub {known.name}")
        there = _there(self.store(known), pid)
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
        store = self.store(place.sub)
        try:
            registration.add(within(store), provider, roots)
        except LccError:
            there = _there(store, provider.pid)  # somebody else added it meanwhile
            if there is None:
                raise
            return Place(place.sub, assigned=True, there=there)
        return place

    def chooser(self, name: str | None) -> Callable[[], str]:
        """Return what names the sub-LCC of each new provider: ``name``, else the one that is least full."""
        if name is not None:
            self.store(self.directory.sub(name))
            return lambda: name
        subs = [one for one in self.directory.subs() if one.name in self.subs.stores]
        load = self.directory.load(self.subs.urls)

        def choose() -> str:
            nonlocal load
            found = place(subs, load).name
            load = load.with_one_more(found)
            return found

        return choose

    def store(self, sub: SubLcc, reason: str = "") -> Store:
        """Return the database of a sub-LCC; raises ``FrontError``, which gives the reason to ask for it."""
        why = f" ({reason})" if reason else ""
        if not sub.database:
            raise FrontError(
                f"sub-LCC {sub.name}: set its database, `lcc front set {sub.name} --database URL`{why}"
            )
        if sub.name not in self.subs.stores:
            raise FrontError(
                f"sub-LCC {sub.name}: {self.subs.silent.get(sub.name, 'it was just added')}{why}"
            )
        return self.subs.stores[sub.name]

    def _insist_on_new(self, pid: int) -> None:
        """Raise ``FrontError`` for a pid that a provider has or had, or that registration gave out."""
        for why in self.used([pid]).values():
            raise FrontError(why)

    def used(self, pids: Sequence[int]) -> dict[int, str]:
        """Return the pids among these that cannot be given to a new provider, with the reason."""
        given_out = "pid {} was given out by registration at the front; take another"
        found = {pid: given_out.format(pid) for pid in self.directory.given.unused(pids)}
        known = self.directory.assigned(pids)
        for name, store in self.subs.stores.items():
            used = registration.used_pids(store, pids)
            with store.read() as tx:
                there = tx.known_pids(list(used))
            for pid, why in used.items():
                is_here = pid in there and known.get(pid) == name
                told = (
                    f"`lcc front assign {pid} --to {name}` tells the front"
                    if pid in there
                    else "take another"
                )
                found[pid] = f"sub-LCC {name}: {why}" + ("" if is_here else f"; {told}")
        return found


@dataclass(frozen=True, slots=True)
class ManyProviders:
    """Adds many providers; ``name`` is the sub-LCC for all of them, None = each goes to the least full one.

    PMDB names the homes of a batch before the sub-LCCs get it: after a kill, they stay what they are.
    """

    new: NewProviders
    name: str | None
    _homes: dict[int, str] = field(default_factory=dict)
    _assigned: set[int] = field(default_factory=set)

    def used(self, pids: Sequence[int]) -> dict[int, str]:
        """Return the pids among these that cannot be given to a new provider, with the reason.

        Raises ``FrontError`` where this cannot be said because a sub-LCC does not answer.
        """
        for pid, name in self.new.directory.assigned(pids).items():
            if name not in self.new.subs.stores:
                self.new.store(self.new.directory.sub(name), f"provider {pid} is assigned to it")
        return self.new.used(pids)

    def places(self, pids: Sequence[int]) -> Counter[str]:
        """Choose a sub-LCC for each of these new providers; return how many each gets."""
        known = self.new.directory.assigned(pids)
        self._homes.update(known)
        self._assigned.update(known)
        choose = self.new.chooser(self.name)
        for pid in pids:
            if pid not in known:
                self._homes[pid] = choose()
            elif self.name not in {None, known[pid]}:
                raise FrontError(
                    f"provider {pid} is assigned to sub-LCC {known[pid]}: say --sub {known[pid]}"
                )
        return Counter(self._homes[pid] for pid in pids)

    def add(self, fresh: Sequence[tuple[Provider, Sequence[str]]]) -> None:
        """Add a batch where ``places`` chose; raises ``LccError`` when somebody was faster."""
        homes = {provider.pid: self._homes[provider.pid] for provider, _ in fresh}
        self.new.directory.assign_many({pid: homes[pid] for pid in homes.keys() - self._assigned})
        for name in sorted(set(homes.values())):
            its = [(provider, roots) for provider, roots in fresh if homes[provider.pid] == name]
            registration.add_many(self.new.subs.stores[name], its)


def _there(store: Store, pid: int) -> tuple[Provider, list[str]] | None:
    with store.read() as tx:
        provider = tx.provider(pid)
        return (provider, tx.roots(pid)) if provider else None
