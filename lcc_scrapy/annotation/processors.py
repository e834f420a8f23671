"""The processors of one ``lcc annotate``: each a child process, and a thread that hands it pages.

A child that dies, or is ended because a page takes too long, is replaced. Its page is tried again; after
``TRIES`` it is a failure, and others go on.
"""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Thread, Timer
from typing import IO, Any, Protocol

from lcc_scrapy.annotation import messages
from lcc_scrapy.annotation.jobs import Job, Result
from lcc_scrapy.annotation.profile_feed import ProfileChanges
from lcc_scrapy.content.decoding import BadCoding
from lcc_scrapy.domain.annotation_limits import AnnotationRules
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone, ContentLost
from lcc_scrapy.feed.plain_text import MOST
from lcc_scrapy.machine.framed_pipes import Closed, buffered, enlarge, read, write, written

PROGRAM = f"{__package__}.processor"

TRIES = 2
"""How often a document is tried that takes too long."""

DEATHS = 3
"""How often one is tried whose process died, as that may have had another reason."""

STARTS = 3
"""Processes in a row that may end before they are ready; then something is wrong with all of them."""

START_PATIENCE = 300.0
"""Seconds for a process to start, and to index the URDs that are sent to it."""

AWAY = 2.0
"""Seconds until the database is asked again that did not answer."""

_log = logging.getLogger(__name__)


class Contents(Protocol):
    """Where contents come from: ``feed.library.Library``."""

    def open(self, row: CachedUrl | Version) -> IO[bytes]:
        """Return a decoded content."""


Changes = Callable[[int], ProfileChanges]
"""Gives what changed about URDs behind a revision (``profile_feed.profile_changes``)."""


class Died(Exception):
    """A child has ended, by itself or (``late``) because it took too long."""

    def __init__(self, why: str, *, late: bool) -> None:
        super().__init__(why)
        self.late = late


