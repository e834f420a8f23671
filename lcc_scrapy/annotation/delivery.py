"""Telling recipients of what was found for them, by mail and webhooks, on asyncio (decision 151).

``lcc annotate`` and ``lcc alerts deliver`` run it: ``await delivery.run(stopped)`` until the event is set, or
``await delivery.once()`` until nothing is due. Several processes may do so: each recipient is claimed. After
``kill -9`` starting again is all it takes.

Each channel has a lane of its own, each recipient one message at a time. Who fails waits by itself, and
others go on. The earliest deadline goes first.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from lcc_scrapy.annotation.alert_texts import Around, written
from lcc_scrapy.annotation.couriers import Courier, Message, TellLater, TellNever
from lcc_scrapy.annotation.telling import Outcome, Telling, Turn
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.acis import Alert, Channel, Recipient
from lcc_scrapy.domain.alerts import name_of, wait
from lcc_scrapy.domain.errors import LccError, StoreUnavailable

FORGETTING = 3600.0
"""Seconds between two looks for alerts that need not be kept any more."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Report:
    """What became of messages. ``away``: the mail server was."""

    sent: int = 0
    delayed: int = 0
    refused: int = 0
    away: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """The operator's choices. ``pages`` is where alerts are to be seen ("" = nowhere); times are in seconds.

    ``ending`` gives the link that ends mail to a recipient, or "".
    """

    lcc_id: str
    retry: float
    kept: float
    poll: float = 1.0
    pages: str = ""
    operator: str = ""
    ending: Callable[[int], str] = lambda _: ""


