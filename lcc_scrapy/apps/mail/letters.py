"""What a provider has to be told now: one mail, and what it will have been told then."""

from dataclasses import dataclass, replace
from datetime import time, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lcc_scrapy.apps.mail import texts
from lcc_scrapy.apps.mail.rules import DAY, MARGIN, MailState, Told, is_news, still_told
from lcc_scrapy.apps.mail.store import MailRows
from lcc_scrapy.apps.mail.texts import Around, Written
from lcc_scrapy.domain.convergence import is_mismatching
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.timeslots import next_at


@dataclass(frozen=True, slots=True)
class Terms:
    """The operator's choices for all mails. ``hour`` None = no digests; ``zone`` is for providers without.

    ``urgent``: digests are due now, whatever the hour.
    """

    hour: time | None
    zone: tzinfo
    operator: str = ""
    urgent: bool = False


class Letter(NamedTuple):
    """A mail of a ``kind`` (``written`` None = nothing is to be said), and the state before and after it.

    ``name`` is the same whenever this very mail is sent: a mailbox may drop a second one.
    """

    kind: str
    name: str
    written: Written | None
    before: MailState
    after: MailState


def known(provider: Provider, state: MailState | None, terms: Terms, now: int) -> MailState:
    """Return what a provider was told; the first digest tells of a day. Times in epoch seconds."""
    stored = state or MailState(provider.pid)
    return stored if stored.since else replace(stored, since=now - DAY, due=_next(provider, terms, now))


def letter(
    rows: MailRows, provider: Provider, state: MailState, *, terms: Terms, link: str, now: int
) -> Letter:
    """Return what a provider has to be told first, when it knows what ``state`` says."""
    around = Around(provider.pid, provider.name, link, terms.operator)
    if is_news(provider.fullsetwanted, Told(state.wanted, state.wanted_at), now):
        after = replace(state, wanted=str(provider.fullsetwanted), wanted_at=now)
        written = texts.full_set_wanted(around, provider.fullsetwanted)
        return Letter("full set wanted", f"fullset-{provider.pid}-{state.wanted_at}", written, state, after)
    if is_news(provider.heldremovals, Told(state.held, state.held_at), now):
        after = replace(state, held=provider.heldremovals, held_at=now)
        written = texts.removals_held(around, provider.heldremovals)
        return Letter("removals held", f"held-{provider.pid}-{state.held_at}", written, state, after)
    quiet = _quiet(provider, state, terms, now)
    if terms.hour is None or not (state.due <= now or terms.urgent):
        return Letter("", "", None, state, quiet)
    upto = max(state.since, (now if terms.urgent else state.due) - MARGIN)
    return _digest(rows, provider, state, replace(quiet, since=upto), around)


def _digest(rows: MailRows, provider: Provider, state: MailState, after: MailState, around: Around) -> Letter:
    """Word the errors between two moments that a second attempt would find too."""
    counts = rows.count_url_errors(state.pid, state.since, after.since)
    if not counts:
        return Letter("", "", None, state, after)
    newest = rows.newest_url_errors(state.pid, state.since, after.since, texts.URLS)
    mismatching = is_mismatching(provider.mismatched)
    written = texts.digest(around, counts, newest, state.since, mismatching=mismatching)
    return Letter("digest", f"digest-{state.pid}-{state.since}-{after.since}", written, state, after)


def _quiet(provider: Provider, state: MailState, terms: Terms, now: int) -> MailState:
    """Return the state when there is no note: what does not stand any more will be news again."""
    return replace(
        state,
        wanted=str(still_told(provider.fullsetwanted, state.wanted)),
        held=int(still_told(provider.heldremovals, state.held)),
        due=state.due if state.due > now else _next(provider, terms, now),
    )


def _next(provider: Provider, terms: Terms, now: int) -> int:
    if terms.hour is None:
        return now + DAY
    return next_at(terms.hour, now, ZoneInfo(provider.timezone) if provider.timezone else terms.zone)
