"""Cookies within one fetch (RFC 6265): some sites set one, redirect to the same URL, and want it back there.

They go to the host that set them and to no other, whatever ``Domain`` says, and are forgotten with the fetch.
What has other octets than the RFC permits, or exceeds the bounds, is left out.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from lcc_scrapy.domain.http_dates import epoch_of_date
from lcc_scrapy.domain.roots import HttpUrl

MOST = 20
"""Cookies of one fetch."""

MOST_OCTETS = 8192
"""Of their names, values and paths together."""

_BLANKS = b" \t"
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"(\"?)[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*\1")
_SECONDS = re.compile(rb"-?[0-9]+")


class _Place(NamedTuple):
    """Which cookie it is: a later one of the same place replaces it."""

    name: bytes
    host: str
    path: str


class _Cookie(NamedTuple):
    value: bytes
    secure: bool


class Cookies:
    """The cookies of one fetch."""

    def __init__(self) -> None:
        self._kept: dict[_Place, _Cookie] = {}

    def take(self, url: HttpUrl, fields: Sequence[tuple[bytes, bytes]], now: float) -> None:
        """Take note of what an answer sets; ``now`` in epoch seconds."""
        for name, value in fields:
            if name.lower() == b"set-cookie":
                self._set(url, value, now)

    def _set(self, url: HttpUrl, said: bytes, now: float) -> None:
        (name, value), *rest = (_pair(part) for part in said.split(b";"))
        if not _NAME.fullmatch(name) or value is None or not _VALUE.fullmatch(value):
            return
        attributes = {key.lower(): text or b"" for key, text in rest}
        place = _Place(name, url.host, _path(attributes.get(b"path", b""), url))
        if _has_expired(attributes, now):
            self._kept.pop(place, None)
        else:
            self._keep(place, _Cookie(value, b"secure" in attributes))

    def _keep(self, place: _Place, cookie: _Cookie) -> None:
        others = {key: value for key, value in self._kept.items() if key != place}
        octets = sum(len(key.name) + len(key.path) + len(one.value) for key, one in others.items())
        if (
            len(others) < MOST
            and octets + len(place.name) + len(place.path) + len(cookie.value) <= MOST_OCTETS
        ):
            self._kept[place] = cookie
        else:
            self._kept = others

    def field_for(self, url: HttpUrl) -> bytes:
        """Return the value of the Cookie header of a request; empty = none. Longer paths come first (5.4)."""
        if not self._kept:
            return b""
        fitting = [
            (place, cookie)
            for place, cookie in self._kept.items()
            if place.host == url.host
            and _covers(place.path, url.path)
            and (url.scheme == "https" or not cookie.secure)
        ]
        fitting.sort(key=lambda one: -len(one[0].path))
        return b"; ".join(place.name + b"=" + cookie.value for place, cookie in fitting)

    def carried_to(self, url: HttpUrl) -> list[tuple[bytes, bytes]]:
        """Return what a request brings of them: one field, or none."""
        value = self.field_for(url)
        return [(b"Cookie", value)] if value else []


def _pair(part: bytes) -> tuple[bytes, bytes | None]:
    name, equals, value = part.partition(b"=")
    return name.strip(_BLANKS), value.strip(_BLANKS) if equals else None


def _path(said: bytes, url: HttpUrl) -> str:
    """Return the path that a cookie is for, by default the folder of the URL (section 5.1.4)."""
    if said.startswith(b"/"):
        return said.decode("latin-1")
    return url.path.rpartition("/")[0] or "/"


def _covers(path: str, asked: str) -> bool:
    return asked == path or (asked.startswith(path) and (path.endswith("/") or asked[len(path)] == "/"))


def _has_expired(attributes: dict[bytes, bytes], now: float) -> bool:
    """Tell whether a cookie is to be forgotten; Max-Age goes before Expires (section 5.3)."""
    seconds = attributes.get(b"max-age", b"")
    if _SECONDS.fullmatch(seconds):
        return seconds.startswith(b"-") or not seconds.strip(b"0")
    until = epoch_of_date(attributes.get(b"expires", b"").decode("latin-1"))
    return until is not None and until <= now