class Processor:
    """One child process. Its URDs are renewed before each page."""

    def __init__(self, rules: AnnotationRules) -> None:
        self._rules = rules
        self._revision = 0
        self._process = subprocess.Popen(  # noqa: S603 - this program
            [sys.executable, "-P", "-m", PROGRAM, *map(str, self._arguments())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={name: value for name, value in os.environ.items() if not name.startswith("LCC_")},
            start_new_session=True,  # Ctrl-C is for the parent
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin.fileno()
        self._answers = buffered(self._process.stdout)
        for descriptor in (self._requests, self._answers.fileno()):
            enlarge(descriptor)

    def _arguments(self) -> tuple[int, int, int]:
        return os.getpid(), self._rules.memory, int(self._rules.link_texts)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def renew(self, changes: Changes) -> None:
        """Let it have all URDs as they are now; raises ``Died``."""
        change = changes(self._revision)
        if self._revision and not change:
            return
        with self._bounded(START_PATIENCE):
            afresh = not self._revision
            while True:
                afresh |= change.afresh
                self._tell([messages.URDS, messages.said_urds(change.changed), list(change.removed)])
                if not change.more:
                    break
                change = changes(change.revision)
            self._ask([messages.RENEW, afresh])
        self._revision = change.revision

    def annotate(self, job: Job, bodies: list[bytes], now: int) -> Result:
        """Compare a page; raises ``Died``."""
        row = job.row
        page = [row.furl, row.served_type or row.mimetype, row.served_charset, list(job.owners), now]
        with self._bounded(self._rules.page_timeout):
            said = self._ask([messages.PAGE, *page, job.only, job.is_old], bodies)
        if said[0] == messages.FAILED:
            return Result(job, failed=said[1])
        return Result(job, messages.findings_of(said[1]), cpu=said[2])

    def kill(self) -> None:
        """End it at once, from any thread: who waits for an answer hears that it died."""
        self._process.kill()

    def end(self) -> None:
        """End it, and give back its pipes; it has nothing to lose."""
        self._process.kill()
        for file in (self._process.stdin, self._answers):
            if file is not None:
                file.close()
        self._process.wait()

    def _tell(self, said: list[Any], parts: list[bytes] | None = None) -> None:
        write(self._requests, written(said, parts or []))

    def _ask(self, said: list[Any], parts: list[bytes] | None = None) -> list[Any]:
        self._tell(said, parts)
        return read(self._answers)[0]

    @contextmanager
    def _bounded(self, seconds: float) -> Iterator[None]:
        late: list[bool] = []

        def end() -> None:
            late.append(True)
            self._process.kill()

        timer = Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except (Closed, OSError):
            self.end()
            why = (
                f"took longer than {seconds:g} s"
                if late
                else f"ended its process ({self._process.returncode})"
            )
            raise Died(why, late=bool(late)) from None
        finally:
            timer.cancel()


class Processors:
    """So many processors; jobs go in and results come out in any order."""

    def __init__(
        self, count: int, rules: AnnotationRules, contents: Contents, changes: Changes, now: Callable[[], int]
    ) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._results: SimpleQueue[Result | BaseException] = SimpleQueue()
        self._workers = [_Worker(self, rules, contents, changes, now) for _ in range(count)]
        self._threads = [Thread(target=one.run, daemon=True, name="lcc-processor") for one in self._workers]
        self.count = count
        for thread in self._threads:
            thread.start()

    def give(self, job: Job) -> None:
        """Let one of them do a job."""
        self._jobs.put(job)

    def results(self, seconds: float) -> list[Result]:
        """Return what is ready, after so many seconds at the latest; raises what ended a thread."""
        found: list[Result] = []
        with suppress(Empty):
            found.append(
                self._checked(self._results.get(timeout=seconds) if seconds else self._results.get_nowait())
            )
            while True:
                found.append(self._checked(self._results.get_nowait()))
        return found

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return [one.processor.pid for one in self._workers if one.processor is not None]

    def close(self) -> None:
        """End all of them, whatever they do."""
        for _ in self._threads:
            self._jobs.put(None)
        for one in self._workers:
            one.stop()
        for thread in self._threads:
            thread.join(AWAY + 1)

    @staticmethod
    def _checked(result: Result | BaseException) -> Result:
        if isinstance(result, BaseException):
            raise result
        return result

    def next_job(self) -> Job | None:
        """Return the next job; None = there will be none."""
        return self._jobs.get()

    def done(self, result: Result | BaseException) -> None:
        """Take a result."""
        self._results.put(result)


class _Worker:
    """The thread of one processor."""

    def __init__(
        self,
        pool: Processors,
        rules: AnnotationRules,
        contents: Contents,
        changes: Changes,
        now: Callable[[], int],
    ) -> None:
        self._pool = pool
        self._rules = rules
        self._contents = contents
        self._changes = changes
        self._now = now
        self._stopping = False
        self.processor: Processor | None = None

    def run(self) -> None:
        """Do jobs until there are none; a process is started at once, so that it is ready for the first."""
        try:
            self._ready()
            while (job := self._pool.next_job()) is not None and not self._stopping:
                self._pool.done(self._result(job))
        except BaseException as error:  # noqa: BLE001 - whoever waits for results has to know
            if not self._stopping:
                self._pool.done(error)
        finally:
            self._drop()

    def stop(self) -> None:
        """End the process from another thread: whatever it does now is of no use."""
        self._stopping = True
        processor = self.processor
        if processor is not None:
            processor.kill()

    def _result(self, job: Job) -> Result:
        try:
            bodies = self._bodies(job)
        except (ContentGone, ContentElsewhere, ContentLost, BadCoding, OSError) as error:
            return Result(job, failed=str(error))
        return self._annotated(job, bodies)

    def _bodies(self, job: Job) -> list[bytes]:
        bodies = [self._read(job.row)]
        if job.previous is not None:
            with suppress(ContentGone, ContentElsewhere, ContentLost, BadCoding, OSError):
                bodies.append(self._read(job.previous))
        return bodies

    def _read(self, row: CachedUrl | Version) -> bytes:
        with self._contents.open(row) as file:
            return file.read(MOST)

    def _annotated(self, job: Job, bodies: list[bytes]) -> Result:
        late = deaths = 0
        while True:
            try:
                return self._ready().annotate(job, bodies, self._now())
            except Died as died:
                self.processor = None
                if self._stopping:
                    raise
                late, deaths = late + died.late, deaths + (not died.late)
                if late >= TRIES or deaths >= DEATHS:
                    return Result(job, failed=str(died))
                _log.warning("document %s %s: it is tried again", job.row.docid, died)

    def _ready(self) -> Processor:
        """Return the process with all URDs as they are now; another one where it has ended."""
        for left in reversed(range(STARTS)):
            try:
                return self._renewed()
            except Died as died:
                self.processor = None
                if self._stopping or not left:
                    raise ConfigurationError(f"no processor can be started: it {died}") from None
        raise AssertionError

    def _renewed(self) -> Processor:
        if self.processor is None:
            self.processor = Processor(self._rules)
        while True:
            try:
                self.processor.renew(self._changes)
            except StoreUnavailable as error:
                if self._stopping:
                    raise
                _log.warning("the database does not answer, trying again: %s", error)
                time.sleep(AWAY)
            else:
                return self.processor

    def _drop(self) -> None:
        if self.processor is not None:
            self.processor.end()
            self.processor = None
