"""What one scan of a mirror server may cost (seed 004 "The Mirror Tracker robot"). A scan beyond a bound fails."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Bounds of one scan. Times are in seconds, sizes in bytes."""

    fresh: float = setting("LCC_TRACKER_FRESH", "2d", read.period, "How old an `ls-lR.gz` of a server may be to be taken; an older one is passed over, and the server is asked for its listing.")
    most_bytes: int = setting("LCC_TRACKER_BYTES", "2G", read.at_least(1, read.size), "Bytes of listings that one scan takes in, as transferred and unpacked; a server with more is not scanned.")
    most_entries: int = setting("LCC_TRACKER_ENTRIES", "20000000", read.at_least_one, "Files, directories and links of one server; one with more is not scanned.")
    depth: int = setting("LCC_TRACKER_DEPTH", "64", read.at_least_one, "Directories inside of each other; a server with deeper ones is not scanned.")
    requests: int = setting("LCC_TRACKER_REQUESTS", "1000000", read.at_least_one, "Questions that one scan asks: directories that are asked for one by one, and sizes of files where an index page rounds them; a server that needs more is not scanned.")
    deadline: float = setting("LCC_TRACKER_DEADLINE", "12h", read.period, "Longest time that one scan may take.")
    patience: float = setting("LCC_TRACKER_TIMEOUT", "60s", read.period, "Longest silence of a server during a scan, and longest time to connect.")
    every: float = setting("LCC_TRACKER_EVERY", "1d", read.period, "How often a server is scanned.")
# fmt: on
