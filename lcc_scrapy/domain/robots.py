"""robots.txt: what a site asks of robots (RFC 9309; ``Crawl-delay`` and ``Sitemap`` beyond it).

Everything is compared as octets in ASCII: what is not ASCII is percent-encoded, in whatever charset it was
written, and what needs no percent-encoding is decoded.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from urllib.parse import quote

from lcc_scrapy.domain.patterns import Pattern

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

_RECORD = re.compile(r"([a-z]+(?:[ -][a-z]+)?)[ \t]*:[ \t]*(.*)|([a-z-]+)[ \t]+(.*)", re.IGNORECASE)
_LINES = re.compile(r"\r\n?|\n")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_COMPATIBLE = re.compile(r"\(compatible;\s*([A-Za-z0-9_-]+)")
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SAFE = "/%:=&?~+!$,;@()*"
_PLAIN = re.compile(r"[A-Za-z0-9._~/-]*")
"""What is compared as it is."""

_DATA = re.compile(r"[:/?@]")


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
class Rule:
    """An allow or disallow line; ``length``: octets of its pattern, ``query``: the same, query encoded."""

    allow: bool
    length: int
    path: Pattern
    query: Pattern

    @classmethod
    def of(cls, path: str, *, allow: bool) -> "Rule":
        """Make a rule of a path pattern as it stands in the file."""
        anchor = path.endswith("$")
        normal = _normal(path.removesuffix("$")).replace("$", "%24") + "$" * anchor
        plain = Pattern.parse(normal)
        query = Pattern.parse(_query_encoded(normal)) if "?" in normal else plain
        return cls(allow, len(normal), plain, query)


@dataclass(frozen=True, slots=True)
class Robots:
    """What one robots.txt says to one robot.

    ``rules``: the most specific ones first; ``crawl_delay``: seconds between two fetches, 0 = nothing said;
    ``sitemaps``: as written, for any robot.
    """

    rules: tuple[Rule, ...] = ()
    crawl_delay: float = 0.0
    sitemaps: tuple[str, ...] = ()

    @classmethod
    def parse(cls, body: bytes, token: str) -> "Robots":
        """Read a robots.txt for the robot called ``token``; every file is one, with or without rules."""
        reading = _Reading()
        for name, value in _records(_text(body)):
            reading.take(name, value)
        rules = reading.rules_of(token)
        return cls(
            tuple(sorted(rules, key=lambda rule: (-rule.length, not rule.allow))),
            reading.delay_of(token),
            tuple(reading.sitemaps),
        )

    def allowed(self, target: str) -> bool:
        """Tell whether a path with its query, percent-encoded, may be fetched (section 2.2.2)."""
        if target == "/robots.txt":
            return True
        path = query = target
        if not _PLAIN.fullmatch(target):
            path = _normal(target).replace("*", "%2A").replace("$", "%24")
            query = _query_encoded(path)
        for rule in self.rules:
            if rule.path.matches(path) or rule.query.matches(query):
                return rule.allow
        return True


ANY = "*"


class _Reading:
    """Groups as they come: rules and delays by the agents they are for."""

    def __init__(self) -> None:
        self._rules: dict[str, dict[tuple[bool, str], Rule]] = {}
        self._delays: defaultdict[str, float] = defaultdict(float)
        self._agents: set[str] = set()
        self._opening = True
        self.sitemaps: list[str] = []

    def take(self, name: str, value: str) -> None:
        """Take in one record; those of other kinds neither open nor end a group (section 2.2.4)."""
        if name == "agent":
            self._open(value)
        elif name in {"allow", "disallow"}:
            self._opening = False
            self._rule(value, allow=name == "allow")
        elif name == "delay":
            self._delay(value)
        elif name == "sitemap" and value and len(self.sitemaps) < SITEMAPS:
            self.sitemaps.append(value)

    def _open(self, value: str) -> None:
        if not self._opening:
            self._agents, self._opening = set(), True
        agent = ANY if value.split(" ", maxsplit=1)[0] == ANY else product_token(value)
        if agent:
            self._agents.add(agent)
            self._rules.setdefault(agent, {})

    def _rule(self, value: str, *, allow: bool) -> None:
        if value.startswith(("/", "*")) and self._agents:
            rule = Rule.of(value, allow=allow)
            for agent in self._agents:
                self._rules[agent][allow, value] = rule

    def _delay(self, value: str) -> None:
        try:
            seconds = float(value)
        except ValueError:
            return
        if isfinite(seconds):
            for agent in self._agents:
                self._delays[agent] = max(self._delays[agent], seconds)

    def _group_of(self, token: str) -> str:
        return token if token in self._rules else ANY

    def rules_of(self, token: str) -> list[Rule]:
        """Return the rules of all groups for a robot, or else of those for any."""
        return [*self._rules.get(self._group_of(token), {}).values()]

    def delay_of(self, token: str) -> float:
        """Return the longest delay of these groups."""
        return self._delays[self._group_of(token)]


def _text(body: bytes) -> str:
    """Return a file as ASCII, octets beyond it percent-encoded."""
    plain = body.removeprefix(b"\xef\xbb\xbf")[:MAX_BYTES]
    if len(body) > MAX_BYTES:
        plain = plain[: max(plain.rfind(b"\n"), plain.rfind(b"\r")) + 1]  # half a rule is another rule
    return _NOT_ASCII.sub(lambda found: b"%%%02X" % found[0][0], plain).decode("ascii")


def _records(text: str) -> Iterator[tuple[str, str]]:
    for line in _LINES.split(text):
        found = _RECORD.fullmatch(line.partition("#")[0].strip(" \t"))
        if found:
            name, value = (found[1], found[2]) if found[1] else (found[3], found[4])
            yield _NAMES.get(name.lower(), ""), value


def _normal(text: str) -> str:
    """Return a path or pattern as it is compared: unreserved characters plain, others encoded."""
    return _ENCODED.sub(_decoded_if_plain, quote(text, safe=_SAFE))


def _decoded_if_plain(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if character in _UNRESERVED else found[0].upper()


def _query_encoded(text: str) -> str:
    """Encode what separates a URL's parts where it is data: behind the first ``?``."""
    path, mark, query = text.partition("?")
    return path + mark + _DATA.sub(lambda found: f"%{ord(found[0]):02X}", query)
