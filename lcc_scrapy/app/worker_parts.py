"""What an app may run in each crawl process, beside its fetching.

A worker makes its parts when all else of it is assembled, starts them when it begins to fetch, and stops them
before its queue and its database are closed. Crawls that visit one provider (``lcc_spider``) have none.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.thread import StoreThread
from lcc_scrapy.db.tx import Store
from lcc_scrapy.http.credentials import Credentials


class WorkerPort(Protocol):
    """The worker, as its parts see it."""

    config: Config
    """As it is now: SIGHUP brings another one."""
    credentials: Credentials

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of Scrapy."""

    @property
    def store(self) -> Store: ...

    @property
    def thread(self) -> StoreThread:
        """The store's thread, in which settlements run: short jobs only."""

    @property
    def reactor(self) -> Any: ...

    @property
    def lcc_id(self) -> str: ...

    @property
    def owner(self) -> str:
        """The name of this process among the workers: ``1/0``."""

    @property
    def verifies(self) -> bool:
        """Whether certificates of sites are verified."""

    def own_thread(self, name: str) -> StoreThread:
        """Return another thread for jobs with the database, which ends with the worker."""

    def is_short(self) -> bool:
        """Tell whether disk or memory are too short now to begin anything."""

    def touched(self, pid: int) -> None:
        """Say that URLs of a provider were queued."""


class WorkerPart(Protocol):
    """What runs."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> Deferred[Any]:
        """Begin nothing more; fires when nothing is under way."""

    def apply(self, config: Config) -> None:
        """Go on with other settings."""

    def is_done(self) -> bool:
        """Tell whether nothing is under way or due: a crawl may end then (in the store's thread)."""


class MakeWorkerPart(Protocol):
    """Makes the part of a worker: ``App.worker``."""

    def __call__(self, worker: WorkerPort) -> WorkerPart: ...
