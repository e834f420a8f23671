"""The link that ends a provider's mail: with an HMAC of its pid, which nobody can make for another one."""

import hmac
import logging
import re
import secrets
from dataclasses import replace

from lcc_scrapy.db.records import MailState
from lcc_scrapy.db.tx import Store, Tx

PATH = "/mail/unsubscribe"

_KEY = "mailkey"
"""The fact (``lccinfo``) that has the key of all links; who changes it makes all of them invalid."""

_TOKEN = re.compile(r"(?P<pid>[1-9][0-9]{0,18})-(?P<proof>[0-9a-f]{40})", re.ASCII)
_PROOF_CHARACTERS = 40
_log = logging.getLogger(__name__)


class Unsubscribing:
    """Makes and honours links. Blocking; ``url`` is LCC_PUBLIC_URL, "" = there are no links."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        self._url = url
        self._key = b""

    def link(self, pid: int) -> str:
        """Return the link of a provider, "" where there is none."""
        return f"{self._url}{PATH}?t={pid}-{self._proof(pid)}" if self._url else ""

    def pid_of(self, token: str) -> int | None:
        """Return whose token this is; None = nobody's. It asks the database once in a process."""
        match = _TOKEN.fullmatch(token)
        if match is None or not hmac.compare_digest(self._proof(int(match["pid"])), match["proof"]):
            return None
        return int(match["pid"])

    def end(self, token: str) -> bool:
        """Let the provider of a token get no more mail; tells whether the token is good. May be repeated."""
        pid = self.pid_of(token)
        if pid is None:
            return False
        with self._store.begin() as tx:
            there = tx.provider(pid) is not None
            if there:
                want_mail(tx, pid, wanted=False)
        _log.info("provider %d wants no more mail", pid)
        return there

    def _proof(self, pid: int) -> str:
        self._key = self._key or self._read_key()
        return hmac.digest(self._key, f"unsubscribe {pid}".encode(), "sha256").hex()[:_PROOF_CHARACTERS]

    def _read_key(self) -> bytes:
        with self._store.read() as tx:
            known = tx.info(_KEY)
        return bytes.fromhex(known or self._make_key())

    def _make_key(self) -> str:
        with self._store.begin() as tx:
            tx.take(_KEY, 0)  # whoever comes second waits here, and finds it
            known = tx.info(_KEY) or secrets.token_hex(32)
            tx.set_info(_KEY, known)
        return known


def want_mail(tx: Tx, pid: int, *, wanted: bool) -> None:
    """Switch a provider's mail on or off. Switched on, an address that was refused is tried again."""
    state = tx.mail_state(pid) or MailState(pid)
    fresh = replace(state, refused="", tries=0, not_before=0) if wanted else state
    tx.put_mail_states([replace(fresh, off=not wanted)])
