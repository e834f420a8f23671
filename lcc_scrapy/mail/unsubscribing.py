"""The link that ends mail to one subscriber: a provider, a recipient of alerts.

It has an HMAC of the number, which nobody can make for another one.
"""

import hmac
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lcc_scrapy.db.secret_facts import secret_fact
from lcc_scrapy.db.tx import Store, Tx

PATH = "/mail/unsubscribe"

_KEY = "mailkey"
"""The fact (``lccinfo``) that has the key of all links; who changes it makes all of them invalid."""

_TOKEN = re.compile(r"(?P<letter>[a-z]?)(?P<number>[1-9][0-9]{0,18})-(?P<proof>[0-9a-f]{40})", re.ASCII)
_PROOF_CHARACTERS = 40
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Subscribers:
    """Who gets one kind of mail, each known by a number: ``App.subscribers``."""

    letter: str
    """Stands before the number in a token; no two kinds have the same."""
    name: str
    """What one of them is: ``provider``."""
    about: str
    """What the mail is about: ``its URLs``."""
    end: Callable[[Tx, int], bool]
    """Lets one get no more mail; tells whether there is such a one. May be repeated."""


class Unsubscribing:
    """Makes links, and honours those of some ``kinds``. Blocking.

    ``url`` is LCC_PUBLIC_URL, "" = there are no links.
    """

    def __init__(self, store: Store, url: str, kinds: Iterable[Subscribers] = ()) -> None:
        self._store = store
        self._url = url
        self._kinds = {one.letter: one for one in kinds}
        self._key = b""

    def link(self, kind: Subscribers, number: int) -> str:
        """Return the link of a subscriber, "" where there is none."""
        if not self._url:
            return ""
        return f"{self._url}{PATH}?t={kind.letter}{number}-{self._proof(kind, number)}"

    def find(self, token: str) -> tuple[Subscribers, int] | None:
        """Return whose token this is, None = nobody's. It asks the database once."""
        match = _TOKEN.fullmatch(token)
        kind = self._kinds.get(match["letter"]) if match else None
        if match is None or kind is None:
            return None
        number = int(match["number"])
        return (kind, number) if hmac.compare_digest(self._proof(kind, number), match["proof"]) else None

    def end(self, token: str) -> bool:
        """Let who has a token get no more mail; tells whether the token is good. May be repeated."""
        found = self.find(token)
        if found is None:
            return False
        kind, number = found
        with self._store.begin() as tx:
            there = kind.end(tx, number)
        _log.info("%s %d wants no more mail", kind.name, number)
        return there

    def _proof(self, kind: Subscribers, number: int) -> str:
        self._key = self._key or secret_fact(self._store, _KEY)
        proved = f"unsubscribe {kind.name} {number}" if kind.letter else f"unsubscribe {number}"
        return hmac.digest(self._key, proved.encode(), "sha256").hex()[:_PROOF_CHARACTERS]
