"""Which component failed on a document, and what the circuit breaker makes of it (``domain/breaker.py``)."""

import logging
import time
import traceback
from collections.abc import Iterable
from itertools import pairwise
from types import FrameType

from lcc_scrapy.app.wiring import Worker
from lcc_scrapy.domain.breaker import LAST, Breaker, Fault, Verdict
from lcc_scrapy.domain.queue import Delayed, Ticket
from lcc_scrapy.engine import scrapy_internals
from lcc_scrapy.engine.custom_components import name_of
from lcc_scrapy.fetch.outcomes import NOT_STORED
from lcc_scrapy.fetch.turn import FetchFailed, short

_log = logging.getLogger(__name__)

_A_MIDDLEWARE = "a downloader middleware"
ANSWERED = Fault(_A_MIDDLEWARE, "answered instead of the site")
"""What a middleware does that gives a response of its own."""

_CALLERS = ("scrapy.core", "scrapy.middleware", "scrapy.pipelines", "scrapy.utils", scrapy_internals.__name__)
"""Scrapy's machinery, and what replaces parts of it, which call components; nobody else does."""

_NO_COMPONENTS = ("lcc_scrapy", "scrapy.core", "scrapy.middleware", "scrapy.utils", "twisted", "asyncio")
_MANAGERS = "scrapy.pipelines"
"""The module with Scrapy's manager of pipelines; those below it are components."""


def fault_of(error: BaseException) -> Fault | None:
    """Return which component raised an error; None where it was none: a site, a disk, this program."""
    if isinstance(error, FetchFailed):
        return Fault(_A_MIDDLEWARE, error.detail) if error.code == NOT_STORED else None
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    called = (frame for caller, frame in pairwise(frames) if _is_scrapys(caller) and _may_be_component(frame))
    component = next(map(_name_of, called), "")
    return Fault(component, type(error).__name__) if component else None


def keeps_place(worker: Worker, ticket: Ticket, fault: Fault | None) -> bool:
    """Tell whether a document on which a component failed waits in its place: fetching pauses by now.

    Otherwise its failure has to be settled.
    """
    if fault is None:
        return False
    verdict = worker.breaker.failed(fault, time.monotonic())
    if verdict is Verdict.FAILED:
        return False
    detail = f"{fault.component}: {fault.error}; fetching pauses"
    worker.manager.delay(Delayed(ticket, NOT_STORED, short(detail), worker.now()))
    if verdict is Verdict.PAUSED:
        _tell(worker.breaker, fault)
    return True


def passed(worker: Worker) -> None:
    """Note that a document went through all components."""
    if worker.breaker.passed():
        _log.info("a document went through all components: fetching goes on")


def may_fetch(worker: Worker) -> bool:
    """Tell whether components let documents be fetched now."""
    return worker.breaker.may_fetch(time.monotonic())


def fetch_begins(worker: Worker) -> None:
    """Note that a document is fetched: in a pause, it is the probe."""
    worker.breaker.fetch_begins(time.monotonic())


def _tell(breaker: Breaker, fault: Fault) -> None:
    _log.error(
        "fetching pauses: the last %(count)d documents all failed in %(component)s (%(error)s);"
        " one is tried again in %(pause)g s, and nothing is lost: mend it, or take it out of this crawl",
        {"count": LAST, "component": fault.component, "error": fault.error, "pause": breaker.pause},
    )


def _is_scrapys(caller: FrameType) -> bool:
    return _is_below(_module_of(caller), _CALLERS)


def _may_be_component(frame: FrameType) -> bool:
    module = _module_of(frame)
    return module != _MANAGERS and not _is_below(module, _NO_COMPONENTS)


def _is_below(module: str, packages: Iterable[str]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in packages)


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _name_of(frame: FrameType) -> str:
    """Return the import path of the class whose method a frame is, or of a plain function."""
    owner = frame.f_locals.get("self")
    return name_of(type(owner)) if owner is not None else f"{_module_of(frame)}.{frame.f_code.co_qualname}"
