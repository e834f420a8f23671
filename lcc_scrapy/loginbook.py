"""Keeps the rows of the logins at this UNS true, and gives its signs of life."""

import logging
import time
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.storage.records import OpenLogin, Uns
from lcc_scrapy.storage.thread import Clock, StoreThread
from lcc_scrapy.storage.tx import Store

_log = logging.getLogger(__name__)

BEAT = 60.0
"""Seconds between two roll calls, at most."""

PAGE = 1000
"""Rows per transaction."""

Login = tuple[int, int]
"""A provider and the number of its login."""


class LoginBook:
    """The logins at one UNS (tables ``logins``, ``unses``); sets of later ones wait for them everywhere.

    A row comes with its login and goes with the last step of its set (``Intake``). Those of logins that
    brought no set are forgotten here. What a kill left behind, or a commit of which nobody could tell
    whether it came through, goes at the next roll call: every row that this process knows nothing of.
    ``knows`` tells whether a login is in conversation here or its set in the spool; ``forgotten`` is called
    when rows have gone.
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
        knows: Callable[[Login], bool],
        forgotten: Callable[[], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._thread = thread
        self._clock = clock
        self._uns = uns
        self._note = note
        self._interval = beat
        self._knows = knows
        self._forgotten = forgotten
        self._now = now
        self._gone: set[Login] = set()
        self._dropping = False
        self._timer: Any = None

    def start(self) -> None:
        """Call the roll, now and then every ``beat`` seconds."""
        self._timer = self._clock.callLater(self._interval, self.start)
        calling = self._thread.run(self._sign)
        calling.addCallback(lambda _: self._call((0, 0)))
        calling.addErrback(self._not_now)

    def stop(self) -> None:
        """Call no more."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

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
        return None

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
            for pid, seq in going:
                tx.drop_login(pid, seq)

    def _dropped(self, _: None, going: list[Login]) -> None:
        self._dropping = False
        self._gone.difference_update(going)
        self._forgotten()
        self._drop()

    def _not_dropped(self, failure: Failure) -> None:
        self._dropping = False
        self._not_now(failure)

    def _not_now(self, failure: Failure) -> None:
        _log.warning("logins are put in order later: %s", failure.getErrorMessage())
