"""Writing to providers, one mail after the other (decision 145). Blocking, in a thread of its own.

A mail is sent first, and then noted in a transaction: a kill between the two sends this one mail again, under
the same ``Message-ID``, and loses none.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from threading import Event

from lcc_scrapy.apps.mail.letters import Letter, Terms, known, letter
from lcc_scrapy.apps.mail.rules import MailState, wait
from lcc_scrapy.apps.mail.store import rows_in
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.mail_addresses import is_address
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.mail.sending import MailDelayed, Mailer, MailRefused, MailServerAway

PAGE = 100
"""Providers that are found at a time."""

MAILING = "mailing"
"""The fact (``lccinfo``) until when a process has the mail to itself, and its name: ``1800000000 1/0``."""

_AWAY = 3
"""Failures of the mail server itself, one after the other, after which nobody else is tried."""

_MOST = 3
"""Mails that one provider gets at a time: one of each kind."""

_GETS_MAIL = frozenset({State.ACTIVE, State.PAUSED})
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Report:
    """What became of a run. ``away`` = the mail server was; ``busy`` = another process writes now."""

    sent: int = 0
    refused: int = 0
    delayed: int = 0
    away: bool = False
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends: over what, as which LCC (a part of each ``Message-ID``), how long a mail may take."""

    mailer: Mailer
    lcc_id: str
    domain: str
    timeout: float


class Post:
    """One process's part in the mail of all. ``owner`` is its name; ``link`` gives a provider's link."""

    def __init__(
        self,
        store: Store,
        sender: Sender,
        terms: Terms,
        *,
        owner: str,
        link: Callable[[int], str],
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._sender = sender
        self._terms = terms
        self._owner = owner
        self._link = link
        self._now = now
        self._claim = 300 + int(2 * sender.timeout)
        self._until = 0
        self._failures = 0
        self.stopped = Event()
        """Once it is set, no further mail is begun."""

    def run(self, pid: int | None = None) -> Report:
        """Write to every provider that has to be told something, or to one."""
        report = Report()
        for one in self._pids() if pid is None else iter([pid]):
            if self.stopped.is_set() or self._failures >= _AWAY:
                break
            if not self._keep():
                report.busy = True
                break
            self._write(one, report)
        if self._until:
            self._end()
        report.away = self._failures >= _AWAY
        self._failures = 0
        return report

    def preview(self, pid: int | None = None) -> Iterator[tuple[Provider, Letter]]:
        """Yield what would be sent, and change nothing."""
        for one in self._pids() if pid is None else iter([pid]):
            found = self._next(one)
            if found is not None and found[2].written is not None:
                yield found[0], found[2]

    def _pids(self) -> Iterator[int]:
        after = -1
        while True:
            with self._store.read() as tx:
                page = self._page(tx, after)
            yield from page[0]
            if page[1] is None:
                return
            after = page[1]

    def _page(self, tx: Tx, after: int) -> tuple[list[int], int | None]:
        """Return some providers, and the pid behind which others may follow."""
        if self._terms.urgent:
            rows = tx.providers(after, PAGE)
            return [one.pid for one in rows], rows[-1].pid if len(rows) == PAGE else None
        pids = rows_in(tx).due(int(self._now()), after, PAGE)
        return pids, pids[-1] if len(pids) == PAGE else None

    def _write(self, pid: int, report: Report) -> None:
        for _ in range(_MOST):
            found = self._next(pid)
            if found is None:
                return
            provider, state, due = found
            if due.before != state:
                self._note(due.before)  # so that a second attempt is the same mail
            if due.written is None:
                if due.after != due.before:
                    self._note(due.after)
                return
            if not self._send(provider, due, report):
                return

    def _next(self, pid: int) -> tuple[Provider, MailState | None, Letter] | None:
        """Return a provider with what it has to be told; None = it cannot or may not be written to."""
        now = int(self._now())
        link = self._link(pid)
        with self._store.read() as tx:
            rows = rows_in(tx)
            provider, state = tx.provider(pid), rows.state(pid)
            if provider is None or provider.state not in _GETS_MAIL or not is_address(provider.contact):
                return None
            if state is not None and (state.off or state.refused == provider.contact):
                return None
            return (
                provider,
                state,
                letter(
                    rows,
                    provider,
                    known(provider, state, self._terms, now),
                    terms=self._terms,
                    link=link,
                    now=now,
                ),
            )

    def _send(self, provider: Provider, due: Letter, report: Report) -> bool:
        """Send one mail and note what became of it; tells whether it was sent."""
        assert due.written is not None
        try:
            self._sender.mailer.send(
                provider.contact, due.written.subject, due.written.text, self._headers(provider.pid, due)
            )
        except MailRefused as error:
            _log.warning("mail to provider %d (%s) is refused: %s", provider.pid, due.kind, error)
            report.refused += 1
            self._failures = 0
            self._note(replace(due.before, refused=provider.contact, tries=0))
            return False
        except MailDelayed as error:
            report.delayed += 1
            self._delay(due.before, due.kind, error)
            return False
        self._note(replace(due.after, tries=0, not_before=0))
        report.sent += 1
        self._failures = 0
        _log.info("mail to provider %d: %s", provider.pid, due.kind)
        return True

    def _delay(self, state: MailState, kind: str, error: MailDelayed) -> None:
        self._failures = self._failures + 1 if isinstance(error, MailServerAway) else 0
        tries = state.tries + 1
        seconds = wait(tries)
        _log.warning("mail to provider %d (%s) waits for %d s: %s", state.pid, kind, seconds, error)
        self._note(replace(state, tries=tries, not_before=int(self._now()) + seconds))

    def _headers(self, pid: int, due: Letter) -> dict[str, str]:
        headers = {"Message-ID": f"<{due.name}.{self._sender.lcc_id}@{self._sender.domain}>"}
        link = self._link(pid)
        if link:
            headers["List-Unsubscribe"] = f"<{link}>"
            headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        return headers

    def _note(self, state: MailState) -> None:
        """Keep what a provider was told; whether it wants mail may have changed meanwhile."""
        with self._store.begin() as tx:
            if not tx.lock_providers([state.pid]):
                return
            rows = rows_in(tx)
            stored = rows.state(state.pid)
            rows.put([replace(state, off=stored.off if stored else False)])

    # --- one process at a time -------------------------------------------------------------------

    def _keep(self) -> bool:
        """Have the mail to oneself for some time; tells whether another process has it."""
        now = int(self._now())
        if self._claim // 2 < self._until - now <= self._claim:
            return True
        with self._store.begin() as tx:
            tx.take(MAILING, 0)
            until, _, owner = (tx.info(MAILING) or "0 ").partition(" ")
            if owner != self._owner and now < int(until) <= now + 10 * self._claim:
                return False
            self._until = now + self._claim
            tx.set_info(MAILING, f"{self._until} {self._owner}")
        return True

    def _end(self) -> None:
        self._until = 0
        with self._store.begin() as tx:
            tx.take(MAILING, 0)
            if (tx.info(MAILING) or "").partition(" ")[2] == self._owner:
                tx.set_info(MAILING, "")
