"""How many turns workers can lease and give back in a second, by the number of providers that have URLs.

Each claimer is a process with a connection of its own. It leases up to 200 turns in one transaction, as a
worker does at one look, and gives them back in another. Nothing is fetched.

    python bench/claims.py
    python bench/claims.py --database postgresql --providers 64 1000 10000 --claimers 1 4 --seconds 5
"""

import argparse
import multiprocessing as mp
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

from crawling import running, tables
from crawling.command_line import parsed, parser
from crawling.lcc import Lcc, database

from lcc_scrapy.db.records import TurnDelta
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.queue.leases import take_turns
from lcc_scrapy.queue.turn_leases import LEASES_PER_LOOK

HEADINGS = ("database", "providers", "claimers", "claims/s", "longest transaction, ms")


def filled(url: str, providers: int) -> None:
    """Add providers that have a URL waiting, as the books say."""
    store = SqlStore(url)
    with store.begin() as tx:
        for pid in range(1, providers + 1):
            tx.insert_provider(Provider(pid, ""), [f"http://{pid}.example/"])
        tx.add_to_turns({str(pid): TurnDelta(1, arrived=True) for pid in range(1, providers + 1)})
    store.close()


def claim(url: str, owner: str, seconds: float) -> tuple[int, float]:
    """Lease turns and give them back for so long; return how many, and the seconds of the longest commit."""
    store, claims, longest = SqlStore(url), 0, 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        claims += repeated(_claim_some, store, owner)
        longest = max(longest, time.monotonic() - begun)
    store.close()
    return claims, longest


def _claim_some(store: SqlStore, owner: str) -> int:
    with store.begin() as tx:
        granted = take_turns(tx, owner, time.time(), limit=LEASES_PER_LOOK)
    if granted:
        with store.begin() as tx:
            tx.rest_turns([replace(one.lease, look_at=0.0) for one in granted])
    return len(granted)


def measured(kind: str, home: Path, providers: int, claimers: int, seconds: float) -> tuple[str, ...]:
    """Measure one case."""
    home.mkdir()
    with database(kind, home) as url, mp.get_context("spawn").Pool(claimers) as pool:
        Lcc(home, url).command("init")
        filled(url, providers)
        done = pool.starmap(claim, [(url, f"1/{number}", seconds) for number in range(claimers)])
    rate = sum(count for count, _ in done) / seconds
    return kind, f"{providers:,}", str(claimers), f"{rate:,.0f}", f"{max(one for _, one in done) * 1e3:,.0f}"


def main() -> None:
    """Measure and print."""
    given = options()
    with running.scratch(given.scratch) as folder:
        cases = product(given.database, given.providers, given.claimers)
        rows = [measured(kind, folder / str(number), providers, claimers, given.seconds)
                for number, (kind, providers, claimers) in enumerate(cases)]  # fmt: skip
    tables.show("Turns leased and given back", HEADINGS, rows, given.markdown)


def options() -> argparse.Namespace:
    """Read the command line."""
    made = parser(__doc__, "--markdown", "--scratch")
    made.add_argument(
        "--database", nargs="+", choices=("sqlite", "mariadb", "postgresql"), default=["mariadb"]
    )
    made.add_argument("--providers", type=int, nargs="+", default=[64, 1000, 10000])
    made.add_argument("--claimers", type=int, nargs="+", default=[1, 4])
    made.add_argument("--seconds", type=float, default=5)
    return parsed(made)


if __name__ == "__main__":
    main()
