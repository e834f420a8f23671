"""Keeps the rows of the logins at this UNS true, and gives its signs of life."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.db.records import Login, OpenLogin, Uns
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.absorption import COMPLETE, IDLE, OPEN

_log = logging.getLogger(__name__)

BEAT = 60.0
"""Seconds between two roll calls, at most."""

PAGE = 1000
"""Rows per transaction."""


class OpenLogins:
    """The logins at one UNS (tables ``logins``, ``unses``); sets of later ones wait for them everywhere.

    A row comes with its login and goes with the last step of its set (``Intake``). Those of logins that
    brought no set are forgotten here. What a kill left behind, or a commit of which nobody could tell
    whether it came through, goes at the next roll call: every row that this process knows nothing of.
    ``knows`` tells whether a login is in conversation here or its set in the spool; ``logged_in`` gives those
    in conversation, and whether a set has begun; ``forgotten`` is called when rows have gone.

    For other UNSes the stage of a login is noted when it lasts for ``poll`` seconds, which few do: that no
    set has begun, so that nobody waits for one, and that the set is complete, so that all wait for it.
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        clock: Clock,
        *,
        uns: str,
        note: str,
        beat: float = BEAT,
        poll: float = 2.0,
        knows: Callable[[Login], bool],
        logged_in: Callable[[], Mapping[Login, bool]] = dict,
        forgotten: Callable[[], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._thread = thread
        self._clock = clock
        self._uns = uns
        self._note = note
        self._interval = beat
        self._poll = poll
        self._knows = knows
        self._logged_in = logged_in
        self._forgotten = forgotten
        self._now = now
        self._gone: set[Login] = set()
        self._dropping = False
        self._timer: Any = None
        self._look: Any = None
        self._without_set: set[Login] = set()
        self._idle: set[Login] = set()
        self._accepted: list[Login] = []
        self._complete: list[Login] = []

    def start(self) -> None:
        """Call the roll and look at stages, now and then every ``beat`` and ``poll`` seconds."""
        self._look = self._clock.callLater(self._poll, self._look_at_stages)
        self._call_the_roll()

    def _call_the_roll(self) -> None:
        self._timer = self._clock.callLater(self._interval, self._call_the_roll)
        calling = self._thread.run(self._sign)
        calling.addCallback(lambda _: self._call((0, 0)))
        calling.addErrback(self._not_now)

    def stop(self) -> None:
        """Call no more."""
        for timer in (self._timer, self._look):
            if timer is not None and timer.active():
                timer.cancel()

    def complete(self, pid: int, seq: int) -> None:
        """Take note that the set of a login was accepted."""
        self._accepted.append((pid, seq))

    def forget(self, pid: int, seq: int) -> None:
        """Forget a login that brings no set, soon."""
        self._gone.add((pid, seq))
        self._drop()

    # --- the roll call ---------------------------------------------------------------------------

    def _sign(self) -> None:
        with self._store.begin() as tx:
            tx.put_uns(Uns(self._uns, self._note, int(self._now())))

    def _call(self, after: Login) -> Deferred[None]:
        return self._thread.run(self._page, after).addCallback(self._called)

    def _page(self, after: Login) -> list[OpenLogin]:
        with self._store.read() as tx:
            return tx.logins_of(self._uns, after, PAGE)

    def _called(self, page: list[OpenLogin]) -> Deferred[None] | None:
        """Compare. A login whose row was read here has come back from the store's thread before."""
        rows = [(login.pid, login.connseq) for login in page]
        self._gone.update(row for row in rows if not self._knows(row))
        if rows:
            return self._call(rows[-1])
        self._drop()
        return self._forget_overtaking()

    def _forget_overtaking(self) -> Deferred[None]:
        """Forget what sets named that overtook others, when these are in: a page at a time."""
        return self._thread.run(self._forget_page).addCallback(
            lambda count: self._forget_overtaking() if count == PAGE else None
        )

    def _forget_page(self) -> int:
        with self._store.begin() as tx:
            return tx.forget_overtaking(PAGE)

    # --- stages ----------------------------------------------------------------------------------

    def _look_at_stages(self) -> None:
        self._look = self._clock.callLater(self._poll, self._look_at_stages)
        stages = self._changed_stages()
        if stages:
            self._thread.run(self._mark, stages).addErrback(self._not_marked, stages)

    def _changed_stages(self) -> dict[Login, str]:
        """Return new stages of logins: those seen at the last look already, and those that delay no set."""
        logged_in = self._logged_in()
        without_set = {login for login, sending in logged_in.items() if not sending}
        idle = without_set & self._without_set
        sending = {login for login in self._idle if logged_in.get(login)}
        lasting = [login for login in self._complete if self._knows(login)]
        stages = {
            **dict.fromkeys(idle - self._idle, IDLE),
            **dict.fromkeys(sending, OPEN),
            **dict.fromkeys(lasting, COMPLETE),
        }
        self._without_set, self._idle = without_set, idle
        self._complete, self._accepted = self._accepted, []
        return stages

    def _mark(self, stages: Mapping[Login, str]) -> None:
        rows = list(stages.items())
        for start in range(0, len(rows), PAGE):
            with self._store.begin() as tx:
                tx.mark_logins(dict(rows[start : start + PAGE]))

    def _not_marked(self, failure: Failure, stages: Mapping[Login, str]) -> None:
        """Mark the same again at the next look."""
        self._idle -= {login for login, stage in stages.items() if stage == IDLE}
        self._idle |= {login for login, stage in stages.items() if stage == OPEN}
        self._complete += [login for login, stage in stages.items() if stage == COMPLETE]
        self._not_now(failure)

    # --- forgetting ------------------------------------------------------------------------------

    def _drop(self) -> None:
        if self._dropping or not self._gone:
            return
        self._dropping = True
        going = list(self._gone)[:PAGE]
        dropping = self._thread.run(self._drop_rows, going)
        dropping.addCallbacks(self._dropped, self._not_dropped, callbackArgs=(going,))

    def _drop_rows(self, going: list[Login]) -> None:
        with self._store.begin() as tx:
            tx.drop_logins(going)

    def _dropped(self, _: None, going: list[Login]) -> None:
        self._dropping = False
        self._gone.difference_update(going)
        self._forgotten()
        self._drop()

    def _not_dropped(self, failure: Failure) -> None:
        self._dropping = False
        self._not_now(failure)

    def _not_now(self, failure: Failure) -> None:
        _log.warning("cannot look up earlier logins now, trying again: %s", failure.getErrorMessage())
