"""Mail to providers in a running crawl: once a minute, in a thread of its own (decision 145)."""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from lcc_scrapy.app.worker_parts import MakeWorkerPart, WorkerPort
from lcc_scrapy.apps.mail.letters import Terms
from lcc_scrapy.apps.mail.post import Post, Report, Sender
from lcc_scrapy.apps.mail.settings import DigestRules
from lcc_scrapy.apps.mail.store import SUBSCRIBERS
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.mail_addresses import sender
from lcc_scrapy.mail.sending import smtp_mailer
from lcc_scrapy.mail.unsubscribing import Unsubscribing

LOOK = 60.0
"""Seconds between two looks."""

LONGEST = 3600.0
"""Seconds until it is looked again at most, while the mail server is away: each wait doubles."""

_log = logging.getLogger(__name__)


def post_of(config: Config, store: Store, lcc_id: str, owner: str, *, urgent: bool = False) -> Post | None:
    """Return what writes to providers by these settings; None = mail is off."""
    mailer, rules = smtp_mailer(config.mail), config.mail
    if mailer is None:
        return None
    return Post(
        store,
        Sender(mailer, lcc_id, sender(rules.sender)[1].rpartition("@")[2], rules.timeout),
        Terms(config.of(DigestRules).hour, config.timezone, config.contact, urgent),
        owner=owner,
        link=partial(Unsubscribing(store, config.public_url).link, SUBSCRIBERS),
        now=time.time,
    )


class Mailing:
    """Lets a post run now and then. ``make_post`` gives one by the settings of now, None = mail is off."""

    def __init__(self, thread: StoreThread, clock: Clock, make_post: Callable[[], Post | None]) -> None:
        self._thread = thread
        self._clock = clock
        self._make_post = make_post
        self._post: Post | None = None
        self._wait = LOOK
        self._running: Deferred[Any] | None = None
        self._timer: Any = None
        self._stopped = False

    def start(self) -> None:
        """Look whether anybody has to be written to."""
        self._running = self._thread.run(self._run)
        self._running.addCallbacks(self._ran, self._failed)

    def stop(self) -> Deferred[Any]:
        """Begin no further mail; fires when the one under way has ended and is noted."""
        self._stopped = True
        if self._post is not None:
            self._post.stopped.set()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        return self._running or succeed(None)

    def apply(self, config: Config) -> None:
        """Go on: each post is made by the settings of its time."""

    def is_done(self) -> bool:
        """Tell that no crawl has to wait for mail: the next one sends what is left."""
        return True

    def _run(self) -> Report:
        """Write to whom it may concern (in the thread)."""
        self._post = self._make_post()
        if self._post is None or self._stopped:
            return Report()
        return self._post.run()

    def _ran(self, report: Report) -> None:
        self._wait = min(self._wait * 2, LONGEST) if report.away else LOOK
        self._later()

    def _failed(self, failure: Failure) -> None:
        _log.error("cannot send mail now, trying again: %s", failure.getErrorMessage())
        self._wait = min(self._wait * 2, LONGEST)
        self._later()

    def _later(self) -> None:
        if not self._stopped:
            self._timer = self._clock.callLater(self._wait, self.start)


def _mailing(worker: WorkerPort) -> Mailing:
    worker.config.of(DigestRules)  # a wrong hour ends the crawl now, not its first mail

    def made() -> Post | None:
        return post_of(worker.config, worker.store, worker.lcc_id, worker.owner)

    return Mailing(worker.own_thread("lcc-mail"), worker.reactor, made)


PART: MakeWorkerPart = _mailing
