"""From a listing to rows: what a server has now replaces what it had, in one transaction."""

from collections.abc import Iterable
from dataclasses import dataclass

from lcc_scrapy.db.tx import Store
from lcc_scrapy.tracker.entries import Directory


@dataclass(frozen=True, slots=True)
class Scan:
    """Who was listed, when (epoch seconds), by which adapter, and the validator of its listing, if any."""

    hostid: int
    at: int
    adapter: str
    validator: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a scan found. ``unsound`` directories have no identity: something in them cannot be used."""

    dirs: int
    files: int
    links: int
    size: int
    unsound: int


def load(store: Store, scan: Scan, listing: Iterable[Directory]) -> Loaded:
    """Take in a listing; whatever it raises, the old generation stays. Blocking, in short transactions."""
    raise NotImplementedError
