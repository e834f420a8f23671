"""Keys and what waits for them, as they stand in the database; all verbs block.

What is acknowledged (200 or 202) was committed before. It waits in portions until its key is good, and is
queued from there (``queueing``), or dropped when the key proves wrong.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from lcc_scrapy.apps.indexnow.checking import Verdict
from lcc_scrapy.apps.indexnow.rules import (
    APPROVE,
    BAD,
    GOOD,
    KNOWN,
    PENDING,
    TOO_MANY,
    WRONG_KEY,
    NotTaken,
    SiteKey,
    Submission,
    folder_of,
    portions,
    touches,
)
from lcc_scrapy.apps.indexnow.settings import IndexNowRules
from lcc_scrapy.apps.indexnow.store import rows_in
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.roots import HttpUrl, Root, hosts
from lcc_scrapy.providers.registration import give_out, tell

_log = logging.getLogger(__name__)

KEYS_PER_SITE = 16
"""Keys of one host that are remembered; the protocol has one for each content management system of it."""

AGAIN = 60
"""Seconds after which to come again where there is no room."""

FIRST_PAUSE, LONGEST_PAUSE = 5, 300
"""Seconds between two checks of a key whose site does not answer; the pause doubles."""

REASON_MAX = 255

NewProvider = Callable[[int, str], Provider]
"""Makes a provider of a pid and the URL of its root, by the operator's defaults."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A submission that was stored. ``state`` is that of its key; ``waits``: for an operator's approval."""

    row: SiteKey
    state: str
    waits: bool = False


class Keys:
    """The keys of all sites. ``made`` gives new providers, where the mode has any."""

    def __init__(self, store: Store, rules: IndexNowRules, made: NewProvider) -> None:
        self._store = store
        self._rules = rules
        self._made = made

    # --- submissions -----------------------------------------------------------------------------

    def look(self, asked: Submission, now: int) -> SiteKey | None:
        """Return what is known of a key that was seen before and need not be checked now.

        Raises ``NotTaken`` 403 where the submission need not be stored: nobody here has such a host, or the
        key proved wrong lately.
        """
        with self._store.read() as tx:
            if self._rules.mode == KNOWN and not self._is_known(tx, asked):
                raise NotTaken(WRONG_KEY, f"nothing of the host {asked.site} is fetched here")
            row = rows_in(tx).site_key(asked.digest)
        if row is None or not self._holds(row, now):
            return None
        if row.state == BAD:
            raise NotTaken(WRONG_KEY, wrong(row))
        return row

    def _is_known(self, tx: Tx, asked: Submission) -> bool:
        """Tell whether somebody has roots where the URLs lie."""
        return any(touches(asked.location, root) for _, root in rooted_at(tx, asked.location))

    def _holds(self, row: SiteKey, now: int) -> bool:
        kept = self._rules.key_kept if row.state == GOOD else self._rules.wrong_kept
        return row.state != PENDING and now < row.checked + kept

    def admit(self, asked: Submission, now: int) -> Admitted:
        """Store a submission; raises ``NotTaken`` 429 where there is no room, or 403."""
        with self._store.begin() as tx:
            row = rows_in(tx).lock_site_key(asked.digest)
            if row is not None and row.state == BAD and self._holds(row, now):
                raise NotTaken(WRONG_KEY, wrong(row))
            fresh = row is None
            row = row or SiteKey(asked.digest, asked.site, asked.key, asked.location, since=now, due=now)
            if fresh:
                self._check_room_for_keys(tx, asked)
            if row.state != PENDING and not self._holds(row, now):
                row = replace(row, state=PENDING, since=now, due=now, tries=0)
            self._store_portions(tx, asked, now)
            row = replace(row, seen=now, accepted=row.accepted + len(asked.urls))
            rows_in(tx).put_site_key(row)
            return Admitted(row, row.state, waits=row.state == GOOD and self._waits(tx, row))

    def _check_room_for_keys(self, tx: Tx, asked: Submission) -> None:
        known = rows_in(tx).site_keys_of(asked.site, KEYS_PER_SITE)
        if len(known) >= KEYS_PER_SITE:
            wrong_ones = [one for one in known if one.state == BAD]
            if not wrong_ones:
                raise NotTaken(TOO_MANY, f"{asked.site} has {KEYS_PER_SITE} keys already", AGAIN)
            # whoever makes keys up does not keep the site's own one out
            rows_in(tx).delete_site_keys([min(wrong_ones, key=lambda one: one.seen).digest])
        if rows_in(tx).count_site_keys(GOOD) >= self._rules.keys:
            raise NotTaken(TOO_MANY, "there is no room for keys of further sites", AGAIN)

    def _store_portions(self, tx: Tx, asked: Submission, now: int) -> None:
        new = list(portions(asked, now))
        size = sum(row.size for row in new)
        if rows_in(tx).portions_waiting(asked.site) + size > self._rules.waiting_site:
            raise NotTaken(TOO_MANY, f"too many URLs of {asked.site} wait", AGAIN)
        if rows_in(tx).portions_waiting() + size > self._rules.waiting:
            raise NotTaken(TOO_MANY, "too many URLs of all sites wait", AGAIN)
        rows_in(tx).add_portions(new)

    def waits(self, row: SiteKey) -> bool:
        """Tell whether the provider of a key's scope still waits for an operator's approval."""
        with self._store.read() as tx:
            return self._waits(tx, row)

    def _waits(self, tx: Tx, row: SiteKey) -> bool:
        scope = folder_of(HttpUrl.parse(row.location))
        covering = [pid for pid, root in rooted_at(tx, row.location) if root.covers(scope)]
        states = {one.state for one in tx.providers_of(covering).values()}
        return states == {State.PENDING}

    # --- checks ----------------------------------------------------------------------------------

    def may_be_private(self, location: str) -> bool:
        """Tell whether a host may have a private address: a provider with roots there is allowed to."""
        url = HttpUrl.parse(location)
        with self._store.read() as tx:
            rooted = rooted_at(tx, location)
            allowed = {
                pid for pid, one in tx.providers_of({pid for pid, _ in rooted}).items() if one.allowprivate
            }
        return url.netloc in hosts(tuple(root for pid, root in rooted if pid in allowed))

    def due(self, now: int, limit: int) -> list[SiteKey]:
        """Return pending keys that are to be checked."""
        with self._store.read() as tx:
            return rows_in(tx).site_keys_due(PENDING, now, limit)

    def settle(self, row: SiteKey, verdict: Verdict, now: int) -> SiteKey | None:
        """Note what a check said, and what follows; returns the key as it is then, None = forgotten."""
        with self._store.begin() as tx:
            known = rows_in(tx).lock_site_key(row.digest)
            if known is None:
                return None
            after = self._after(known, verdict, now)
            if after.state == GOOD:
                self._provide(tx, after, now)
            dropped = rows_in(tx).drop_portions_of(row.digest) if after.state == BAD else 0
            after = replace(after, refused=after.refused + dropped)
            rows_in(tx).put_site_key(after)
        _tell(after, dropped)
        return after

    def _after(self, row: SiteKey, verdict: Verdict, now: int) -> SiteKey:
        reason = verdict.reason.encode("ascii", "backslashreplace").decode()[:REASON_MAX]
        if verdict.state == PENDING and now - row.since < self._rules.patience:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(row.tries, 10))
            return replace(row, due=now + pause, tries=row.tries + 1, reason=reason)
        state = GOOD if verdict.state == GOOD else BAD
        return replace(row, state=state, checked=now, tries=0, reason=reason)

    def _provide(self, tx: Tx, row: SiteKey, now: int) -> None:
        """Make a provider of a scope that nobody's root covers, where the mode says so."""
        if self._rules.mode == KNOWN:
            return
        scope = folder_of(HttpUrl.parse(row.location))
        pid = give_out(tx)  # first: whoever takes a number waits here until we have committed our roots
        if any(root.covers(scope) for _, root in rooted_at(tx, row.location)):
            return
        state = State.PENDING if self._rules.mode == APPROVE else State.ACTIVE
        tx.insert_provider(replace(self._made(pid, str(scope)), state=state, created=now), [str(scope)])
        tell(tx, pid)
        told = {"pid": pid, "state": str(state), "root": str(scope)}
        _log.info("IndexNow: provider %(pid)d (%(state)s) was added for %(root)s", told)

    # --- what becomes old ------------------------------------------------------------------------

    def expire(self, now: int) -> None:
        """Forget some of what is too old."""
        rules = self._rules
        with self._store.begin() as tx:
            rows_in(tx).forget_site_keys(BAD, now - int(rules.wrong_kept))
            rows_in(tx).forget_site_keys(GOOD, now - int(rules.kept))
            rows_in(tx).forget_site_keys(PENDING, now - int(rules.kept))
            dropped = rows_in(tx).drop_portions(now - int(rules.kept))
        if dropped:
            _log.warning(
                "IndexNow: %(count)d portions of URLs waited too long and were dropped", {"count": dropped}
            )


