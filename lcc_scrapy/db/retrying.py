"""Work for which somebody waits at a terminal: what is no fault of its own does not end it."""

import logging
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from lcc_scrapy.domain.errors import StoreUnavailable

PAUSES = (0.1, 1.0, 5.0, 15.0)
"""Seconds before each further try: enough for a deadlock, and for a database that is started again."""

Given = ParamSpec("Given")
Result = TypeVar("Result")
_log = logging.getLogger(__name__)


def repeated(work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """Do ``work``, which is one bounded transaction, again when the database lets it down.

    A deadlock or a lost connection undoes all of it; after the last try ``StoreUnavailable`` goes on to the
    caller. A commit whose answer was lost may have happened: then the next try finds nothing left to do,
    and what it returns tells less than was done.
    """
    for pause in PAUSES:
        try:
            return work(*args, **kwargs)
        except StoreUnavailable as error:
            _log.warning("the database does not answer, trying again in %g s: %s", pause, error)
            time.sleep(pause)
    return work(*args, **kwargs)
