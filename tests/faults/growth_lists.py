"""What reads robots.txt, sitemaps and feeds, and the ways in which these can grow."""

import gzip

from lcc_scrapy.domain.robots import MAX_BYTES, Robots
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.links.listings import LONGEST, read_listing
from lcc_scrapy.links.rules import LinkRules
from tests.faults.growth import Dimension, Parser, grown

_PAGE = "/dir/" + "a" * 200 + "/page.html?a=b&c=d"


def read_robots(body: bytes) -> object:
    """Read a robots.txt, and ask it about one URL."""
    robots = Robots.parse(body, "lcc-scrapy")
    return robots, robots.allowed(_PAGE)


def _numbered(head: str, form: str) -> Dimension:
    def make(n: int) -> bytes:
        return (head + "".join(form % number for number in range(max(1, n // (len(form) + 3))))).encode()

    return Dimension(form.strip(), make)


def _agents_times_rules(n: int) -> bytes:
    agents = "".join(f"User-agent: robot{number}\n" for number in range(n // 44))
    rules = "".join(f"Disallow: /dir/{number}\n" for number in range(n // 44))
    return (agents + "User-agent: *\n" + rules).encode()


def _agents_times_delays(n: int) -> bytes:
    agents = "".join(f"User-agent: robot{number}\n" for number in range(n // 44))
    return (agents + "Crawl-delay: 1\n" * (n // 30)).encode()


def _groups_of_all(n: int) -> bytes:
    return "".join(f"User-agent: *\nDisallow: /{number}\n" for number in range(n // 36)).encode()


def _stars_times_rules(n: int) -> bytes:
    return (
        b"User-agent: *\n"
        + "".join(f"Disallow: /*{'a*' * 50}{number}x\n" for number in range(n // 120)).encode()
    )


ROBOTS = Parser(
    "robots", "event loop below 20 kB, else a thread", MAX_BYTES, read_robots,
    lambda n: b"User-agent: *\n" + b"".join(b"Disallow: /private/%d/\n" % number for number in range(n // 25)),
    (
        Dimension("agents times rules", _agents_times_rules), Dimension("agents times delays", _agents_times_delays), Dimension("groups", _groups_of_all),
        Dimension("stars times rules", _stars_times_rules), _numbered("User-agent: *\n", "Allow: /dir/%d\n"), _numbered("", "User-agent: a%d\n"),
        grown("length of a rule", "a", "User-agent: *\nDisallow: /"), grown("stars of a rule", "*a", "User-agent: *\nDisallow: /", "b"),
        grown("rules of the longest kind", "Disallow: /" + "a" * 2000 + "\n", "User-agent: *\n"), grown("percent-encodings", "%e4", "User-agent: *\nDisallow: /"),
        grown("letters without a colon", "a"), grown("blanks in a record", " ", "User-agent", "x"), grown("length of an agent", "a", "User-agent: "),
        grown("blanks of an agent", " ", "User-agent: a", "b"), grown("comments", "#\n"), grown("line ends", "\n"), grown("octets", b"\xff", b"User-agent: *\nDisallow: /"),
        grown("sitemaps", "Sitemap: http://h/a\n"), grown("zero bytes", b"\0"), grown("question marks", "?:", "User-agent: *\nDisallow: /"),
    ),
    start=32_000,
)  # fmt: skip


def check_url(given: tuple[Robots, int]) -> int:
    """Ask about as many URLs as there are bytes in the second, a hundred a URL."""
    robots, size = given
    return sum(robots.allowed(f"{_PAGE}{number}") for number in range(max(1, size // 5000)))


def _asked(make: Dimension) -> Dimension:
    return Dimension(f"{make.name}, times URLs", lambda n: (Robots.parse(make.make(n), "lcc-scrapy"), n))


CHECKS = Parser(
    "robots_checks", "event loop", MAX_BYTES, check_url,
    lambda n: (Robots.parse(b"User-agent: *\nDisallow: /private/\nAllow: /private/a\n", "lcc-scrapy"), n),
    (
        _asked(_numbered("User-agent: *\n", "Disallow: /other/%d\n")), _asked(_numbered("User-agent: *\n", "Disallow: /dir/%d\n")),
        _asked(_numbered("User-agent: *\n", "Disallow: /*%d$\n")), _asked(Dimension("stars times rules", _stars_times_rules)),
        _asked(grown("stars of a rule", "*a", "User-agent: *\nDisallow: /", "b")),
        _asked(grown("long rules", "Disallow: /dir/" + "a" * 2000 + "\n", "User-agent: *\n")),
    ),
    start=100_000, fair_cpu=50e-9,
)  # fmt: skip


# --- sitemaps and feeds --------------------------------------------------------------------------


def read_list(body: bytes) -> object:
    """Read a sitemap or feed, as a spider does."""
    return read_listing(body, "http://www.example.org/dir/sitemap.xml", LinkRules())


_MAP = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
_ITEM = "<url><loc>http://h/a</loc></url>"


def _map(n: int) -> bytes:
    unit = "<url><loc>http://www.example.org/dir/page-%d.html</loc><lastmod>2026-11-22</lastmod></url>\n"
    return (_MAP + "".join(unit % number for number in range(max(1, n // 92))) + "</urlset>").encode()


def _bases_times_items(n: int) -> bytes:
    return f"<urlset xml:base='{'a/' * (n // 4)}'>{'<url><loc>b</loc></url>' * (n // 46)}".encode()


def _nested_bases(n: int) -> bytes:
    return ("<a xml:base='a/'>" * (n // 17)).encode()


def _bases_times_depth(n: int) -> bytes:
    return (f"<urlset xml:base='http://h/{'a/' * (n // 8)}'>" + "<a xml:base='b/'>" * (n // 34)).encode()


def _entities(n: int) -> bytes:
    return f"<!DOCTYPE a [<!ENTITY e '{'x' * (n // 2)}'>]><urlset>{'<url><loc>&e;</loc></url>' * (n // 50)}".encode()


LISTINGS = Parser(
    "listing", "thread of its own (spiders)", LONGEST, read_list, _map,
    (
        Dimension("length of a base times items", _bases_times_items), Dimension("bases in bases", _nested_bases),
        Dimension("length of a base times depth", _bases_times_depth), Dimension("entity times references", _entities),
        grown("items with a base", "<url xml:base='http://h/" + "a/" * 400 + "'><loc>b</loc></url>", _MAP), grown("items", _ITEM, _MAP),
        grown("items of long URLs", "<url><loc>" + "../" * (URL_MAX // 3) + "</loc></url>", _MAP), grown("nesting", "<a>", _MAP), grown("nested items", "<url>", _MAP),
        grown("attributes", "a='b' ", _MAP + "<url ", ">"), grown("length of an attribute", "x", _MAP + "<url a='", "'>"), grown("length of a text", "x", _MAP + "<url><loc>"),
        grown("pieces of a text", "&amp;", _MAP + "<url><loc>"), grown("elements in a text", "x<b/>", _MAP + "<url><loc>"), grown("comments", "<!---->", _MAP),
        grown("one comment", ">", _MAP + "<!--"), grown("instructions", "<?x?>", _MAP), grown("faults", "<a></b>", _MAP), grown("ampersands", "&", _MAP), grown("less-than signs", "<", _MAP),
        grown("times", "<url><loc>a</loc><lastmod>" + "1 " * 2000 + "</lastmod></url>", _MAP), grown("links of Atom", "<entry><link href='a'/></entry>", "<feed>"),
        Dimension("names", lambda n: (_MAP + "".join(f"<a{number}/>" for number in range(n // 9))).encode()),
        Dimension("namespaces", lambda n: (_MAP + "".join(f"<a xmlns:n{number}='u'>" for number in range(n // 21))).encode()),
        Dimension("attributes with names", lambda n: (_MAP + "<a " + " ".join(f"n{number}='u'" for number in range(n // 9)) + ">").encode()),
        grown("lines of a text", "http://h/a\n"), grown("empty lines of a text", "\n"), grown("short lines of a text", "ab\n"), grown("one line of a text", "http://h/ "),
        grown("bytes that are no UTF-8", b"\xff"), Dimension("ratio", lambda n: gzip.compress((_MAP + " " * n).encode())),
    ),
    start=60_000, resident=True,
)  # fmt: skip

PARSERS = (ROBOTS, CHECKS, LISTINGS)
