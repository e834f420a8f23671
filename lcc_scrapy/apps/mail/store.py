"""What each provider was told by mail, what happened since, and whether it wants mail, as rows."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import and_, func, or_, select

from lcc_scrapy.apps.mail.rules import MailState
from lcc_scrapy.apps.mail.tables import mailstates
from lcc_scrapy.db import tables as t
from lcc_scrapy.db.records import OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_STORED, LastOutcome
from lcc_scrapy.db.sql.rows import NAMEHASHES, OnConnection, RowsOf
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.mail.unsubscribing import Subscribers
from lcc_scrapy.providers.registration import ProviderHook

_STATES = RowsOf(mailstates, MailState)
_OUTCOMES = RowsOf(t.outcomes, LastOutcome, NAMEHASHES)
_ERRORS = (OUTCOME_FAILED, OUTCOME_REFUSED, OUTCOME_STORED)


class MailRows(OnConnection):
    """What one transaction can do with them."""

    def state(self, pid: int) -> MailState | None:
        """Return what a provider was told by mail; None = nothing yet."""
        return next(iter(_STATES.by_keys(self._c, [pid])), None)

    def put(self, rows: Sequence[MailState]) -> None:
        """Keep what providers were told."""
        _STATES.replace(self._c, rows)

    def want(self, pid: int, *, wanted: bool) -> None:
        """Switch a provider's mail on or off. Switched on, an address that was refused is tried again."""
        state = self.state(pid) or MailState(pid)
        fresh = replace(state, refused="", tries=0, not_before=0) if wanted else state
        self.put([replace(fresh, off=not wanted)])

    def forget(self, pid: int) -> None:
        """Forget what a provider was told."""
        _STATES.delete(self._c, [pid])

    def due(self, now: int, after: int, limit: int) -> list[int]:
        """Return the providers (rising) that may have to be written to, or were not looked at before.

        They have an address that is not refused, and want mail. Their digest is due, or the wish for a full
        set or the number of held removals is not what they were told.
        """
        p, m = t.pidb.c, mailstates.c
        changed = or_(m.due <= now, m.wanted != p.fullsetwanted, m.held != p.heldremovals)
        ready = and_(m.off.is_(False), m.not_before <= now, m.refused != p.contact, changed)
        query = select(p.pid).select_from(t.pidb.outerjoin(mailstates, m.pid == p.pid))
        query = query.where(p.pid > after, p.contact.contains("@"), or_(m.pid.is_(None), ready))
        return list(self._c.execute(query.order_by(p.pid).limit(limit)).scalars())

    def count_url_errors(self, pid: int, since: int, upto: int) -> dict[int, int]:
        """Return by code how many of a provider's URLs failed or were refused in ``since < at <= upto``."""
        o = t.outcomes.c
        query = select(o.code, func.count()).where(o.pid == pid, o.state.in_(_ERRORS))
        rows = self._c.execute(query.where(o.at > since, o.at <= upto).group_by(o.code))
        return {int(code): int(count) for code, count in rows}

    def newest_url_errors(self, pid: int, since: int, upto: int, limit: int) -> list[LastOutcome]:
        """Return the newest of these, newest first; each state has a question of its own for the index."""
        o = t.outcomes.c
        found: list[LastOutcome] = []
        for state in _ERRORS:
            query = _OUTCOMES.select().where(o.pid == pid, o.state == state, o.at > since, o.at <= upto)
            newest = query.order_by(o.at.desc(), o.urlkey.desc()).limit(limit)
            found.extend(_OUTCOMES.read(self._c, newest))
        return sorted(found, key=lambda one: (one.at, one.urlkey), reverse=True)[:limit]


def rows_in(tx: Tx) -> MailRows:
    """Return the rows of this app in a transaction."""
    return MailRows.over(tx)


def _end(tx: Tx, pid: int) -> bool:
    there = tx.provider(pid) is not None
    if there:
        rows_in(tx).want(pid, wanted=False)
    return there


SUBSCRIBERS = Subscribers("", "provider", "its URLs", _end)


class _Removal:
    def removed(self, tx: Tx, pid: int, limit: int) -> bool:  # noqa: ARG002 - it has one row
        rows_in(tx).forget(pid)
        return False


REMOVAL: ProviderHook = _Removal()
