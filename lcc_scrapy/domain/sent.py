"""What a URL was submitted with, kept beside what was made of it (seed 003 section 13).

A provider is told "all other information related to this url passed by the CP" when a URL fails. Most of it
stands in the URL's row: what is kept in addition is the *form*, a JSON array in the order of the attributes.
An item is the name of an attribute whose value is that of the row, ``[name, number]`` where the row has so
many characters of the set's prefix before it, or ``[name, text]`` with the value as it was sent.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Protocol

from lcc_scrapy.domain.entries import SYNONYMS, Declared, Operation, UrlEntry

SENT_MAX: Final = 8192
"""Characters of names and values of one URL that are kept as they were sent; further attributes are not."""
UNKNOWN_MAX: Final = 1024
"""Those of attributes that the protocol does not have."""
_OF_ROWS: Final = frozenset(
    {"curl", "burl", "furl", "op", "mimetype", "subtype", "mtime", "len", "md5", "timeofday"}
)
_URLS: Final = frozenset({"curl", "burl", "furl"})

Stored = Mapping[str, str | None]
"""The values of a row as text, by canonical attribute name; None = it has none."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Described(Protocol):
    """An entry of a set, or its row in the queue."""

    @property
    def curl(self) -> str:
        """The conceptual URL."""

    @property
    def burl(self) -> str | None:
        """The URL for people; None = not browsable."""

    @property
    def furl(self) -> str:
        """The fetch URL."""

    @property
    def mimetype(self) -> str:
        """The declared type."""

    @property
    def subtype(self) -> str:
        """The declared subtype; may be empty."""

    @property
    def declared(self) -> Declared:
        """The declared time, length and digest."""

    @property
    def timeofday(self) -> str:
        """The mask of hours; may be empty."""


def values_of(url: Described) -> dict[str, str | None]:
    """Return what is known of a URL, as the attributes of the protocol would say it."""
    declared = url.declared
    return {
        "curl": url.curl,
        "burl": url.burl or "",
        "furl": url.furl,
        "mimetype": url.mimetype,
        "subtype": url.subtype or None,
        "mtime": None if declared.mtime is None else str(declared.mtime),
        "len": None if declared.length is None else str(declared.length),
        "md5": declared.md5,
        "timeofday": url.timeofday or None,
    }


def with_form(entry: UrlEntry, sent: Mapping[str, str], prefix: str) -> UrlEntry:
    """Return an entry with the form of what was sent; a removal needs none, since it cannot fail."""
    if entry.operation is not Operation.UPDATE:
        return entry
    return replace(entry, sent=form_of(sent, values_of(entry), prefix))


def form_of(sent: Mapping[str, str], stored: Stored, prefix: str) -> str:
    """Return the form of what was sent with a URL of a set with a prefix."""
    left = {True: SENT_MAX, False: UNKNOWN_MAX}
    items: list[object] = []
    for name, value in sent.items():
        canonical = SYNONYMS.get(name, name)
        item = _item(name, value, stored.get(canonical), prefix if canonical in _URLS else "")
        known = canonical in _OF_ROWS
        length = len(name) + len(value) if isinstance(item, list) and item[1] is value else 0
        if length <= left[known]:
            left[known] -= length
            items.append(item)
    return _encode(items)


def _item(name: str, value: str, stored: str | None, prefix: str) -> object:
    if value == stored:
        return name
    if value and stored == prefix + value:
        return [name, len(prefix)]
    return [name, value]


def form_of_run(names: Mapping[str, bool], prefix: str) -> str:
    """Return the form of plain updates: names as sent, and whether their values lack the set's prefix."""
    items: list[object] = []
    for name, relative in names.items():
        plain = [name, len(prefix)] if relative and prefix else name
        items.append([name, "update"] if name == "op" else plain)
    return _encode(items)


def as_sent(form: str, stored: Stored) -> dict[str, str]:
    """Return the attributes that a URL was sent with, in their order."""
    return dict(_attribute(item, stored) for item in json.loads(form))


def _attribute(item: str | list[object], stored: Stored) -> tuple[str, str]:
    name, more = (item, 0) if isinstance(item, str) else item
    if isinstance(more, str):
        return str(name), more
    value = stored.get(SYNONYMS.get(str(name), str(name))) or ""
    return str(name), value[int(str(more)) :]