def all_keys(store: Store) -> list[tuple[SiteKey, int]]:
    """Return all keys, by site, each with how many URLs of its site wait."""
    found: list[tuple[SiteKey, int]] = []
    after = ("", "")
    while True:
        with store.read() as tx:
            page = rows_in(tx).site_keys(after)
            found += [(row, rows_in(tx).urls_waiting(row.site)) for row in page]
        if not page:
            return found
        after = page[-1].site, page[-1].digest


def forget_site(store: Store, site: str) -> int:
    """Forget the keys of a site and what waits for them; returns how many keys."""
    with store.begin() as tx:
        gone = rows_in(tx).site_keys_of(site)
        for row in gone:
            rows_in(tx).drop_portions_of(row.digest)
        rows_in(tx).delete_site_keys([row.digest for row in gone])
        return len(gone)


def rooted_at(tx: Tx, url: str) -> list[tuple[int, Root]]:
    """Return the roots of all providers on the host of a URL."""
    host = HttpUrl.parse(url).host
    parsed = ((pid, Root.parse(root)) for pid, root in tx.rooted_at(host))
    return [(pid, root) for pid, root in parsed if root.url.host == host]


def wrong(row: SiteKey) -> str:
    """Say to a stranger that a key is wrong; the precise reason is for the operator."""
    return f"the key was not found at {row.location}, alone in a file"


def _tell(row: SiteKey, dropped: int) -> None:
    facts = {"site": row.site, "key": row.digest[:12], "reason": row.reason, "dropped": dropped}
    if row.state == GOOD:
        _log.info("IndexNow: the key %(key)s of %(site)s is good", facts)
    elif row.state == BAD:
        _log.warning(
            "IndexNow: the key %(key)s of %(site)s is wrong (%(reason)s): %(dropped)d URLs dropped", facts
        )
