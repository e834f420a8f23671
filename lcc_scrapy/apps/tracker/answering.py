"""What a client is answered: look-ups by the rules for its network; all front ends share it (seed 004)."""

from collections.abc import Sequence
from dataclasses import dataclass

from lcc_scrapy.apps.tracker.lookup import Found, Replica, look_up, look_up_identity
from lcc_scrapy.apps.tracker.rules.policy import Policy, Rules
from lcc_scrapy.apps.tracker.rules.tracked import Place, checked_domain
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError

URN = "urn:x-tracker:"
_HEX = 32

MOST = 1000
"""Replicas of one answer at most."""


class BadUrn(LccError):
    """A name that is not ``urn:x-tracker:`` and 32 hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found for a client, and the rules for its network (``answer``: redirect or list)."""

    found: Found
    rules: Rules


@dataclass(frozen=True, slots=True)
class Answering:
    """Looks up for clients; ``limit`` is how many replicas an answer has if no other number is asked for.

    The address "" is that of somebody who has none: the rules for all others hold. Blocking.
    """

    store: Store
    policy: Policy
    limit: int

    def of_url(self, url: str, address: str, tld: Sequence[str] = (), limit: int | None = None) -> Answer:
        """Look a URL up for an address; raises ``UrlRefused``, ``BadDomain``, ``BadAddress``."""
        place, rules = Place.parse(url), self._rules(address, tld)
        return Answer(look_up(self.store, place, rules, self._most(limit)), rules)

    def of_urn(self, urn: str, address: str, limit: int | None = None) -> tuple[Replica, ...]:
        """Return the directories that a URN names; raises ``BadUrn``, ``BadAddress``."""
        rules = self._rules(address, ())
        return look_up_identity(self.store, identity_of(urn), rules, self._most(limit))

    def _rules(self, address: str, tld: Sequence[str]) -> Rules:
        rules = self.policy.of(address) if address else self.policy.others
        return rules.only(tuple(map(checked_domain, tld)))

    def _most(self, limit: int | None) -> int:
        return min(self.limit if limit is None else limit, MOST)


def identity_of(urn: str) -> bytes:
    """Return the MD5 in a URN, whose beginning is in any case (RFC 8141); raises ``BadUrn``."""
    digits = urn[len(URN) :]
    if urn[: len(URN)].lower() != URN or len(digits) != _HEX:
        raise BadUrn(f"not {URN} and {_HEX} hexadecimal digits: {urn[:80]!r}")
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise BadUrn(f"not {URN} and {_HEX} hexadecimal digits: {urn[:80]!r}") from None
