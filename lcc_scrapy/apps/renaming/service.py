"""A root of a provider gets another URL: its documents, and all that is known of them, are called otherwise.

Check: what cannot be is refused before anything has changed. Begin: the provider is at rest from then on
(``State.MOVING``), and has both roots. Rename: portions of rows, each one transaction. Finish: the old root
goes, and the provider is as it was before. Nothing is fetched. After a kill, the same call goes on.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from hashlib import sha256

from lcc_scrapy.apps.renaming.portions import RenamedRows
from lcc_scrapy.apps.renaming.rules import NAMED, RenameRefused, Renaming, some_of
from lcc_scrapy.apps.renaming.store import rows_in
from lcc_scrapy.db.records import (
    LAST_NUMBER,
    OUTCOME_FAILED,
    OUTCOME_REFUSED,
    OUTCOME_RETRYING,
    OUTCOME_STORED,
    OUTCOME_WITHDRAWN,
)
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import OUTSIDE_ROOTS, CachedUrl
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.roots import HttpUrl, Root, inside
from lcc_scrapy.kit.renaming import RenamingHook
from lcc_scrapy.providers import portions
from lcc_scrapy.providers.at_rest import LOOK, sets_under_way, why_busy
from lcc_scrapy.providers.narrowing import Narrowing
from lcc_scrapy.providers.registration import change_locked, find, lock, renaming_fact

_SHOWN = 60
"""Characters of a root in the fact that a renaming is under way: it has to fit its column."""

_STATES = (OUTCOME_FAILED, OUTCOME_RETRYING, OUTCOME_REFUSED, OUTCOME_STORED, OUTCOME_WITHDRAWN)
Counts = Counter[str]
"""Rows of a portion by kind; ``looked_at`` are documents, renamed or not."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The fact that a renaming is under way (table ``lccinfo``), and the provider's state before.

    ``started``: rows may have other names already. ``had_new``: the new root was one of its roots before.
    """

    which: str
    state: str
    said: str
    started: bool = True
    had_new: bool = True

    @classmethod
    def read(cls, tx: Tx, pid: int) -> "UnderWay | None":
        """Return it, None = none is."""
        text = tx.info(renaming_fact(pid))
        return cls(*json.loads(text)) if text else None

    @classmethod
    def of(cls, renaming: Renaming, state: str, *, had_new: bool = False) -> "UnderWay":
        """Return it of a renaming that is to begin."""
        old, new = str(renaming.old), str(renaming.new)
        which = sha256(f"{old}\0{new}".encode()).hexdigest()[:32]
        return cls(which, state, f"{old[:_SHOWN]} to {new[:_SHOWN]}", started=False, had_new=had_new)

    def write(self, tx: Tx, pid: int) -> None:
        """Keep it."""
        tx.set_info(renaming_fact(pid), json.dumps(astuple(self)))


@dataclass(slots=True)
class _Refused:
    """URLs that cannot be renamed, by why."""

    urls: dict[str, list[str]] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counter)

    def add(self, why: str, url: str) -> None:
        self.counts[why] += 1
        self.urls.setdefault(why, [])
        if len(self.urls[why]) < NAMED:
            self.urls[why].append(url)

    def refuse(self) -> None:
        """Raise ``RenameRefused`` if there are any."""
        if not self.counts:
            return
        found = [
            f"{count} documents {why}: {some_of(self.urls[why], count)}" for why, count in self.counts.items()
        ]
        raise RenameRefused(f"nothing is renamed: {'; '.join(found)}")


class RootRenaming:
    """One root of one provider gets another URL; see the module."""

    def __init__(
        self,
        store: Store,
        pid: int,
        renaming: Renaming,
        now: int,
        policy: QueuePolicy,
        *,
        hooks: Sequence[RenamingHook],
    ) -> None:
        self._store = store
        self._pid = pid
        self._renaming = renaming
        self._rows = RenamedRows(store, pid, renaming, now, policy, hooks)

    # --- check -----------------------------------------------------------------------------------

    def check(self) -> Iterator[Counts]:
        """Look at all that is to be renamed and change nothing; yields what would be, portion by portion.

        Raises ``RenameRefused`` at its end, when all that is in the way was counted.
        """
        with self._store.read() as tx:
            under_way = self._check_provider(tx, find(tx, self._pid))
            roots = [Root.parse(root) for root in tx.roots(self._pid)]
        after = (*(root for root in roots if root != self._renaming.old), self._renaming.new)
        refused = _Refused()
        for rows in portions.documents(self._store, self._pid):
            renamed = self._check_documents(rows, tuple(roots), after, refused)
            yield Counter(looked_at=len(rows), documents=renamed)
        if not under_way:
            refused.refuse()
        for some in portions.waiting(self._store, self._pid):
            yield Counter(waiting=sum(self._renaming.waiting(row) != row for row in some))

    def _check_provider(self, tx: Tx, provider: Provider) -> bool:
        """Refuse a provider of which the root cannot be renamed now; tell whether that is under way."""
        old, new, pid = self._renaming.old, self._renaming.new, self._pid
        known = UnderWay.read(tx, pid)
        if known is not None:
            if known.which != UnderWay.of(self._renaming, "").which:
                raise RenameRefused(f"provider {pid} is being renamed from {known.said}: run that to its end")
            return True
        if provider.state in {State.MOVING, State.IN_TRANSIT}:
            raise RenameRefused(f"provider {pid} moves: run `lcc front move {pid}` to its end")
        if provider.turngroup:
            raise RenameRefused(f"provider {pid} shares a turn: `lcc provider set {pid} --group ''` first")
        roots = [Root.parse(root) for root in tx.roots(pid)]
        if old not in roots:
            done = ": it was renamed already" if new in roots else ""
            raise RenameRefused(f"{old} is none of the roots of provider {pid}{done}")
        within = [str(root) for root in roots if root not in {old, new} and old.covers(root.url)]
        if within:
            raise RenameRefused(f"{within[0]}, another root, lies below {old}: rename or remove that first")
        under_way = sets_under_way(tx, pid)
        if under_way:
            raise RenameRefused(f"provider {pid}: {under_way}: wait until they are absorbed")
        return False

    def _check_documents(
        self, rows: Sequence[CachedUrl], before: tuple[Root, ...], after: tuple[Root, ...], refused: _Refused
    ) -> int:
        """Note which documents are in the way; return how many are to be renamed."""
        renamed = [(row, named) for row in rows if (named := self._renaming.document(row)) != row]
        fresh = [(row, named) for row, named in renamed if named.urlkey != row.urlkey]
        others = {
            row.urlkey: [
                urlkey(row.pid, url, row.mimetype) for url in (named.curl, *self._renaming.alike(row.curl))
            ]
            for row, named in fresh
        }
        with self._store.read() as tx:
            taken = tx.present([key for keys in others.values() for key in keys])
        for row, named in fresh:
            if not taken.isdisjoint(others[row.urlkey]):
                refused.add("are there under the new name already", named.curl)
        for row in rows:
            urls = {row.curl, row.burl or "", row.furl, row.final_url}
            if any(map(self._renaming.is_too_long, urls)):
                refused.add("would have too long a URL", row.furl)
            elif row.held != OUTSIDE_ROOTS and self._falls_out(row, before, after):
                refused.add("would lie outside the roots", row.furl)
        return len(renamed)

    def _falls_out(self, row: CachedUrl, before: tuple[Root, ...], after: tuple[Root, ...]) -> bool:
        named = self._renaming.document(row)
        pairs = ((row.furl, named.furl), (row.final_url or row.furl, named.final_url or named.furl))
        return any(_is_inside(was, before) and not _is_inside(url, after) for was, url in pairs)

    # --- rename ----------------------------------------------------------------------------------

    def run(self, say: Callable[[str], object]) -> Iterator[Counts]:
        """Begin, or go on, and come to the end; yields what was renamed, portion by portion.

        ``say`` is told what is waited for. Call ``check`` before.
        """
        repeated(self._begin)
        said = ""
        while why := repeated(self._why_busy):
            if why != said:
                say(f"waiting: {why}")
                said = why
            time.sleep(LOOK)
        for some in portions.waiting(self._store, self._pid):
            keys = [row.urlkey for row in some]
            yield Counter(waiting=repeated(self._rows.waiting, keys))
        for rows in portions.documents(self._store, self._pid):
            count = repeated(self._rows.documents, [row.urlkey for row in rows])
            yield Counter(looked_at=len(rows), documents=count)
        yield from self._run_found()
        yield repeated(self._rows.of_apps)
        repeated(self._finish)
        for step in Narrowing(self._store, self._pid, self._rows.now, self._rows.policy).run():
            yield Counter(dropped=step.dropped, removed=len(step.removed), held=step.held)

    def give_up(self) -> Iterator[Counts]:
        """Let the root keep its URL, if no row was renamed yet; yields what a set that came meanwhile loses.

        Raises ``RenameRefused`` where rows may have other names already, or nothing is under way.
        """
        repeated(self._stay)
        for step in Narrowing(self._store, self._pid, self._rows.now, self._rows.policy).run():
            yield Counter(dropped=step.dropped, removed=len(step.removed), held=step.held)

    def _stay(self) -> None:
        pid, new = self._pid, str(self._renaming.new)
        with self._store.begin() as tx:
            lock(tx, pid)
            known = UnderWay.read(tx, pid)
            if known is None:
                raise RenameRefused(f"no root of provider {pid} is being renamed")
            if known.which != UnderWay.of(self._renaming, "").which:
                raise RenameRefused(f"provider {pid} is being renamed from {known.said}: give that up")
            if known.started:
                raise RenameRefused("documents have other names already: run it again, without --give-up")
            had_new = known.had_new
            change_locked(
                tx, pid, {"state": known.state}, lambda roots: [one for one in roots if one != new or had_new]
            )
            tx.set_info(renaming_fact(pid), "")

    def _run_found(self) -> Iterator[Counts]:
        """Rename what belongs to no document that is there."""
        store, pid, limit = self._store, self._pid, portions.CHUNK
        for found in portions.by_key(
            store, lambda tx, after: tx.spidered_of(pid, after, limit), lambda row: row.furlkey
        ):
            yield Counter(found=repeated(self._rows.spidered, [row.furlkey for row in found]))
        for dropped in portions.by_key(
            store, lambda tx, after: rows_in(tx).irrelevant_rows(pid, after, limit), lambda row: row.urlkey
        ):
            yield Counter(irrelevant=repeated(self._rows.irrelevant, dropped))
        for state in _STATES:
            yield from self._run_outcomes(state)

    def _run_outcomes(self, state: str) -> Iterator[Counts]:
        pid, limit = self._pid, portions.CHUNK
        for outcomes in portions.by_key(
            self._store,
            lambda tx, after: tx.outcomes_in(pid, state, after, LAST_NUMBER, limit),
            lambda row: (row.at, row.urlkey),
            (0, b""),
        ):
            yield Counter(outcomes=repeated(self._rows.outcomes, outcomes))

    def _begin(self) -> None:
        with self._store.begin() as tx:
            provider = lock(tx, self._pid)
            if self._check_provider(tx, provider):
                return
            had_new = str(self._renaming.new) in tx.roots(self._pid)
            UnderWay.of(self._renaming, provider.state, had_new=had_new).write(tx, self._pid)
            change_locked(tx, self._pid, {"state": State.MOVING}, self._with_both)

    def _with_both(self, roots: list[str]) -> list[str]:
        return list(dict.fromkeys([*roots, str(self._renaming.new)]))

    def _with_new(self, roots: list[str]) -> list[str]:
        return [root for root in self._with_both(roots) if root != str(self._renaming.old)]

    def _why_busy(self) -> str:
        """Say what is under way; when nothing is, a worker that is taken for dead cannot settle late."""
        with self._store.begin() as tx:
            provider = lock(tx, self._pid)
            known = UnderWay.read(tx, self._pid)
            if known is None:
                raise RenameRefused(f"the renaming of a root of provider {self._pid} was given up")
            why = why_busy(tx, provider, time.time())
            if not why:
                tx.change_turn(provider.turnkey, {"owner": ""})
                replace(known, started=True).write(tx, self._pid)
            return why

    def _finish(self) -> None:
        with self._store.begin() as tx:
            lock(tx, self._pid)
            known = UnderWay.read(tx, self._pid)
            if known is None:
                return  # the answer to an earlier commit was lost
            change_locked(tx, self._pid, {"state": known.state}, self._with_new)
            tx.set_info(renaming_fact(self._pid), "")


def _is_inside(url: str, roots: tuple[Root, ...]) -> bool:
    try:
        return inside(HttpUrl.parse(url), roots)
    except UrlRefused:
        return False
