"""robots.txt: what a site asks of robots (RFC 9309; ``Crawl-delay`` and ``Sitemap`` beyond it).

Only what can be for one robot is kept. ``robots_rules.py`` compares it with URLs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from lcc_scrapy.domain.robots_rules import RuleSet
from lcc_scrapy.domain.roots import URL_MAX

MAX_BYTES = 512_000
"""Of an answer that is read: 500 kibibytes (section 2.5)."""

SITEMAPS = 100
"""Sitemaps of one host that are remembered."""

_NAMES = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), "agent"),
    **dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), "disallow"),
    "allow": "allow",
    "crawl-delay": "delay",
    **dict.fromkeys(("sitemap", "sitemaps", "site-map"), "sitemap"),
}
"""Records that mean something here, in the spellings that occur."""

_RECORD = re.compile(r"([a-z]+(?:[ -][a-z]+)?)[ \t]*:[ \t]*+(.*)|([a-z-]+)[ \t]++(.*)", re.IGNORECASE)
_SHORTEST = len("allow:")
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_PERCENT = tuple(b"%%%02X" % octet for octet in range(256))
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_COMPATIBLE = re.compile(r"\(compatible;\s*([A-Za-z0-9_-]+)")


NO_RULES = RuleSet()


def product_token(agent: str) -> str:
    """Return by what name robots.txt addresses a User-Agent (section 2.2.1), in lower case.

    ``lcc-scrapy/1.0 (+http://…)`` is lcc-scrapy, ``Mozilla/5.0 (compatible; Name/1.0)`` is name; "" = none.
    """
    found = _COMPATIBLE.search(agent)
    if found:
        return found[1].lower()
    leading = _TOKEN.match(agent.strip())
    return leading[0].lower() if leading else ""


@dataclass(frozen=True, slots=True)
class Robots:
    """What one robots.txt says to one robot.

    ``crawl_delay``: seconds between two fetches, 0 = nothing said; ``sitemaps``: as written, for any robot.
    """

    rules: RuleSet = NO_RULES
    crawl_delay: float = 0.0
    sitemaps: tuple[str, ...] = ()

    @classmethod
    def parse(cls, body: bytes, token: str) -> "Robots":
        """Read a robots.txt for the robot called ``token``; every file is one, with or without rules."""
        reading = _Reading(token)
        for name, value in _records(_text(body)):
            reading.take(name, value)
        group = reading.group
        return cls(RuleSet.compile(group.rules.items()), group.delay, tuple(reading.sitemaps))

    @property
    def footprint(self) -> int:
        """Return the bytes of memory that this takes, about."""
        return self.rules.footprint + sum(map(len, self.sitemaps))

    def allowed(self, target: str) -> bool:
        """Tell whether a path with its query, percent-encoded, may be fetched (section 2.2.2)."""
        return target == "/robots.txt" or self.rules.allows(target)


ANY = "*"


class _Group:
    """What all groups for one robot say: path patterns with whether they allow, and the longest delay."""

    def __init__(self) -> None:
        self.rules: dict[str, bool] = {}
        self.delay = 0.0


class _Reading:
    """Records as they come. Only groups that can be for ``token`` are kept; other names take no memory."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._groups: dict[str, _Group] = {}
        self._open_groups: dict[str, _Group] = {}
        self._opening = True
        self.sitemaps: list[str] = []

    @property
    def group(self) -> _Group:
        """Return what counts: the groups for the robot, or else those for any."""
        return self._groups.get(self._token) or self._groups.get(ANY) or _Group()

    def take(self, name: str, value: str) -> None:
        """Take in one record; those of other kinds neither open nor end a group (section 2.2.4)."""
        if name == "agent":
            self._open(value)
        elif name in {"allow", "disallow"}:
            self._opening = False
            self._rule(value, allow=name == "allow")
        elif name == "delay":
            self._delay(value)
        elif name == "sitemap" and 0 < len(value) <= URL_MAX and len(self.sitemaps) < SITEMAPS:
            self.sitemaps.append(value)

    def _open(self, value: str) -> None:
        if not self._opening:
            self._open_groups, self._opening = {}, True
        agent = ANY if value.split(" ", maxsplit=1)[0] == ANY else product_token(value)
        if agent and agent in {self._token, ANY}:
            self._open_groups[agent] = self._groups.setdefault(agent, _Group())

    def _rule(self, value: str, *, allow: bool) -> None:
        if value.startswith(("/", "*")):
            for group in self._open_groups.values():
                group.rules[value] = allow or group.rules.get(value, False)

    def _delay(self, value: str) -> None:
        try:
            seconds = float(value)
        except ValueError:
            return
        if isfinite(seconds):
            for group in self._open_groups.values():
                group.delay = max(group.delay, seconds)


def _text(body: bytes) -> str:
    """Return a file as ASCII, octets beyond it percent-encoded."""
    plain = body.removeprefix(b"\xef\xbb\xbf")[:MAX_BYTES]
    if len(body) > MAX_BYTES:
        plain = plain[: max(plain.rfind(b"\n"), plain.rfind(b"\r")) + 1]  # half a rule is another rule
    return _NOT_ASCII.sub(lambda run: b"".join([_PERCENT[octet] for octet in run[0]]), plain).decode("ascii")


def _records(text: str) -> Iterator[tuple[str, str]]:
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if len(line) < _SHORTEST:
            continue
        found = _RECORD.fullmatch(line.partition("#")[0].strip(" \t"))
        if found:
            name, value = (found[1], found[2]) if found[1] else (found[3], found[4])
            yield _NAMES.get(name.lower(), ""), value
