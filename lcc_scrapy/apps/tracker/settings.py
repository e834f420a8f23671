"""What the operator of a mirror tracker decides (seed 004), and what one scan of a server may cost."""

from dataclasses import dataclass

from lcc_scrapy.config import readers
from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.http_serving import Endpoint
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.settings import group, setting


# fmt: off
@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Bounds of one scan (seed 004 "The Mirror Tracker robot"); one beyond a bound fails.

    Times are in seconds, sizes in bytes.
    """

    fresh: float = setting("LCC_TRACKER_FRESH", "2d", read.period, "How old an `ls-lR.gz` of a server may be to be taken; an older one is passed over, and the server is asked for its listing.")
    most_bytes: int = setting("LCC_TRACKER_BYTES", "2G", read.at_least(1, read.size), "Bytes of listings that one scan takes in, as transferred and unpacked; a server with more is not scanned.")
    most_entries: int = setting("LCC_TRACKER_ENTRIES", "20000000", read.at_least_one, "Files, directories and links of one server; one with more is not scanned.")
    depth: int = setting("LCC_TRACKER_DEPTH", "64", read.at_least_one, "Directories inside of each other; a server with deeper ones is not scanned.")
    requests: int = setting("LCC_TRACKER_REQUESTS", "1000000", read.at_least_one, "Questions that one scan asks: directories that are asked for one by one, and sizes of files where an index page rounds them; a server that needs more is not scanned.")
    deadline: float = setting("LCC_TRACKER_DEADLINE", "12h", read.period, "Longest time that one scan may take.")
    patience: float = setting("LCC_TRACKER_TIMEOUT", "60s", read.period, "Longest silence of a server during a scan, and longest time to connect.")
    every: float = setting("LCC_TRACKER_EVERY", "1d", read.period, "How often a server is scanned.")


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
    endpoint: Endpoint | None = setting("LCC_TRACKER_ENDPOINT", "127.0.0.1:8090", readers.endpoint, "Where `lcc tracker serve` listens, written like LCC_WEB_ENDPOINT; LCC_HTTP_CERTIFICATE and the other settings of HTTP hold there too.")
    icp_endpoint: Endpoint | None = setting("LCC_TRACKER_ICP_ENDPOINT", "", readers.endpoint, "UDP port at which `lcc tracker serve` answers ICP queries of caches: `127.0.0.1:3130`; empty = none.")
    url: str = setting("LCC_TRACKER_URL", "", readers.web_url, "URL of `lcc tracker serve` as clients see it, for the links that its pages show; needed behind a proxy. Empty = as each request says: `https://tracker.example.org`.")
    scan: ScanLimits = group(ScanLimits)
# fmt: on
