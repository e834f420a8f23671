"""Settings of a Scrapy project that have no effect in the LCC's spiders, and why: told once, at the start.

docs/scrapy.md has the same for every setting of Scrapy's; a test compares both.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from lcc_scrapy.config.project import DEFAULT

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "each provider has limits of its own (`lcc provider set`, LCC_FETCHES)": (
        "AUTOTHROTTLE_ENABLED",
        "CONCURRENT_ITEMS",
        "CONCURRENT_REQUESTS",
        "CONCURRENT_REQUESTS_PER_DOMAIN",
        "DOWNLOAD_DELAY",
        "DOWNLOAD_SLOTS",
    ),
    "the LCC is the cache": ("HTTPCACHE_ENABLED",),
    "the queue is kept in the LCC's database": ("JOBDIR", "SCHEDULER", "DUPEFILTER_CLASS"),
    "the queue tries again (LCC_RETRY_DELAYS)": (
        "RETRY_ENABLED",
        "RETRY_HTTP_CODES",
        "RETRY_TIMES",
    ),
    "redirects are followed inside a provider's roots (LCC_REDIRECTS)": (
        "METAREFRESH_ENABLED",
        "REDIRECT_ENABLED",
        "REDIRECT_MAX_TIMES",
    ),
    "the LCC fetches by itself (LCC_FETCH_TIMEOUT, LCC_FETCH_DEADLINE, LCC_FETCH_MAX_BYTES)": (
        "COMPRESSION_ENABLED",
        "DOWNLOADER",
        "DOWNLOAD_FAIL_ON_DATALOSS",
        "DOWNLOAD_MAXSIZE",
        "DOWNLOAD_TIMEOUT",
    ),
    "every answer is told to its provider": ("HTTPERROR_ALLOW_ALL",),
    "nothing is remembered of sites but their documents": ("COOKIES_ENABLED",),
    "URLs come from providers, not from links": ("DEPTH_LIMIT", "DEPTH_PRIORITY", "URLLENGTH_LIMIT"),
    "no port is opened but the UNS": ("REMOTE_CONTROL_ENABLED", "TELNETCONSOLE_ENABLED"),
}


def overruled(settings: "BaseSettings", fixed: Mapping[str, Any]) -> str:
    """Return what is given and has no effect, as "NAME, NAME, because …; NAME, because …"; empty = nothing.

    ``fixed`` are the values that the LCC's spiders insist on; what is not among them is at Scrapy's default.
    """
    told = ((list(_given(settings, names, fixed)), reason) for reason, names in REASONS.items())
    return "; ".join(f"{', '.join(names)}, because {reason}" for names, reason in told if names)


def _given(settings: "BaseSettings", names: tuple[str, ...], fixed: Mapping[str, Any]) -> Iterator[str]:
    from scrapy.settings import default_settings  # noqa: PLC0415 - these settings are read without Scrapy, too

    for name in names:
        here = fixed[name] if name in fixed else getattr(default_settings, name)
        if (settings.getpriority(name) or 0) > DEFAULT and not _is_same(settings, name, here):
            yield name


def _is_same(settings: "BaseSettings", name: str, here: Any) -> bool:
    """Tell whether a setting says what holds anyway; the command line gives texts."""
    with suppress(ValueError):
        if isinstance(here, bool):
            return settings.getbool(name) == here
        if isinstance(here, (int, float)):
            return settings.getfloat(name) == here
    return bool(settings.get(name) == here)
