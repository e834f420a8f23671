"""A trial: one URL of a provider is fetched in a throw-away LCC that holds nothing else.

What the provider may and what is known of the URL is copied into the trial's store; the real one is only
read, and knows of the trial by the turn that is taken for it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from lcc_scrapy.db.records import LEASE, TurnDelta, WorkerRow
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain import retries, timeslots
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.convergence import MISMATCHES
from lcc_scrapy.domain.entries import UrlEntry, urlkey
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.queue import FETCH, Place, QueuedUrl, update_row
from lcc_scrapy.machine.data_directory import WorkerSlot
from lcc_scrapy.providers.registration import find
from lcc_scrapy.queue.leases import reap
from lcc_scrapy.queue.unit_of_work import UnitOfWork

_PLACE = Place(1, 1)
_COPY = 0
"""The file id that the copy has in a trial, where ids begin anew with 1."""


class TurnTaken(LccError):
    """A crawl holds the provider's turn, and may have a fetch in flight."""

    def __init__(self, provider: Provider, owner: str) -> None:
        super().__init__(
            f"worker {owner} holds the turn of provider {provider.pid}, from which nobody fetches twice at a"
            f" time: run `lcc provider pause {provider.pid}` and try again, or say --anyway"
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """A URL to be tried, as its provider declared it; ``copy`` is what the cache holds of it."""

    provider: Provider
    roots: tuple[str, ...]
    row: QueuedUrl
    copy: CachedUrl | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What would become of a URL. ``code`` and ``text`` are what its provider would be told, 0 = nothing.

    ``same``: the content is the one in the cache. ``again``: before it is told, it is tried again.
    ``removes``: the copy in the cache would go.
    """

    stored: bool
    code: int
    text: str
    same: bool
    again: bool
    removes: bool


# --- in the real store -------------------------------------------------------------------------------


def subject(store: Store, pid: int, furl: str) -> Subject:
    """Return what is known of a fetch URL of a provider: of its views, one that waits before a cached one.

    Raises ``NoSuchProvider``. A URL that is not known is taken as declared without anything.
    """
    with store.read() as tx:
        provider, roots = find(tx, pid), tuple(tx.roots(pid))
        cached, queued, _ = tx.find_url(furl)
        row = next((_fresh(row) for row in queued if (row.pid, row.furl) == (pid, furl)), None)
        copy = next((row for row in cached if (row.pid, row.furl) == (pid, furl)), None)
        if row is not None:
            copy = tx.cached([row.urlkey]).get(row.urlkey)
    entry = copy.as_entry() if copy else UrlEntry(furl, "*/*", furl=furl, burl=furl)
    row = row or update_row(entry, urlkey(pid, entry.curl, entry.mimetype), pid, _PLACE)
    return Subject(provider, roots, replace(row, timeofday=timeslots.ALWAYS), copy)


def _fresh(row: QueuedUrl) -> QueuedUrl:
    row = replace(row, psetid=_PLACE.psetid, position=_PLACE.position, operation=FETCH, version=1)
    return replace(row, tries=0, not_before=0, last_etag="")


@contextmanager
def turn_of(store: Store, provider: Provider, slot: WorkerSlot, now: int, seconds: int) -> Iterator[None]:
    """Hold a provider's turn, so that no crawl fetches from it meanwhile; raises ``TurnTaken``.

    It ends after ``seconds`` in any case; when the process is killed, crawls on its machine take it at once.
    """
    with store.begin() as tx:
        token = tx.take(LEASE, 1)  # from here on workers wait, so nobody takes the turn meanwhile
        tx.add_to_turns({provider.turnkey: TurnDelta(priority=provider.priority)})
        reap(tx, slot.owner, now, slot.dead_owners())
        holder = tx.lock_turns([provider.turnkey])[provider.turnkey].owner
        if holder not in {"", slot.owner}:
            raise TurnTaken(provider, holder)
        tx.put_worker(WorkerRow(slot.owner, token, slot.machineid, os.getpid(), now, now + seconds, held=1))
        tx.lease_turns([provider.turnkey], slot.owner, token)
    try:
        yield
    finally:
        with suppress(StoreUnavailable), store.begin() as tx:  # the end of the process frees it too
            tx.free_turns_of(slot.owner)
            tx.drop_worker(slot.owner)


# --- in the trial's store ----------------------------------------------------------------------------


def furnish(store: Store, tried: Subject) -> None:
    """Put a URL, its provider and its copy into the store of a trial, ready to be fetched.

    Neither hours nor a pause hold it up, and the copy brings no validators: the body is wanted.
    """
    used = (1, tried.copy.space) if tried.copy else (0, 0)
    provider = replace(
        tried.provider,
        password="",
        state=State.ACTIVE,
        timeofday=timeslots.ALWAYS,
        turngroup="",
        nurlerrs=0,
        nurlproc=0,
        fileused=max(0, tried.provider.fileused - used[0]),
        spaceused=max(0, tried.provider.spaceused - used[1]),
    )
    with store.begin() as tx:
        tx.insert_provider(provider, tried.roots)
        batch = UnitOfWork(tx, [provider.pid], [tried.row.urlkey], 0, QueuePolicy())
        batch.put_queued(tried.row)
        if tried.copy:
            copy = replace(
                tried.copy, fetched_fileid=_COPY, etag="", last_modified="", confirmed_time=0, held=0
            )
            batch.put_cached(copy, tell=False)
        batch.flush()


def verdict(store: Store, tried: Subject, delays: tuple[float, ...]) -> Verdict | None:
    """Return what became of a URL in its trial, or None when it was not fetched to its end.

    ``delays`` are those of the real LCC's retries.
    """
    pid, key = tried.row.pid, tried.row.urlkey
    with store.read() as tx:
        if tx.queued([key]):
            return None
        told = tx.errors(pid, 1)
        now = tx.cached([key]).get(key)
    code, text = (told[0].code, told[0].text) if told else (0, "")
    mismatch = code in MISMATCHES
    kept = now is not None and now.fetched_fileid == _COPY
    stored = now is not None and now.confirmed_time > 0 and not (mismatch and kept)
    return Verdict(
        stored=stored,
        code=code,
        text=text,
        same=stored and kept,
        again=(mismatch or not stored) and _is_tried_again(code, delays),
        removes=tried.copy is not None and now is None,
    )


def _is_tried_again(code: int, delays: tuple[float, ...]) -> bool:
    decision = retries.after_failure(code, 0, 0.0, delays, declared=True)
    tried = isinstance(decision, retries.Retry) or (code in MISMATCHES and bool(delays))
    return retries.is_host_level(code) or tried
