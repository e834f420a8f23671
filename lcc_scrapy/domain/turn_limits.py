"""What bounds the turns of one worker: its fetches, what it reads ahead, its leases."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain import shared_settings as shared
from lcc_scrapy.domain.settings import LIVE, setting


# fmt: off
@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Times are seconds, bandwidth is bytes per second (0 = no limit)."""

    places: int = setting("LCC_FETCHES", "64", read.at_least_one, "Fetches in flight at a time in one process (never two of one provider), beside those that wait for bandwidth.")
    paced: int = setting("LCC_FETCHES_PACED", "1000", read.at_least_one, "Bodies at a time in one process that arrive at the pace of their provider's own limit: they hold a connection and up to 64 kB of memory each, and no place of LCC_FETCHES. At the bound, providers with a limit begin nothing until one of them ends; others go on.")
    window: int = setting("LCC_WINDOW", "1000", read.at_least_one, "URLs read ahead per provider at most; slow ones have fewer.", LIVE)
    tickets: int = setting("LCC_READ_AHEAD", "40000", read.at_least_one, "URLs read ahead for all providers of one process together; with many providers each has a smaller window.", LIVE)
    lease: float = setting("LCC_LEASE", "60s", read.duration, "How long a worker that stopped answering keeps its providers.")
    bandwidth: int = setting("LCC_BANDWIDTH", "0", read.size, "Bytes per second for all fetching together; 0 = no limit.", LIVE)
    backoff: float = setting("LCC_HOST_BACKOFF", "60s", read.duration, "First wait of a host that fails; it doubles up to an hour, or is Retry-After of a 429 when that is longer. After each wait another URL is asked for.", LIVE)
    poll: float = shared.poll()
    # fmt: on
