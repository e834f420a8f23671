"""Verbs about the interests of owners."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from sqlalchemy import bindparam, delete, func, select, update

from lcc_scrapy.db import tables as t
from lcc_scrapy.db.sql import many
from lcc_scrapy.db.sql.counter_verbs import CounterVerbs
from lcc_scrapy.db.sql.rows import chunks
from lcc_scrapy.domain.entries import namehash
from lcc_scrapy.domain.urd_rules import due_at
from lcc_scrapy.domain.urds import Keyword, Method, Process, Urd

URDID, URD_REVISION = "urd", "urd revision"
"""The counters of URDs, and of what was changed about them; whoever changes one locks the latter first."""

NOT_BEGUN = bytes(16)
"""How far a URD was run over the cached documents when it is new: no document has this key."""

REASON_MAX = 255
REMOVALS_KEPT = 1_000_000
"""Revisions for which it is known what was removed."""

_NAMES = tuple(field.name for field in fields(Urd) if field.name != "keywords")
_WRITTEN = (*_NAMES, "due", "run_upto", "urihash", "refused")
_CHANGES = dict.fromkeys(_WRITTEN[1:], many.REPLACE)
_OF_KEYWORDS = ("urdid", "position", "key", "weight")
_ENUMS = {
    "method": "method.value",
    "processtype": "processtype.value",
}  # drivers differ in what they write of one
_values = attrgetter(*(_ENUMS.get(name, name) for name in _NAMES))
_U = t.urd.c
_COLUMNS = [_U[name] for name in _NAMES]
_CHECKED = update(t.urd).where(_U.urdid == bindparam("which"))


class UrdVerbs(CounterVerbs):
    """Verbs about the interests of owners. A URD has its keywords in the order in which they were given."""

    def add_urds(self, urds: Sequence[Urd]) -> list[Urd]:
        """Add URDs; returns them with their new numbers and revisions. Each will be run over the cache."""
        if not urds:
            return []
        revision, urdid = self.take(URD_REVISION, len(urds)), self.take(URDID, len(urds))
        added = [replace(one, urdid=urdid + at, revision=revision + at) for at, one in enumerate(urds)]
        self._write(added)
        return added

    def put_urds(self, urds: Sequence[Urd]) -> list[Urd]:
        """Add or replace URDs by their numbers, once each; returns them with their new revisions.

        Each will be run over the cache. New ones get no number that was put before.
        """
        if not urds:
            return []
        revision = self.take(URD_REVISION, len(urds))
        self._raise_numbers(max(one.urdid for one in urds))
        put = [replace(one, revision=revision + at) for at, one in enumerate(urds)]
        self._change(delete(t.urd_keyword), t.urd_keyword.c.urdid, [one.urdid for one in urds])
        self._write(put)
        return put

    def remove_urds(self, urdids: Iterable[int]) -> list[Urd]:
        """Remove URDs, each at a revision of its own; returns those that there were."""
        self.lock_urds()
        gone = sorted(self.urds(urdids).values(), key=attrgetter("urdid"))
        if not gone:
            return []
        revision, keys = self.take(URD_REVISION, len(gone)), [one.urdid for one in gone]
        self._change(delete(t.urd_keyword), t.urd_keyword.c.urdid, keys)
        self._change(delete(t.urd), _U.urdid, keys)
        rows = [(revision + at, key) for at, key in enumerate(keys)]
        many.insert(self._c, t.removed_urds.name, ("revision", "urdid"), rows)
        old = revision + len(gone) - REMOVALS_KEPT
        self._c.execute(delete(t.removed_urds).where(t.removed_urds.c.revision < old))
        return gone

    def urds(self, urdids: Iterable[int]) -> dict[int, Urd]:
        """Return the URDs with these numbers, by number."""
        rows = list(self._rows(select(*_COLUMNS), _U.urdid, sorted(set(urdids))))
        return {one.urdid: one for one in self._with_keywords(rows)}

    def urds_of(self, owner: str, after: int, limit: int) -> list[Urd]:
        """Return the URDs of an owner behind a number, by rising number."""
        query = select(*_COLUMNS).where(_U.owner == owner, _U.urdid > after)
        return self._read(query.order_by(_U.urdid), limit)

    def all_urds(self, after: int, limit: int) -> list[Urd]:
        """Return all URDs behind a number, by rising number."""
        return self._read(select(*_COLUMNS).where(_U.urdid > after).order_by(_U.urdid), limit)

    def count_urds(self, owner: str | None = None) -> int:
        """Count the URDs of an owner, or all."""
        query = select(func.count()).select_from(t.urd)
        query = query if owner is None else query.where(_U.owner == owner)
        return int(self._c.execute(query).scalar_one())

    def lock_urds(self) -> None:
        """Let nobody else change URDs until this transaction ends."""
        self.take(URD_REVISION, 0)

    # --- what changed ----------------------------------------------------------------------------

    def urd_revision(self) -> int:
        """Return the newest revision: it rises with every URD that is added, changed or removed."""
        return self.peek(URD_REVISION)

    def urds_changed(self, after: int, limit: int) -> list[Urd]:
        """Return the URDs that were added or changed behind a revision, by rising revision."""
        return self._read(select(*_COLUMNS).where(_U.revision > after).order_by(_U.revision), limit)

    def urds_removed(self, after: int, limit: int) -> list[tuple[int, int]]:
        """Return (revision, urdid) of what was removed behind a revision, by rising revision."""
        c = t.removed_urds.c
        query = select(c.revision, c.urdid).where(c.revision > after).order_by(c.revision).limit(limit)
        return [(int(revision), int(urdid)) for revision, urdid in self._c.execute(query)]

    # --- asking for pages ------------------------------------------------------------------------

    def due_urds(self, now: int, limit: int, urgency: int | None = None) -> list[Urd]:
        """Return URDs whose pages were to be asked for at ``now`` (epoch milliseconds), earliest first.

        ``urgency`` = only those that have it.
        """
        query = select(*_COLUMNS).where(_U.due <= now).order_by(_U.due, _U.urdid)
        return self._read(query if urgency is None else query.where(_U.urgency == urgency), limit)

    def next_due_urd(self) -> int | None:
        """Return when the next URD is due (epoch milliseconds, may be over); None = there are no URDs."""
        found = self._c.execute(select(func.min(_U.due))).scalar()
        return None if found is None else int(found)

    def urds_at(self, uri: str, limit: int) -> list[Urd]:
        """Return the URDs of a ``uri``, by number, without their keywords."""
        query = select(*_COLUMNS).where(_U.urihash == namehash(uri), _U.uri == uri).order_by(_U.urdid)
        return [_urd(row, ()) for row in self._c.execute(query.limit(limit))]

    def are_compared(self, uris: Iterable[str], owners: Iterable[str]) -> bool:
        """Tell whether a URD for changes has one of these ``uri``s, or belongs to one of these owners."""
        changes = select(_U.urdid).where(_U.processtype == Process.CHANGE.value).limit(1)
        hashes = [namehash(uri) for uri in uris]
        parts = [
            *((_U.urihash, part) for part in chunks(hashes)),
            *((_U.owner, one) for one in chunks(owners)),
        ]
        return any(self._c.execute(changes.where(column.in_(part))).first() for column, part in parts)

    def defer_urds(self, urdids: Collection[int], due: int, reason: str) -> None:
        """Note that pages could not be asked for, why, and when that is tried again (epoch ms)."""
        self._change(update(t.urd).values(due=due, refused=reason[:REASON_MAX]), _U.urdid, sorted(urdids))

    def refusals(self, urdids: Iterable[int]) -> dict[int, str]:
        """Return why pages could not be asked for when they were due, by the numbers of their URDs."""
        query = select(_U.urdid, _U.refused).where(_U.refused != "")
        return {int(urdid): reason for urdid, reason in self._rows(query, _U.urdid, sorted(set(urdids)))}

    def note_checks(self, urdids: Collection[int], at: int) -> None:
        """Note that pages were asked for at ``at`` (epoch milliseconds). That is no new revision."""
        checked = [replace(one, lastcheck=at) for one in self.urds(urdids).values()]
        rows = [{"which": one.urdid, "lastcheck": at, "due": due_at(one)} for one in checked]
        if rows:
            statement = _CHECKED.values(lastcheck=bindparam("lastcheck"), due=bindparam("due"), refused="")
            self._c.execute(statement, rows)

    # --- running new ones over the cache ---------------------------------------------------------

    def urds_to_run(self, limit: int) -> list[tuple[Urd, bytes]]:
        """Return URDs that are still to be run over cached documents, each with the last key it came to.

        Those that are furthest behind come first, so that all that wait go on together.
        """
        query = select(*_COLUMNS, _U.run_upto).where(_U.run_upto.is_not(None))
        rows = self._c.execute(query.order_by(_U.run_upto, _U.urdid).limit(limit)).all()
        urds = self._with_keywords([row[:-1] for row in rows])
        return [(one, bytes(row[-1])) for one, row in zip(urds, rows, strict=True)]

    def note_run(self, revisions: Collection[int], upto: bytes | None) -> None:
        """Note how far URDs came, those that have these revisions still; None = to the last document."""
        self._change(update(t.urd).values(run_upto=upto), _U.revision, revisions)

    # ---------------------------------------------------------------------------------------------

    def _raise_numbers(self, upto: int) -> None:
        behind = upto - self.take(URDID, 0) + 1
        if behind > 0:
            self.take(URDID, behind)

    def _write(self, urds: Sequence[Urd]) -> None:
        rows = [(*_values(one), due_at(one), NOT_BEGUN, namehash(one.uri), "") for one in urds]
        many.insert(self._c, t.urd.name, _WRITTEN, rows, keys=("urdid",), changes=_CHANGES)
        words = [
            (one.urdid, at, word.key, word.weight) for one in urds for at, word in enumerate(one.keywords)
        ]
        many.insert(self._c, t.urd_keyword.name, _OF_KEYWORDS, words)

    def _read(self, query: Any, limit: int) -> list[Urd]:
        return self._with_keywords(self._c.execute(query.limit(limit)).all())

    def _with_keywords(self, rows: Sequence[Any]) -> list[Urd]:
        words = self._keywords([row[0] for row in rows])
        return [_urd(row, words.get(row[0], ())) for row in rows]

    def _keywords(self, urdids: Sequence[int]) -> dict[int, tuple[Keyword, ...]]:
        c = t.urd_keyword.c
        query = select(c.urdid, c.key, c.weight).order_by(c.urdid, c.position)
        rows = (row for part in chunks(urdids) for row in self._c.execute(query.where(c.urdid.in_(part))))
        return {
            urdid: tuple(Keyword(key, weight) for _, key, weight in its)
            for urdid, its in groupby(rows, itemgetter(0))
        }


def _urd(row: Sequence[Any], keywords: tuple[Keyword, ...]) -> Urd:
    said = dict(zip(_NAMES, row, strict=True))
    said["method"], said["processtype"] = Method(said["method"]), Process(said["processtype"])
    return Urd(**said, keywords=keywords)
