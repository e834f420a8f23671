"""Scrapy settings: those of this project, and those that the LCC's spiders carry into any project."""

from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from lcc_scrapy import __version__
from lcc_scrapy.config import Config

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
_HANDLER = "lcc_scrapy.fetching.LccDownloadHandler"
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
_EXTENSION = {
    "lcc_scrapy.extensions.LccLifecycle": 100,
    "scrapy.extensions.telnet.TelnetConsole": None,
    "scrapy.extensions.remote_control.RemoteControl": None,
    "scrapy.extensions.throttle.AutoThrottle": None,
    "scrapy.extensions.spiderstate.SpiderState": None,
}
_FIXED: dict[str, Any] = {
    "CONCURRENT_ITEMS": 1,
    "COOKIES_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_SLOTS": {},
    "HTTPERROR_ALLOW_ALL": True,
    "JOBDIR": None,
    "METAREFRESH_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 64_000_000,
}


def apply_to(settings: BaseSettings, config: Config) -> None:
    """Set what the LCC's spiders need; a project's middlewares and pipelines stay.

    Components and handlers are set at spider priority, so that ``foreign_component`` finds others given on
    the command line; everything else goes before the command line.
    """
    for name, value in OWN_COMPONENTS.items():
        settings.set(name, value, "spider")
    settings.set("DOWNLOAD_HANDLERS", {**settings.getdict("DOWNLOAD_HANDLERS"), **_HANDLERS}, "spider")
    for name, value in _FIXED.items():
        _insist(settings, name, value)
    _merge(settings, "DOWNLOADER_MIDDLEWARES", _MIDDLEWARES)
    _merge(settings, "ITEM_PIPELINES", _PIPELINE)
    _merge(settings, "EXTENSIONS", _EXTENSION)
    _keep_documents_out_of_feeds(settings)
    _insist(settings, "CONCURRENT_REQUESTS", config.fetches)
    _insist(settings, "CONCURRENT_REQUESTS_PER_DOMAIN", config.fetches)
    _prefer(settings, "ROBOTSTXT_OBEY", value=True)
    _prefer(settings, "DOWNLOAD_VERIFY_CERTIFICATES", value=True)
    _prefer(settings, "HTTPPROXY_ENABLED", value=False)
    _prefer(settings, "LOG_LEVEL", value="INFO")
    contact = f" (+{config.contact})" if config.contact else ""
    _prefer(settings, "USER_AGENT", value=f"lcc-scrapy/{__version__}{contact}")


def _keep_documents_out_of_feeds(settings: BaseSettings) -> None:
    feeds = settings.getdict("FEEDS")
    filtered = {
        uri: {"item_filter": "lcc_scrapy.items.NoDocuments", **options} for uri, options in feeds.items()
    }
    if filtered:
        _insist(settings, "FEEDS", filtered)


def foreign_component(settings: BaseSettings) -> str:
    """Return what stands where one of the LCC's components has to, and what it should be; empty = nothing."""
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    found: list[tuple[str, Any, str | None]] = []
    found += [(name, settings[name], path) for name, path in OWN_COMPONENTS.items()]
    found += [
        (f"DOWNLOAD_HANDLERS[{scheme!r}]", handlers.get(scheme), path) for scheme, path in _HANDLERS.items()
    ]
    wrong = (f"{name} = {ours}, not {given}" for name, given, ours in found if given != ours)
    return next(wrong, "")


def _merge(settings: BaseSettings, name: str, ours: dict[str, Any]) -> None:
    _insist(settings, name, {**settings.getdict(name), **ours})


def _insist(settings: BaseSettings, name: str, value: object) -> None:
    """Set what must not be otherwise: above the command line, which Scrapy applies once more."""
    settings.set(name, value, SETTINGS_PRIORITIES["cmdline"] + 1)


def _prefer(settings: BaseSettings, name: str, *, value: object) -> None:
    """Set a default of ours that a project or the command line may override."""
    if (settings.getpriority(name) or 0) <= SETTINGS_PRIORITIES["default"]:
        settings.set(name, value, "spider")
