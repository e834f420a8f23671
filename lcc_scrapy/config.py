"""Settings: the one place that reads them (design section 8).

Every ``LCC_*`` setting comes from, highest first: ``-s NAME=VALUE``, the environment, ``settings.py``,
its default here. Durations are written like ``90d``, ``12h``, ``10m``, ``30s``; sizes like ``200k``,
``10M``, ``2G`` (k = 1000).
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings
from scrapy.utils.conf import closest_scrapy_cfg
from scrapy.utils.project import get_project_settings

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.policy import RECORD, STRICT, QueuePolicy
from lcc_scrapy.domain.timeslots import HOURS_PER_DAY, HOURS_PER_WEEK

_DURATION = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZE = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
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


def _endpoints(text: Any) -> tuple[str, ...]:
    parts = text if isinstance(text, (list, tuple)) else str(text).split()
    return tuple(part for part in parts if part)


def _whole(text: Any, least: int = 0) -> int:
    digits = str(text).strip()
    if not (digits.isascii() and digits.isdigit()) or int(digits) < least:
        raise ValueError(f"{text!r}, expected a whole number from {least} on")
    return int(digits)


def _share(text: Any) -> float:
    number, percent, rest = str(text).strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest or not 0 <= value <= 1:
        raise ValueError(f"{text!r}, expected a share like 50%")
    return value


def _slots(text: Any) -> int:
    if str(text).strip() not in {str(HOURS_PER_DAY), str(HOURS_PER_WEEK)}:
        raise ValueError(f"{text!r}, expected {HOURS_PER_DAY} or {HOURS_PER_WEEK}")
    return int(text)


def _declared(text: Any) -> str:
    if text not in {RECORD, STRICT}:
        raise ValueError(f"{text!r}, expected {RECORD} or {STRICT}")
    return str(text)


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


SETTINGS: tuple[Setting, ...] = (
    Setting("LCC_DATA_DIR", "", str, "The data folder made by `lcc init`. Default: `lcc-data` beside `scrapy.cfg`."),
    Setting("LCC_DATABASE_URL", "", str, "SQLAlchemy URL of the database. Default: SQLite inside the data folder."),
    Setting("LCC_CONTENT_DIR", "", str, "Folder of the content files. Default: `content` inside the data folder."),
    Setting("LCC_SPOOL_DIR", "", str, "Folder of accepted sets waiting for the queue. Default: `spool` inside the data folder."),
    Setting("LCC_UNS_ENDPOINTS", "tcp:9000:interface=127.0.0.1", _endpoints, "Where the UNS listens: Twisted endpoint strings separated by blanks; empty = nowhere."),
    Setting("LCC_UNS_ALLOW_PLAIN_REMOTE", "no", _flag, "Permit listening beyond loopback without TLS."),
    Setting("LCC_MIMETYPES", "text/*, application/pdf, application/xml, application/xhtml+xml, application/json, application/msword", _words, "Accepted mimetypes; `text/*` and `*/*` are patterns."),
    Setting("LCC_BANDWIDTH", "0", size, "Bytes per second for all fetching together; 0 = no limit."),
    Setting("LCC_TIMEOFDAY_SLOTS", "168", _slots, "Slots of a time mask: 168 (hours of a week) or 24 (hours of a day)."),
    Setting("LCC_TIMEZONE", "UTC", _zone, "Time zone of masks whose provider has none of its own."),
    Setting("LCC_QUEUE_MAX", "10000000", _whole, "URLs in the queue at which intake rests and the spool grows; 0 = no limit. One provider gets in as much as is left free: half of it when it is alone."),
    Setting("LCC_SPOOL_MAX_BYTES", "10G", size, "Size of the spool at which providers are told to try again later (103, 203); 0 = no limit. Shared like the queue; a set that is larger than half of it gets 204."),
    Setting("LCC_UNS_PATIENCE", "1h", _period, "How long a provider's sets wait for an earlier one that may be at a UNS which gives no sign of life; then they go on, and the earlier one is not absorbed any more."),
    Setting("LCC_CONNECTIONS_PER_ADDRESS", "10", _at_least_one, "Connections of one address to the UNS at a time; more get 104."),
    Setting("LCC_CONNECTIONS_MAX", "1000", _at_least_one, "Connections to the UNS at a time; more get 104."),
    Setting("LCC_SET_MAX_URLS", "10000000", _at_least_one, "URLs in one set; more get 204."),
    Setting("LCC_SET_MAX_BYTES", "10G", size, "Bytes of one set on the wire; more get 204."),
    Setting("LCC_FULLSETS", "10", _whole, "Unsolicited full sets per period for new providers; 0 = none."),
    Setting("LCC_FULLSET_PERIOD", "30d", duration, "The period in which full sets are counted."),
    Setting("LCC_MAX_REMOVAL", "50%", _share, "Share of a provider's documents beyond which (and beyond 20) removals within a day are held."),
    Setting("LCC_STALE_AFTER", "90d", duration, "Documents that nobody has confirmed for so long: their provider is asked for a full set (wish `old files`); 0 = never."),
    Setting("LCC_EXPIRE_AFTER", "180d", duration, "Documents that nobody has confirmed for so long are removed, by daily portions that LCC_MAX_REMOVAL lets pass (wish `expired files`); 0 = never."),
    Setting("LCC_ERRORS_KEPT", "100", _at_least_one, "Failed URLs kept per provider with all they were submitted with; the count is exact beside it."),
    Setting("LCC_RETRY_DELAYS", "60s, 10m, 1h", _durations, "Waits before a URL that failed is tried again; after the last it is final."),
    Setting("LCC_HOST_BACKOFF", "60s", duration, "First wait of a turn whose host fails; it doubles up to an hour, or is Retry-After when that is longer."),
    Setting("LCC_HOST_PATIENCE", "3d", duration, "How long a host may fail before its URLs are given up one by one."),
    Setting("LCC_DECLARED", RECORD, _declared, "`record` stores what was served when it is not what was declared, and says so (607, 608); `strict` refuses it."),
    Setting("LCC_TOMBSTONES_KEEP", "90d", duration, "How long content users are told of a removal; a cursor that is older has to start over; 0 = for ever."),
    Setting("LCC_FILE_GRACE", "1h", duration, "How long the file of a replaced or removed document stays."),
    Setting("LCC_FETCHES", "64", _at_least_one, "Fetches in flight at a time in one process (never two of one provider)."),
    Setting("LCC_WINDOW", "32", _at_least_one, "URLs read ahead per provider."),
    Setting("LCC_READ_AHEAD", "20000", _at_least_one, "URLs read ahead for all providers of one process together; with many providers each has a smaller window."),
    Setting("LCC_FETCH_MAX_BYTES", "2G", size, "Largest decoded body; larger ones are refused (604)."),
    Setting("LCC_FETCH_TIMEOUT", "60s", duration, "Longest silence while connecting or reading (603)."),
    Setting("LCC_FETCH_DEADLINE", "6h", duration, "Longest time for one body (603)."),
    Setting("LCC_MEMORY_BODY", "1M", size, "Bodies up to this size are handled in memory, larger ones go to the content file as they arrive."),
    Setting("LCC_REDIRECTS", "10", _whole, "Redirects followed inside one turn (606)."),
    Setting("LCC_LEASE", "60s", duration, "How long a worker that stopped answering keeps its providers."),
    Setting("LCC_POLL", "2s", _period, "How often a worker looks for changes other processes made."),
    Setting("LCC_STOP_TIMEOUT", "30s", duration, "How long fetches in flight may go on when the process is asked to stop."),
    Setting("LCC_CONTACT", "", str, "Where site owners reach you; sent with the User-Agent."),
    Setting("LCC_OUTCOMES_KEPT", "30d", duration, "How long the last failure of a URL is kept for `lcc explain`."),
)  # fmt: skip

_BY_NAME = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, read and checked; field names are setting names without ``LCC_``, in lower case."""

    data_dir: Path
    database_url: str
    content_dir: Path
    spool_dir: Path
    uns_endpoints: tuple[str, ...]
    uns_allow_plain_remote: bool
    mimetypes: tuple[str, ...]
    bandwidth: int
    timeofday_slots: int
    timezone: ZoneInfo
    queue_max: int
    spool_max_bytes: int
    uns_patience: float
    connections_per_address: int
    connections_max: int
    set_max_urls: int
    set_max_bytes: int
    fullsets: int
    fullset_period: float
    max_removal: float
    stale_after: float
    expire_after: float
    errors_kept: int
    retry_delays: tuple[float, ...]
    host_backoff: float
    host_patience: float
    declared: str
    tombstones_keep: float
    file_grace: float
    fetches: int
    window: int
    read_ahead: int
    fetch_max_bytes: int
    fetch_timeout: float
    fetch_deadline: float
    memory_body: int
    redirects: int
    lease: float
    poll: float
    stop_timeout: float
    contact: str
    outcomes_kept: float

    @property
    def policy(self) -> QueuePolicy:
        """Return the operator's choices that the queue's rules need."""
        return QueuePolicy(
            retry_delays=self.retry_delays,
            file_grace=self.file_grace,
            errors_kept=self.errors_kept,
            max_removal=self.max_removal,
            declared=self.declared,
            fullset_period=self.fullset_period,
            stale_after=self.stale_after,
            expire_after=self.expire_after,
            tombstones_keep=self.tombstones_keep,
        )


