"""Settings: the one place that reads them (design section 8).

Every ``LCC_*`` setting comes from, highest first: ``-s NAME=VALUE``, the environment, ``settings.py``,
its default here. Durations are written like ``90d``, ``12h``, ``10m``, ``30s``; sizes like ``200k``,
``10M``, ``2G`` (k = 1000).
"""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lcc_scrapy.config.project import COMMAND_LINE, Given, PlainSettings, closest_scrapy_cfg, plain_settings
from lcc_scrapy.domain.compression import GZIP, NONE, ZSTD
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.http_endpoint import Endpoint
from lcc_scrapy.domain.policy import RECORD, STRICT, QueuePolicy
from lcc_scrapy.domain.revisits import Bounds
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.domain.timeslots import HOURS_PER_DAY, HOURS_PER_WEEK
from lcc_scrapy.domain.turns import PRIORITIES
from lcc_scrapy.domain.uns_limits import LEAST_ATTRIBUTES, LEAST_DEPTH, LEAST_ELEMENT_BYTES
from lcc_scrapy.domain.versions import MOST, Keep
from lcc_scrapy.links.ignoring import IgnoreList
from lcc_scrapy.links.rules import DOCUMENTS, REQUISITES, LinkRules

if TYPE_CHECKING:
    from scrapy.settings import Settings

_DURATION = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZE = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_VERSIONS = re.compile(
    r"\s*(?:(?P<count>\d{1,9})\s*(?:,|$))?\s*(?P<age>\d+(?:\.\d+)?[a-z])?\s*", re.IGNORECASE
)
ALL, NOTHING = "all", "none"
"""Of LCC_PROJECT_COMPONENTS: every component, and not a single one."""
_ADDRESS_MAX = 255
_LONGEST_REVISIT = 3650 * 86400
_NUMBER_WITH_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]?)b?\s*", re.IGNORECASE)


def _with_unit(text: Any, units: Mapping[str, int], example: str) -> float:
    match = _NUMBER_WITH_UNIT.fullmatch(str(text))
    if match is None or match[2].lower() not in units:
        raise ValueError(f"{text!r}, expected for example {example}")
    return float(match[1]) * units[match[2].lower()]


def duration(text: Any) -> float:
    """Read a duration in seconds: ``90d``, ``12h``, ``10m``, ``30s`` or a bare number."""
    return _with_unit(text, _DURATION, "90d, 12h, 10m or 30s")


def size(text: Any) -> int:
    """Read a size in bytes: ``200k``, ``10M``, ``2G`` or a bare number (k = 1000)."""
    return int(_with_unit(text, _SIZE, "200k, 10M or 2G"))


def revisits(text: Any) -> Bounds:
    """Read the intervals of adaptive revisits: ``1h..30d``, or ``1h..1d..30d`` with that of a page not known yet."""
    try:
        return _bounds([int(duration(part)) for part in str(text).split("..")])
    except (ValueError, OverflowError):
        expected = "rising intervals like 1h..30d or 1h..1d..30d, up to 3650d"
        raise ValueError(f"{text!r}, expected {expected}") from None


def _bounds(ends: list[int]) -> Bounds:
    if len(ends) == 2:  # noqa: PLR2004 - the shortest and the longest
        ends.insert(1, round(math.sqrt(ends[0] * ends[1])))
    shortest, every, longest = ends
    if longest > _LONGEST_REVISIT:
        raise ValueError(longest)
    return Bounds(every, shortest, longest)


def _period(text: Any) -> float:
    seconds = duration(text)
    if not seconds:
        raise ValueError(f"{text!r}, expected more than nothing")
    return seconds


def _durations(text: Any) -> tuple[float, ...]:
    parts = text if isinstance(text, (list, tuple)) else str(text).split(",")
    return tuple(duration(part) for part in parts if str(part).strip())


def _words(text: Any) -> tuple[str, ...]:
    parts = text if isinstance(text, (list, tuple)) else re.split(r"[,\s]+", str(text))
    return tuple(part.strip().lower() for part in parts if part.strip())


def _components(text: Any) -> tuple[str, ...]:
    """Read import paths of components, or ``all`` or ``none``; classes themselves are as good as their paths."""
    parts = text if isinstance(text, (list, tuple)) else re.split(r"[,\s]+", str(text))
    named = [
        f"{part.__module__}.{part.__qualname__}" if isinstance(part, type) else str(part) for part in parts
    ]
    names = tuple(name.strip() for name in named if name.strip())
    if len(names) > 1 and not {ALL, NOTHING}.isdisjoint(names):
        raise ValueError(f"{text!r}, expected import paths, or {ALL} or {NOTHING} alone")
    return names


def _relations(text: Any) -> frozenset[str]:
    words = frozenset(_words(text))
    groups = {"documents": DOCUMENTS, "requisites": REQUISITES}
    unknown = words - groups.keys() - DOCUMENTS - REQUISITES
    if unknown:
        known = ", ".join(sorted(groups.keys() | DOCUMENTS | REQUISITES))
        raise ValueError(f"{min(unknown)!r}, expected some of {known}")
    return (words - groups.keys()).union(*(groups[word] for word in words & groups.keys()))


