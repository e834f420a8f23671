"""A provider moves from one sub-LCC to another, in steps that may be repeated after a kill. It blocks.

Hold: the front answers 103, and the source lets nobody log in or fetch. When what is under way has ended, the
provider is in transit: whoever writes finds no such provider in the source any more.
Copy: rows and files, in portions; each is one transaction of the target that also notes how far it is.
Flip: the target goes on as the source did, and the front passes the provider on to it.
Remove: the source forgets the provider. That leaves no tombstones: the target tells its documents now.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from sqlalchemy import Table

from lcc_scrapy.db.records import FEED, PROVIDERS_CHANGED
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.sql.move_verbs import BY_PROVIDER, SET_NUMBERS, TOLD, keys_of
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.front import FrontError, MoveStep, Moving
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.feed.content import Content
from lcc_scrapy.feed.store_feed import LCC_ID
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.moved_away import Removal
from lcc_scrapy.front.moved_documents import DOCUMENT, Batch, Files, NotTheSame, Numbers
from lcc_scrapy.front.moved_rows import LINKED, PORTION, Progress, changed, key, numbered
from lcc_scrapy.intake.absorbing import PSETID
from lcc_scrapy.providers.at_rest import LOOK, why_busy
from lcc_scrapy.providers.recounting import miscount, put_right
from lcc_scrapy.providers.registration import (
    Moves,
    NoSuchProvider,
    ProviderHook,
    all_providers,
    change_locked,
    find,
    gone,
    renaming_fact,
    tell,
)

_WORDS, _RESUMED = "linkwords", "resumed"
_MOVES = frozenset({State.MOVING, State.IN_TRANSIT})

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves providers from one sub-LCC to another; ``contents`` are the source's files.

    ``tables`` are those of apps whose rows move, ``hooks`` remove what apps keep in the source.
    """

    directory: Directory
    source: Store
    target: Store
    contents: Content
    files: Files
    grace: int
    tables: Mapping[str, Table]
    hooks: Sequence[ProviderHook]
    say: Say = print
    now: Callable[[], float] = time.time

    def begin(self, pid: int, source: str, target: str) -> Moving:
        """Begin to move a provider between sub-LCCs with these names; raises ``FrontError``."""
        with self.source.read() as tx:
            provider = find(tx, pid)
            if tx.info(renaming_fact(pid)):
                raise Moves(pid, renaming=True)
        with self.target.read() as tx:
            _insist_on_absence(tx, pid, target)
        if provider.turngroup:
            raise FrontError(f"provider {pid} shares a turn: `lcc provider set {pid} --group ''` there first")
        moving = Moving(pid, source, target, provider.state)
        self.directory.hold(moving)
        return moving

    def sizes(self) -> tuple[dict[int, int], int]:
        """Count the URLs of the source's providers that may move, by pid, and those of the target."""
        found = {
            one.pid: one.fileused + one.nurlproc
            for one in all_providers(self.source)
            if not one.turngroup and one.state not in _MOVES
        }
        with self.target.read() as tx:
            totals = tx.totals()
        return found, totals["queued"] + totals["cached"]

    def run(self, moving: Moving) -> None:
        """Go on with a move from where it is, to its end."""
        if moving.step == MoveStep.HOLD:
            moving = self._hold(moving)
        if moving.step == MoveStep.COPY:
            self._copy(moving)
            moving = self._flip(moving)
        self._remove(moving)

    # --- hold ------------------------------------------------------------------------------------

    def _hold(self, moving: Moving) -> Moving:
        repeated(_set_state, self.source, moving.pid, State.MOVING, unless=_MOVES)
        said = ""
        while why := repeated(self._set_out, moving.pid):
            if why != said:
                self.say(f"waiting: {why}")
                said = why
            time.sleep(LOOK)
        with self.source.read() as tx:
            source, seq = tx.info(LCC_ID) or "", tx.peek(FEED)
        with self.target.read() as tx:
            target = tx.info(LCC_ID) or ""
        try:
            return repeated(self.directory.copying, moving, source, target, seq)
        except FrontError:
            repeated(_set_state, self.source, moving.pid, State(moving.state))
            raise

    def _set_out(self, pid: int) -> str:
        """Put a provider in transit, unless something of it is under way: what that is."""
        with self.source.begin() as tx:
            provider = _locked(tx, pid)
            if provider.state == State.IN_TRANSIT:
                return ""  # the answer to an earlier commit was lost
            if provider.state != State.MOVING:
                raise FrontError(f"the move of provider {pid} was given up")
            why = why_busy(tx, provider, self.now())
            if not why:
                tx.change_turn(provider.turnkey, {"owner": ""})  # a dead worker could settle late
                change_locked(tx, pid, {"state": State.IN_TRANSIT})
            return why

    # --- copy ------------------------------------------------------------------------------------

    def _copy(self, moving: Moving) -> None:
        progress = repeated(self._begin, moving)
        if progress.table == _RESUMED:
            return
        numbers = Numbers(progress.number, progress.psets, {})
        tables = [*BY_PROVIDER, *self.tables, *TOLD]
        for table in tables[tables.index(progress.table) if progress.table else 0 :]:
            if table != _WORDS and not numbers.words:
                numbers = replace(numbers, words=self._words(moving.pid))
            if progress.table != table:
                progress = repeated(self._turn_to, moving.pid, progress, table)
            progress = self._copy_table(moving.pid, progress, numbers)
        self._compare(moving.pid)

    def _begin(self, moving: Moving) -> Progress:
        """Make the provider in the target, in transit; nothing happens if this move has made it."""
        pid = moving.pid
        with self.source.read() as tx:
            (row,) = tx.records_among("pidb", "pid", [pid])[pid]
            spans = {counter: tx.span(its, pid) for counter, its in self._numbers().items()}
        with self.target.begin() as tx:
            known = Progress.read(tx, pid)
            if known is not None:
                return known
            _insist_on_absence(tx, pid, moving.target)
            same = {"state": State.IN_TRANSIT, "revision": tx.take(PROVIDERS_CHANGED, 1)}
            tx.put_records("pidb", [row | same])
            tx.set_info(gone(pid), "")
            offsets = {counter: _offset(tx, counter, span) for counter, span in spans.items()}
            made = Progress(moving.number, offsets)
            made.write(tx, pid)
            return made

    def _numbers(self) -> dict[str, Sequence[tuple[Table | str, str]]]:
        """Return the columns with numbers that each LCC gives out itself, by their counters."""
        return {PSETID: SET_NUMBERS, **numbered(self.tables.values())}

    def _words(self, pid: int) -> dict[int, int]:
        """Return the target's numbers of lists of words, by the source's: they were copied in their order."""
        with self.source.read() as tx:
            there = tx.numbers(_WORDS, pid)
        with self.target.read() as tx:
            return dict(zip(there, tx.numbers(_WORDS, pid), strict=True))

    def _turn_to(self, pid: int, progress: Progress, table: str) -> Progress:
        """Note that a table is copied to its end, and which one is the next."""
        after = replace(progress, table=table, place=None)
        with self.target.begin() as tx:
            _locked(tx, pid)
            progress.note(tx, pid, after)
        return after

    def _copy_table(self, pid: int, progress: Progress, numbers: Numbers) -> Progress:
        copy_some = self._copy_told if progress.table in TOLD else self._copy_some
        portions = 0
        while (more := repeated(copy_some, pid, progress, numbers)) is not None:
            progress, portions = more, portions + 1
            if not portions % 10:
                self.say(f"{progress.table}: {portions} portions copied")
        self.say(f"{progress.table}: copied")
        return progress

    def _copy_some(self, pid: int, progress: Progress, numbers: Numbers) -> Progress | None:
        """Copy the next rows of a table, None = there were no more."""
        table: Table | str = self.tables.get(progress.table, progress.table)
        with self.source.read() as tx:
            rows = tx.records(table, pid, key(progress.place), PORTION)
            keys = [row["urlkey"] for row in rows] if progress.table == LINKED else []
            links = [one for some in tx.records_among("links", "urlkey", keys).values() for one in some]
        if not rows:
            return None
        after = progress.at(rows[-1], keys_of(table))
        with self.target.begin() as tx:
            _locked(tx, pid)
            if progress.note(tx, pid, after):
                tx.put_records(table, [changed(table, row, progress) for row in rows])
                tx.put_records("links", numbers.linked(links))
        return after

    def _copy_told(self, pid: int, progress: Progress, numbers: Numbers) -> Progress | None:
        """Copy the next documents or tombstones with all that belongs to them, None = there were no more."""
        with ExitStack() as closing:
            with self.source.read() as tx:
                batch = Batch.read(tx, progress.table, pid, key(progress.place))
            if not batch.rows:
                return None
            after = progress.at(batch.rows[-1], keys_of(batch.table))
            bodies = batch.bodies(self.contents, self.files, closing)
            try:
                with self.target.begin() as tx:
                    self.files.lock(tx, bodies)
                    _locked(tx, pid)
                    if progress.note(tx, pid, after):
                        self.files.content.keep(bodies)
                        batch.write(tx, numbers)
            except BaseException as error:
                self.files.ids.doubt_ids([fileid for fileid, _ in bodies], error)
                raise
        return after

    def _compare(self, pid: int) -> None:
        """Raise ``NotTheSame`` where one has more rows than the other, of those that nobody clears away."""
        of_apps = [table for table in self.tables.values() if numbered([table])]
        tables: list[Table | str] = ["proots", "qdb", "linkwords", "spidered", *of_apps, DOCUMENT]
        for table in tables:
            with self.source.read() as tx:
                there = tx.count_records(table, pid)
            with self.target.read() as tx:
                here = tx.count_records(table, pid)
            if there != here:
                raise NotTheSame(f"{table}: the source has {there} rows of provider {pid}, the target {here}")

    # --- flip and remove -------------------------------------------------------------------------

    def _flip(self, moving: Moving) -> Moving:
        repeated(self._resume, moving)
        flipped = repeated(self.directory.flip, moving)
        self.say(f"sub-LCC {moving.target} has provider {moving.pid} now")
        return flipped

    def _resume(self, moving: Moving) -> None:
        pid = moving.pid
        with self.target.snapshot() as tx:
            found = miscount(tx, find(tx, pid))
        with self.target.begin() as tx:
            _locked(tx, pid)
            progress = Progress.read(tx, pid)
            if progress is None or progress.table == _RESUMED:
                return  # an earlier try did it
            replace(progress, table=_RESUMED).write(tx, pid)
            put_right(tx, found)
            tx.update_provider(pid, {"state": moving.state})
            tell(tx, pid)

    def _remove(self, moving: Moving) -> None:
        Removal(self.source, moving.pid, int(self.now()), self.grace, self.hooks).run(self.say)
        repeated(self.directory.end_move, moving, repeated(self._forget_progress, moving.pid))

    def _forget_progress(self, pid: int) -> int:
        """Forget how far the target was; return its newest change."""
        with self.target.begin() as tx:
            Progress.forget(tx, pid)
            return tx.peek(FEED)


