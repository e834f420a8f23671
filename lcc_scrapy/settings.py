"""Scrapy settings: those of this project, and those that the LCC's spiders carry into any project."""

from typing import TYPE_CHECKING, Any

from lcc_scrapy.config.project import COMMAND_LINE, DEFAULT
from lcc_scrapy.engine import custom_components
from lcc_scrapy.engine.custom_components import name_of
from lcc_scrapy.engine.ignored_settings import overruled

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from lcc_scrapy.config.config import Config

# --- this project --------------------------------------------------------------------------------

BOT_NAME = "lcc"
SPIDER_MODULES = ["lcc_scrapy.spiders"]
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

# --- what the LCC's spiders carry ----------------------------------------------------------------

ASYNCIO_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
OWN_COMPONENTS = {
    "SCHEDULER": "lcc_scrapy.scheduler.ProviderScheduler",
    "DOWNLOADER": "lcc_scrapy.downloader.LccDownloader",
}
_HANDLER = "lcc_scrapy.fetch.download_handler.LccDownloadHandler"
_HANDLERS = {"http": _HANDLER, "https": _HANDLER, "file": None, "data": None, "s3": None, "ftp": None}
_SCRAPY = "scrapy.downloadermiddlewares"
_MIDDLEWARES = {
    f"{_SCRAPY}.offsite.OffsiteMiddleware": None,
    f"{_SCRAPY}.robotstxt.RobotsTxtMiddleware": None,
    f"{_SCRAPY}.retry.RetryMiddleware": None,
    f"{_SCRAPY}.redirect.MetaRefreshMiddleware": None,
    f"{_SCRAPY}.redirect.RedirectMiddleware": None,
    f"{_SCRAPY}.httpcompression.HttpCompressionMiddleware": None,
    f"{_SCRAPY}.cookies.CookiesMiddleware": None,
    f"{_SCRAPY}.httpcache.HttpCacheMiddleware": None,
    f"{_SCRAPY}.downloadtimeout.DownloadTimeoutMiddleware": None,
    "lcc_scrapy.middlewares.LccRobotsMiddleware": 100,
}
_PIPELINE = {"lcc_scrapy.pipelines.LccPipeline": 900}
_WITHHOLDS = {"lcc_scrapy.spider_middlewares.WithholdItems": 0}
_CORE_STATS = "scrapy.extensions.corestats.CoreStats"
_EXTENSION = {
    "lcc_scrapy.extensions.LccLifecycle": 100,
    "scrapy.extensions.telnet.TelnetConsole": None,
    "scrapy.extensions.remote_control.RemoteControl": None,
    "scrapy.extensions.throttle.AutoThrottle": None,
    "scrapy.extensions.spiderstate.SpiderState": None,
}
BODIES_IN_MEMORY = 64_000_000
"""Bytes of bodies in memory from which on nothing more is fetched until some of them are stored."""

_FIXED: dict[str, Any] = {
    "AUTOTHROTTLE_ENABLED": False,
    "CONCURRENT_ITEMS": 1,
    "COOKIES_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_SLOTS": {},
    "HTTPCACHE_ENABLED": False,
    "HTTPERROR_ALLOW_ALL": True,
    "JOBDIR": None,
    "METAREFRESH_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "SCRAPER_SLOT_MAX_ACTIVE_SIZE": BODIES_IN_MEMORY,
}
_ATTRIBUTES_OF_OLD = ("user_agent", "http_user", "http_pass")
"""Attributes of spiders that Scrapy's middlewares still look for."""


LEFT_OUT, OVERRULED, UNKNOWN = "_LCC_LEFT_OUT", "_LCC_OVERRULED", "_LCC_UNKNOWN"
"""Under these names, settings hold what the log tells of at the start; it is known before there is a log."""


