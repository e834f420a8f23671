"""What waits for the annotation engine, and how it came there: from the feed, or because URDs are new.

Each function does its part of one transaction; the queue and how far its sources were read change together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lcc_scrapy.annotation.jobs import docbase_of
from lcc_scrapy.db.records import AE_PEAK, AE_POSITION, AE_SKIPPED, ANNOTATED, FEED, Ownership
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.acis import Waiting
from lcc_scrapy.domain.annotation_queue import merged, named
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.directives import NOBODY
from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.urd_scopes import UrdScopes
from lcc_scrapy.feed.plain_text import is_text

PORTION = 500
"""Changes of the feed, or cached documents, that one transaction looks at."""

RUN_URDS = 1000
"""New URDs that are run over the cached documents together."""

RUN_ROOM = 100
"""Documents that wait because of new URDs: what is fetched meanwhile waits for no more of them."""


@dataclass(frozen=True, slots=True)
class Queued:
    """What one step did: changes that were read, documents that wait now, whether there may be more."""

    read: int = 0
    added: int = 0
    more: bool = False


def cursor_of(tx: Tx) -> int | None:
    """Return up to which seq the feed was read; None = never yet."""
    text = tx.info(ANNOTATED)
    return int(text) if text else None


def has_news(tx: Tx) -> bool:
    """Tell, at little cost, whether there is anything to be taken from the feed or to be run over."""
    return cursor_of(tx) != tx.peek(FEED) or bool(tx.urds_to_run(1))


def begin(tx: Tx) -> None:
    """Begin at the end of the feed, once: what is cached before that, new URDs are run over."""
    if cursor_of(tx) is None:
        tx.set_info(ANNOTATED, str(tx.peek(FEED)))


def take_changes(tx: Tx, bound: int, now: int, *, changes_of_all: bool) -> Queued:
    """Let the next changes wait, as far as the queue's ``bound`` permits; ``now`` in epoch milliseconds.

    Documents without a text are left out, unless somebody wants to know their changes (``changes_of_all``).
    """
    cursor = cursor_of(tx) or 0
    limit = min(bound - tx.waiting_count(), PORTION)
    changes = tx.changes(cursor, limit) if limit > 0 else []
    if not changes:
        return Queued(more=limit <= 0)
    documents = [row for row in changes if isinstance(row, CachedUrl)]
    wanted = [row for row in documents if changes_of_all or is_text(row.served_type or row.mimetype)]
    _expire(tx, changes)
    base = max(cursor, 1)
    _let_wait(tx, [Waiting(row.urlkey, row.seq, 0, now, "", base) for row in wanted])
    tx.set_info(ANNOTATED, str(changes[-1].seq))
    if len(wanted) < len(documents):
        tx.take(AE_SKIPPED, len(documents) - len(wanted))
    return Queued(len(changes), len(wanted), more=len(changes) == limit)


def _expire(tx: Tx, changes: Sequence[CachedUrl | Tombstone]) -> None:
    """Note that ACIs tell of a content which the cache has no more."""
    contents = {row.urlkey: docbase_of(row) if isinstance(row, CachedUrl) else "" for row in changes}
    old = tx.unexpired(contents)
    tx.expire_acis([key for key, docbase in old if docbase != contents[key[0]]])


def _let_wait(tx: Tx, new: Sequence[Waiting]) -> None:
    """Let documents wait, each once; those that wait already keep their places."""
    if not new:
        return
    there = tx.waiting_rows(row.urlkey for row in new)
    position = tx.take(AE_POSITION, len(new))
    tx.enqueue([merged(there.get(row.urlkey), _at(row, position + at)) for at, row in enumerate(new)])
    higher = tx.waiting_count() - tx.peek(AE_PEAK)
    if higher > 0:
        tx.take(AE_PEAK, higher)


def _at(row: Waiting, position: int) -> Waiting:
    return Waiting(row.urlkey, row.seq, position, row.since, row.urdids, row.base)


# --- new URDs ------------------------------------------------------------------------------------


def run_over_cache(tx: Tx, bound: int, now: int) -> Queued:
    """Let cached documents wait for URDs that are new or changed, while few documents wait.

    All such URDs that are equally far go on together, by rising key of the documents.
    """
    room = min(RUN_ROOM, bound) - tx.waiting_count()
    if room <= 0:
        return Queued(more=bool(tx.urds_to_run(1)))
    batch = tx.urds_to_run(RUN_URDS)
    if not batch:
        return Queued()
    begun = batch[0][1]
    urds = [urd for urd, upto in batch if upto == begun and not urd.has_expired(now)]
    ahead = min((upto for _, upto in batch if upto > begun), default=None)
    documents, upto = _next_documents(tx, begun, ahead)
    waiting, cut = _in_scope(tx, documents, UrdScopes(urds), now, room)
    _let_wait(tx, waiting)
    revisions = [urd.revision for urd, at in batch if at == begun]
    tx.note_run(revisions, cut or upto)
    return Queued(len(documents), len(waiting), more=True)


def _next_documents(tx: Tx, after: bytes, ahead: bytes | None) -> tuple[list[CachedUrl], bytes | None]:
    """Return documents behind a key, up to where other URDs are, and how far that is; None = to the last."""
    documents = tx.documents(after, PORTION)
    upto = documents[-1].urlkey if len(documents) == PORTION else None
    if ahead is not None and (upto is None or ahead < upto):
        return [row for row in documents if row.urlkey <= ahead], ahead
    return documents, upto


def _in_scope(
    tx: Tx, documents: Sequence[CachedUrl], scopes: UrdScopes, now: int, room: int
) -> tuple[list[Waiting], bytes | None]:
    """Return which of the documents are to wait, and the key of the last one where there is no more room."""
    owners = owners_of(tx, documents)
    found: list[Waiting] = []
    for row in documents:
        urdids = scopes.of(row.furl, owners[row.urlkey]) if is_text(row.served_type or row.mimetype) else ()
        if urdids:
            found.append(Waiting(row.urlkey, row.seq, 0, now, named(set(urdids))))
            if len(found) == room:
                return found, row.urlkey
    return found, None


def owners_of(tx: Tx, documents: Sequence[CachedUrl]) -> Mapping[bytes, tuple[str, ...]]:
    """Return by urlkey who asked for documents, or for those that lead there."""
    keys = {row.urlkey: furlkey(row.pid, row.furl) for row in documents}
    found: Mapping[bytes, Sequence[Ownership]] = tx.owners_of(set(keys.values()))
    return {
        key: tuple(one.owner for one in found.get(its, ()) if one.owner != NOBODY)
        for key, its in keys.items()
    }
