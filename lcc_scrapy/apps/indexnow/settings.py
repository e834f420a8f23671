"""What an IndexNow submission may cost the LCC. Every bound says what happens at it."""

from dataclasses import dataclass

from lcc_scrapy.apps.indexnow.rules import MODES, OFF
from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain import shared_settings as shared
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.settings import setting
from lcc_scrapy.domain.throttling import Rate


# fmt: off
@dataclass(frozen=True, slots=True)
class IndexNowRules:
    """Whose submissions are taken, and how many. Times are in seconds."""

    mode: str = setting("LCC_INDEXNOW", OFF, read.one_of(*MODES), "Whose [IndexNow](indexnow.md) submissions are taken: `off` = nobody's; `known` = those of hosts in the roots of a registered provider; `approve` = others become pending providers when their key verifies; `open` = active ones.")
    key_kept: float = setting("LCC_INDEXNOW_KEY_KEPT", "1d", read.period, "How long a key that verified is taken without looking at its file again.")
    wrong_kept: float = setting("LCC_INDEXNOW_WRONG_KEPT", "5m", read.period, "How long a key that did not verify is refused (403) without looking again.")
    patience: float = setting("LCC_INDEXNOW_PATIENCE", "1h", read.period, "How long a site that does not answer is asked for its key file again; then the key counts as wrong, and what waits for it is dropped.")
    wait: float = setting("LCC_INDEXNOW_WAIT", "1s", read.duration, "How long a submission waits for the check of its key before it gets 202.")
    kept: float = setting("LCC_INDEXNOW_KEPT", "30d", read.period, "How long URLs wait for a provider to be approved, or for room in the queue, and how long a key that nobody uses is remembered; then they are dropped.")
    waiting: int = setting("LCC_INDEXNOW_WAITING", "256M", read.size, "Bytes of URLs that wait before the queue, of all sites together; more get 429. A portion of up to 500 URLs counts 4 kB more.")
    waiting_site: int = setting("LCC_INDEXNOW_WAITING_SITE", "32M", read.size, "Bytes of URLs of one site that wait before the queue; more get 429.")
    keys: int = setting("LCC_INDEXNOW_KEYS", "100000", read.at_least_one, "Keys that verified which are remembered, of all sites together; at the bound, submissions with other keys get 429.")
    rate: Rate = setting("LCC_INDEXNOW_RATE", "600/m", read.rate, "Submissions with one key, and likewise from one address (an IPv6 /64 counts as one; programs on the same machine have no share by address): as many at once, and then as many per time; more get 429.")
    checks_site: Rate = setting("LCC_INDEXNOW_CHECKS_SITE", "10/m", read.rate, "Unknown keys of one host that are checked: as many at once, and then as many per time; more get 429.")
    checks_address: Rate = setting("LCC_INDEXNOW_CHECKS_ADDRESS", "30/m", read.rate, "Unknown keys from one address (as above) that are checked, so that one client does not delay the checks of all others: as many at once, and then as many per time; more get 429. Of the unknown keys of one host, one address may use up half.")
    checks: Rate = setting("LCC_INDEXNOW_CHECKS", "600/m", read.rate, "Unknown keys of all hosts that are checked: as many at once, and then as many per time; more get 429.")
    poll: float = shared.poll()
    proxies: Networks = shared.web_proxies()
# fmt: on
