"""What the operator of a mirror tracker decides (seed 004)."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True)
class TrackerRules:
    """Which mirrors are offered, and what is exchanged with other trackers."""

    policy_file: str = setting("LCC_TRACKER_POLICY", "", str, "File that says which mirrors whom is offered, by network, as in [the mirror tracker](tracker.md#policy); empty = all mirrors, the freshest first.")
    exports: str = setting("LCC_TRACKER_EXPORTS", "", str, "Folder that `lcc tracker scan` keeps what is exchanged with other trackers in, and `lcc tracker serve` serves it from; empty = nothing is exchanged.")
    peers_every: float = setting("LCC_TRACKER_PEERS_EVERY", "1h", read.period, "How often other trackers are asked whether their domains have changed.")
    peers_private: bool = setting("LCC_TRACKER_PEERS_PRIVATE", "no", read.flag, "Whether trackers that domains come from may have private addresses.")
    replicas: int = setting("LCC_TRACKER_REPLICAS", "10", read.at_least_one, "Replicas that one look-up gives, if nothing else is asked for.")
    icp_clients: Networks = setting("LCC_TRACKER_ICP_CLIENTS", "127.0.0.0/8 ::1", read.networks, "Networks of caches whose ICP queries `lcc tracker serve` answers, and which get its cache digest; nobody else does.")
    digest_urls: int = setting("LCC_TRACKER_DIGEST_URLS", "10000", read.whole, "URLs in the cache digest that `lcc tracker serve` makes for Squid, a millisecond or two each; 0 = no digest.")
# fmt: on
