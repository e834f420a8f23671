"""Why a URL is where it is: everything the LCC knows of it, and the one reason why it still waits."""

import json
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.entries import ANY_TYPE, furlkey, urlkey
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.queue import NOTHING, QueuedUrl
from lcc_scrapy.domain.retries import is_host_level
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.storage.providers import all_providers
from lcc_scrapy.storage.records import PAUSED, LastOutcome, Ownership, Spidered, StoredTurn, WorkerRow
from lcc_scrapy.storage.tx import Store, Tx

_ERRORS = 1000
"""Kept errors that are searched per provider."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one key. ``before`` counts the URLs of its provider that come first.

    ``visits`` is what spiders know of the URL that it is fetched from.
    """

    urlkey: bytes
    pid: int
    curl: str
    mimetype: str
    cached: CachedUrl | None = None
    queued: QueuedUrl | None = None
    tombstone: Tombstone | None = None
    outcome: LastOutcome | None = None
    before: int = 0
    waits: "Wait | None" = None
    visits: Spidered | None = None
    owners: tuple[Ownership, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a URL waits, and until when as far as that is known (epoch seconds, 0 = it is not)."""

    reason: str
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a waiting URL depends on beside its provider: time, the LCC's zone, and who is at work.

    ``running``: whether a crawl process runs on this machine; ``paused``: whether everything is paused.
    """

    now: float
    zone: tzinfo
    running: bool
    workers: tuple[WorkerRow, ...] = ()
    paused: bool = False

    def works(self, owner: str) -> bool:
        """Tell whether a worker is alive."""
        return any(worker.owner == owner and worker.expires > self.now for worker in self.workers)

    def anybody(self) -> bool:
        """Tell whether any crawl process is at work, here or on another machine."""
        return self.running or any(worker.expires > self.now for worker in self.workers)


def explain(store: Store, url: str, around: Surroundings, pid: int | None = None) -> list[Known]:
    """Return what is known of a URL (conceptual URL, fetch URL or docid), one entry per key."""
    with store.read() as tx:
        keys = _keys(tx, url)
        around = replace(around, workers=tuple(tx.workers()), paused=bool(tx.info(PAUSED)))
    keys = keys or _failed_keys(store, url, pid)
    with store.read() as tx:
        known = [one for key, facts in sorted(keys.items()) if (one := _known(tx, key, facts))]
        known = [one for one in known if pid in {None, one.pid}]
        return [_with_reason(tx, one, around) for one in known]


Facts = tuple[int, str, str]
"""(pid, curl, mimetype)"""


def _keys(tx: Tx, url: str) -> dict[bytes, Facts]:
    found: dict[bytes, Facts] = {}
    for spelling in spellings(url):
        for rows in tx.find_url(spelling):
            found.update({row.urlkey: (row.pid, row.curl, row.mimetype) for row in rows})
    return found or _outcome_key(tx, url)


def spellings(url: str) -> set[str]:
    """Return how a URL or docid may stand in the tables, where somebody wrote it so."""
    try:
        return {url, url.lower() if len(url) == 32 else url, str(HttpUrl.parse(url))}  # noqa: PLR2004 - a docid
    except UrlRefused:
        return {url, url.lower()}


def _outcome_key(tx: Tx, url: str) -> dict[bytes, Facts]:
    """Find a docid of which only the last outcome is known."""
    try:
        key = bytes.fromhex(url)
    except ValueError:
        return {}
    outcome = tx.outcome(key)
    return {key: (outcome.pid, "", "")} if outcome else {}


def _failed_keys(store: Store, url: str, pid: int | None) -> dict[bytes, Facts]:
    """Find a URL that failed for good."""
    pids = [pid] if pid is not None else [provider.pid for provider in all_providers(store)]
    found: dict[bytes, Facts] = {}
    for one in pids:
        with store.read() as tx:
            errors = tx.errors(one, _ERRORS)
            found.update(_failed_visits(tx, one, url))
        for error in errors:
            said = json.loads(error.attributes)
            curl, mimetype = said.get("curl", ""), said.get("mimetype", "")
            if url in {curl, error.url}:
                found[urlkey(one, curl, mimetype)] = (one, curl, mimetype)
    return found


def _failed_visits(tx: Tx, pid: int, url: str) -> dict[bytes, Facts]:
    """Find a URL that a spider could not have: its failure is not among the errors of its provider."""
    keys = {urlkey(pid, spelling, ANY_TYPE): (pid, spelling, ANY_TYPE) for spelling in spellings(url)}
    return {key: facts for key, facts in keys.items() if tx.outcome(key)}


def _known(tx: Tx, key: bytes, facts: Facts) -> Known | None:
    pid, curl, mimetype = facts
    cached, queued = tx.cached([key]).get(key), tx.queued([key]).get(key)
    tombs = tx.find_url(key.hex())[2] if cached is None else []
    outcome = tx.outcome(key)
    before = tx.count_before(queued) if queued else 0
    known = Known(key, pid, curl, mimetype, cached, queued, next(iter(tombs), None), outcome, before)
    known = replace(known, visits=_visits(tx, known), owners=_owners(tx, known))
    return known if (cached or queued or tombs or outcome) else None


def _owners(tx: Tx, known: Known) -> tuple[Ownership, ...]:
    at = known.cached or known.queued or known.tombstone
    key = furlkey(known.pid, at.furl if at else known.curl)
    return tuple(tx.owners_of([key]).get(key, ()))


def _visits(tx: Tx, known: Known) -> Spidered | None:
    lies_at = [furlkey(known.pid, row.furl) for row in (known.cached, known.queued) if row is not None]
    found = tx.spidered(lies_at or [furlkey(known.pid, known.curl)])
    return next(iter(found.values()), None)


def _with_reason(tx: Tx, known: Known, around: Surroundings) -> Known:
    if known.queued is None:
        return known
    provider = tx.provider(known.pid)
    turn = tx.turn(provider.turnkey) if provider is not None else None
    return replace(known, waits=why_waiting(known, provider, turn, around))


def why_waiting(
    known: Known, provider: Provider | None, turn: StoredTurn | None, around: Surroundings
) -> Wait:
    """Return the one reason why a waiting URL is not fetched yet: what has to change first."""
    row = known.queued
    assert row is not None
    if provider is None:
        return Wait("its provider does not exist any more")
    if provider.state != State.ACTIVE:
        return Wait(f"its provider is {provider.state}; `lcc provider resume {provider.pid}` makes it active")
    if row.operation == NOTHING:
        return Wait("nothing is to be fetched: its removal arrived, and the row goes when its turn comes")
    if around.paused:
        return Wait("all fetching is paused; `lcc provider resume --all` lets it go on")
    return (
        _closed(row, provider, around)
        or _trying_again(row, known.outcome, around)
        or _nobody(around)
        or _delayed(turn, known.outcome, around)
        or _others(known.before)
        or _at_work(turn, around)
    )


def _closed(row: QueuedUrl, provider: Provider, around: Surroundings) -> Wait | None:
    zone = ZoneInfo(provider.timezone) if provider.timezone else around.zone
    mask = timeslots.intersect(provider.timeofday, row.timeofday)
    opens = timeslots.next_permitted(mask, around.now, zone)
    if opens == float("inf"):
        return Wait("its hours and those of its provider never open together")
    if opens <= around.now:
        return None
    return Wait(f"its hours are closed until {_local(opens, zone)} in {zone}", opens)


def _trying_again(row: QueuedUrl, outcome: LastOutcome | None, around: Surroundings) -> Wait | None:
    if row.not_before <= around.now:
        return None
    after = f" after {outcome.code} ({outcome.text})" if outcome else ""
    at = f"{_local(row.not_before, around.zone)} in {around.zone}"
    return Wait(f"it waits to try again until {at}{after}", row.not_before)


def _nobody(around: Surroundings) -> Wait | None:
    return None if around.anybody() else Wait("no crawl process runs: start `scrapy crawl lcc_push`")


def _delayed(turn: StoredTurn | None, outcome: LastOutcome | None, around: Surroundings) -> Wait | None:
    if turn is None or turn.not_before <= around.now:
        return None
    until = f"{_local(turn.not_before, around.zone)} in {around.zone}"
    if not turn.failures:
        return Wait(f"its provider's bandwidth is used up until {until}", turn.not_before)
    what = f": {outcome.code} ({outcome.text})" if outcome and is_host_level(outcome.code) else ""
    times = "once" if turn.failures == 1 else f"{turn.failures} times in a row"
    return Wait(f"its host failed {times}{what}; its provider's turn waits until {until}", turn.not_before)


def _others(before: int) -> Wait | None:
    if before == 1:
        return Wait("1 other URL of its provider comes first")
    return Wait(f"{before} other URLs of its provider come first") if before else None


def _at_work(turn: StoredTurn | None, around: Surroundings) -> Wait:
    if turn is None or not around.works(turn.owner):
        return Wait("it is the next of its provider, and a worker will take it within seconds", around.now)
    return Wait(f"it is being fetched, or is the next of its provider (worker {turn.owner})", around.now)


def _local(at: float, zone: tzinfo) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%a %Y-%m-%d %H:%M")
