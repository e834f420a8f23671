"""The daily work: registrations whose time is over."""

from collections.abc import Iterator

from lcc_scrapy.apps.registration.store import rows_in
from lcc_scrapy.db.tx import Store
from lcc_scrapy.ops.housekeeping import ROWS, Further, emptied


def _forget(store: Store, now: int) -> Iterator[object]:
    """Forget registrations that nobody proved or approved in time (epoch seconds), some at a time."""
    return emptied(store, lambda tx: rows_in(tx).forget_registrations(now, ROWS))


JOBS: Further = _forget
