"""Which components of a Scrapy project take part in the LCC's spiders (``LCC_PROJECT_COMPONENTS``).

A project's pipelines and middlewares were written for its own items and requests. The spiders ``lcc_push``
and ``lcc_spider`` take none of them unless the project says so; a spider class of a team's own takes all.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lcc_scrapy.config.project import COMMAND_LINE
from lcc_scrapy.config.readers import ALL, NOTHING

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

_OURS = "lcc_scrapy."
_FEEDS = "FEEDS"
HOLDERS = ("ADDONS", "ITEM_PIPELINES", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS")
"""The settings that hold components; what they have of Scrapy's own is told by ``NAME_BASE``."""


def is_stock(spider: "type[Spider]") -> bool:
    """Tell whether a spider is one of the LCC's own, and not a team's subclass."""
    return spider.__module__.startswith(_OURS)


def without_left_out(
    settings: "BaseSettings", let_in: Sequence[str], spider: "type[Spider]"
) -> Iterator[tuple[str, dict[Any, Any], list[str]]]:
    """Yield each setting from which something is left out, what it keeps, and the names of the rest.

    What the command line gives is taken as it is: it was given for this crawl.
    """
    if ALL in let_in or (not let_in and not is_stock(spider)):
        return
    for holder in HOLDERS:
        given = settings.getdict(holder)
        left_out = {
            one: place for one, place in given.items() if not _is_kept(settings, holder, name_of(one), let_in)
        }
        if left_out and not _is_of_command_line(settings, holder):
            kept = {one: place for one, place in given.items() if one not in left_out}
            yield holder, kept, _names(settings, holder, left_out)
    if settings.getdict(_FEEDS) and _FEEDS not in let_in and not _is_of_command_line(settings, _FEEDS):
        yield _FEEDS, {}, [_FEEDS]


def unknown(settings: "BaseSettings", let_in: Sequence[str]) -> list[str]:
    """Return what ``LCC_PROJECT_COMPONENTS`` names and no setting of the project has."""
    there = {name_of(one) for holder in HOLDERS for one in settings.getdict(holder)} | {_FEEDS, ALL, NOTHING}
    return [name for name in let_in if name not in there]


def name_of(thing: Any) -> str:
    """Return the name by which a component or a function may be found, as one writes it in settings."""
    if isinstance(thing, str):
        return thing
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def _is_kept(settings: "BaseSettings", holder: str, name: str, let_in: Sequence[str]) -> bool:
    if name in let_in or name.startswith(_OURS):
        return True
    return holder == "EXTENSIONS" and name in _of_scrapy(settings, holder)  # an "off" of the telnet console


def _names(settings: "BaseSettings", holder: str, left_out: dict[Any, Any]) -> list[str]:
    """Return what is worth telling: not what was off, nor the places of Scrapy's own."""
    names = (name_of(one) for one, place in left_out.items() if place is not None)
    return sorted(f"{holder} {name}" for name in names if name not in _of_scrapy(settings, holder))


def _of_scrapy(settings: "BaseSettings", holder: str) -> dict[Any, Any]:
    return settings.getdict(f"{holder}_BASE")


def _is_of_command_line(settings: "BaseSettings", name: str) -> bool:
    return (settings.getpriority(name) or 0) >= COMMAND_LINE
