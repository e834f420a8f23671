"""What an LCC is doing: what ``lcc status`` prints and the overview of the dashboard shows.

No statement reads more than the providers, the parts of sets, the workers and the counts of fetches of a day.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lcc_scrapy.content.identity import machine_identity
from lcc_scrapy.db.records import NOT_ACCEPTED, PAUSED, REFUSED_TYPES
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.machine.data_directory import running_workers
from lcc_scrapy.machine.free_space import Disks
from lcc_scrapy.queue import host_waits
from lcc_scrapy.queue.fetch_counts import of_late

HOSTS = 10
"""Failing hosts that are told, those first that have failed for longest."""


@dataclass(frozen=True, slots=True)
class Here:
    """What of an LCC lies on this machine."""

    data_dir: Path
    content_dir: Path
    spools: Sequence[Path]
    disks: Disks


class Troubles(Protocol):
    """What an app knows to be wrong with this LCC."""

    def __call__(self, tx: Tx) -> Iterator[str]:
        """Yield sentences for operators, each with what to do; commands stand in backticks."""


def read(store: Store, here: Here, now: int) -> dict[str, Any]:
    """Return the facts by the names that ``lcc status --json`` has; ``now`` in epoch seconds."""
    with store.read() as tx:
        queued, ledger, tallies = tx.queued_total(), tx.ledger(), tx.tallies()
        paused, unses, workers = bool(tx.info(PAUSED)), tx.unses(), workers_of(tx, here, now)
    with store.read() as tx:
        fetched = of_late(tx, now)
        hosts = tx.failing_hosts(HOSTS)
    return {
        "queued": queued,
        "documents": sum(one.documents for one in ledger.values()),
        "bytes": sum(one.space for one in ledger.values()),
        "refused_types": tallies.get(REFUSED_TYPES, 0) + tallies.get(NOT_ACCEPTED, 0),
        "held_removals": sum(one.held for one in ledger.values()),
        "fetched": fetched,
        "failing_hosts": [{"turn": one.turnkey, **host_waits.as_dict(one)} for one in hosts],
        "providers": {state: one.providers for state, one in ledger.items()},
        "spool": _spool(here.spools),
        "disks": {str(folder): free for folder, free in here.disks.free().items()},
        "short": here.disks.shortage(),
        "unses": [{"uns": uns.uns, "host": uns.note, "seen": uns.seen} for uns in unses],
        "paused": paused,
        "workers": workers,
        "places": sum(worker["places"] for worker in workers),
        "in_use": sum(worker["in_use"] for worker in workers),
        "paced": sum(worker["paced"] for worker in workers),
        "turns": sum(worker["turns"] for worker in workers),
        "bytes_per_second": sum(worker["bytes_per_second"] for worker in workers),
    }


def workers_of(tx: Tx, here: Here, now: int) -> list[dict[str, Any]]:
    """Return the crawl processes at work, on whatever machine, as they last said of themselves.

    Of those on this machine that ended without a word, their locks tell.
    """
    machine = tx.machine(machine_identity(here.content_dir) or "")
    running = set(running_workers(here.data_dir).values())
    return [
        {
            "worker": worker.owner,
            "process": worker.process,
            "since": worker.started,
            "expires": worker.expires,
            "places": worker.places,
            "in_use": worker.in_use,
            "paced": worker.paced,
            "turns": worker.held,
            "bytes_per_second": worker.rate,
            "longest_job": worker.job,
            "longest_job_ms": worker.job_ms,
            "idle": worker.idle,
        }
        for worker in tx.workers()
        if worker.expires > now and (worker.machineid != machine or worker.process in running)
    ]


def _spool(folders: Iterable[Path]) -> dict[str, int]:
    sizes = list(sizes_of_sets(folder for folder in folders if folder.is_dir()))
    return {"sets": len(sizes), "bytes": sum(sizes)}


def sizes_of_sets(folders: Iterable[Path]) -> Iterator[int]:
    """Yield the size of each set that waits in spools (bytes)."""
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".set"):
                    with suppress(FileNotFoundError):  # absorbed at this moment
                        yield entry.stat().st_size
