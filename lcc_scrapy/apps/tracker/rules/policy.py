"""Who is offered which mirrors: the policy of a mirror tracker, by the network of whoever asks.

A file in TOML::

    own = ["uk"]                        # for all others

    [[network]]
    from = ["192.0.2.0/24", "2001:db8::/32"]
    own = ["de"]                        # these domains first
    preferred = ["at", "ch"]            # then these, in this order
    allowed = ["de", "at", "ch", "nl"]  # no others; empty = all
    forbidden = ["slow.example.org"]    # mirrors by host; a domain name covers the hosts in it
    answer = "redirect"                 # or "list"

The smallest network that has the address counts, alone.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from lcc_scrapy.apps.tracker.rules.tracked import BadDomain, checked_domain
from lcc_scrapy.domain.errors import ConfigurationError, LccError

Network = IPv4Network | IPv6Network
ANSWERS = ("list", "redirect")
MOST_NETWORKS = 10_000


class BadAddress(LccError):
    """Text that is no IP address."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one network is offered: domains in order, names of hosts, and how it is answered."""

    own: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    answer: str = "list"

    def permits(self, domain: str, host: str) -> bool:
        """Tell whether a mirror may be offered."""
        if self.allowed and domain not in self.allowed:
            return False
        return not any(host == one or host.endswith(f".{one}") for one in self.forbidden)

    def rank(self, domain: str) -> int:
        """Return the place of a domain among others; the lowest number comes first."""
        named = (*self.own, *self.preferred)
        return named.index(domain) if domain in named else len(named)

    def only(self, domains: tuple[str, ...]) -> "Rules":
        """Return these rules for somebody who wants mirrors of some domains only; () = of any."""
        if not domains:
            return self
        wanted = tuple(one for one in domains if not self.allowed or one in self.allowed)
        # what nobody has is allowed where nothing that is wanted is
        return Rules(self.own, self.preferred, wanted or ("",), self.forbidden, self.answer)


EVERYBODY = Rules()


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules by network, smallest networks first, and those for everybody else."""

    networks: tuple[tuple[Network, Rules], ...] = ()
    others: Rules = EVERYBODY

    def of(self, address: str) -> Rules:
        """Return the rules for an address; raises ``BadAddress``."""
        return self.explained(address)[1]

    def explained(self, address: str) -> tuple[str, Rules]:
        """Return the same, and the network that they are for; "" = for everybody else."""
        try:
            asking = ip_address(address)
        except ValueError:
            raise BadAddress(f"{address!r} is no IP address") from None
        asking = getattr(asking, "ipv4_mapped", None) or asking
        for network, rules in self.networks:
            if asking in network:
                return str(network), rules
        return "", self.others

    @classmethod
    def parse(cls, text: str) -> "Policy":
        """Read a policy; raises ``ConfigurationError``."""
        try:
            written = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(f"the policy is no TOML: {error}") from None
        parts = written.pop("network", [])
        if not isinstance(parts, list) or not all(isinstance(one, dict) for one in parts):
            raise ConfigurationError("policy: write [[network]]")
        found = [pair for one in parts for pair in _networks(one)]
        if len(found) > MOST_NETWORKS:
            raise ConfigurationError(f"policy: more than {MOST_NETWORKS} networks")
        found.sort(key=lambda pair: -pair[0].prefixlen)
        return cls(tuple(found), _rules(written, "policy"))


def _networks(part: dict[str, Any]) -> list[tuple[Network, Rules]]:
    named = _names(part.pop("from", []), "policy: from")
    if not named:
        raise ConfigurationError("policy: a [[network]] without from = [...]")
    rules = _rules(part, f"policy, network {named[0]}")
    try:
        return [(ip_network(one), rules) for one in named]
    except ValueError as error:
        raise ConfigurationError(f"policy: {error}") from None


def _rules(written: Mapping[str, Any], where: str) -> Rules:
    known = {one.name for one in fields(Rules)}
    unknown = ", ".join(sorted(set(written) - known))
    if unknown:
        raise ConfigurationError(f"{where}: unknown {unknown}")
    answer = written.get("answer", "list")
    if answer not in ANSWERS:
        raise ConfigurationError(f"{where}: answer is {' or '.join(ANSWERS)}")
    lists = {name: _names(written.get(name, []), f"{where}: {name}") for name in known - {"answer"}}
    try:
        domains = {name: tuple(map(checked_domain, lists[name])) for name in ("own", "preferred", "allowed")}
    except BadDomain as error:
        raise ConfigurationError(f"{where}: {error}") from None
    forbidden = tuple(one.lower().strip(".") for one in lists["forbidden"])
    return Rules(**domains, forbidden=forbidden, answer=answer)


def _names(value: object, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ConfigurationError(f"{where} is a list of texts")
    return value
