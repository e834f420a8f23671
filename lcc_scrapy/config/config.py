"""Settings: the one place that reads them (design section 8).

Every ``LCC_*`` setting comes from, highest first: ``-s NAME=VALUE``, the environment, ``settings.py``,
its default. ``domain/notations.py`` says how values are written.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast
from zoneinfo import ZoneInfo

from lcc_scrapy import __version__
from lcc_scrapy.config import readers
from lcc_scrapy.config.project import COMMAND_LINE, Given, PlainSettings, closest_scrapy_cfg, plain_settings
from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain import shared_settings as shared
from lcc_scrapy.domain.alert_limits import AlertRules
from lcc_scrapy.domain.annotation_limits import AnnotationRules
from lcc_scrapy.domain.compression import GZIP, NONE, ZSTD
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.http_serving import Bounds as WebBounds
from lcc_scrapy.domain.http_serving import Endpoint
from lcc_scrapy.domain.http_serving import Service as HttpService
from lcc_scrapy.domain.listen_rules import UnsListenRules
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.mail_rules import MailRules
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.render_rules import RenderRules
from lcc_scrapy.domain.settings import LIVE, Setting, declared_in, group, make, setting, values_of
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.domain.turns import PRIORITIES
from lcc_scrapy.domain.uns_limits import Limits as UnsLimits
from lcc_scrapy.links.rules import IgnoreList, LinkRules
from lcc_scrapy.runtime.apps import NO_APPS, App, Apps, read_apps
from lcc_scrapy.runtime.apps import load as load_part

if TYPE_CHECKING:
    from scrapy.settings import Settings

T = TypeVar("T")
_resolved: Callable[[Any], Any] = str
"""Reads a path; ``load`` makes an absolute one of it."""


class OfApps:
    """The settings of apps: each group is read, and checked, when it is first asked for."""

    def __init__(self, given: Given | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._given = PlainSettings({}, {}) if given is None else given
        self._environment = environment or {}
        self._read: dict[type[Any], Any] = {}

    def of(self, kind: type[T]) -> T:
        """Return the settings of a class; raises ``ConfigurationError`` naming the one that is wrong."""
        if kind not in self._read:
            declared = declared_in(kind)
            values = {one.name: _value(one, self._given, self._environment) for one in declared}
            self._read[kind] = make(kind, values)
        return cast("T", self._read[kind])

    def renewed(self, fresh: "OfApps") -> "tuple[OfApps, list[str], list[str]]":
        """Return them with those of ``fresh`` that may change now; the names of these, and of the others."""
        changed, waiting = list[str](), list[str]()
        for kind, value in self._read.items():
            before, after = values_of(value), values_of(fresh.of(kind))
            different = [one for one in declared_in(kind) if before[one.name] != after[one.name]]
            live = {one.name: after[one.name] for one in different if one.live}
            fresh = fresh.with_group(make(kind, before | live))
            changed += live
            waiting += [one.name for one in different if not one.live]
        return fresh, changed, waiting

    def with_group(self, value: Any) -> "OfApps":
        """Return them with one group as it is given: for tests, and for what runs beside a process."""
        made = OfApps(self._given, self._environment)
        made._read.update({**self._read, type(value): value})
        return made


# fmt: off
@dataclass(frozen=True, slots=True)
class Config:
    """All settings, read and checked by ``load``. Those that one component needs alone are in groups."""

    apps: Apps = setting("LCC_APPS", "", read_apps, "Apps beside those that come with the LCC, by the modules that define them (`mypkg.titles`, [apps](apps.md)); `-tracker` leaves one out, with its commands, pages and jobs. Separated by blanks.")
    data_dir: Path = setting("LCC_DATA_DIR", "", _resolved, "The data directory made by `lcc init`. Default: `lcc-data` beside `scrapy.cfg`.")
    database_url: str = setting("LCC_DATABASE_URL", "", str, "SQLAlchemy URL of the database. Default: SQLite inside the data directory.")
    database_url_file: str = setting("LCC_DATABASE_URL_FILE", "", str, "File that holds the URL of the database, for one with a password; read when LCC_DATABASE_URL is not set, an empty one counts for nothing.")
    read_database_url: str = setting("LCC_READ_DATABASE_URL", "", str, "SQLAlchemy URL of [replicas of the database](databases.md#replicas-for-content-users) that content users read from; they may lag. Empty = LCC_DATABASE_URL.")
    read_database_url_file: str = setting("LCC_READ_DATABASE_URL_FILE", "", str, "File that holds that URL, for one with a password; read when LCC_READ_DATABASE_URL is not set.")
    content_dir: Path = setting("LCC_CONTENT_DIR", "", _resolved, "Folder of the content files. Default: `content` inside the data directory.")
    content_url: str = setting("LCC_CONTENT_URL", "", str.strip, "Object storage of the contents, `s3://BUCKET/PREFIX` or `s3://BUCKET/PREFIX?endpoint=https://HOST` ([object storage](object-storage.md)). Default: files in LCC_CONTENT_DIR.")
    content_redirect: int = setting("LCC_CONTENT_REDIRECT", "0", readers.validity, "How long URLs are good to which `lcc web` [redirects](object-storage.md#redirects) those who read a content, so that they get it from the object storage itself; 7d at most. 0 or empty = `lcc web` passes contents through.")
    spool_dir: Path = setting("LCC_SPOOL_DIR", "", _resolved, "Folder of accepted sets waiting for the queue. Default: `spool` inside the data directory.")
    policy: QueuePolicy = group(QueuePolicy)
    uns_listen: UnsListenRules = group(UnsListenRules)
    timeofday_slots: int = setting("LCC_TIMEOFDAY_SLOTS", "168", readers.slots, "Slots of a time mask: 168 (hours of a week) or 24 (hours of a day).")
    timezone: ZoneInfo = setting("LCC_TIMEZONE", "UTC", readers.zone, "Time zone of masks whose provider has none of its own.")
    queue_max: int = setting("LCC_QUEUE_MAX", "10000000", read.whole, "URLs in the queue at which intake rests and the spool grows; 0 = no limit. One provider gets in as much as is left free: half of it when it is alone.", LIVE)
    spool_max_bytes: int = setting("LCC_SPOOL_MAX_BYTES", "10G", read.size, "Size of the spool at which providers are told to try again later (103, 203); 0 = no limit. Shared like the queue; a set that is larger than half of it gets 204.", LIVE)
    disk_min_free: int = setting("LCC_DISK_MIN_FREE", "100M", read.size, "Free space below which intake and fetching rest (103, 203) until there is a quarter more, on each disk that the process writes to; 0 = no such bound.")
    ballast: int = setting("LCC_BALLAST", "16M", read.size, "Size of the file `ballast` in the data directory, which is given up when the disk is full all the same, so that what was begun can be stored; 0 = none.")
    uns_patience: float = setting("LCC_UNS_PATIENCE", "1h", read.period, "How long a provider's sets wait for an earlier one that may be at a UNS which gives no sign of life; then they go on, and the earlier one is not absorbed any more.")
    uns: UnsLimits = group(UnsLimits)
    login: ThrottleRules = group(ThrottleRules)
    fullsets: int = setting("LCC_FULLSETS", "10", read.whole, "Unsolicited full sets per period for new providers; 0 = none.", LIVE)
    host_patience: float = setting("LCC_HOST_PATIENCE", "3d", read.duration, "How long a host may fail before its URLs are given up one by one.", LIVE)
    content_compression: str = setting("LCC_CONTENT_COMPRESSION", NONE, read.one_of(NONE, GZIP, ZSTD), "How new content files are compressed: `none`, `gzip` or `zstd`; images, archives and the like are stored as they are. Everything that reads through the LCC gets the document as it was served.", LIVE)
    turns: TurnLimits = group(TurnLimits)
    fetch_max_bytes: int = setting("LCC_FETCH_MAX_BYTES", "2G", read.size, "Largest body, as transferred and decoded; larger ones are refused (604).", LIVE)
    fetch_timeout: float = setting("LCC_FETCH_TIMEOUT", "60s", read.duration, "Longest silence while reading, and longest time to connect (602) and for the head of an answer (603).", LIVE)
    fetch_deadline: float = setting("LCC_FETCH_DEADLINE", "6h", read.duration, "Longest time that a site may be waited for during one answer (603); the time in which a limit of bandwidth keeps it from sending does not count.", LIVE)
    pace_deadline: float = setting("LCC_PACE_DEADLINE", "6h", read.duration, "Longest time that limits of bandwidth may hold up one body (604); a body that says its length and cannot make it is not begun. 0 = as long as it takes.", LIVE)
    memory_body: int = setting("LCC_MEMORY_BODY", "1M", read.size, "Bodies up to this size are handled in memory, larger ones go to the content file as they arrive.", LIVE)
    items_follow_document: bool = setting("LCC_ITEMS_FOLLOW_DOCUMENT", "yes", read.flag, "Items of `parse_document` go to the pipelines when their document has passed those of the project, and not at all when one dropped it or failed; `no`: at once, whatever becomes of the document.")
    crawl_delay_max: float = setting("LCC_CRAWL_DELAY_MAX", "30s", read.duration, "Longest `Crawl-delay` of a robots.txt that is kept; longer ones count as this, 0 = none is kept.", LIVE)
    links_followed: frozenset[str] = setting("LCC_LINKS_FOLLOWED", "documents", readers.relations, "Kinds of links that a spider follows: `documents`, `requisites` or single ones, as in [links](links.md).", LIVE)
    links_max: int = setting("LCC_LINKS_MAX", "10000", read.at_least_one, "Links taken from one page; further ones are dropped.", LIVE)
    links_page_bytes: int = setting("LCC_LINKS_PAGE_BYTES", "4M", read.size, "Bytes of a page that are looked at for links.", LIVE)
    links_ignore_extensions: tuple[str, ...] = setting("LCC_LINKS_IGNORE_EXTENSIONS", "7z aac apk avi avif bin bmp bz2 deb dmg eot exe flac flv gif gz ico img iso jar jpeg jpg m4a m4v mkv mov mp3 mp4 mpeg mpg msi ogg ogv otf png rar rpm tar tgz tif tiff ttf wav webm webp wmv woff woff2 xz zip zst", read.words, "Endings of file names whose URLs a spider does not fetch.", LIVE)
    links_ignore_file: IgnoreList = setting("LCC_LINKS_IGNORE_FILE", "", readers.ignore_file, "File of domains, URLs, paths and endings that a spider does not fetch, one a line, as in [links](links.md).", LIVE)
    links_strip: tuple[str, ...] = setting("LCC_LINKS_STRIP", "", read.words, "Parameters that are left out of URLs on pages, such as session ids.", LIVE)
    redirects: int = setting("LCC_REDIRECTS", "10", read.whole, "Redirects followed inside one turn (606).", LIVE)
    commit_pages: int = setting("LCC_COMMIT_PAGES", "500", read.at_least_one, "Pages that are made durable in one commit at most, and that may be answered and not durable yet: what `kill -9` lets be fetched again, besides fetches in flight. When so many wait, nothing more is fetched. More of them help disks that are slow to sync.", LIVE)
    settling_process: bool = setting("LCC_SETTLING_PROCESS", "yes", read.flag, "Results of fetches are settled by a child process of each crawl, which writes their rows and content files on another processor; it takes some 50 MB of memory. `no`: by a thread of the crawl.")
    store_job_warn: float = setting("LCC_STORE_JOB_WARN", "0.25s", read.duration, "A job of the store's thread that takes longer is told in the log with its name, once a minute; 0 = never.", LIVE)
    poll: float = shared.poll()
    stop_timeout: float = shared.stop_timeout()
    watchdog: float = setting("LCC_WATCHDOG", "2m", read.duration, "How long the event loop of a process that `lcc crawl` started may stand still; then the process is killed and started again. 0 = it is never killed. `lcc health` calls a process dead after the same time.")
    health_file: str = shared.health_file()
    render: RenderRules = group(RenderRules)
    contact: str = setting("LCC_CONTACT", "", str, "Where site owners reach you; sent with the User-Agent.")
    credentials_file: str = setting("LCC_CREDENTIALS_FILE", "", str.strip, "File that says by which proxy, with which password or client certificate sites of providers are reached ([access to sites](site-access.md)); read again on SIGHUP. Empty = directly, without.", LIVE)
    log_format: str = setting("LCC_LOG_FORMAT", "text", read.one_of("text", "json"), "How log lines look: `text`, or `json`, one object a line.")
    fetch_log: Path | None = setting("LCC_FETCH_LOG", "fetch.log", _resolved, "File of the [fetch log](operations.md#what-was-fetched), one JSON line for each outcome of a fetch: of `fetch.log`, worker 0 writes `fetch-0.log`. A relative path begins in LCC_DATA_DIR; empty = off.")
    fetch_log_bytes: int = setting("LCC_FETCH_LOG_BYTES", "100M", read.at_least(1_000_000, read.size), "Size of one file of the fetch log; a full one is rotated away (`fetch-0.log.1`).")
    fetch_log_files: int = setting("LCC_FETCH_LOG_FILES", "5", read.at_least_one, "Files of the fetch log that each worker keeps; the oldest goes.")
    web_endpoint: Endpoint | None = setting("LCC_WEB_ENDPOINT", "127.0.0.1:8080", readers.endpoint, "Where `lcc web` listens: `127.0.0.1:8080`, `[::]:8443` or `unix:/run/lcc/web.sock`.")
    web_url: str = setting("LCC_WEB_URL", "", readers.web_url, "URL of `lcc web` as clients see it, for documents that have to name it; needed behind a proxy. Empty = as each request says: `https://lcc.example.org`.")
    push_endpoints: tuple[Endpoint, ...] = setting("LCC_PUSH_ENDPOINTS", "", readers.endpoints, "Where `lcc web` takes pushes over HTTP, [one page](http-push.md), and where `lcc front registration` listens; written like LCC_WEB_ENDPOINT; several are separated by blanks, empty = nowhere.")
    push_spool_dir: Path = setting("LCC_PUSH_SPOOL_DIR", "", _resolved, "Folder of the sets that `lcc web` accepted at LCC_PUSH_ENDPOINTS. Default: `spool-push` inside the data directory.")
    web: WebBounds = group(WebBounds)
    crawls_expected: int = shared.crawls_expected()
    files_endpoint: Endpoint | None = setting("LCC_FILES_ENDPOINT", "", readers.endpoint, "Where `lcc files` listens, written like LCC_WEB_ENDPOINT; empty = nowhere.")
    files_address: str = setting("LCC_FILES_ADDRESS", "", readers.address, "How other machines reach this machine's `lcc files`, for example `https://m2.example.org:8081`: it notes that in the database. Empty = the name of this host (or the address of LCC_FILES_ENDPOINT, without a certificate) and its port; nothing where it listens for this machine only.")
    files_machines: Mapping[int, str] = setting("LCC_FILES_MACHINES", "", readers.machines, "Where the content files of other machines are to be had, if not where these say themselves (LCC_FILES_ADDRESS): `2=https://m2.example.org:8081`, separated by blanks; the numbers are those that `lcc init` gave. Private addresses are good.")
    files_token_file: str = setting("LCC_FILES_TOKEN_FILE", "", str, "File that holds the token (scope `files`) that the `lcc files` of other machines is shown; empty = their files are not asked for.")
    http: HttpService = group(HttpService)
    public_url: str = setting("LCC_PUBLIC_URL", "", readers.web_url, "URL of LCC_PUSH_ENDPOINTS as strangers reach them: `https://push.example.org`. New providers are told it, links in [mail](mail.md) begin with it, and hubs of [WebSub](sources.md#websub) bring changes there. Empty = mail has no links, and no hub is asked.")
    mail: MailRules = group(MailRules)
    alerts: AlertRules = group(AlertRules)
    annotation: AnnotationRules = group(AnnotationRules)
    project_components: tuple[str, ...] = setting("LCC_PROJECT_COMPONENTS", "", readers.components, "Which pipelines, middlewares, extensions, add-ons and feeds of the Scrapy project around it the LCC's spiders take: import paths separated by commas (`FEEDS` for the feeds), `all` or `none`. Empty: `lcc_push` and `lcc_spider` none, spiders of your own all.")
    component_pause: float = setting("LCC_COMPONENT_PAUSE", "60s", read.duration, "How long nothing is fetched after a component failed alike on 50 documents in a row; then one document is tried at a time, each so long after the other, until one passes. 0 = never pause.", LIVE)
    wake_redis: str = setting("LCC_WAKE_REDIS", "", str, "Redis or Valkey over which processes of this LCC on several machines tell each other that [URLs were queued](operations.md#several-crawl-processes): `redis://HOST:6379/0`, `rediss://…` with TLS, [Sentinels or a cluster](scrapy-redis.md#which-redis). Empty = crawls of other machines find them at their next look (LCC_POLL).")
    front_database_url: str = setting("LCC_FRONT_DATABASE_URL", "", str, "Database of a [front](front.md), which says which sub-LCC has which provider; empty = `front.sqlite` in the data directory.")
    front_patience: float = setting("LCC_FRONT_PATIENCE", "10s", read.duration, "How long a sub-LCC may take for one answer to a content user of a [front](front.md), then it is left out, and named; and for one statement of `lcc front registration`, in MariaDB or MySQL.")
    outcomes_kept: float = setting("LCC_OUTCOMES_KEPT", "30d", read.duration, "How long the last failure or refusal of a URL is kept for `lcc explain` and `lcc retry`.", LIVE)
    # fmt: on
    of_apps: OfApps = field(default_factory=OfApps, compare=False)

    def of(self, kind: type[T]) -> T:
        """Return the settings of an app; raises ``ConfigurationError`` naming the one that is wrong."""
        return self.of_apps.of(kind)

    @property
    def spool_dirs(self) -> tuple[Path, ...]:
        """Return the folders of accepted sets on this machine: of the socket, and of pushes over HTTP."""
        return (self.spool_dir, self.push_spool_dir)

    @property
    def connections_out(self) -> int:
        """Return how many fetches can be under way: paced, about to be, and others of each priority."""
        return 2 * (len(PRIORITIES) + 1) * self.turns.places + self.turns.paced

    @property
    def agent(self) -> str:
        """Return the User-Agent of a project that has none of its own."""
        return f"lcc-scrapy/{__version__}{f' (+{self.contact})' if self.contact else ''}"

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


_BY_NAME = {one.name: one for one in declared_in(Config)}
SETTINGS: tuple[Setting, ...] = tuple(_BY_NAME.values())


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
    before, after = values_of(running), values_of(fresh)
    different = [one for one in SETTINGS if before[one.name] != after[one.name]]
    live = {one.name: after[one.name] for one in different if one.live}
    waiting = [one.name for one in different if not one.live]
    of_apps, changed_there, waiting_there = running.of_apps.renewed(fresh.of_apps)
    config = replace(make(Config, before | live), of_apps=of_apps)
    changed, later = dict.fromkeys([*live, *changed_there]), dict.fromkeys([*waiting, *waiting_there])
    return Renewal(config, tuple(changed), tuple(later))


def load(settings: Given, environment: Mapping[str, str] = os.environ) -> Config:
    """Read all settings; raises ``ConfigurationError`` naming the setting that is wrong."""
    values = {one.name: _value(one, settings, environment) for one in SETTINGS}
    data_dir = Path(values["LCC_DATA_DIR"] or _default_data_dir()).absolute()
    fetch_log = values["LCC_FETCH_LOG"].strip()
    values["LCC_FRONT_DATABASE_URL"] = values["LCC_FRONT_DATABASE_URL"] or f"sqlite:///{data_dir / 'front.sqlite'}"
    values |= {
        "LCC_DATA_DIR": data_dir,
        "LCC_DATABASE_URL": values["LCC_DATABASE_URL"]
        or _content_of("LCC_DATABASE_URL_FILE", values)
        or f"sqlite:///{data_dir / 'lcc.sqlite'}",
        "LCC_READ_DATABASE_URL": values["LCC_READ_DATABASE_URL"]
        or _content_of("LCC_READ_DATABASE_URL_FILE", values),
        "LCC_CONTENT_DIR": Path(values["LCC_CONTENT_DIR"] or data_dir / "content").absolute(),
        "LCC_SPOOL_DIR": Path(values["LCC_SPOOL_DIR"] or data_dir / "spool").absolute(),
        "LCC_PUSH_SPOOL_DIR": Path(values["LCC_PUSH_SPOOL_DIR"] or data_dir / "spool-push").absolute(),
        "LCC_FETCH_LOG": data_dir / fetch_log if fetch_log else None,
    }
    return replace(make(Config, values), of_apps=OfApps(settings, environment))


def apps_of(settings: Given, environment: Mapping[str, str] = os.environ) -> Apps:
    """Return the apps that LCC_APPS names, without reading any other setting."""
    return cast("Apps", _value(_BY_NAME["LCC_APPS"], settings, environment))


def settings_of(app: App) -> tuple[Setting, ...]:
    """Return the settings that an app declares, each once."""
    declared = declared_in(load_part(app.settings)) if app.settings else ()
    return tuple({one.name: one for one in declared}.values())


def every_setting(apps: Apps) -> tuple[Setting, ...]:
    """Return the settings of the core and of the apps that are installed, each once."""
    of_apps = (one for app in apps.installed for one in settings_of(app))
    return tuple({one.name: one for one in (*SETTINGS, *of_apps)}.values())


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


def _content_of(name: str, values: Mapping[str, Any]) -> str:
    path: str = values[name]
    try:
        return Path(path).read_text(encoding="utf-8").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{name}: {path}: {error}") from None


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
    unknown = names - _BY_NAME.keys() - {"LCC_PWD"}
    apps = apps_of(settings, environment) if unknown else NO_APPS
    return sorted(name for name in unknown if not _is_of_an_app(name, apps))


def _is_of_an_app(name: str, apps: Apps) -> bool:
    owner = apps.owner_of(name)
    return owner is not None and any(one.name == name for one in settings_of(owner))


def config_of(settings: Config | Given | Mapping[str, str] | None) -> Config:
    """Return the settings of a content user: a ``Config``, Scrapy settings, names with values, or None."""
    if isinstance(settings, Config):
        return settings
    if settings is not None and hasattr(settings, "getpriority"):
        return load(settings)
    return load(given_settings(settings or {}))