def _ignore_file(text: Any) -> IgnoreList:
    path = str(text).strip()
    try:
        return IgnoreList.parse(Path(path).read_text(encoding="utf-8").splitlines()) if path else IgnoreList()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _endpoints(text: Any) -> tuple[str, ...]:
    parts = text if isinstance(text, (list, tuple)) else str(text).split()
    return tuple(part for part in parts if part)


def _web_url(text: Any) -> str:
    url = str(text).strip().rstrip("/")
    if url and not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", url):
        raise ValueError(f"{text!r}, expected for example https://lcc.example.org")
    return url


def _networks(text: Any) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(part) for part in _endpoints(text))


def _whole(text: Any, least: int = 0) -> int:
    digits = str(text).strip()
    if not (digits.isascii() and digits.isdigit()) or int(digits) < least:
        raise ValueError(f"{text!r}, expected a whole number from {least} on")
    return int(digits)


def share(text: Any) -> float:
    """Read a share between 0 and 1: ``50%`` or ``0.5``."""
    number, percent, rest = str(text).strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest or not 0 <= value <= 1:
        raise ValueError(f"{text!r}, expected a share like 50%")
    return value


def _rate(text: Any) -> Rate:
    count, _, unit = (part.strip() for part in str(text).partition("/"))
    try:
        return Rate(_at_least_one(count), _period(unit if unit[:1].isdigit() else unit and f"1{unit}"))
    except ValueError:
        raise ValueError(f"{text!r}, expected a rate like 30/m, 5/h or 1/10s") from None


def _at_least(least: int, read: Callable[[Any], int]) -> Callable[[Any], int]:
    def bounded(text: Any) -> int:
        number = read(text)
        if number < least:
            raise ValueError(f"{text!r}, expected {least} or more")
        return number

    return bounded


def _url_length(text: Any) -> int:
    length = _at_least_one(text)
    if length > URL_MAX:
        raise ValueError(f"{text!r}, expected at most {URL_MAX}, which is what the database takes")
    return length


def _slots(text: Any) -> int:
    if str(text).strip() not in {str(HOURS_PER_DAY), str(HOURS_PER_WEEK)}:
        raise ValueError(f"{text!r}, expected {HOURS_PER_DAY} or {HOURS_PER_WEEK}")
    return int(text)


def _declared(text: Any) -> str:
    if text not in {RECORD, STRICT}:
        raise ValueError(f"{text!r}, expected {RECORD} or {STRICT}")
    return str(text)


def _compression(text: Any) -> str:
    if text not in {NONE, GZIP, ZSTD}:
        raise ValueError(f"{text!r}, expected {NONE}, {GZIP} or {ZSTD}")
    return str(text)


def _versions(text: Any) -> Keep:
    """Read how many versions are kept, for how long, or both: ``5``, ``30d``, ``5, 30d``."""
    match = _VERSIONS.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r}, expected for example 5, 30d or '5, 30d'")
    keep = Keep(int(match["count"] or 0), duration(match["age"] or 0))
    if keep.count > MOST:
        raise ValueError(f"{text!r}, expected at most {MOST} versions")
    return keep


def _log_format(text: Any) -> str:
    if text not in {"text", "json"}:
        raise ValueError(f"{text!r}, expected text or json")
    return str(text)


def _endpoint(text: Any) -> Endpoint | None:
    return Endpoint.parse(str(text))


def _machines(text: Any) -> dict[int, str]:
    return dict(_machine(one) for one in _endpoints(text))


def _machine(text: str) -> tuple[int, str]:
    number, equals, address = text.partition("=")
    if not equals or not _is_address(address):
        raise ValueError(f"{text!r}, expected for example 2=https://m2.example.org:8081")
    return _at_least_one(number), address.rstrip("/")


def _address(text: Any) -> str:
    address = str(text).strip()
    if address and (len(address) > _ADDRESS_MAX or not _is_address(address)):
        raise ValueError(f"{text!r}, expected for example https://m2.example.org:8081")
    return address.rstrip("/")


def _is_address(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not parts.query


def _zone(text: Any) -> ZoneInfo:
    try:
        return ZoneInfo(str(text))
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"{text!r}, expected a name like Europe/Amsterdam") from None


def _flag(text: Any) -> bool:
    if isinstance(text, bool):
        return text
    if str(text).lower() not in {"0", "1", "yes", "no", "true", "false", "on", "off"}:
        raise ValueError(f"{text!r}, expected yes or no")
    return str(text).lower() in {"1", "yes", "true", "on"}


def _at_least_one(text: Any) -> int:
    return _whole(text, least=1)


@dataclass(frozen=True, slots=True)
class Setting:
    """One ``LCC_*`` setting: its default as it would be written, how it is read, what it means."""

    name: str
    default: str
    read: Callable[[Any], Any]
    meaning: str
    live: bool = False
    """A change takes effect on SIGHUP; that of others at the next start."""


LIVE = True


