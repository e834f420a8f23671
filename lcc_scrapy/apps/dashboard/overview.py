"""The overview: whether fetching goes on, what waits, what fails, and what needs somebody."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from lcc_scrapy.apps.dashboard import fetches
from lcc_scrapy.apps.dashboard.layout import facts, find_form, link, link_to_url, shown
from lcc_scrapy.db.records import EVERYBODY
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.fetch_counts import DAY, HOUR, SPAN, Column, columns, since
from lcc_scrapy.domain.shown import duration, moment, number, size
from lcc_scrapy.ops import status
from lcc_scrapy.queue.fetch_counts import FAILING
from lcc_scrapy.web import html

UNSES = 10
"""UNSes, and workers that hand out nothing, that are named one by one."""

_LIST = "/dashboard/providers"


@dataclass(frozen=True, slots=True)
class Shown:
    """What the overview tells: ``facts`` by the names of ``lcc status``. ``expected``: crawl processes.

    ``troubles`` are those that apps know of.
    """

    facts: Mapping[str, Any]
    troubles: list[str]
    hour: list[Column]
    day: list[Column]
    expected: int


def read(
    store: Store, here: status.Here, expected: int, of_apps: Iterable[status.Troubles], now: int
) -> Shown:
    """Read what the overview tells."""
    with store.read() as tx:
        troubles = [trouble for part in of_apps for trouble in part(tx)]
        counts = tx.fetch_spans(since(now, DAY), EVERYBODY)
    of_hour = {key: count for key, count in counts.items() if key[0] >= since(now, HOUR)}
    return Shown(
        status.read(store, here, now),
        troubles,
        columns(of_hour, now, HOUR, SPAN, FAILING),
        columns(counts, now, DAY, HOUR, FAILING),
        expected,
    )


def body(page: Shown, now: int) -> Markup:
    """Return the page."""
    said = list(map(shown, _troubles(page)))
    parts = [
        Markup("").join(map(html.alert, said)) if said else html.good("Nothing is wrong."),
        find_form(),
        facts(_facts(page.facts, page.expected, now)),
        Markup("<h2>Fetches</h2>"),
        fetches.chart("hour", "Last hour, by 10 minutes", page.hour),
        fetches.chart("day", "Last day, by hours", page.day),
        fetches.results(page.facts["fetched"]),
    ]
    return Markup("").join(parts)


def _troubles(page: Shown) -> Iterator[str]:
    """Say first what keeps fetching from going on, then what apps know to be wrong."""
    told = page.facts
    if told["paused"]:
        yield "all fetching is paused: `lcc provider resume --all` resumes it"
    if told["short"]:
        yield f"intake and fetching have stopped: {told['short']}"
    if len(told["workers"]) < page.expected or not told["workers"]:
        yield f"{_crawls(told, page.expected)}: start `lcc crawl`"
    for worker in [one for one in told["workers"] if one["idle"]][:UNSES]:
        yield f"worker {worker['worker']} hands out no URL: {worker['idle']}"
    yield from page.troubles


def _crawls(told: Mapping[str, Any], expected: int) -> str:
    at_work = f"{len(told['workers'])} crawl processes are at work"
    return f"{at_work}, {expected} are expected" if expected else at_work


def _facts(told: Mapping[str, Any], expected: int, now: int) -> list[tuple[str, object]]:
    spool, oldest = told["spool"], told["fetched"]["oldest_waiting"]
    return [
        ("Fetching", "paused" if told["paused"] else _speed(told, now)),
        ("Now", f"{number(told['in_use'])} URLs of {number(told['places'])} at a time, {_traffic(told)}"),
        ("Crawl processes", f"{_crawls(told, expected)}; they hold {number(told['turns'])} turns"),
        ("Queue", link(f"{_LIST}?order=nurlproc&falling=1", f"{number(told['queued'])} URLs")),
        *([("Oldest waiting", _oldest(oldest, now))] if oldest else []),
        ("Spool", f"{number(spool['sets'])} sets, {size(spool['bytes'])}"),
        *(("UNS", f"{one['host']}, last heartbeat {moment(one['seen'])}") for one in told["unses"][:UNSES]),
        *(("Disk", f"{size(free)} free at {folder}") for folder, free in told["disks"].items()),
        ("Held removals", link(f"{_LIST}?order=heldremovals&falling=1", number(told["held_removals"]))),
        ("Providers", _providers(told["providers"])),
        ("Cache", f"{number(told['documents'])} documents, {size(told['bytes'])}"),
    ]  # fmt: skip


def _traffic(told: Mapping[str, Any]) -> str:
    return f"{size(told['bytes_per_second'])}/s"


def _speed(told: Mapping[str, Any], now: int) -> Markup:
    hour = told["fetched"]["hour"]
    counts = {name: its["total"] for name, its in hour.items() if name != "since"}
    per_second = sum(counts.values()) / max(now - hour["since"], 1)
    failed = sum(count for name, count in counts.items() if name in FAILING)
    return Markup("{:.1f} fetches a second in the last hour; {}").format(
        per_second, link(f"{_LIST}?order=failures&falling=1", f"{number(failed)} failed")
    )


def _oldest(oldest: Mapping[str, Any], now: int) -> Markup:
    waits = f", for {duration(max(0, now - oldest['since']))}" if oldest["since"] else ""
    whose = link(f"{_LIST}/{oldest['pid']}", oldest["pid"])
    return Markup("{}of provider {}{}").format(link_to_url(oldest["url"]), whose, waits)


def _providers(states: Mapping[str, int]) -> Markup:
    links = (
        link(f"{_LIST}?state={state}", f"{number(count)} {state}") for state, count in sorted(states.items())
    )
    return Markup("").join(links) or Markup("none")
