"""Who is offered which mirrors, and URLs as the tracker reads them."""

import pytest

from lcc_scrapy.apps.tracker.policy import POLICY_MAX, read_policy
from lcc_scrapy.apps.tracker.rules.policy import EVERYBODY, BadAddress, Policy, Rules
from lcc_scrapy.apps.tracker.rules.tracked import Place, tag_of, url_of
from lcc_scrapy.domain.errors import ConfigurationError, UrlRefused

TEXT = """
own = ["uk"]
[[network]]
from = ["192.0.2.0/24", "2001:db8::/32"]
own = ["DE"]
preferred = ["at", "ch"]
allowed = ["de", "at"]
forbidden = ["Slow.example.org."]
answer = "redirect"
[[network]]
from = ["192.0.2.128/25"]
"""


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.0/24"),
        ("192.0.2.200", "192.0.2.128/25"),
        ("::ffff:192.0.2.7", "192.0.2.0/24"),
        ("2001:db8::1", "2001:db8::/32"),
        ("198.51.100.1", ""),
        ("::1", ""),
    ],
)
def test_the_smallest_network_with_the_address_counts_alone(address, network):
    policy = Policy.parse(TEXT)
    found, rules = policy.explained(address)
    assert found == network
    assert rules == policy.of(address)
    expected = {"": Rules(own=("uk",)), "192.0.2.128/25": EVERYBODY}
    german = Rules(("de",), ("at", "ch"), ("de", "at"), ("slow.example.org",), "redirect")
    assert rules == expected.get(network, german)


def test_forbidden_hosts_and_all_below_them_are_not_permitted():
    rules = Rules(allowed=("de",), forbidden=("slow.example.org",))
    assert rules.permits("de", "example.org")
    assert rules.permits("de", "veryslow.example.org")
    assert not rules.permits("de", "slow.example.org")
    assert not rules.permits("de", "a.slow.example.org")
    assert not rules.permits("uk", "example.org")


def test_domains_rank_in_the_order_in_which_they_are_named():
    rules = Rules(own=("de", "at"), preferred=("ch", "de"))
    assert [rules.rank(one) for one in ("de", "at", "ch", "uk", "fr")] == [0, 1, 2, 4, 4]


def test_who_wants_some_domains_gets_those_that_are_allowed():
    rules = Rules(allowed=("de", "at"))
    assert rules.only(()) == rules
    assert rules.only(("at", "uk")).allowed == ("at",)
    assert not rules.only(("uk",)).permits("uk", "x")
    assert not rules.only(("uk",)).permits("de", "x")
    assert EVERYBODY.only(("uk",)).permits("uk", "x")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("own = [", "no TOML"),
        ("own = 'de'", "own is a list of texts"),
        ("own = [1]", "own is a list of texts"),
        ("own = ['d/e']", "is no domain"),
        ("networks = 1", "unknown networks"),
        ("answer = 'maybe'", "answer is list or redirect"),
        ("network = 1", r"write \[\[network\]\]"),
        ("[[network]]\nown = ['de']", "without from"),
        ("[[network]]\nfrom = ['nowhere']", "nowhere"),
        ("[[network]]\nfrom = ['192.0.2.1/24']", "host bits"),
        ("[[network]]\nfrom = ['192.0.2.0/24']\nforbid = ['x']", "network 192.0.2.0/24: unknown forbid"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(text, why):
    with pytest.raises(ConfigurationError, match=why):
        Policy.parse(text)


def test_an_address_that_is_none_is_refused():
    with pytest.raises(BadAddress, match="no IP address"):
        Policy().of("example.org")


def test_the_file_is_read_or_refused_with_its_name(tmp_path):
    path = tmp_path / "policy.toml"
    assert read_policy("") == Policy()
    for content, why in (
        (None, "No such file"),
        (b"\xff", "not UTF-8"),
        (b"#" * (POLICY_MAX + 1), "more than"),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ConfigurationError, match=f"LCC_TRACKER_POLICY: .*policy.toml: .*{why}"):
            read_policy(str(path))
    path.write_text(TEXT)
    assert read_policy(str(path)) == Policy.parse(TEXT)


@pytest.mark.parametrize(
    ("text", "site", "path", "is_directory"),
    [
        ("ftp://Ftp.X.org./pub/A b/", "ftp://ftp.x.org", (b"pub", b"A b"), True),
        ("ftp://x:21/a%20b;type=I", "ftp://x", (b"a b",), False),
        ("http://x:8080", "http://x:8080", (), True),
        ("http://x/a;type=a", "http://x", (b"a;type=a",), False),
        ("https://[::1]:443/a//b", "https://[::1]", (b"a", b"b"), False),
        ("rsync://x/%FF/", "rsync://x", (b"\xff",), True),
    ],
)
def test_urls_are_read_to_sites_and_names(text, site, path, is_directory):
    place = Place.parse(text)
    assert (place.site, place.path, place.is_directory) == (site, path, is_directory)
    assert Place.parse(str(place)) == place
    assert str(place) == url_of(site, path, is_directory=is_directory)


@pytest.mark.parametrize(
    "text",
    ["", "x", "file:///etc", "ftp://", "ftp:///x", "ftp://u@x/", "ftp://u:p@x/", "ftp://x/../y", "ftp://x/%2e/",
     "ftp://x/a%2Fb", "ftp://x/a%00b", "ftp://x:0x/", "ftp://x:70000/", "ftp://[x/", "ftp://a b/", "ftp://x/" + "a" * 3000,
     "ftp://x/\udcff", "ftp://x\udcff/", "http://x/?\udcff"],
    ids=range(19),
)  # fmt: skip
def test_what_is_no_url_of_a_server_is_refused(text):
    with pytest.raises(UrlRefused):
        Place.parse(text)


def test_a_tag_is_the_beginning_of_an_identity():
    assert tag_of(b"\xff" * 16) == -1
    assert tag_of(b"\0\0\1\0" + b"\xff" * 12) == 256