SETTINGS: tuple[Setting, ...] = (
    Setting("LCC_DATA_DIR", "", str, "The data directory made by `lcc init`. Default: `lcc-data` beside `scrapy.cfg`."),
    Setting("LCC_DATABASE_URL", "", str, "SQLAlchemy URL of the database. Default: SQLite inside the data directory."),
    Setting("LCC_DATABASE_URL_FILE", "", str, "File that holds the URL of the database, for one with a password; read when LCC_DATABASE_URL is not set, an empty one counts for nothing."),
    Setting("LCC_CONTENT_DIR", "", str, "Folder of the content files. Default: `content` inside the data directory."),
    Setting("LCC_SPOOL_DIR", "", str, "Folder of accepted sets waiting for the queue. Default: `spool` inside the data directory."),
    Setting("LCC_UNS_ENDPOINTS", "tcp:9000:interface=127.0.0.1", _endpoints, "Where the UNS listens: Twisted endpoint strings separated by blanks; empty = nowhere."),
    Setting("LCC_UNS_ALLOW_PLAIN_REMOTE", "no", _flag, "Permit listening beyond loopback without TLS."),
    Setting("LCC_UNS_PROXIES", "127.0.0.0/8 ::1", _networks, "Addresses and networks of proxies in front of `haproxy:` endpoints, separated by blanks: who is let in there, and believed when it says whose a connection is.", LIVE),
    Setting("LCC_MIMETYPES", "text/*, application/pdf, application/xml, application/xhtml+xml, application/json, application/msword", _words, "Accepted mimetypes; `text/*` and `*/*` are patterns.", LIVE),
    Setting("LCC_BANDWIDTH", "0", size, "Bytes per second for all fetching together; 0 = no limit.", LIVE),
    Setting("LCC_TIMEOFDAY_SLOTS", "168", _slots, "Slots of a time mask: 168 (hours of a week) or 24 (hours of a day)."),
    Setting("LCC_TIMEZONE", "UTC", _zone, "Time zone of masks whose provider has none of its own."),
    Setting("LCC_QUEUE_MAX", "10000000", _whole, "URLs in the queue at which intake rests and the spool grows; 0 = no limit. One provider gets in as much as is left free: half of it when it is alone.", LIVE),
    Setting("LCC_SPOOL_MAX_BYTES", "10G", size, "Size of the spool at which providers are told to try again later (103, 203); 0 = no limit. Shared like the queue; a set that is larger than half of it gets 204.", LIVE),
    Setting("LCC_DISK_MIN_FREE", "100M", size, "Free space below which intake and fetching rest (103, 203) until there is a quarter more, on each disk that the process writes to; 0 = no such bound."),
    Setting("LCC_BALLAST", "16M", size, "Size of the file `ballast` in the data directory, which is given up when the disk is full all the same, so that what was begun can be stored; 0 = none."),
    Setting("LCC_UNS_PATIENCE", "1h", _period, "How long a provider's sets wait for an earlier one that may be at a UNS which gives no sign of life; then they go on, and the earlier one is not absorbed any more."),
    Setting("LCC_CONNECTIONS_PER_ADDRESS", "10", _at_least_one, "Connections of one address to the UNS at a time; more get 104.", LIVE),
    Setting("LCC_CONNECTIONS_PER_PROVIDER", "10", _at_least_one, "Conversations of one provider with the UNS at a time, from all its addresses; more get 104.", LIVE),
    Setting("LCC_CONNECTIONS_MAX", "1000", _at_least_one, "Connections to the UNS at a time, a fifth of them kept for addresses from which a provider has logged in since the start; more get 104.", LIVE),
    Setting("LCC_SET_MAX_URLS", "10000000", _at_least_one, "URLs in one set; more get 204.", LIVE),
    Setting("LCC_SET_MAX_BYTES", "10G", _at_least(1, size), "Bytes of one set on the wire; more get 204.", LIVE),
    Setting("LCC_URL_LENGTH", "2048", _url_length, "Characters of a URL, as given and as encoded; longer ones are refused one by one (707). Not more than 2048.", LIVE),
    Setting("LCC_LOGIN_BYTES", "65536", _at_least(1, size), "Bytes before a login is complete, looked at every 8 KiB; more get 105.", LIVE),
    Setting("LCC_LOGIN_SECONDS", "10s", _period, "Time from connecting to a complete login; later gets 206.", LIVE),
    Setting("LCC_LOGIN_FAILURES_PER_ADDRESS", "30/m", _rate, "Failed logins from one address (an IPv6 /64 counts as one) of providers that have not logged in from there before: as many at once, and then as many per time; more get 103 without a look at the password.", LIVE),
    Setting("LCC_LOGIN_FAILURES_PER_ID", "10/m", _rate, "Failed logins with one provider id from all addresses that the provider is not known to use, and likewise from each one that it is; more get 103 without a look at the password.", LIVE),
    Setting("LCC_LOGIN_CHECKS", "2", _at_least_one, "Passwords checked at a time; each takes a processor for some 25 ms, and 19 MiB.", LIVE),
    Setting("LCC_LOGINS_WAITING", "50", _at_least_one, "Logins that wait for their password to be checked; of more, strangers get 103, those whose address has most waiting first.", LIVE),
    Setting("LCC_ELEMENT_BYTES", "65536", _at_least(LEAST_ELEMENT_BYTES, size), "Bytes since an XML element last began or ended; more get 105 or 201 and are not parsed.", LIVE),
    Setting("LCC_ELEMENT_DEPTH", "8", _at_least(LEAST_DEPTH, _whole), "Nested XML elements; deeper ones get 105 or 201.", LIVE),
    Setting("LCC_ELEMENT_ATTRIBUTES", "16", _at_least(LEAST_ATTRIBUTES, _whole), "Attributes of one XML element; more get 105 or 201.", LIVE),
    Setting("LCC_UNKNOWN_NAMES", "256", _whole, "Different element and attribute names in one conversation that the protocol does not have; more get 105 or 201.", LIVE),
    Setting("LCC_IDLE_SECONDS", "60s", _period, "Time in which a provider that is logged in neither sends nor reads; longer gets 206. A set that is still being sent holds complete ones of later logins for as long at most.", LIVE),
    Setting("LCC_MIN_RATE", "500", _at_least(1, size), "Bytes per second of a set, on average since it began; slower gets 206.", LIVE),
    Setting("LCC_MIN_RATE_GRACE", "30s", duration, "Time from the beginning of a set during which LCC_MIN_RATE is not looked at.", LIVE),
    Setting("LCC_CONVERSATION_SECONDS", "2h", _period, "Time from connecting to the end of a set; later gets 206.", LIVE),
    Setting("LCC_REPLY_BYTES", "1M", _at_least(1, size), "Bytes of URL errors kept for a provider that does not read them; then nothing more is read from it, until LCC_IDLE_SECONDS end it.", LIVE),
    Setting("LCC_REPLIES_BYTES", "64M", _at_least(1, size), "The same for all providers together; they share it, each gets as much as is left free.", LIVE),
    Setting("LCC_LINGER_SECONDS", "60s", _period, "Time after the answer in which what still comes is read and thrown away; then the connection is cut.", LIVE),
    Setting("LCC_LINGER_BYTES", "64M", size, "Bytes that are read and thrown away after the answer; then the connection is cut.", LIVE),
    Setting("LCC_RETRY_AFTER", "5m", duration, "When 103, 104 and 203 advise to come again, unless something better is known.", LIVE),
    Setting("LCC_FULLSETS", "10", _whole, "Unsolicited full sets per period for new providers; 0 = none.", LIVE),
    Setting("LCC_FULLSET_PERIOD", "30d", duration, "The period in which full sets are counted.", LIVE),
    Setting("LCC_MAX_REMOVAL", "50%", share, "Share of a provider's documents beyond which (and beyond 20) removals within a day are held.", LIVE),
    Setting("LCC_STALE_AFTER", "90d", duration, "Documents that nobody has confirmed for so long: their provider is asked for a full set (reason `old files`); 0 = never.", LIVE),
    Setting("LCC_EXPIRE_AFTER", "180d", duration, "Documents that nobody has confirmed for so long are removed, by daily portions that LCC_MAX_REMOVAL lets pass (reason `expired files`); 0 = never.", LIVE),
    Setting("LCC_ERRORS_KEPT", "100", _at_least_one, "Failed URLs kept per provider with all they were submitted with; the count is exact beside it.", LIVE),
    Setting("LCC_REFUSALS_KEPT", "1000", _whole, "URLs refused at push of which `lcc explain` knows why: the newest per provider; 0 = none.", LIVE),
    Setting("LCC_RETRY_DELAYS", "60s, 10m, 1h", _durations, "Waits before a URL that failed is tried again; after the last it is final.", LIVE),
    Setting("LCC_HOST_BACKOFF", "60s", duration, "First wait of a turn whose host fails; it doubles up to an hour, or is Retry-After when that is longer.", LIVE),
    Setting("LCC_HOST_PATIENCE", "3d", duration, "How long a host may fail before its URLs are given up one by one.", LIVE),
    Setting("LCC_DECLARED", RECORD, _declared, "`record` stores what was served when it is not what was declared, and says so (607, 608); `strict` refuses it.", LIVE),
    Setting("LCC_TOMBSTONES_KEEP", "90d", duration, "How long content users are told of a removal; a cursor that is older has to start over; 0 = for ever.", LIVE),
    Setting("LCC_FILE_GRACE", "1h", duration, "How long the file of a replaced or removed document stays.", LIVE),
    Setting("LCC_CONTENT_COMPRESSION", NONE, _compression, "How new content files are compressed: `none`, `gzip` or `zstd`; images, archives and the like are stored as they are. Everything that reads through the LCC gets the document as it was served.", LIVE),
    Setting("LCC_PUSH_GRACE", "1h", duration, "How long after a [sample](push-misses.md) found a change its push may arrive; later it counts as missed.", LIVE),
    Setting("LCC_KEEP_VERSIONS", "0", _versions, "Earlier contents that are kept of each document: `5` (how many, at most 100), `30d` (for how long after they were replaced), or `5, 30d` (both bounds); 0 = none. They are not charged to the provider, and go with the document.", LIVE),
    Setting("LCC_FETCHES", "64", _at_least_one, "Fetches in flight at a time in one process (never two of one provider), beside those that wait for bandwidth."),
    Setting("LCC_FETCHES_PACED", "1000", _at_least_one, "Bodies at a time in one process that arrive at the pace of their provider's own limit: they hold a connection and up to 64 kB of memory each, and no place of LCC_FETCHES. At the bound, providers with a limit begin nothing until one of them ends; others go on."),
    Setting("LCC_WINDOW", "1000", _at_least_one, "URLs read ahead per provider at most; slow ones have fewer.", LIVE),
    Setting("LCC_READ_AHEAD", "40000", _at_least_one, "URLs read ahead for all providers of one process together; with many providers each has a smaller window.", LIVE),
    Setting("LCC_FETCH_MAX_BYTES", "2G", size, "Largest body, as transferred and decoded; larger ones are refused (604).", LIVE),
    Setting("LCC_FETCH_TIMEOUT", "60s", duration, "Longest silence while reading, and longest time to connect (602) and for the head of an answer (603).", LIVE),
    Setting("LCC_FETCH_DEADLINE", "6h", duration, "Longest time that a site may be waited for during one answer (603); the time in which a limit of bandwidth keeps it from sending does not count.", LIVE),
    Setting("LCC_PACE_DEADLINE", "6h", duration, "Longest time that limits of bandwidth may hold up one body (604); a body that says its length and cannot make it is not begun. 0 = as long as it takes.", LIVE),
    Setting("LCC_MEMORY_BODY", "1M", size, "Bodies up to this size are handled in memory, larger ones go to the content file as they arrive.", LIVE),
    Setting("LCC_ITEMS_FOLLOW_DOCUMENT", "yes", _flag, "Items of `parse_document` go to the pipelines when their document has passed those of the project, and not at all when one dropped it or failed; `no`: at once, whatever becomes of the document."),
    Setting("LCC_CRAWL_DELAY_MAX", "30s", duration, "Longest `Crawl-delay` of a robots.txt that is kept; longer ones count as this, 0 = none is kept.", LIVE),
    Setting("LCC_LINKS_FOLLOWED", "documents", _relations, "Kinds of links that a spider follows: `documents`, `requisites` or single ones, as in [links](links.md).", LIVE),
    Setting("LCC_LINKS_MAX", "10000", _at_least_one, "Links taken from one page; further ones are dropped.", LIVE),
    Setting("LCC_LINKS_PAGE_BYTES", "4M", size, "Bytes of a page that are looked at for links.", LIVE),
    Setting("LCC_LINKS_IGNORE_EXTENSIONS", "7z aac apk avi avif bin bmp bz2 deb dmg eot exe flac flv gif gz ico img iso jar jpeg jpg m4a m4v mkv mov mp3 mp4 mpeg mpg msi ogg ogv otf png rar rpm tar tgz tif tiff ttf wav webm webp wmv woff woff2 xz zip zst", _words, "Endings of file names whose URLs a spider does not fetch.", LIVE),
    Setting("LCC_LINKS_IGNORE_FILE", "", _ignore_file, "File of domains, URLs, paths and endings that a spider does not fetch, one a line, as in [links](links.md).", LIVE),
    Setting("LCC_LINKS_STRIP", "", _words, "Parameters that are left out of URLs on pages, such as session ids.", LIVE),
    Setting("LCC_REVISIT", "1h..1d..30d", revisits, "How often a spider visits a page again with `-a every=auto`: the shortest interval, that of a page not known yet, and the longest one. `1h..30d` puts the middle one between the others. `lcc provider set --revisit` gives a provider its own.", LIVE),
    Setting("LCC_REDIRECTS", "10", _whole, "Redirects followed inside one turn (606).", LIVE),
    Setting("LCC_LEASE", "60s", duration, "How long a worker that stopped answering keeps its providers."),
    Setting("LCC_COMMIT_PAGES", "250", _at_least_one, "Pages that are made durable in one commit at most, and that may be answered and not durable yet: what `kill -9` lets be fetched again, besides fetches in flight. When so many wait, nothing more is fetched. More of them help disks that are slow to sync.", LIVE),
    Setting("LCC_SETTLING_PROCESS", "yes", _flag, "Results of fetches are settled by a child process of each crawl, which writes their rows and content files on another processor; it takes some 50 MB of memory. `no`: by a thread of the crawl."),
    Setting("LCC_STORE_JOB_WARN", "0.25s", duration, "A job of the store's thread that takes longer is told in the log with its name, once a minute; 0 = never.", LIVE),
    Setting("LCC_POLL", "2s", _period, "How often a worker looks for changes other processes made.", LIVE),
    Setting("LCC_STOP_TIMEOUT", "30s", duration, "How long fetches in flight may go on when the process is asked to stop.", LIVE),
    Setting("LCC_CONTACT", "", str, "Where site owners reach you; sent with the User-Agent."),
    Setting("LCC_QUERY_ENDPOINTS", "", _endpoints, "Where `lcc query` listens: Twisted endpoint strings separated by blanks."),
    Setting("LCC_QUERY_ALLOW_PLAIN_REMOTE", "no", _flag, "Permit `lcc query` to listen beyond loopback without TLS."),
    Setting("LCC_QUERY_PROXIES", "127.0.0.0/8 ::1", _networks, "Addresses and networks of proxies in front of `haproxy:` endpoints of `lcc query`.", LIVE),
    Setting("LCC_QUERY_CONNECTIONS_PER_ADDRESS", "10", _at_least_one, "Connections of one address to the query socket at a time; more get 804.", LIVE),
    Setting("LCC_QUERY_CONNECTIONS_MAX", "100", _at_least_one, "Connections to the query socket at a time; more get 804.", LIVE),
    Setting("LCC_QUERY_THREADS", "4", _at_least_one, "Threads in which answers are read from database and disk, a portion of one answer at a time; each needs a database connection."),
    Setting("LCC_QUERY_BYTES", "65536", _at_least(1, size), "Bytes of a query; more get 805.", LIVE),
    Setting("LCC_QUERY_SECONDS", "10s", _period, "Time from connecting to a complete query; later gets 806.", LIVE),
    Setting("LCC_QUERY_IDLE_SECONDS", "60s", _period, "Time in which a content user takes nothing of the 64 KiB of its answer that are ready for it; then the connection is cut.", LIVE),
    Setting("LCC_QUERY_MIN_RATE", "2000", _at_least(1, size), "Bytes of an answer per second of waiting for the content user, on average; who is slower for 30 s is cut.", LIVE),
    Setting("LCC_QUERY_WAIT_MAX", "10m", duration, "Longest time that a query waits for a change, whatever it says; 0 = none waits.", LIVE),
    Setting("LCC_LOG_FORMAT", "text", _log_format, "How log lines look: `text`, or `json`, one object a line."),
    Setting("LCC_FETCH_LOG", "fetch.log", str, "File of the [fetch log](operations.md#what-was-fetched), one JSON line for each outcome of a fetch: of `fetch.log`, worker 0 writes `fetch-0.log`. A relative path begins in LCC_DATA_DIR; empty = off."),
    Setting("LCC_FETCH_LOG_BYTES", "100M", _at_least(1_000_000, size), "Size of one file of the fetch log; a full one is rotated away (`fetch-0.log.1`)."),
    Setting("LCC_FETCH_LOG_FILES", "5", _at_least_one, "Files of the fetch log that each worker keeps; the oldest goes."),
    Setting("LCC_WEB_ENDPOINT", "127.0.0.1:8080", _endpoint, "Where `lcc web` listens: `127.0.0.1:8080`, `[::]:8443` or `unix:/run/lcc/web.sock`."),
    Setting("LCC_WEB_URL", "", _web_url, "URL of `lcc web` as clients see it, for documents that have to name it; needed behind a proxy. Empty = as each request says: `https://lcc.example.org`."),
    Setting("LCC_WEB_WAITERS", "1000", _at_least_one, "Requests to `lcc web` that wait for changes at a time; more get 503."),
    Setting("LCC_WEB_EXPORTS", "4", _at_least_one, "Exports and packages of ResourceSync dumps that `lcc web` writes at a time; more get 503."),
    Setting("LCC_WEB_RATE", "200/s", _rate, "Requests to `lcc web` with one token, and likewise from one address (an IPv6 /64 counts as one; programs on the same machine have no share by address): as many at once, and then as many per time; more get 429."),
    Setting("LCC_WEB_SHARE_REQUESTS", "64", _at_least_one, "Requests to `lcc web` at a time with one token, and likewise from one address; more get 429."),
    Setting("LCC_WEB_SHARE_STREAMS", "32", _at_least_one, "Those of them that wait for changes, or whose answers are contents or lists; more get 429."),
    Setting("LCC_WEB_SHARE_EXPORTS", "2", _at_least_one, "Those of them that write an export or a package; more get 429."),
    Setting("LCC_WEB_PROXIES", "", _networks, "Addresses and networks of proxies in front of `lcc web`, separated by blanks, which are believed when they say in `X-Forwarded-For` whose request they bring; with any, who comes over a Unix socket is believed too."),
    Setting("LCC_FILES_ENDPOINT", "", _endpoint, "Where `lcc files` listens, written like LCC_WEB_ENDPOINT; empty = nowhere."),
    Setting("LCC_FILES_ADDRESS", "", _address, "How other machines reach this machine's `lcc files`, for example `https://m2.example.org:8081`: it notes that in the database. Empty = the name of this host (or the address of LCC_FILES_ENDPOINT, without a certificate) and its port; nothing where it listens for this machine only."),
    Setting("LCC_FILES_MACHINES", "", _machines, "Where the content files of other machines are to be had, if not where these say themselves (LCC_FILES_ADDRESS): `2=https://m2.example.org:8081`, separated by blanks; the numbers are those that `lcc init` gave. Private addresses are good."),
    Setting("LCC_FILES_TOKEN_FILE", "", str, "File that holds the token (scope `files`) that the `lcc files` of other machines is shown; empty = their files are not asked for."),
    Setting("LCC_HTTP_CONNECTIONS", "2000", _at_least_one, "Connections to `lcc web` or `lcc files` at a time; requests of more get 503."),
    Setting("LCC_HTTP_CONNECTIONS_PER_ADDRESS", "200", _at_least_one, "Connections of one address (an IPv6 /64 counts as one) to `lcc web` or `lcc files` at a time; more are closed. Programs on the same machine and LCC_WEB_PROXIES may have as many as they like."),
    Setting("LCC_HTTP_SILENCE", "60s", _period, "Time in which a client of `lcc web` or `lcc files` takes nothing of its answer; then it is cut."),
    Setting("LCC_HTTP_CERTIFICATE", "", str, "File with the certificate and its chain (PEM) for `lcc web` and `lcc files`; empty = plain HTTP. SIGHUP reads it again."),
    Setting("LCC_HTTP_KEY", "", str, "File with its private key (PEM); empty = it is in the same file."),
    Setting("LCC_HTTP_ALLOW_PLAIN_REMOTE", "no", _flag, "Permit `lcc web` and `lcc files` to listen beyond loopback without TLS."),
    Setting("LCC_PROJECT_COMPONENTS", "", _components, "Which pipelines, middlewares, extensions, add-ons and feeds of the Scrapy project around it the LCC's spiders take: import paths separated by commas (`FEEDS` for the feeds), `all` or `none`. Empty: `lcc_push` and `lcc_spider` none, spiders of your own all."),
    Setting("LCC_COMPONENT_PAUSE", "60s", duration, "How long nothing is fetched after a component failed alike on 50 documents in a row; then one document is tried at a time, each so long after the other, until one passes. 0 = never pause.", LIVE),
    Setting("LCC_OUTCOMES_KEPT", "30d", duration, "How long the last failure or refusal of a URL is kept for `lcc explain` and `lcc retry`.", LIVE),
)  # fmt: skip

