"""The link that ends mail to a provider, or to a recipient of alerts.

It has an HMAC of the number, which nobody can make for another one.
"""

import hmac
import logging
import re
from dataclasses import replace

from lcc_scrapy.db.records import MailState
from lcc_scrapy.db.secret_facts import secret_fact
from lcc_scrapy.db.tx import Store, Tx

PATH = "/mail/unsubscribe"

_KEY = "mailkey"
"""The fact (``lccinfo``) that has the key of all links; who changes it makes all of them invalid."""

_TOKEN = re.compile(r"(?P<kind>r?)(?P<number>[1-9][0-9]{0,18})-(?P<proof>[0-9a-f]{40})", re.ASCII)
_KINDS = {"": "provider", "r": "recipient"}
_PROOF_CHARACTERS = 40
_PROVIDER, _RECIPIENT = "unsubscribe", "unsubscribe recipient"
_log = logging.getLogger(__name__)


class Unsubscribing:
    """Makes and honours links. Blocking; ``url`` is LCC_PUBLIC_URL, "" = there are no links."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        self._url = url
        self._key = b""

    def link(self, pid: int) -> str:
        """Return the link of a provider, "" where there is none."""
        return f"{self._url}{PATH}?t={pid}-{self._proof(pid, _PROVIDER)}" if self._url else ""

    def recipient_link(self, recipientid: int) -> str:
        """Return the link of a recipient of alerts, "" where there is none."""
        if not self._url:
            return ""
        return f"{self._url}{PATH}?t=r{recipientid}-{self._proof(recipientid, _RECIPIENT)}"

    def whose(self, token: str) -> str:
        """Return whose token this is, as in "provider 7"; "" = nobody's. It asks the database once."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return ""
        what, number = _KINDS[match["kind"]], int(match["number"])
        of_kind = _RECIPIENT if match["kind"] else _PROVIDER
        return f"{what} {number}" if hmac.compare_digest(self._proof(number, of_kind), match["proof"]) else ""

    def end(self, token: str) -> bool:
        """Let who has a token get no more mail; tells whether the token is good. May be repeated."""
        whose = self.whose(token)
        if not whose:
            return False
        what, _, number = whose.partition(" ")
        with self._store.begin() as tx:
            there = (_end_provider if what == "provider" else _end_recipient)(tx, int(number))
        _log.info("%s wants no more mail", whose)
        return there

    def _proof(self, number: int, of_kind: str) -> str:
        self._key = self._key or secret_fact(self._store, _KEY)
        return hmac.digest(self._key, f"{of_kind} {number}".encode(), "sha256").hex()[:_PROOF_CHARACTERS]


def _end_provider(tx: Tx, pid: int) -> bool:
    there = tx.provider(pid) is not None
    if there:
        want_mail(tx, pid, wanted=False)
    return there


def _end_recipient(tx: Tx, recipientid: int) -> bool:
    tx.lock_recipient(recipientid)
    found = tx.recipient(recipientid)
    if found is not None:
        tx.update_recipient(replace(found, off=True))
    return found is not None


def want_mail(tx: Tx, pid: int, *, wanted: bool) -> None:
    """Switch a provider's mail on or off. Switched on, an address that was refused is tried again."""
    state = tx.mail_state(pid) or MailState(pid)
    fresh = replace(state, refused="", tries=0, not_before=0) if wanted else state
    tx.put_mail_states([replace(fresh, off=not wanted)])
