"""What scans need, made of the settings."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lcc_scrapy.apps.tracker.exporting import Exporter, Exports
from lcc_scrapy.apps.tracker.peering import AT_A_TIME as FETCHED_AT_A_TIME
from lcc_scrapy.apps.tracker.peering import Peering
from lcc_scrapy.apps.tracker.peers import Peers
from lcc_scrapy.apps.tracker.robot import AT_A_TIME, Robot
from lcc_scrapy.apps.tracker.scanning import Scanner
from lcc_scrapy.apps.tracker.settings import TrackerRules
from lcc_scrapy.apps.tracker.tasks import Tasks
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.kit.claims import this_process
from lcc_scrapy.kit.work import Work, in_executor

_CONNECTIONS = 4 * AT_A_TIME


def tasks_of(config: Config, store: Store) -> Tasks:
    """Return the scans of a store."""
    every = config.of(TrackerRules).scan.every
    return Tasks(store, this_process(), config.timezone, config.turns.backoff, every)


@contextmanager
def robot_of(config: Config, store: Store, agent: str) -> Iterator[Robot]:
    """Give what scans in this process; its jobs of the database are done when the block ends."""
    limits = config.of(TrackerRules).scan
    scanner = Scanner(Outgoing(_CONNECTIONS, tls_context()), agent, limits, config.data_dir)
    with _executors() as (claims, loading):
        yield Robot(store, tasks_of(config, store), scanner, claims, loading, config.turns.poll)


@contextmanager
def peering_of(config: Config, store: Store, agent: str) -> Iterator[Peering]:
    """Give what fetches domains of other trackers in this process, likewise."""
    rules = config.of(TrackerRules)
    peers = Peers(store, this_process(), config.turns.backoff, rules.peers_every)
    outgoing = Outgoing(2 * FETCHED_AT_A_TIME, tls_context())
    with _executors() as (claims, loading):
        yield Peering(
            store,
            peers,
            outgoing,
            agent,
            rules.scan,
            config.data_dir,
            claims,
            loading,
            rules.peers_private,
            config.turns.poll,
        )


@contextmanager
def _executors() -> Iterator[tuple[Work, Work]]:
    with ThreadPoolExecutor(1, "claims") as claims, ThreadPoolExecutor(1, "loading") as loading:
        yield in_executor(claims), in_executor(loading)


@contextmanager
def exporter_of(config: Config, store: Store) -> Iterator[Exporter | None]:
    """Give what exports own domains in this process; None = nothing is exchanged."""
    exports = exports_of(config, store)
    with ThreadPoolExecutor(1, "exporting") as exporting:
        work = in_executor(exporting)
        yield Exporter(exports, work, config.turns.poll, time.time) if exports else None


def exports_of(config: Config, store: Store) -> Exports | None:
    """Return the exports of a store; None = nothing is exchanged."""
    folder = config.of(TrackerRules).exports
    return Exports(store, Path(folder)) if folder else None
