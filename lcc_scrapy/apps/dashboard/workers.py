"""The crawl processes at work, and the turns that they hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from lcc_scrapy.apps.dashboard.layout import Name, link, shown, table
from lcc_scrapy.apps.dashboard.store import rows_in
from lcc_scrapy.db.records import LongFetch, StoredTurn
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.shown import duration, moment, number, size
from lcc_scrapy.ops.status import Here, workers_of

WORKERS, TURNS = 20, 10
"""Workers whose turns are shown, and turns of each: those with most URLs waiting."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Workers as ``lcc status --json`` has them, and turns of some."""

    workers: Sequence[Mapping[str, Any]]
    turns: Mapping[str, Sequence[StoredTurn]]
    fetches: Mapping[str, LongFetch]


def read(store: Store, here: Here, now: int) -> Shown:
    """Read what the page tells."""
    with store.read() as tx:
        its, workers = rows_in(tx), workers_of(tx, here, now)
        owners = [one["worker"] for one in workers[:WORKERS]]
        turns = {owner: its.busiest_turns(owner, TURNS) for owner in owners}
        fetches = its.long_fetches(turn.turnkey for some in turns.values() for turn in some)
    return Shown(workers, turns, fetches)


def body(page: Shown, now: int) -> Markup:
    """Return the page."""
    if not page.workers:
        return Markup("<p>No crawl process is at work: start <code>lcc crawl</code>.</p>")
    columns = [
        "Worker",
        "Process",
        "Since",
        "Heartbeat good until",
        "Fetches now",
        "At most",
        "Paced",
        "Turns",
        "Traffic",
        "Longest job of late",
        "Hands out nothing",
    ]
    parts = [table(columns, map(_worker, page.workers))]
    parts += [_turns(owner, turns, page.fetches, now) for owner, turns in page.turns.items() if turns]
    return Markup("").join(parts)


def _worker(one: Mapping[str, Any]) -> list[object]:
    job = f"{one['longest_job']}, {number(one['longest_job_ms'])} ms" if one["longest_job"] else ""
    return [
        one["worker"],
        Name(one["process"]),
        moment(one["since"]),
        moment(one["expires"]),
        one["in_use"],
        one["places"],
        one["paced"],
        one["turns"],
        f"{size(one['bytes_per_second'])}/s",
        job,
        one["idle"],
    ]


def _turns(owner: str, turns: Sequence[StoredTurn], fetches: Mapping[str, LongFetch], now: int) -> Markup:
    columns = ["Provider or group", "Waiting", "Priority", "Not before", "Long fetch"]
    rows = [
        [
            _whose(turn.turnkey),
            turn.waiting,
            turn.priority,
            moment(turn.not_before) if turn.not_before > now else "",
            _fetch(fetches.get(turn.turnkey), turn, now),
        ]
        for turn in turns
    ]
    return Markup("<h2>{}</h2>").format(f"Turns of worker {shown(owner)} with most URLs waiting") + table(
        columns, rows
    )


def _whose(turnkey: str) -> object:
    return link(f"/dashboard/providers/{turnkey}", turnkey) if turnkey.isdecimal() else turnkey


def _fetch(fetch: LongFetch | None, turn: StoredTurn, now: int) -> str:
    """Tell of a fetch that takes long, if it is of this lease."""
    if fetch is None or (fetch.owner, fetch.token) != (turn.owner, turn.token):
        return ""
    return f"for {duration(max(0, now - int(fetch.since)))}, {size(fetch.transferred)}"
