"""Why a URL is where it is: everything the LCC knows of it, and the one reason why it still waits."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import islice
from math import ceil
from zoneinfo import ZoneInfo

from lcc_scrapy.cache.last_outcomes import removal_reason, storable
from lcc_scrapy.db.records import (
    OUTCOME_FAILED,
    OUTCOME_REFUSED,
    OUTCOME_STORED,
    OUTCOME_WITHDRAWN,
    PAUSED,
    FailingHost,
    LastOutcome,
    LongFetch,
    Ownership,
    Spidered,
    StoredTurn,
    WorkerRow,
)
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.convergence import MISMATCHES, differs
from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.queue import NOTHING, QueuedUrl, host_of
from lcc_scrapy.domain.retries import is_host_level
from lcc_scrapy.domain.roots import HttpUrl, Root, inside
from lcc_scrapy.queue.host_waits import failing, in_words


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

    @property
    def since_then(self) -> str:
        """What happened after the last outcome: the newest of it, or nothing."""
        outcome, cached = self.outcome, self.cached
        if outcome is None:
            return ""
        if cached is not None and outcome.code in MISMATCHES and differs(cached):
            return "stored" if outcome.state == OUTCOME_STORED else ""
        if cached is not None and max(cached.fetched_time, cached.confirmed_time) >= outcome.at:
            return "stored" if cached.fetched_time >= outcome.at else "confirmed"
        if outcome.state == OUTCOME_WITHDRAWN:
            return "removed by its provider"
        return "submitted again" if self.queued is not None and outcome.state == OUTCOME_FAILED else ""

    @property
    def state(self) -> str:
        """Where it is: ``waiting``, ``cached``, ``failed``, ``refused`` or ``removed``."""
        if self.queued is not None:
            return "waiting"
        if self.cached is not None:
            return "cached"
        if self.outcome is not None and not self._removed_since:
            return {OUTCOME_REFUSED: "refused", OUTCOME_WITHDRAWN: "removed"}.get(
                self.outcome.state, "failed"
            )
        return "removed"

    @property
    def _removed_since(self) -> bool:
        """Whether the document was removed after the last outcome, and not because of it."""
        gone, outcome = self.tombstone, self.outcome
        if gone is None or outcome is None or gone.reason == removal_reason(outcome.code):
            return False
        return gone.removed_time > outcome.at


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a URL waits, and until when as far as that is known (epoch seconds, 0 = it is not)."""

    reason: str
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a waiting URL depends on beside its provider: time, the LCC's zone, and who is at work.

    ``running``: whether a crawl process runs on this machine; ``paused``: whether everything is paused;
    ``paced``: how many bodies of providers with a limit a worker may have under way (0 = not known).
    """

    now: float
    zone: tzinfo
    running: bool
    workers: tuple[WorkerRow, ...] = ()
    paused: bool = False
    paced: int = 0

    def worker(self, owner: str) -> WorkerRow | None:
        """Return a worker that is alive."""
        return next((one for one in self.alive() if one.owner == owner), None)

    def alive(self) -> list[WorkerRow]:
        """Return the workers that are alive."""
        return [one for one in self.workers if one.expires > self.now]

    def anybody(self) -> bool:
        """Tell whether any crawl process is at work, here or on another machine."""
        return self.running or bool(self.alive())


def explain(
    store: Store, url: str, around: Surroundings, pids: Collection[int] | None = None, most: int | None = None
) -> list[Known]:
    """Return what is known of a URL (conceptual URL, fetch URL or docid), one entry per key.

    ``pids``: what these providers sent; None = any. ``most`` entries; None = all.
    """
    with store.read() as tx:
        keys = {key: facts for key, facts in _keys(tx, url).items() if pids is None or facts[0] in pids}
        around = replace(around, workers=tuple(tx.workers()), paused=bool(tx.info(PAUSED)))
        known = (one for key, facts in sorted(keys.items()) if (one := _known(tx, key, facts)))
        return [_with_reason(tx, one, around) for one in islice(known, most)]


Facts = tuple[int, str, str]
"""(pid, curl, mimetype)"""


def _keys(tx: Tx, url: str) -> dict[bytes, Facts]:
    found: dict[bytes, Facts] = {}
    for spelling in spellings(url):
        for rows in (tx.outcomes_named(spelling), *tx.find_url(spelling)):
            found.update({row.urlkey: (row.pid, row.curl, row.mimetype) for row in rows})
    return found


def spellings(url: str) -> set[str]:
    """Return how a URL or docid may stand in the tables, where somebody wrote it so."""
    try:
        return {url, url.lower() if len(url) == 32 else url, str(HttpUrl.parse(url))}  # noqa: PLR2004 - a docid
    except UrlRefused:
        return {url, url.lower(), storable(url)}


def in_roots_of(store: Store, url: str) -> list[int]:
    """Return the providers in whose roots a URL lies, by rising pid."""
    try:
        parsed = HttpUrl.parse(url)
    except UrlRefused:
        return []
    with store.read() as tx:
        roots = tx.rooted_at(parsed.host)
    return sorted({pid for pid, root in roots if inside(parsed, (Root.parse(root),))})


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
    if provider is None:
        return replace(known, waits=why_waiting(known, None, None, around))
    turn, host = tx.turn(provider.turnkey), host_of(known.queued.furl)
    fails = next((one for one in failing(tx, provider.turnkey) if one.host == host), None)
    work = _work(tx, turn, around)
    return replace(known, waits=why_waiting(known, provider, turn, around, work, host=fails))


@dataclass(frozen=True, slots=True)
class Work:
    """What the worker that holds a turn said last: of itself, and of a fetch in the turn that takes long.

    ``above`` counts its turns of higher priority that have URLs waiting.
    """

    worker: WorkerRow
    fetch: LongFetch | None = None
    above: int = 0


def _work(tx: Tx, turn: StoredTurn | None, around: Surroundings) -> Work | None:
    worker = around.worker(turn.owner) if turn is not None else None
    if turn is None or worker is None:
        return None
    fetch = tx.long_fetch(turn.turnkey)
    ours = fetch is not None and (fetch.owner, fetch.token) == (turn.owner, turn.token)
    return Work(worker, fetch if ours else None, tx.count_above(turn.owner, turn.priority))


def why_waiting(
    known: Known,
    provider: Provider | None,
    turn: StoredTurn | None,
    around: Surroundings,
    work: Work | None = None,
    *,
    host: FailingHost | None = None,
) -> Wait:
    """Return the one reason why a waiting URL is not fetched yet: what has to change first.

    ``host`` is how its host fails, None if it does not.
    """
    row = known.queued
    assert row is not None
    if provider is None:
        return Wait("its provider does not exist any more")
    if provider.state != State.ACTIVE:
        return Wait(f"its provider is {provider.state}; `lcc provider resume {provider.pid}` makes it active")
    if row.operation == NOTHING:
        return Wait("nothing is to be fetched: its removal arrived, and the row goes when its turn comes")
    if around.paused:
        return Wait("all fetching is paused; `lcc provider resume --all` resumes it")
    return (
        _under_way(row, work, around)
        or _closed(row, provider, around)
        or _trying_again(row, known.outcome, around, host)
        or _nobody(around)
        or _host_fails(host, known.outcome, around)
        or _delayed(turn, around)
        or _idle(work, around)
        or _others(known.before, work, around)
        or _at_work(provider, work, around)
    )


def _under_way(row: QueuedUrl, work: Work | None, around: Surroundings) -> Wait | None:
    """Tell of its own fetch, which goes on when hours close meanwhile."""
    if work is None or work.fetch is None or work.fetch.urlkey != row.urlkey:
        return None
    return Wait(
        f"it is being fetched {_progress(work.fetch, around)} (worker {work.worker.owner})", around.now
    )


def _progress(fetch: LongFetch, around: Surroundings) -> str:
    """Tell since when a fetch goes on, how far it is, and whether limits of bandwidth hold it up."""
    of = f" of {fetch.size}" if fetch.size else ""
    told = f"since {_clock(fetch.since, around.zone)}: {fetch.transferred}{of} bytes have arrived"
    if not fetch.paced:
        return told
    return f"{told}, at the pace of bandwidth limits since {_clock(fetch.paced, around.zone)}"


def _closed(row: QueuedUrl, provider: Provider, around: Surroundings) -> Wait | None:
    zone = ZoneInfo(provider.timezone) if provider.timezone else around.zone
    mask = timeslots.intersect(provider.timeofday, row.timeofday)
    opens = timeslots.next_permitted(mask, around.now, zone)
    if opens == float("inf"):
        return Wait("its hours and those of its provider never open together")
    if opens <= around.now:
        return None
    return Wait(f"its hours are closed until {_local(opens, zone)} in {zone}", opens)


def _trying_again(
    row: QueuedUrl, outcome: LastOutcome | None, around: Surroundings, host: FailingHost | None
) -> Wait | None:
    """Tell of a URL that waits by itself, not with all others of its host."""
    if row.not_before <= max(around.now, ceil(host.not_before) if host is not None else 0):
        return None
    after = f" after {outcome.code} ({outcome.text})" if outcome else ""
    at = f"{_local(row.not_before, around.zone)} in {around.zone}"
    return Wait(f"it waits to try again until {at}{after}", row.not_before)


def _nobody(around: Surroundings) -> Wait | None:
    return None if around.anybody() else Wait("no crawl process runs: start `scrapy crawl lcc_push`")


def _idle(work: Work | None, around: Surroundings) -> Wait | None:
    """Tell of the worker that has its turn, or of all where none has it, if it hands out no URL at all."""
    workers = [work.worker] if work is not None else around.alive()
    if not workers or not all(one.idle for one in workers):
        return None
    return Wait(f"worker {workers[0].owner} hands out no URL: {workers[0].idle}")


def _host_fails(host: FailingHost | None, outcome: LastOutcome | None, around: Surroundings) -> Wait | None:
    if host is None:
        return None
    what = f"; this URL: {outcome.code} ({outcome.text})" if outcome and is_host_level(outcome.code) else ""
    return Wait(f"{in_words(host, around.now)}{what}", max(host.not_before, around.now))


def _delayed(turn: StoredTurn | None, around: Surroundings) -> Wait | None:
    if turn is None or turn.not_before <= around.now:
        return None
    until = f"{_local(turn.not_before, around.zone)} in {around.zone}"
    return Wait(f"its provider's bandwidth is used up until {until}", turn.not_before)


def _others(before: int, work: Work | None, around: Surroundings) -> Wait | None:
    if not before:
        return None
    fetch = work.fetch if work is not None else None
    one = f"; one of its turn is being fetched {_progress(fetch, around)}" if fetch is not None else ""
    if before == 1:
        return Wait(f"1 other URL of its provider comes first{one}")
    return Wait(f"{before} other URLs of its provider come first{one}")


def _at_work(provider: Provider, work: Work | None, around: Surroundings) -> Wait:
    """Tell of what is first of its provider; fetches of some seconds' length are told of one by one."""
    if work is None:
        return Wait("it is the next of its provider, and a worker will take it within seconds", around.now)
    worker = work.worker
    if work.fetch is not None:
        told = _progress(work.fetch, around)
        return Wait(f"another URL of its turn is being fetched {told} (worker {worker.owner})", around.now)
    if worker.in_use >= worker.places > 0:
        return Wait(
            f"no place is free: all {worker.places} of worker {worker.owner} are in use{_above(work)}"
        )
    if provider.bandwidth and 0 < around.paced <= worker.paced:
        many = f"{worker.paced} bodies arrive at the pace of limits, as many as may (worker {worker.owner})"
        return Wait(f"{many}; a provider with a limit waits until one of them ends{_above(work)}")
    return _next(provider, worker, around)


def _next(provider: Provider, worker: WorkerRow, around: Surroundings) -> Wait:
    """Tell of a fetch that goes on for seconds only, or of a wait for bandwidth that is as short."""
    next_ = f"it is being fetched, or is the next of its provider (worker {worker.owner})"
    if not provider.bandwidth:
        return Wait(next_, around.now)
    return Wait(
        f"{next_}, whose limit of {provider.bandwidth} bytes a second may delay it by seconds", around.now
    )


def _above(work: Work) -> str:
    """Tell who gets the next free place first."""
    if not work.above:
        return ""
    return f"; {work.above} of its turns have a higher priority and go first"


def _clock(at: float, zone: tzinfo) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M:%S")


def _local(at: float, zone: tzinfo) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%a %Y-%m-%d %H:%M")
