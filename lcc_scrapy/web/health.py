"""``/healthz`` and ``/metrics``: whether it works, and how much."""

from collections.abc import Iterator

import anyio
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.web.access import Measuring, TheLcc
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import told

router = APIRouter(tags=["operation"])

PATIENCE = 5.0
"""Seconds that the database has to answer."""

TEXT = "text/plain; version=0.0.4; charset=utf-8"


@router.get(
    "/healthz",
    response_class=PlainTextResponse,
    responses={429: told()[429], 503: {"description": "The database is away."}},
)
async def healthz(request: Request, lcc: TheLcc) -> PlainTextResponse:
    """`ok`, or 503 and `not ok` when the database does not answer. It needs no token."""
    probe: CapacityLimiter = request.app.state.probe
    with anyio.move_on_after(PATIENCE):
        try:
            await to_thread.run_sync(lcc.feed.head, abandon_on_cancel=True, limiter=probe)
            return PlainTextResponse("ok\n")
        except LccError:
            pass
    return PlainTextResponse("not ok\n", 503)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"description": "Prometheus text.", "content": {"text/plain": {}}}, **told()},
)
def metrics(lcc: TheLcc, token: Measuring) -> Response:
    """What Prometheus wants to know, read from the database now. Needs a token of scope `metrics`."""
    del token
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Measured(lcc))
    return Response(generate_latest(registry), media_type=TEXT)


class _Measured:
    """What is asked when Prometheus asks."""

    def __init__(self, lcc: Lcc) -> None:
        self._lcc = lcc

    def describe(self) -> list[Metric]:
        """Name nothing in advance."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read everything."""
        for measure in self._lcc.measures():
            kind = CounterMetricFamily if measure.counter else GaugeMetricFamily
            family = kind(measure.name, measure.help, labels=measure.labels)
            for values, value in measure.samples:
                family.add_metric(values, value)
            yield family
