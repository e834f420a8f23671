"""RFC 9309, clause by clause; sections 2.3 and 2.4 are in tests/component/test_robots_access.py."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.robots import MAX_BYTES, SITEMAPS, Robots, product_token


def rules(text: str | bytes, token: str = "lcc-scrapy") -> Robots:
    return Robots.parse(text if isinstance(text, bytes) else text.encode(), token)


def of_any(*lines: str) -> Robots:
    return rules("\n".join(["User-agent: *", *lines]))


# --- 2.2.1 the user-agent line -------------------------------------------------------------------


def test_2_2_1_our_group_counts_and_that_for_any_does_not() -> None:
    text = "User-agent: *\nDisallow: /\n\nUser-agent: lcc-scrapy\nDisallow: /private/\n"
    assert rules(text).allowed("/public")
    assert not rules(text).allowed("/private/x")
    assert not rules(text, "other").allowed("/public")


@pytest.mark.parametrize("name", ["LCC-Scrapy", "lcc-scrapy", "LCC-SCRAPY"])
def test_2_2_1_names_are_compared_without_case(name: str) -> None:
    assert not rules(f"User-agent: {name}\nDisallow: /").allowed("/a")


@pytest.mark.parametrize("name", ["lcc", "scrapy", "lcc-scrapy-two", "l"])
def test_2_2_1_a_part_of_our_name_is_somebody_else(name: str) -> None:
    assert rules(f"User-agent: {name}\nDisallow: /").allowed("/a")


def test_2_2_1_groups_for_the_same_robot_are_one() -> None:
    both = rules(
        "User-agent: lcc-scrapy\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\nUser-agent: LCC-scrapy\nDisallow: /b"
    )
    assert [both.allowed(path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_2_2_1_several_names_share_a_group() -> None:
    text = "User-agent: a\n\nUser-agent: lcc-scrapy\nDisallow: /x\n"
    assert [rules(text, token).allowed("/x") for token in ("a", "lcc-scrapy", "b")] == [False, False, True]


def test_2_2_1_no_group_for_us_and_none_for_any_permits_everything() -> None:
    assert rules("User-agent: other\nDisallow: /").allowed("/a")


def test_2_2_1_a_group_of_ours_without_rules_permits_everything() -> None:
    assert rules("User-agent: *\nDisallow: /\nUser-agent: lcc-scrapy\n").allowed("/a")


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("lcc-scrapy/1.0 (+http://www.example.org/bot)", "lcc-scrapy"),
        ("Mozilla/5.0 (compatible; OurBot/1.0; +http://x/)", "ourbot"),
        ("OurBot", "ourbot"),
        ("", ""),
    ],
)
def test_2_2_1_the_product_token_is_a_part_of_the_user_agent(agent: str, token: str) -> None:
    assert product_token(agent) == token


def test_2_2_1_a_version_behind_a_name_says_nothing() -> None:
    assert not rules("User-agent: lcc-scrapy/1.0\nDisallow: /").allowed("/a")


# --- 2.2.2 allow and disallow --------------------------------------------------------------------


def test_2_2_2_the_longest_match_wins_in_any_order() -> None:
    for lines in (("Allow: /a/b/", "Disallow: /a/"), ("Disallow: /a/", "Allow: /a/b/")):
        assert of_any(*lines).allowed("/a/b/c")
        assert not of_any(*lines).allowed("/a/c")


def test_2_2_2_a_page_that_is_allowed_is_not_its_folder() -> None:
    assert not of_any("Allow: /x/index.html", "Disallow: /x/").allowed("/x/")


def test_2_2_2_of_equal_rules_allow_wins() -> None:
    assert of_any("Disallow: /a", "Allow: /a").allowed("/a")


def test_2_2_2_what_no_rule_matches_is_allowed() -> None:
    assert of_any("Disallow: /a").allowed("/b")
    assert of_any().allowed("/b")


def test_2_2_2_matching_begins_with_the_first_octet_and_minds_case() -> None:
    assert of_any("Disallow: /b").allowed("/a/b")
    assert of_any("Disallow: /A").allowed("/a")


def test_2_2_2_robots_txt_itself_is_allowed() -> None:
    assert of_any("Disallow: /").allowed("/robots.txt")


@pytest.mark.parametrize(
    ("rule", "target"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
    ],
)
def test_2_2_2_octets_are_compared_in_one_encoding(rule: str, target: str) -> None:
    assert not of_any(f"Disallow: {rule}").allowed(target)
    assert not of_any(f"Disallow: {rule}").allowed(target + "more")


def test_2_2_2_what_is_reserved_stays_encoded() -> None:
    assert of_any("Disallow: /a%2Fb").allowed("/a/b")
    assert of_any("Disallow: /a/b").allowed("/a%2Fb")


def test_2_2_2_octets_that_are_not_utf_8_are_compared_as_octets() -> None:
    latin = rules(b"User-agent: *\nDisallow: /caf\xe9")
    assert not latin.allowed("/caf%E9")
    assert latin.allowed("/caf")
    assert latin.allowed("/caf%E8")


def test_2_2_2_rules_before_the_first_name_do_not_count() -> None:
    assert rules("Disallow: /\nUser-agent: *\nDisallow: /a").allowed("/b")


def test_2_2_2_an_empty_disallow_forbids_nothing() -> None:
    assert of_any("Disallow:").allowed("/a")


def test_2_2_an_empty_rule_ends_the_names_of_a_group() -> None:
    assert rules("User-agent: a\nDisallow:\nUser-agent: lcc-scrapy\nDisallow: /", "a").allowed("/x")


# --- 2.2.3 special characters --------------------------------------------------------------------


def test_2_2_3_a_hash_begins_a_comment() -> None:
    marked = rules("# all\nUser-agent: * # any\nDisallow: /a#b\n#Disallow: /\n")
    assert [marked.allowed(path) for path in ("/a", "/b")] == [False, True]


def test_2_2_3_a_dollar_is_the_end() -> None:
    ends = of_any("Disallow: /*.gif$", "Disallow: /this$")
    assert [ends.allowed(path) for path in ("/a.gif", "/a.gif?b", "/this", "/this/")] == [
        False,
        True,
        False,
        True,
    ]


def test_2_2_3_a_star_is_any_run_of_characters() -> None:
    stars = of_any("Disallow: /a*c/*e")
    assert [stars.allowed(path) for path in ("/ac/e", "/abbbc/dd/ee", "/ac/", "/ce")] == [
        False,
        False,
        True,
        True,
    ]


def test_2_2_3_special_characters_are_met_by_their_encoding() -> None:
    literal = of_any("Disallow: /file-%2A.html", "Disallow: /foo-%24")
    assert not literal.allowed("/file-*.html")
    assert literal.allowed("/file-x.html")
    assert not literal.allowed("/foo-$")
    assert not of_any("Disallow: /a$b").allowed("/a$b")


def test_2_2_3_no_pattern_takes_for_ever() -> None:
    rule = of_any("Disallow: /" + "*a" * 900 + "b$")
    start = time.process_time()
    assert rule.allowed("/" + "a" * 2000)
    assert time.process_time() - start < 1


# --- 2.2.4 other records -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", ["Sitemap: http://x/s.xml", "Crawl-delay: 1", "Unheard-of: x", "no record at all"]
)
def test_2_2_4_other_records_do_not_end_a_group(other: str) -> None:
    assert not rules(f"User-agent: lcc-scrapy\n{other}\nUser-agent: b\n{other}\nDisallow: /").allowed("/a")


def test_2_2_4_sitemaps_are_for_everybody_and_bounded() -> None:
    named = rules("Sitemap: http://x/1\nUser-agent: z\nDisallow: /\nsitemap:http://x/é\n")
    assert named.sitemaps == ("http://x/1", "http://x/%C3%A9")
    assert len(rules("Sitemap: http://x/\n" * 5000).sitemaps) == SITEMAPS


@pytest.mark.parametrize(
    ("value", "seconds"), [("2", 2), ("0.5", 0.5), ("x", 0), ("-3", 0), ("inf", 0), ("nan", 0), ("", 0)]
)
def test_crawl_delay_is_a_number_of_seconds(value: str, seconds: float) -> None:
    assert of_any(f"Crawl-delay: {value}").crawl_delay == seconds


def test_crawl_delay_is_that_of_our_group() -> None:
    text = "User-agent: *\nCrawl-delay: 9\nDisallow:\n\nUser-agent: lcc-scrapy\nCrawl-delay: 3\nDisallow:"
    assert rules(text).crawl_delay == 3
    assert rules(text, "x").crawl_delay == 9


# --- 2.2, 2.3.1.5, 2.5: the file ------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_2_2_lines_end_in_three_ways(end: str) -> None:
    assert not rules(end.join(["User-agent: *", "Disallow: /a", ""])).allowed("/a")


def test_2_2_other_separators_end_no_line() -> None:
    assert not of_any("Disallow: /a\u2028b").allowed("/a%E2%80%A8b")
    assert of_any("Disallow: /a\u2028b").allowed("/a")


def test_2_2_blanks_around_everything_do_not_count() -> None:
    assert not rules(" \tUSER-AGENT \t: \t* \t\n\t disallow\t:\t/a\t\n").allowed("/a")


def test_2_3_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert not rules(b"\xef\xbb\xbfUser-agent: *\nDisallow: /a").allowed("/a")


def test_2_3_1_5_the_lines_that_can_be_read_count() -> None:
    broken = b"<html>\x00\x01\nUser-agent: *\n::::\nDisallow /b\nDissallow: /c\nDisallow: d\n\xff\xfe\nDisallow: /a\n"
    assert [rules(broken).allowed(path) for path in ("/a", "/b", "/c", "/d")] == [False, False, False, True]


def test_2_5_what_lies_within_500_kibibytes_counts() -> None:
    head = b"User-agent: *\n"
    last = b"Disallow: /last\n"
    filler = b"#" * (MAX_BYTES - len(head) - len(last) - 1) + b"\n"
    whole = rules(head + filler + last + b"Disallow: /beyond\n")
    assert not whole.allowed("/last")
    assert whole.allowed("/beyond")


def test_2_5_half_a_rule_is_no_rule() -> None:
    head = b"User-agent: *\nDisallow: /\n"
    cut = b"#" * (MAX_BYTES - len(head) - 10) + b"\nAllow: /public"
    assert not rules(head + cut).allowed("/pub")


def test_5_1_the_example_of_the_rfc() -> None:
    text = """
        User-Agent: *
        Disallow: *.gif$
        Disallow: /example/
        Allow: /publications/

        User-Agent: foobot
        Disallow:/
        Allow:/example/page.html
        Allow:/example/allowed.gif

        User-Agent: barbot
        User-Agent: bazbot
        Disallow: /example/page.html

        User-Agent: quxbot
    """
    asked = ("/example/page.html", "/publications/x", "/x.gif", "/example/allowed.gif")
    said = {
        name: [rules(text, name).allowed(path) for path in asked]
        for name in ("a", "foobot", "bazbot", "quxbot")
    }
    assert said == {
        "a": [False, True, False, False],
        "foobot": [True, False, False, True],
        "bazbot": [False, True, True, True],
        "quxbot": [True, True, True, True],
    }


def test_5_2_the_longest_match_of_the_rfc() -> None:
    text = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    assert not rules(text, "foobot").allowed("/example/page/disallowed.gif")
    assert rules(text, "foobot").allowed("/example/page/x")


@given(st.binary(max_size=300), st.text("/abc*$?%=", max_size=20))
def test_any_file_is_one(body: bytes, target: str) -> None:
    assert rules(b"User-agent: *\nDisallow: " + body).allowed("/" + target) in {True, False}
    assert rules(body).crawl_delay >= 0


@given(st.text("/ab%2e", min_size=1, max_size=8), st.text("/ab%2e", max_size=8))
def test_a_rule_matches_what_begins_with_it(path: str, more: str) -> None:
    if not path.endswith("%") and path[-2:-1] != "%":
        assert not of_any(f"Disallow: /{path}").allowed(f"/{path}{more}")


def test_nothing_is_kept_of_groups_for_others() -> None:
    text = "User-agent: a\nDisallow: /\nCrawl-delay: 9\nUser-agent: *\nDisallow: /b\nUser-agent: lcc-scrapy\nAllow: /c\n"
    assert rules(text).rules.prefixes == ("/c",)
    assert rules(text, "x").rules.prefixes == ("/b",)
    assert rules(text).crawl_delay == 0


def test_a_rule_that_is_repeated_is_kept_once_and_allow_wins() -> None:
    repeated = of_any("Disallow: /a", "Allow: /a", "Disallow: /a")
    assert repeated.rules.prefixes == ("/a",)
    assert repeated.allowed("/a")


def test_a_sitemap_longer_than_any_url_is_not_remembered() -> None:
    assert len(rules(f"Sitemap: http://x/{'a' * 3000}\nSitemap: http://x/b\n").sitemaps) == 1