def load(settings: BaseSettings, environment: Mapping[str, str] = os.environ) -> Config:
    """Read all settings; raises ``ConfigurationError`` naming the setting that is wrong."""
    values = {setting.name[4:].lower(): _value(setting, settings, environment) for setting in SETTINGS}
    data_dir = Path(values["data_dir"] or _default_data_dir()).absolute()
    values["data_dir"] = data_dir
    values["database_url"] = values["database_url"] or f"sqlite:///{data_dir / 'lcc.sqlite'}"
    values["content_dir"] = Path(values["content_dir"] or data_dir / "content").absolute()
    values["spool_dir"] = Path(values["spool_dir"] or data_dir / "spool").absolute()
    return Config(**{field.name: values[field.name] for field in fields(Config)})


def project_settings(given: Mapping[str, str]) -> Settings:
    """Return the settings of the Scrapy project around the current folder, or Scrapy's own; ``given`` wins."""
    try:
        settings = get_project_settings()
    except ImportError as error:
        raise ConfigurationError(f"cannot read the settings of this Scrapy project: {error}") from error
    settings.setdict(dict(given), priority="cmdline")
    return settings


def _value(setting: Setting, settings: BaseSettings, environment: Mapping[str, str]) -> Any:
    raw = _raw(setting, settings, environment)
    try:
        return setting.read(raw)
    except ValueError as error:
        raise ConfigurationError(f"{setting.name}: {error}") from None


def _raw(setting: Setting, settings: BaseSettings, environment: Mapping[str, str]) -> Any:
    from_command_line = (settings.getpriority(setting.name) or -1) >= SETTINGS_PRIORITIES["cmdline"]
    if setting.name in environment and not from_command_line:
        return environment[setting.name]
    given = settings.get(setting.name)
    return setting.default if given is None else given


def _default_data_dir() -> Path:
    project = closest_scrapy_cfg()
    if not project:
        raise ConfigurationError(
            "no scrapy.cfg here or above: say where the data folder is with LCC_DATA_DIR"
        )
    return Path(project).parent / "lcc-data"


def unknown_settings(settings: BaseSettings, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return names that look like ours and are not, so that a typing error does not pass in silence."""
    names = {name for name in (*settings, *environment) if name.startswith("LCC_")}
    return sorted(names - _BY_NAME.keys() - {"LCC_PWD"})
