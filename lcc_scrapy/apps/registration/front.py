"""Registration at a front: site owners become providers of some sub-LCC, with pids that are unique over all.

The front's database gives out the pid first, then the registration is a row of the sub-LCC, as if it had
begun there. A kill between the two leaves a pid that is given to nobody. ``tidy`` lets PMDB forget those of
which nothing came.
"""

import logging
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from lcc_scrapy.apps.registration.rules import Kind, Registration, Wanted
from lcc_scrapy.apps.registration.service import Done, Full, Given, Later, Registrations
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.apps.registration.store import rows_in
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.front import FrontError, MoveStep, SubLcc
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.given_pids import Found
from lcc_scrapy.front.open_subs import OpenSubs, SubAway
from lcc_scrapy.providers import registration as providers

GRACE = 3600
"""Seconds from the end of a registration to the look what became of it: the longest commit is over then."""

PORTION = 100
"""Pids that are looked at in one transaction."""

PORTIONS = 20
"""Transactions in one go; the next call does the rest."""

_log = logging.getLogger(__name__)


class FrontRegistrations:
    """The ``Registering`` of a front; ``subs`` are its sub-LCCs. All calls block; threads may share it.

    Raises ``StoreUnavailable`` when a database does not answer, ``Later`` while a provider moves.
    """

    def __init__(
        self,
        directory: Directory,
        subs: OpenSubs,
        rules: RegistrationRules,
        *,
        fullsets: int | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.rules = rules
        self._directory = directory
        self._subs = subs
        self._fullsets = fullsets
        self._now = now

    def _of(self, store: Store, give_out: Callable[[Tx], int] = providers.give_out) -> Registrations:
        return Registrations(store, self.rules, fullsets=self._fullsets, now=self._now, give_out=give_out)

    # --- a new provider --------------------------------------------------------------------------

    def begin(self, wanted: Wanted, address: str) -> Given:
        """Give out a pid in the least full sub-LCC that can take it; raises ``Full``, ``Later``."""
        tried: dict[str, LccError] = {}
        while True:
            sub = self._place(tried)
            try:
                return self._begin(sub.name, wanted, address)
            except (SubAway, Full) as error:
                tried[sub.name] = error

    def _place(self, tried: Mapping[str, LccError]) -> SubLcc:
        try:
            return self._subs.place(tried)
        except FrontError as error:
            for why in tried.values():
                raise why from None
            _log.warning("a registration has no place: %s", error)
            raise Later("no site can be registered now: try again later") from None

    def _begin(self, name: str, wanted: Wanted, address: str) -> Given:
        with self._subs.using(name) as store:
            self._of(store).check_room()  # else every refusal would leave a pid
        while True:
            pid = self._give_out(name)
            try:
                with self._subs.using(name) as store:
                    reserve = partial(providers.reserve, pid=pid)
                    return self._of(store, reserve).begin(wanted, address)
            except LccError as error:
                with suppress(StoreUnavailable):
                    self._directory.given.note(Found(nothing={pid: name}))
                if not isinstance(error, providers.PidUsed):
                    raise

    def _give_out(self, name: str) -> int:
        """Return a pid that no sub-LCC has or had, as far as these answer, and that the sub-LCC has now."""
        given = self._directory.given
        look_at = int(self._now()) + self.rules.expires + GRACE
        while True:
            last = given.last()
            pid = providers.first_free(last, self._used)
            try:
                if given.give_out(pid, name, after=last, look_at=look_at):
                    return pid
            except FrontError as error:
                raise SubAway(str(error)) from error

    def _used(self, pids: Sequence[int]) -> Container[int]:
        found = set(self._directory.assigned(pids))
        for name in self._subs.stores():
            with suppress(SubAway), self._subs.using(name) as store:
                found |= providers.used_pids(store, pids).keys()
        return found

    # --- a provider that is known ----------------------------------------------------------------

    def begin_root(self, pid: int, password: str, site: HttpUrl, address: str) -> Given:
        """Do what ``Registrations.begin_root`` does, in the provider's sub-LCC."""
        with self._at_home(pid) as registrations:
            return registrations.begin_root(pid, password, site, address)

    def begin_password(self, pid: int, address: str) -> Given:
        """Do what ``Registrations.begin_password`` does, in the provider's sub-LCC."""
        with self._at_home(pid) as registrations:
            return registrations.begin_password(pid, address)

    def find(self, pid: int, password: str, kind: Kind) -> Registration:
        """Do what ``Registrations.find`` does, in the provider's sub-LCC."""
        with self._at_home(pid) as registrations:
            return registrations.find(pid, password, kind)

    def roots_to_prove(self, registration: Registration) -> list[str]:
        """Do what ``Registrations.roots_to_prove`` does, in the provider's sub-LCC."""
        with self._at_home(registration.pid) as registrations:
            return registrations.roots_to_prove(registration)

    def complete(self, registration: Registration, roots: Sequence[str]) -> Done:
        """Do what ``Registrations.complete`` does, in the provider's sub-LCC."""
        with self._at_home(registration.pid) as registrations:
            return registrations.complete(registration, roots)

    @contextmanager
    def _at_home(self, pid: int) -> Iterator[Registrations]:
        """Give the registrations of a provider's sub-LCC.

        The first one refuses pids that nobody has: in its own words, at its own price.
        """
        moving = self._directory.moving(pid)
        if moving is not None and moving.step != MoveStep.REMOVE:
            raise Later(f"provider {pid} is being moved just now: try again later")
        sub = self._directory.sub_of(pid)
        with self._subs.using(sub.name if sub else self._subs.first()) as store:
            yield self._of(store)

    # --- what became of them ---------------------------------------------------------------------

    def tidy(self) -> None:
        """Look what became of pids whose registrations have ended, a portion in each transaction."""
        for _ in range(PORTIONS):
            if not self._tidy_some(int(self._now())):
                return

    def _tidy_some(self, now: int) -> bool:
        given = self._directory.given
        due = given.due(now, PORTION)
        by_name: dict[str, list[int]] = {}
        for pid, name in due.items():
            by_name.setdefault(name, []).append(pid)
        for name, pids in by_name.items():
            given.note(self._became(name, pids, now))
        return len(due) == PORTION

    def _became(self, name: str, pids: Sequence[int], now: int) -> Found:
        if not name:
            return Found(settled=pids)  # PMDB has forgotten them
        try:
            with self._subs.using(name) as store, store.snapshot() as tx:
                known = tx.known_pids(pids)
                ends = {pid: _end(tx, pid) for pid in pids if pid not in known}
        except LccError as error:
            _log.warning("sub-LCC %s does not tell what became of registrations: %s", name, error)
            return Found(waiting=dict.fromkeys(pids, now + GRACE))
        waiting = {pid: max(end, now) + GRACE for pid, end in ends.items() if end}
        return Found(known, waiting, {pid: name for pid in ends if pid not in waiting})


def _end(tx: Tx, pid: int) -> int:
    """Return when the registration of a pid ends; 0 = there is none."""
    return max((one.expires for one in rows_in(tx).registrations_of(pid, Kind.PROVIDER)), default=0)