class Delivery:
    """One process's part in telling all recipients. A channel without a courier waits, and loses nothing."""

    def __init__(
        self,
        store: Store,
        couriers: Mapping[Channel, Courier],
        terms: Terms,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._telling = Telling(store, terms.retry)
        self._couriers = couriers
        self._terms = terms
        self._now = now
        self._threads = ThreadPoolExecutor(1, "lcc-alerts")
        self.report = Report()

    async def run(self, stopped: asyncio.Event) -> Report:
        """Tell recipients until ``stopped``; messages under way are ended and noted."""
        lanes = [_Lane(self, *one, stopped).run(once=False) for one in self._couriers.items()]
        await asyncio.gather(*lanes, self._forget(stopped))
        return self.report

    async def once(self, stopped: asyncio.Event | None = None) -> Report:
        """Tell recipients until nothing is due any more; what fails waits for another time."""
        stop = stopped or asyncio.Event()
        lanes = (_Lane(self, *one, stop).run(once=True) for one in self._couriers.items())
        await asyncio.gather(*lanes)
        return self.report

    async def close(self) -> None:
        """Give back threads and connections."""
        for courier in self._couriers.values():
            await courier.close()
        self._threads.shutdown(wait=False)

    def milliseconds(self) -> int:
        """Return the time in epoch milliseconds."""
        return int(self._now() * 1000)

    async def work(self, job: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Do a job of the database in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: job(*args, **kwargs))

    async def _forget(self, stopped: asyncio.Event) -> None:
        while True:
            try:
                before = self.milliseconds() - int(self._terms.kept * 1000)
                while await self.work(self._telling.forget, before) and not stopped.is_set():
                    pass
            except StoreUnavailable as error:
                _log.warning("cannot forget old alerts now: %s", error)
            if await _is_set(stopped, FORGETTING):
                return

    # --- one recipient ---------------------------------------------------------------------------

    async def due(self, channel: Channel, limit: int) -> list[int]:
        """Return whom something is due for."""
        return await self.work(self._telling.due, channel, self.milliseconds(), limit)

    async def tell(self, recipientid: int, courier: Courier, stopped: asyncio.Event) -> bool:
        """Tell a recipient what is due, message by message; tells whether the whole channel is away."""
        turn = await self.work(self._telling.claim, recipientid, self.milliseconds(), courier.lease)
        if turn is None:
            return False
        for left, message in zip(range(len(turn.messages) - 1, -1, -1), turn.messages, strict=True):
            outcome = await self._tell(turn, message, courier)
            goes_on = bool(left) and not stopped.is_set()
            await self._note(turn, message, outcome, courier.lease if goes_on else 0.0)
            self._count(turn.recipient, outcome)
            if outcome is not None:
                return isinstance(outcome, TellLater) and outcome.away
            if not goes_on:
                break
        return False

    async def _tell(self, turn: Turn, message: Sequence[Alert], courier: Courier) -> Outcome:
        try:
            await courier.tell(self._worded(turn, message), int(self._now()))
        except (TellLater, TellNever) as error:
            return error
        except Exception:  # noqa: BLE001 - a defect met in one message must not end the others
            _log.exception("alert %d for recipient %d", message[0].number, turn.recipient.recipientid)
            return TellLater("an error in the LCC itself: its log tells more")
        return None

    def _worded(self, turn: Turn, message: Sequence[Alert]) -> Message:
        whom = turn.recipient
        ending = self._terms.ending(whom.recipientid) if whom.channel == Channel.MAIL else ""
        acis = [turn.acis[one.number] for one in sorted(message, key=lambda one: one.number)]
        around = Around(whom.owner, self._terms.pages, ending, self._terms.operator)
        said = written(acis, around, whom.format, digest=bool(message[0].digest))
        return Message(whom, name_of(message, self._terms.lcc_id), said, ending)

    async def _note(self, turn: Turn, message: Sequence[Alert], outcome: Outcome, lease: float) -> None:
        """Note a message, again and again while the database is away: else it would be sent once more."""
        tries = 0
        while True:
            try:
                await self.work(self._telling.note, turn, message, outcome, self.milliseconds(), lease)
            except StoreUnavailable as error:
                tries += 1
                if tries > NOTES:
                    raise
                _log.warning("cannot note an alert now, trying again: %s", error)
                await asyncio.sleep(1.0)
            else:
                return

    def _count(self, whom: Recipient, outcome: Outcome) -> None:
        report = self.report
        if outcome is None:
            report.sent += 1
            return
        refused = isinstance(outcome, TellNever)
        self.report = replace(
            report,
            refused=report.refused + refused,
            delayed=report.delayed + (not refused),
            away=report.away or (isinstance(outcome, TellLater) and outcome.away),
        )
        what = "is refused for ever" if refused else "waits"
        _log.warning("alert for recipient %d (%s) %s: %s", whom.recipientid, whom.owner, what, outcome)


NOTES = 30
"""Times that it is tried to note a message, a second apart."""


@dataclass(slots=True)
class _Lane:
    """One channel: as many recipients at a time as its courier has places."""

    delivery: Delivery
    channel: Channel
    courier: Courier
    stopped: asyncio.Event
    _running: dict[int, "asyncio.Task[bool]"] = field(default_factory=dict)
    _failures: int = 0
    _until: float = 0.0

    async def run(self, *, once: bool) -> None:
        """Tell recipients until stopped, or ``once`` until nothing is due."""
        poll = self.delivery._terms.poll  # noqa: SLF001 - a part of it
        try:
            while not self.stopped.is_set():
                begun = await self._begin()
                if once and not begun and not self._running:
                    return
                await self._wait(poll)
        finally:
            while self._running:
                await asyncio.wait(self._running.values())
                self._settle()

    async def _begin(self) -> int:
        """Begin with whom something is due for, as far as there is a place."""
        free = self.courier.places - len(self._running)
        if free <= 0 or asyncio.get_running_loop().time() < self._until:
            return 0
        try:
            found = await self.delivery.due(self.channel, free + len(self._running))
        except StoreUnavailable as error:
            _log.warning("cannot look for alerts now, trying again: %s", error)
            return 0
        fresh = [one for one in found if one not in self._running][:free]
        for recipientid in fresh:
            job = self.delivery.tell(recipientid, self.courier, self.stopped)
            self._running[recipientid] = asyncio.ensure_future(job)
        return len(fresh)

    async def _wait(self, poll: float) -> None:
        stop = asyncio.ensure_future(self.stopped.wait())
        await asyncio.wait({stop, *self._running.values()}, timeout=poll, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        self._settle()

    def _settle(self) -> None:
        """Take leave of what has ended; where the channel is away, nobody is tried for a while."""
        for recipientid, task in list(self._running.items()):
            if task.done():
                del self._running[recipientid]
                self._judge(recipientid, task)

    def _judge(self, recipientid: int, task: "asyncio.Task[bool]") -> None:
        error = task.exception()
        if error is not None:
            level = logging.WARNING if isinstance(error, LccError) else logging.ERROR
            _log.log(level, "alerts for recipient %d wait: %s", recipientid, error, exc_info=error)
            return
        self._failures = self._failures + 1 if task.result() else 0
        if self._failures:
            self._until = asyncio.get_running_loop().time() + min(wait(self._failures), AWAY_MAX)


AWAY_MAX = 600
"""Seconds until a channel that is away is tried again at most; each wait doubles."""


async def _is_set(stopped: asyncio.Event, seconds: float) -> bool:
    """Wait until an event is set, at most for some seconds; tells whether it is."""
    try:
        async with asyncio.timeout(seconds):
            await stopped.wait()
    except TimeoutError:
        return False
    return True
