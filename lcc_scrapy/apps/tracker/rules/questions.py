"""What the mirror tracker is asked over HTTP, in a query: ``?url=ftp://ftp.example.org/pub/&tld=de``.

A page may link to ``?url=`` and a URL as it is (seed 004 "Frontend Programs"), so ``+`` stands for itself:
URLs have no blanks. What no URL has is escaped again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.roots import URL_MAX

QUERY_MAX = 3 * URL_MAX + 1024
"""Bytes of a query: a URL of which each character is escaped, and the rest."""

LIMIT_MAX = 1000
"""Replicas that may be asked for."""

TLDS_MAX = 20
"""Domains that may be asked for."""

ACCEPT_PARTS = 50
"""Types of one Accept that are looked at."""

TYPES = {"html": "text/html", "json": "application/json", "meta4": "application/metalink4+xml"}
"""Formats of an answer, each with its media type."""

_ONCE, _SEVERAL = ("url", "limit", "format"), "tld"
_ASCII = bytes(range(128))
_NO_URL_HAS = re.compile(r"[\x00-\x20\x7f]")
_QUALITY = re.compile(r"q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)


class BadQuestion(LccError):
    """A query that cannot be understood; its text says why."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for. Empty = not said: no ``url`` is a question for the form, no ``format`` for any."""

    url: str = ""
    tld: tuple[str, ...] = ()
    limit: int | None = None
    format: str = ""

    @classmethod
    def parse(cls, query: bytes) -> "Question":
        """Read a query as it was sent; raises ``BadQuestion``."""
        if len(query) > QUERY_MAX:
            raise BadQuestion(f"a question of more than {QUERY_MAX} bytes")
        pairs = [_pair(part) for part in query.split(b"&") if part]
        given = dict(pairs)
        for name in given:
            if name not in {*_ONCE, _SEVERAL}:
                raise BadQuestion(f"no parameter {name[:40]!r}; in the URL, write & as %26")
        if any(sum(name == one for name, _ in pairs) > 1 for one in _ONCE):
            raise BadQuestion(f"{', '.join(_ONCE)}: each once")
        tlds = tuple(value for name, value in pairs if name == _SEVERAL and value)
        if len(tlds) > TLDS_MAX:
            raise BadQuestion(f"tld: at most {TLDS_MAX} times")
        return cls(
            given.get("url", ""), tlds, _limit(given.get("limit", "")), _format(given.get("format", ""))
        )

    def __str__(self) -> str:
        """Return the query of the same question in another format: without one."""
        written = [f"url={quote(self.url, safe='')}", *(f"tld={quote(one, safe='')}" for one in self.tld)]
        return "&".join(written if self.limit is None else [*written, f"limit={self.limit}"])


def _pair(part: bytes) -> tuple[str, str]:
    name, _, value = part.partition(b"=")
    return _text(name), _text(value)


def _text(escaped: bytes) -> str:
    raw = unquote_to_bytes(escaped).strip()
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = quote(raw, safe=_ASCII)
    return _NO_URL_HAS.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _limit(text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= LIMIT_MAX:
        raise BadQuestion(f"limit: a number from 1 to {LIMIT_MAX}")
    return int(text)


def _format(text: str) -> str:
    if text and text not in TYPES:
        raise BadQuestion(f"format: {', '.join(TYPES)}")
    return text


def preferred(accept: str, offered: Sequence[str]) -> str:
    """Return the media type that an Accept header likes best (RFC 9110, section 12.5.1).

    That is the first one of several that are liked alike, or not at all.
    """
    ranges = [_range(part) for part in accept.lower().split(",")[:ACCEPT_PARTS] if part.strip()]
    return max(offered, key=lambda one: _liked(one, ranges)) if ranges else offered[0]


def _range(part: str) -> tuple[str, float]:
    name, *parameters = (one.strip() for one in part.split(";"))
    told = [match for one in parameters if (match := _QUALITY.fullmatch(one))]
    return name, float(told[0][1]) if told else 1.0


def _liked(offered: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the quality of a type: that of the narrowest range that has it."""
    for wanted in (offered, f"{offered.partition('/')[0]}/*", "*/*"):
        for name, quality in ranges:
            if name == wanted:
                return quality
    return 0.0