def give_up(directory: Directory, source: Store, moving: Moving) -> None:
    """Let a provider stay where it is; raises ``FrontError`` when it is in transit already."""
    if moving.step != MoveStep.HOLD:
        raise FrontError(f"rows of provider {moving.pid} were copied: run `lcc front move` again to its end")
    with suppress(NoSuchProvider):
        repeated(_stay, source, moving)
    directory.give_up_move(moving.pid)


def _stay(source: Store, moving: Moving) -> None:
    with source.begin() as tx:
        if _locked(tx, moving.pid).state == State.IN_TRANSIT:
            raise FrontError(f"provider {moving.pid} is in transit: run `lcc front move` again to its end")
        change_locked(tx, moving.pid, {"state": moving.state})


def _set_state(source: Store, pid: int, state: State, unless: Collection[str] = ()) -> None:
    with source.begin() as tx:
        if _locked(tx, pid).state not in unless:
            change_locked(tx, pid, {"state": state})


def _locked(tx: Tx, pid: int) -> Provider:
    provider = tx.lock_moving(pid)
    if provider is None:
        raise NoSuchProvider(pid)
    return provider


def _insist_on_absence(tx: Tx, pid: int, target: str) -> None:
    if tx.provider(pid) is not None:
        raise FrontError(f"sub-LCC {target} has a provider {pid} of its own")


def _offset(tx: Tx, counter: str, span: tuple[int, int]) -> int:
    """Take as many numbers as there are in a span; return what leads from the old ones to these."""
    lowest, highest = span
    return tx.take(counter, highest - lowest + 1) - lowest
