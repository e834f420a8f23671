"""What an adapter found, and what it knew of the last time."""

from collections.abc import Iterable
from dataclasses import dataclass

from lcc_scrapy.apps.tracker.entries import Directory


@dataclass(frozen=True, slots=True)
class Known:
    """The last scan of a server: by which adapter, and the validator of its listing; empty = none."""

    adapter: str = ""
    validator: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """A server was listed to its end. ``parts`` may be read any number of times, in a thread.

    ``validator`` tells the next scan whether the listing is the same; empty = it cannot know.
    """

    adapter: str
    parts: tuple[Iterable[Directory], ...]
    validator: str = ""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A server has the same listing as the last time."""

    adapter: str
    validator: str
