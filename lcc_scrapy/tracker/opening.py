"""What scans need, made of the settings."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.sources.registry import this_process
from lcc_scrapy.sources.work import in_executor
from lcc_scrapy.tracker.robot import AT_A_TIME, Robot
from lcc_scrapy.tracker.scanning import Scanner
from lcc_scrapy.tracker.tasks import Tasks

_CONNECTIONS = 4 * AT_A_TIME


def tasks_of(config: Config, store: Store) -> Tasks:
    """Return the scans of a store."""
    return Tasks(store, this_process(), config.timezone, config.turns.backoff, config.tracker_scan.every)


@contextmanager
def robot_of(config: Config, store: Store, agent: str) -> Iterator[Robot]:
    """Give what scans in this process; its jobs of the database are done when the block ends."""
    scanner = Scanner(Outgoing(_CONNECTIONS, tls_context()), agent, config.tracker_scan, config.data_dir)
    with ThreadPoolExecutor(1, "claims") as claims, ThreadPoolExecutor(1, "loading") as loading:
        poll = config.turns.poll
        tasks = tasks_of(config, store)
        yield Robot(store, tasks, scanner, in_executor(claims), in_executor(loading), poll)
