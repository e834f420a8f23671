"""What the operator grants to providers that register themselves (seed 003 section 3)."""

from dataclasses import dataclass

from lcc_scrapy.apps.registration.rules import APPROVE, OFF, OPEN, ports, uns_addresses
from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.settings import setting
from lcc_scrapy.domain.throttling import Rate


# fmt: off
@dataclass(frozen=True, slots=True)
class RegistrationRules:
    """Who may register, how often, and what a new provider gets. Times are in seconds."""

    mode: str = setting("LCC_REGISTRATION", OFF, read.one_of(OFF, APPROVE, OPEN), "Whether site owners may register as providers: `off`, `approve` (the operator approves each one after its proof) or `open`.")
    expires: int = setting("LCC_REGISTRATION_EXPIRES", "7d", read.at_least(1, read.whole_seconds), "How long a registration waits for its proof, and then for its approval; afterwards all of it is removed.")
    per_address: Rate = setting("LCC_REGISTRATION_RATE", "10/h", read.rate, "Registrations from one address (an IPv6 /64 counts as one): as many at once, and then as many per time; more get 429.")
    per_host: Rate = setting("LCC_REGISTRATION_HOST_RATE", "10/h", read.rate, "Registrations that name one host, and mails to one address: as many at once, and then as many per time; more get 429.")
    proofs: Rate = setting("LCC_REGISTRATION_PROOF_RATE", "30/h", read.rate, "Proofs that one address, one provider or one host has looked for, and passwords that it shows: as many at once, and then as many per time; more get 429.")
    pending: int = setting("LCC_REGISTRATION_PENDING", "10000", read.at_least_one, "Registrations that wait for proof or approval; more get 503.")
    priority: int = setting("LCC_REGISTRATION_PRIORITY", "0", read.priority, "Priority of providers that registered: 0, 1 or 2.")
    filesmax: int = setting("LCC_REGISTRATION_FILESMAX", "100000", read.whole, "Limit on documents of a provider that registered; 0 = no limit.")
    spacemax: int = setting("LCC_REGISTRATION_SPACEMAX", "10G", read.size, "Limit on stored bytes of a provider that registered; 0 = no limit.")
    bandwidth: int = setting("LCC_REGISTRATION_BANDWIDTH", "0", read.size, "Bytes per second at most for a provider that registered: it may ask for less, not for more; 0 = no limit.")
    ports: frozenset[int] = setting("LCC_REGISTRATION_PORTS", "80 443", ports, "Ports of sites that may register, separated by blanks.")
    private: bool = setting("LCC_REGISTRATION_PRIVATE", "no", read.flag, "Permit sites at private addresses to register, and fetch from them: for an intranet.")
    uns: tuple[str, ...] = setting("LCC_PUBLIC_UNS", "", uns_addresses, "Where providers reach the update notification server, as new providers are told: `uns.example.org:9000`, or `lccs://uns.example.org:9000` if it has TLS (`lcc-push init` takes no other from an `https://` address); several are separated by blanks.")
# fmt: on