def apply_to(settings: "BaseSettings", config: "Config", spider: "type[Spider]") -> None:
    """Set what the LCC's spiders need; of a project's components, those stay that it lets in.

    Components and handlers are set at spider priority, so that ``foreign_component`` finds others given on
    the command line; everything else goes before the command line.
    """
    fixed = {
        **_FIXED,
        "CONCURRENT_REQUESTS": config.turns.places,
        "CONCURRENT_REQUESTS_PER_DOMAIN": config.turns.places,
    }
    settings.set(OVERRULED, overruled(settings, fixed | OWN_COMPONENTS), "spider")
    _leave_out_components(settings, config, spider)
    for name, value in OWN_COMPONENTS.items():
        settings.set(name, value, "spider")
    settings.set("DOWNLOAD_HANDLERS", {**settings.getdict("DOWNLOAD_HANDLERS"), **_HANDLERS}, "spider")
    for name, value in fixed.items():
        _insist(settings, name, value)
    _place(settings, "DOWNLOADER_MIDDLEWARES", _MIDDLEWARES)
    _merge(settings, "ITEM_PIPELINES", _PIPELINE)
    _place(settings, "EXTENSIONS", _EXTENSION)
    if config.items_follow_document:
        _merge(settings, "SPIDER_MIDDLEWARES", _WITHHOLDS)
    _keep_documents_out_of_feeds(settings)
    _count_in_lumps(settings)
    _prefer(settings, "ITEM_PROCESSOR", value="lcc_scrapy.pipelines.LccItemPipelines")
    _prefer(settings, "ROBOTSTXT_OBEY", value=True)
    _prefer(settings, "ROBOTSTXT_PARSER", value="lcc_scrapy.fetch.robots.LccRobotParser")
    _prefer(settings, "DOWNLOAD_VERIFY_CERTIFICATES", value=True)
    _prefer(settings, "HTTPPROXY_ENABLED", value=False)
    _prefer(settings, "LOG_LEVEL", value="INFO")
    _prefer(settings, "LOG_FORMATTER", value="lcc_scrapy.machine.logs.QuietLogFormatter")
    _prefer(settings, "WARN_ON_GENERATOR_RETURN_VALUE", value=False)
    _prefer(settings, "USER_AGENT", value=config.agent)
    _leave_out_what_nobody_needs(settings, spider)


def notices(settings: "BaseSettings") -> list[str]:
    """Return what the log tells at the start of settings and components that have no part in this crawl."""
    left_out, unknown = settings.getlist(LEFT_OUT), settings.getlist(UNKNOWN)
    told = []
    if settings[OVERRULED]:
        told.append(f"ignored here: {settings[OVERRULED]}")
    if left_out:
        how = "LCC_PROJECT_COMPONENTS takes them in (their import paths, or all)"
        told.append(f"left out here: {', '.join(left_out)}; {how}")
    if unknown:
        told.append(f"LCC_PROJECT_COMPONENTS names what this project does not have: {', '.join(unknown)}")
    return told


def _leave_out_components(settings: "BaseSettings", config: "Config", spider: "type[Spider]") -> None:
    let_in = config.project_components
    settings.set(UNKNOWN, custom_components.unknown(settings, let_in), "spider")
    told: list[str] = []
    for holder, kept, names in list(custom_components.without_left_out(settings, let_in, spider)):
        _insist(settings, holder, kept)
        told += names
    settings.set(LEFT_OUT, told, "spider")


def _leave_out_what_nobody_needs(settings: "BaseSettings", spider: "type[Spider]") -> None:
    """Take Scrapy's own middlewares out where nothing of a team's stands among them; they cost a lot.

    What of them matters here is done elsewhere then: headers by the scheduler, statistics by the downloader.
    """
    team = foreign_components(settings, "DOWNLOADER_MIDDLEWARES") or needs_scrapys_middlewares(settings)
    if not team and not any(hasattr(spider, name) for name in _ATTRIBUTES_OF_OLD):
        _insist(settings, "DOWNLOADER_MIDDLEWARES_BASE", {})
    if not foreign_components(settings, "SPIDER_MIDDLEWARES"):
        _insist(settings, "SPIDER_MIDDLEWARES_BASE", {})


def headers_to_give(settings: "BaseSettings") -> dict[str, str]:
    """Return the default headers that a request has to bring: none where Scrapy's middlewares add them."""
    return {} if has_scrapys_middlewares(settings) else default_headers(settings)


