"""What a URD may say."""

import json
from dataclasses import replace

import pytest

from lcc_scrapy.domain.urd_rules import (
    NEVER,
    THRESHOLD_MAX,
    TIME_MAX,
    TIMING_LEAST,
    TIMING_MAX,
    BadUrd,
    checked,
    due_at,
    same_interest,
)
from lcc_scrapy.domain.urds import (
    EVERYTHING,
    KEYWORD_MAX,
    KEYWORDS_MAX,
    RULE_MAX,
    WEIGHT_MAX,
    Keyword,
    Method,
    Process,
    Urd,
)

PAGE = "http://www.cs.ucy.ac.cy/default.html"
WORDS = (Keyword("ibm", 1), Keyword("research", 3))
GOOD = Urd(0, "csyiazt1", PAGE, 600_000, 97_876_750_000, depth=4, keywords=WORDS)
RULE = replace(GOOD, processtype=Process.RULE, rule='all(ibm, not("java beans"))', keywords=())


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"timing": 0},
        {"timing": TIMING_LEAST},
        {"timing": TIMING_MAX},
        {"lastcheck": 0},
        {"lastcheck": TIME_MAX},
        {"depth": 0},
        {"depth": 100},
        {"urgency": 0},
        {"urgency": 2},
        {"threshold": 0},
        {"threshold": THRESHOLD_MAX},
        {"expires": 1},
        {"expires": TIME_MAX},
        {"owner": "ä" * 64},
        {"keywords": (Keyword("x" * KEYWORD_MAX, WEIGHT_MAX),)},
        {"keywords": tuple(Keyword(f"k{n}") for n in range(KEYWORDS_MAX))},
        {"processtype": Process.CHANGE, "keywords": ()},
        {"processtype": Process.CHANGE},
        {"method": Method.PUSH},
        {"uri": EVERYTHING, "timing": 0, "depth": 0},
        {"uri": EVERYTHING, "timing": 0, "depth": 0, "protocol": "https", "port": 65_535},
    ],
    ids=str,
)
def test_what_may_be_said_stays_as_it_is(values):
    urd = replace(GOOD, **values)
    assert checked(urd) == urd


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"timing": TIMING_LEAST - 1}, "timing 999, expected a whole number from 1000"),
        ({"timing": TIMING_MAX + 1}, "timing"),
        ({"timing": -1}, "timing -1"),
        ({"lastcheck": -1}, "lastcheck -1"),
        ({"lastcheck": TIME_MAX + 1}, "lastcheck"),
        ({"port": 0}, "port 0"),
        ({"port": 65_536}, "port 65536"),
        ({"depth": -1}, "depth -1"),
        ({"depth": 101}, "depth 101, expected a whole number from 0 to 100"),
        ({"urgency": 3}, "urgency 3, expected a whole number from 0 to 2"),
        ({"urgency": -1}, "urgency"),
        ({"threshold": -1}, "threshold"),
        ({"threshold": THRESHOLD_MAX + 1}, "threshold"),
        ({"expires": 0}, "expires"),
        ({"expires": 10**400}, "expires 1000"),
        ({"owner": ""}, "owner ''"),
        ({"owner": "x" * 65}, "owner"),
        ({"owner": "a b"}, "without blanks"),
        ({"owner": "a\ud800"}, "owner"),
        ({"owner": "a\ufffe"}, "owner"),
        ({"owner": "a\x7f"}, "owner"),
        ({"protocol": "ftp"}, "protocol 'ftp', expected http or https"),
        ({"uri": "ftp://www.example.org/"}, "scheme 'ftp'"),
        ({"uri": ""}, "scheme 'missing'"),
        ({"uri": "http://"}, "host missing"),
        ({"uri": "http://x/" + "a" * 2048}, "at most 2048"),
        ({"uri": "http://x/\n"}, "control character"),
        ({"uri": EVERYTHING, "depth": 0}, "names no page"),
        ({"uri": EVERYTHING, "timing": 0}, "names no page"),
        ({"keywords": ()}, "no keyword"),
        (
            {"keywords": tuple(Keyword(f"k{n}") for n in range(KEYWORDS_MAX + 1))},
            "1001 keywords, at most 1000",
        ),
        ({"keywords": (Keyword(""),)}, "keyword of 0 characters"),
        ({"keywords": (Keyword("x" * (KEYWORD_MAX + 1)),)}, "keyword of 201 characters"),
        ({"keywords": (Keyword("!?"),)}, "0 words"),
        ({"keywords": (Keyword("a\nb"),)}, "in one line"),
        ({"keywords": (Keyword("a\x1b[2J"),)}, "in one line"),
        ({"keywords": (Keyword("a\ufffe"),)}, "in one line"),
        ({"keywords": (Keyword("IBM"), Keyword("ibm!"))}, "'IBM' and 'ibm!' are the same words"),
        ({"keywords": (Keyword("a", 0),)}, "weight of 'a': 0"),
        ({"keywords": (Keyword("a", WEIGHT_MAX + 1),)}, "weight of 'a'"),
        ({"rule": "ibm"}, "a rule goes with processtype"),
        ({"processtype": Process.RULE}, "a rule goes with processtype"),
        ({"processtype": Process.RULE, "rule": "any(ibm"}, "rule, character 8"),
        ({"processtype": Process.RULE, "rule": "a" * (RULE_MAX + 1)}, "at most 16384"),
        ({"processtype": Process.RULE, "rule": "a\x00"}, "control character"),
    ],
    ids=lambda value: str(value)[:60].encode("ascii", "backslashreplace").decode(),
)
def test_what_may_not_be_said_is_told_in_one_line(values, why):
    with pytest.raises(BadUrd) as told:
        checked(replace(GOOD, **values))
    text = str(told.value)
    assert why in text
    assert text.isprintable()
    assert len(text) < 250


def test_a_rule_is_checked_and_may_have_lines():
    assert checked(RULE) == RULE
    assert checked(replace(RULE, rule="any(\n\tibm,\n\tjava)\n")).rule.count("\n") == 3


def test_the_url_is_kept_in_normal_form_and_says_protocol_and_port():
    urd = checked(replace(GOOD, uri="HTTPS://WWW.Example.ORG:8443/ä?b c#d", protocol="http", port=80))
    assert (urd.uri, urd.protocol, urd.port) == ("https://www.example.org:8443/%C3%A4?b%20c", "https", 8443)
    assert checked(urd) == urd
    assert checked(replace(GOOD, port=8080)).port == 80


def test_who_asks_for_a_page_when():
    assert due_at(GOOD) == 97_877_350_000
    assert due_at(replace(GOOD, expires=97_877_350_001)) == 97_877_350_000
    assert due_at(replace(GOOD, expires=97_877_000_000)) == 97_877_000_000
    for values in ({"timing": 0}, {"method": Method.PUSH}, {"uri": EVERYTHING}):
        assert due_at(replace(GOOD, **values)) == NEVER


def test_revisions_do_not_make_another_interest():
    assert same_interest(replace(GOOD, revision=1), replace(GOOD, revision=9))
    assert not same_interest(GOOD, replace(GOOD, threshold=2))


def test_times_fit_into_the_whole_numbers_of_json_everywhere():
    assert json.loads(json.dumps(float(TIME_MAX))) == TIME_MAX
