"""Waits for failing hosts: how they are told."""

from collections.abc import Iterable
from math import ceil
from typing import Any

from lcc_scrapy.db.records import FailingHost
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.shown import moment

SHOWN = 10
"""Failing hosts that are told one by one."""


def failing(tx: Tx, turnkey: str) -> list[FailingHost]:
    """Return the hosts of a turn that fail, those first that have for longest."""
    hosts = tx.hosts_of([turnkey]).get(turnkey, {})
    return sorted((one for one in hosts.values() if one.failures), key=lambda one: (one.since, one.host))


def in_words(host: FailingHost, now: float) -> str:
    """Say since when a host fails, and when it is asked next."""
    times = "once" if host.failures == 1 else f"{host.failures} times in a row"
    next_ = f"at {moment(host.not_before)}" if host.not_before > now else "as soon as its turn comes"
    return f"host {host.host} has failed since {moment(host.since)} ({times}), next request {next_}"


def lines(hosts: Iterable[FailingHost], now: float) -> list[str]:
    """Say the same of some hosts, and how many others there are."""
    hosts = list(hosts)
    told = [in_words(one, now) for one in hosts[:SHOWN]]
    return [*told, f"{len(hosts) - SHOWN} other hosts fail"] if len(hosts) > SHOWN else told


def as_dict(host: FailingHost) -> dict[str, Any]:
    """Return the same by the names that ``--json`` has; times in epoch seconds."""
    return {
        "host": host.host,
        "failures": host.failures,
        "since": int(host.since),
        "next_request": ceil(host.not_before),
    }