_BY_NAME = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, read and checked; field names are setting names without ``LCC_``, in lower case."""

    data_dir: Path
    database_url: str
    """Resolved: given, or from its file, or SQLite in the data directory."""
    database_url_file: str
    content_dir: Path
    spool_dir: Path
    uns_endpoints: tuple[str, ...]
    uns_allow_plain_remote: bool
    uns_proxies: tuple[IPv4Network | IPv6Network, ...]
    mimetypes: tuple[str, ...]
    bandwidth: int
    timeofday_slots: int
    timezone: ZoneInfo
    queue_max: int
    spool_max_bytes: int
    disk_min_free: int
    ballast: int
    uns_patience: float
    connections_per_address: int
    connections_per_provider: int
    connections_max: int
    set_max_urls: int
    set_max_bytes: int
    url_length: int
    login_bytes: int
    login_seconds: float
    login_failures_per_address: Rate
    login_failures_per_id: Rate
    login_checks: int
    logins_waiting: int
    element_bytes: int
    element_depth: int
    element_attributes: int
    unknown_names: int
    idle_seconds: float
    min_rate: int
    min_rate_grace: float
    conversation_seconds: float
    reply_bytes: int
    replies_bytes: int
    linger_seconds: float
    linger_bytes: int
    retry_after: float
    fullsets: int
    fullset_period: float
    max_removal: float
    stale_after: float
    expire_after: float
    errors_kept: int
    refusals_kept: int
    retry_delays: tuple[float, ...]
    host_backoff: float
    host_patience: float
    declared: str
    tombstones_keep: float
    file_grace: float
    content_compression: str
    push_grace: float
    keep_versions: Keep
    fetches: int
    fetches_paced: int
    window: int
    read_ahead: int
    fetch_max_bytes: int
    fetch_timeout: float
    fetch_deadline: float
    pace_deadline: float
    memory_body: int
    items_follow_document: bool
    crawl_delay_max: float
    links_followed: frozenset[str]
    links_max: int
    links_page_bytes: int
    links_ignore_extensions: tuple[str, ...]
    links_ignore_file: IgnoreList
    links_strip: tuple[str, ...]
    revisit: Bounds
    redirects: int
    lease: float
    commit_pages: int
    settling_process: bool
    store_job_warn: float
    poll: float
    stop_timeout: float
    contact: str
    query_endpoints: tuple[str, ...]
    query_allow_plain_remote: bool
    query_proxies: tuple[IPv4Network | IPv6Network, ...]
    query_connections_per_address: int
    query_connections_max: int
    query_threads: int
    query_bytes: int
    query_seconds: float
    query_idle_seconds: float
    query_min_rate: int
    query_wait_max: float
    log_format: str
    fetch_log: Path | None
    fetch_log_bytes: int
    fetch_log_files: int
    web_endpoint: Endpoint | None
    web_url: str
    web_waiters: int
    web_exports: int
    web_rate: Rate
    web_share_requests: int
    web_share_streams: int
    web_share_exports: int
    web_proxies: tuple[IPv4Network | IPv6Network, ...]
    files_endpoint: Endpoint | None
    files_address: str
    files_machines: Mapping[int, str]
    files_token_file: str
    http_connections: int
    http_connections_per_address: int
    http_silence: float
    http_certificate: str
    http_key: str
    http_allow_plain_remote: bool
    project_components: tuple[str, ...]
    component_pause: float
    outcomes_kept: float

    @property
    def connections_out(self) -> int:
        """Return how many fetches can be under way: paced, about to be, and others of each priority."""
        return 2 * (len(PRIORITIES) + 1) * self.fetches + self.fetches_paced

    @property
    def policy(self) -> QueuePolicy:
        """Return the operator's choices that the queue's rules need."""
        return QueuePolicy(
            retry_delays=self.retry_delays,
            file_grace=self.file_grace,
            errors_kept=self.errors_kept,
            refusals_kept=self.refusals_kept,
            max_removal=self.max_removal,
            declared=self.declared,
            fullset_period=self.fullset_period,
            stale_after=self.stale_after,
            expire_after=self.expire_after,
            tombstones_keep=self.tombstones_keep,
            mimetypes=self.mimetypes,
            push_grace=self.push_grace,
            versions=self.keep_versions,
            revisits=self.revisit,
        )

    def links(self, agent: str) -> LinkRules:
        """Return what is wanted of pages by a spider that robots directives call ``agent``."""
        return LinkRules(
            self.links_followed,
            self.links_max,
            self.links_page_bytes,
            self.links_ignore_file.with_extensions(self.links_ignore_extensions),
            frozenset(self.links_strip),
            agent,
        )


@dataclass(frozen=True, slots=True)
class Renewal:
    """What becomes of a running process's settings when they are read again.

    ``changed`` names those that are different in ``config`` from now on, ``waiting`` those that a restart
    would change.
    """

    config: Config
    changed: tuple[str, ...]
    waiting: tuple[str, ...]


def renew(running: Config, fresh: Config) -> Renewal:
    """Take over of fresh settings what can change while a process runs."""
    different = [one for one in SETTINGS if _of(running, one) != _of(fresh, one)]
    live = {_field(one): _of(fresh, one) for one in different if one.live}
    return Renewal(
        replace(running, **live),
        tuple(one.name for one in different if one.live),
        tuple(one.name for one in different if not one.live),
    )


def _field(setting: Setting) -> str:
    return setting.name[4:].lower()


def _of(config: Config, setting: Setting) -> Any:
    return getattr(config, _field(setting))


def load(settings: Given, environment: Mapping[str, str] = os.environ) -> Config:
    """Read all settings; raises ``ConfigurationError`` naming the setting that is wrong."""
    values = {_field(setting): _value(setting, settings, environment) for setting in SETTINGS}
    data_dir = Path(values["data_dir"] or _default_data_dir()).absolute()
    values["data_dir"] = data_dir
    values["database_url"] = (
        values["database_url"]
        or _content_of(values["database_url_file"])
        or f"sqlite:///{data_dir / 'lcc.sqlite'}"
    )
    values["content_dir"] = Path(values["content_dir"] or data_dir / "content").absolute()
    fetch_log = str(values["fetch_log"]).strip()
    values["fetch_log"] = data_dir / fetch_log if fetch_log else None
    values["spool_dir"] = Path(values["spool_dir"] or data_dir / "spool").absolute()
    return Config(**{field.name: values[field.name] for field in fields(Config)})


def given_settings(given: Mapping[str, str]) -> PlainSettings:
    """Return what the Scrapy project around the current folder sets; ``given`` wins. It imports no Scrapy."""
    with _readable_project():
        return plain_settings(given)


def project_settings(given: Mapping[str, str]) -> "Settings":
    """Return the settings of the Scrapy project around the current folder, or Scrapy's own; ``given`` wins."""
    from scrapy.utils.project import get_project_settings  # noqa: PLC0415 - only daemons need Scrapy itself

    with _readable_project():
        settings = get_project_settings()
    settings.setdict(dict(given), priority="cmdline")
    return settings


