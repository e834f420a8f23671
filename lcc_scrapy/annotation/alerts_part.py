"""Alerts as a part of ``lcc annotate``: the engine puts them with their ACIs, a loop delivers them."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event

from lcc_scrapy.annotation.delivery import Delivery, Report
from lcc_scrapy.annotation.engine import Told
from lcc_scrapy.db.claim import Claim
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.acis import Recipient
from lcc_scrapy.domain.alerts import Schedule, alerts_of

LOOK = 0.2
"""Seconds between two looks whether it is to stop."""

_log = logging.getLogger(__name__)


def put_alerts_by(schedule: Schedule) -> Callable[[Tx, Sequence[Told], int], None]:
    """Return what puts the alerts of new ACIs, in the transaction of these."""

    def put(tx: Tx, told: Sequence[Told], now: int) -> None:
        recipients = tx.recipients_of({one.aci.owner for one in told}) if told else []
        of_owner: dict[str, list[Recipient]] = {}
        for one in recipients:
            of_owner.setdefault(one.owner, []).append(one)
        tx.put_alerts(
            [
                alert
                for one in told
                for alert in alerts_of(one.aci, of_owner.get(one.aci.owner, ()), now, schedule, one.since)
            ]
        )

    return put


@dataclass(frozen=True, slots=True)
class AlertsPart:
    """``open_delivery`` makes the delivery, in a running event loop. It claims recipients by itself."""

    open_delivery: Callable[[], Delivery]
    name: str = "alerts"

    def run(self, claim: Claim, stop: Event, *, once: bool) -> None:
        """Deliver alerts until told to stop, or with ``once`` until none is due."""
        del claim
        asyncio.run(self._run(stop, once=once))

    async def _run(self, stop: Event, *, once: bool) -> None:
        delivery = self.open_delivery()
        try:
            report = await (delivery.once() if once else _until(stop, delivery))
        finally:
            await delivery.close()
        _log.info("alerts: %d sent, %d delayed, %d refused", report.sent, report.delayed, report.refused)


async def _until(stop: Event, delivery: Delivery) -> Report:
    stopped = asyncio.Event()
    watching = asyncio.ensure_future(_tell(stop, stopped))
    try:
        return await delivery.run(stopped)
    finally:
        watching.cancel()


async def _tell(stop: Event, stopped: asyncio.Event) -> None:
    """Tell a loop what another thread tells a thread."""
    while not stop.is_set():  # noqa: ASYNC110 - a signal sets it, in no loop
        await asyncio.sleep(LOOK)
    stopped.set()
