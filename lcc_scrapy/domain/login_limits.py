"""What guessing at passwords may cost the LCC. Every bound says what happens at it."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.settings import LIVE, setting
from lcc_scrapy.domain.throttling import Rate


# fmt: off
@dataclass(frozen=True, slots=True)
class ThrottleRules:
    """Bounds of logins that fail, and of checks of passwords."""

    per_address: Rate = setting("LCC_LOGIN_FAILURES_PER_ADDRESS", "30/m", read.rate, "Failed logins from one address (an IPv6 /64 counts as one) of providers that have not logged in from there before: as many at once, and then as many per time; more get 103 without a look at the password.", LIVE)
    per_id: Rate = setting("LCC_LOGIN_FAILURES_PER_ID", "10/m", read.rate, "Failed logins with one provider id from all addresses that the provider is not known to use, and likewise from each one that it is; more get 103 without a look at the password.", LIVE)
    checks: int = setting("LCC_LOGIN_CHECKS", "2", read.at_least_one, "Passwords checked at a time; each takes a processor for some 25 ms, and 19 MiB.", LIVE)
    waiting: int = setting("LCC_LOGINS_WAITING", "50", read.at_least_one, "Logins that wait for their password to be checked; of more, strangers get 103, those whose address has most waiting first.", LIVE)
# fmt: on