@contextmanager
def _readable_project() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigurationError(f"cannot read the settings of this Scrapy project: {error}") from error


def _content_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"LCC_DATABASE_URL_FILE: {path}: {error}") from None


def _value(setting: Setting, settings: Given, environment: Mapping[str, str]) -> Any:
    raw = _raw(setting, settings, environment)
    try:
        return setting.read(raw)
    except ValueError as error:
        raise ConfigurationError(f"{setting.name}: {error}") from None


def _raw(setting: Setting, settings: Given, environment: Mapping[str, str]) -> Any:
    from_command_line = (settings.getpriority(setting.name) or -1) >= COMMAND_LINE
    if setting.name in environment and not from_command_line:
        return environment[setting.name]
    given = settings.get(setting.name)
    return setting.default if given is None else given


def says_where(settings: Given, environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether LCC_DATA_DIR is set; where it is not, the data directory is beside ``scrapy.cfg``."""
    return bool(_raw(_BY_NAME["LCC_DATA_DIR"], settings, environment))


def _default_data_dir() -> Path:
    project = closest_scrapy_cfg()
    if not project:
        raise ConfigurationError(
            "no LCC here: go to the folder where `lcc init` was run, or set LCC_DATA_DIR"
        )
    return project.parent / "lcc-data"


def unknown_settings(settings: Given, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return names that look like ours and are not, so that a typing error does not pass in silence."""
    names = {name for name in (*settings, *environment) if name.startswith("LCC_")}
    return sorted(names - _BY_NAME.keys() - {"LCC_PWD"})