def has_scrapys_middlewares(settings: "BaseSettings") -> bool:
    """Tell whether Scrapy's own downloader middlewares stand in the way of a request."""
    return bool(settings.getdict("DOWNLOADER_MIDDLEWARES_BASE"))


def needs_scrapys_middlewares(settings: "BaseSettings") -> bool:
    """Tell whether a setting asks for one of Scrapy's own: that for proxies, or for HTTPAUTH_*."""
    return bool(
        settings.getbool("HTTPPROXY_ENABLED") or settings["HTTPAUTH_USER"] or settings["HTTPAUTH_PASS"]
    )


def foreign_components(settings: "BaseSettings", setting: str) -> list[str]:
    """Return what a team has added to one of the settings that hold components."""
    placed = (component for component, place in settings.getdict(setting).items() if place is not None)
    ours = _MIDDLEWARES | _PIPELINE | _WITHHOLDS
    return [name for component in placed if (name := name_of(component)) not in ours]


def default_headers(settings: "BaseSettings") -> dict[str, str]:
    """Return the headers that every request has which says nothing else."""
    headers = {
        name: str(value)
        for name, value in settings.getdict("DEFAULT_REQUEST_HEADERS").items()
        if value is not None and name.lower() != "accept-encoding"
    }
    if settings["USER_AGENT"] and "user-agent" not in map(str.lower, headers):
        headers["User-Agent"] = settings["USER_AGENT"]
    return headers


def _keep_documents_out_of_feeds(settings: "BaseSettings") -> None:
    feeds = settings.getdict("FEEDS")
    filtered = {
        uri: {"item_filter": "lcc_scrapy.items.NoDocuments", **options} for uri, options in feeds.items()
    }
    if filtered:
        _insist(settings, "FEEDS", filtered)


def _count_in_lumps(settings: "BaseSettings") -> None:
    """Put an extension of ours in the place of Scrapy's ``CoreStats``, where that is in use."""
    placed = {**settings.getdict("EXTENSIONS_BASE"), **settings.getdict("EXTENSIONS")}
    place = placed.get(_CORE_STATS)
    if place is not None:
        _merge(settings, "EXTENSIONS", {_CORE_STATS: None, "lcc_scrapy.extensions.LccCoreStats": place})


def foreign_component(settings: "BaseSettings") -> str:
    """Return what stands where one of the LCC's components has to, and what it should be; empty = nothing."""
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    found: list[tuple[str, Any, str | None]] = []
    found += [(name, settings[name], path) for name, path in OWN_COMPONENTS.items()]
    found += [
        (f"DOWNLOAD_HANDLERS[{scheme!r}]", handlers.get(scheme), path) for scheme, path in _HANDLERS.items()
    ]
    wrong = (f"{name} = {ours}, not {given}" for name, given, ours in found if given != ours)
    return next(wrong, "")


def _place(settings: "BaseSettings", holder: str, ours: dict[str, Any]) -> None:
    """Place components of ours, and take out those of Scrapy's own whose place is None.

    Scrapy imports what ``holder`` names, even to leave it out (``RemoteControl`` brings 12 MB of aiohttp). So
    only those are named there that the project names; the others are not in ``holder_BASE`` any more.
    """
    out = {name for name, place in ours.items() if place is None}
    named = {name_of(one) for one in settings.getdict(holder)}
    base = settings.getdict(f"{holder}_BASE")
    _insist(settings, f"{holder}_BASE", {one: place for one, place in base.items() if one not in out})
    _merge(settings, holder, {one: place for one, place in ours.items() if one not in out - named})


def _merge(settings: "BaseSettings", name: str, ours: dict[str, Any]) -> None:
    _insist(settings, name, {**settings.getdict(name), **ours})


def _insist(settings: "BaseSettings", name: str, value: object) -> None:
    """Set what must not be otherwise: above the command line, which Scrapy applies once more."""
    settings.set(name, value, COMMAND_LINE + 1)


def _prefer(settings: "BaseSettings", name: str, *, value: object) -> None:
    """Set a default of ours that a project or the command line may override."""
    if (settings.getpriority(name) or 0) <= DEFAULT:
        settings.set(name, value, "spider")
