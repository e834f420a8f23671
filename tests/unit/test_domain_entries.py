"""Reading one URL element: keys, prefixes, every refusal (design section 4)."""

import time
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.domain.entries import (
    MIMETYPE_MAX,
    NO_TYPE,
    SUBTYPE_MAX,
    Declared,
    EntryRules,
    Operation,
    UrlEntry,
    accepts,
    fetch_url,
    furlkey,
    is_type_pattern,
    namehash,
    namehashes,
    plain_mimetype,
    read_entry,
    readable_key,
    served_mimetype,
    urlkey,
    with_prefix,
)
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import URL_MAX, Root

SITE = "http://www.example.org/"
RULES = EntryRules(("text/*", "application/pdf"), (Root.parse(SITE),))
PREFIXED = EntryRules(("*/*",), (Root.parse(SITE),), urlprefix=SITE)
MD5 = "d41d8cd98f00b204e9800998ecf8427e"


def element(**attributes):
    return {"curl": SITE + "a", "mimetype": "text/html", **attributes}


def refusal(attributes, rules=RULES):
    with pytest.raises(UrlRefused) as caught:
        read_entry(attributes, rules)
    return caught.value.code


# --- keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pid", "curl", "mimetype", "docid"),
    [
        (7, "http://www.example.org/a", "text/html", "351dc49d1d342281940d87e9ea1e8d1c"),
        (8, "http://www.example.org/a", "text/html", "201a3786cf8e45ded9db1ca3ef28ce11"),
        (7, "Übersicht.html ", "application/pdf", "10d2d21f8e0d76c73947a4584aefa29f"),
        (7, "", "", "55bf3ab4801a87dbc6ded2edccfd763e"),
    ],
)
def test_the_key_of_a_url_is_that_of_the_documentation(pid, curl, mimetype, docid):
    assert urlkey(pid, curl, mimetype).hex() == docid


def test_the_parts_of_a_key_cannot_flow_into_each_other():
    assert urlkey(1, "2x", "a/b") != urlkey(12, "x", "a/b")
    assert urlkey(1, "xa", "/b") != urlkey(1, "x", "a/b")


# --- names, prefixes, types -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", ["http://x/a/{:07d}.html", "http://x/a/doc-{:05d}-draft", "http://x/show?id=1{:06d}&lang=en"]
)
def test_urls_that_are_numbered_one_after_the_other_lie_together(pattern):
    hashes = sorted((namehash(pattern.format(number)), number // 1000) for number in range(10_000))
    thousands = [thousand for _, thousand in hashes]
    assert sum(one != other for one, other in pairwise(thousands)) == 9


def test_urls_of_a_folder_lie_together_whatever_their_names():
    names = ["index.html", "2024-in-review", "a7", ""]
    hashes = sorted((namehash(f"http://{host}/{name}"), host) for host in "abcdef" for name in names)
    assert sum(one != other for (_, one), (_, other) in pairwise(hashes)) == 5
    assert len(set(hashes)) == 24


@settings(max_examples=50)
@given(st.text(max_size=30))
def test_a_hash_has_64_bits_with_a_sign(url):
    assert -(1 << 63) <= namehash(url) < 1 << 63
    assert namehash(url) != namehash(f"{url}!")


@pytest.mark.parametrize(
    ("url", "result"),
    [
        ("a.html", SITE + "a.html"),
        ("/a.html", SITE + "/a.html"),
        ("", ""),
        ("http://x/", "http://x/"),
        ("news+x.y-1://x", "news+x.y-1://x"),
        ("1http://x/", SITE + "1http://x/"),
        ("a/http://x/", SITE + "a/http://x/"),
        ("mailto:x", SITE + "mailto:x"),
    ],
)
def test_a_prefix_stands_before_what_has_no_scheme(url, result):
    assert with_prefix(SITE, url) == result


def test_types_are_compared_lower_case_without_parameters():
    assert plain_mimetype(" Text/HTML ; charset=utf-8") == "text/html"
    assert accepts(("text/*",), "text/plain")
    assert accepts(("*/*",), "x/y")
    assert accepts(("application/pdf",), "application/pdf")
    assert not accepts(("application/pdf",), "application/pdfx")
    assert not accepts(("text/*",), "textual/plain")
    assert not accepts((), "text/html")


# --- what is read -----------------------------------------------------------------------------------


def test_a_whole_element_is_read():
    entry = read_entry(
        element(
            furl=SITE + "f b", burl=SITE + "b", mimetype="Text/HTML;charset=x", len="12", md5=MD5.upper(), mtime="100",
            subtype="lang: nl", timeofday="0-8", unknown="x",
        ),
        RULES,
    )  # fmt: skip
    assert entry == UrlEntry(
        SITE + "a", "text/html", Operation.UPDATE, SITE + "f%20b", SITE + "b", "lang: nl", Declared(100, 12, MD5),
        ("1" * 8 + "0" * 16) * 7,
    )  # fmt: skip


def test_missing_urls_are_as_the_curl():
    entry = read_entry(element(), RULES)
    assert (entry.furl, entry.burl) == (SITE + "a", SITE + "a")


def test_a_curl_is_only_a_key_and_stays_as_it_is():
    entry = read_entry({"curl": "Some Name .html ", "furl": SITE + "x", "mimetype": "text/html"}, RULES)
    assert (entry.curl, entry.burl) == ("Some Name .html ", SITE + "x")


def test_a_missing_burl_is_the_fetch_url_where_the_curl_is_no_url():
    entry = read_entry(
        {"curl": "My file.html", "furl": SITE + "My file.html", "mimetype": "text/html"}, RULES
    )
    assert (entry.curl, entry.burl) == ("My file.html", SITE + "My%20file.html")


def test_an_empty_burl_means_not_browsable():
    assert read_entry(element(burl=""), RULES).burl is None


def test_relative_urls_take_the_prefix():
    entry = read_entry({"curl": "a b", "furl": "f", "burl": "b", "mimetype": "x/y"}, PREFIXED)
    assert (entry.curl, entry.furl, entry.burl) == (SITE + "a b", SITE + "f", SITE + "b")
    assert read_entry({"curl": "é", "mimetype": "x/y"}, PREFIXED).furl == SITE + "%C3%A9"


@pytest.mark.parametrize(
    "attributes", [{"furl": ""}, {"op": "remove"}, {"op": "remove", "furl": "ftp://else/"}]
)
def test_removals_are_asked_for_no_accepted_type_and_no_root(attributes):
    entry = read_entry({"curl": "http://elsewhere.example/", "mimetype": "image/png", **attributes}, RULES)
    assert entry == UrlEntry("http://elsewhere.example/", "image/png", Operation.REMOVE)


@pytest.mark.parametrize("subtype", ["lang: nl", "a:", "x y: z: w"])
def test_a_subtype_is_type_and_value(subtype):
    assert read_entry(element(subtype=subtype), RULES).subtype == subtype


@pytest.mark.parametrize("subtype", ["", "nl", ": nl", " a: b", "a: " + "x" * 300, "a: b\0", "a: b\nc"])
def test_another_subtype_is_blanked(subtype):
    assert read_entry(element(subtype=subtype), RULES).subtype == ""


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("", None),
        (" ", None),
        ("0", 0),
        ("784111777", 784111777),
        (" 784111777 ", 784111777),
        ("19941106084937", 784111777),
        ("1994-11-06T08:49:37Z", 784111777),
        ("1994-11-06T08:49:37", 784111777),
        ("1994-11-06T09:49:37+01:00", 784111777),
        ("1994-11-06 08:49:37.9", 784111777),
        ("1994-11-06", 784080000),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784111777),
        ("Sun Nov  6 08:49:37 1994", 784111777),
    ],
)
def test_a_time_may_be_written_in_every_usual_form(text, moment):
    assert read_entry(element(mtime=text), RULES).declared.mtime == moment


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "attributes"),
    [
        (701, {"mimetype": "text/html"}),
        (701, {"curl": "", "mimetype": "text/html"}),
        (702, {"curl": SITE}),
        (702, {"curl": SITE, "mimetype": " ; charset=x"}),
        (703, element(mimetype="image/png")),
        (704, element(furl="http://elsewhere.example/")),
        (704, element(furl=SITE + "../x")),
        (705, element(furl="ftp://www.example.org/")),
        (705, element(furl="relative")),
        (705, element(furl="http://user@www.example.org/")),
        (705, element(burl="relative")),
        (705, element(burl="javascript:alert(1)")),
        (705, element(curl=SITE + "\0")),
        (705, element(curl=SITE + "\ud800")),
        (705, element(curl="x\n", op="remove")),
        (706, element(mimetype="text")),
        (706, element(mimetype="text/ht ml")),
        (706, element(mimetype="text/html/x")),
        (706, element(mimetype="téxt/html")),
        (706, element(md5="x" * 32)),
        (706, element(md5=MD5[:-1])),
        (706, element(md5=MD5 + "0")),
        (706, element(len="-1")),
        (706, element(len="1.5")),
        (706, element(len="1k")),
        (706, element(len="٣")),
        (706, element(len="9" * 19)),
        (706, element(mtime="yesterday")),
        (706, element(mtime="-5")),
        (706, element(mtime="19941306084937")),
        (706, element(mtime="1959-12-31T00:00:00Z")),
        (706, element(mtime="9" * 17)),
        (706, element(mtime="9" * 9999)),
        (706, element(mtime="²")),
        (706, element(timeofday="8-25")),
        (706, element(op="delete")),
        (707, element(curl=SITE + "x" * URL_MAX)),
        (707, element(furl=SITE + "x" * URL_MAX)),
        (707, element(furl=SITE + "é" * 500)),
        (707, element(burl=SITE + "x" * URL_MAX)),
        (707, element(mimetype="text/" + "x" * 127)),
        (708, element(timeofday="!0-24")),
    ],
)
def test_a_wrong_element_is_refused_with_its_code(code, attributes):
    assert refusal(attributes) == code


def test_an_hour_that_the_provider_itself_forbids_is_708():
    rules = EntryRules(("text/*",), RULES.roots, timeofday="1" * 8 + "0" * 160)
    assert refusal(element(timeofday="tue 0-8"), rules) == 708
    assert read_entry(element(timeofday="mon 0-8"), rules).timeofday == "1" * 8 + "0" * 160


def test_the_longest_values_are_taken():
    entry = read_entry(element(curl=SITE + "x" * (URL_MAX - len(SITE)), mimetype="text/" + "x" * 122), RULES)
    assert (len(entry.curl), len(entry.mimetype)) == (URL_MAX, 127)
    assert read_entry(element(len="9" * 18), RULES).declared.length == 10**18 - 1


# --- what remains readable of a refused element -----------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (element(md5="x"), (SITE + "a", "text/html")),
        ({"curl": "a", "mimetype": "Text/HTML; x"}, (SITE + "a", "text/html")),
        ({"curl": "a"}, None),
        ({"mimetype": "text/html"}, None),
        ({"curl": "a", "mimetype": "text"}, None),
        ({"curl": "x" * URL_MAX, "mimetype": "text/html"}, None),
    ],
)
def test_the_key_of_a_refused_element_is_read_where_it_can_be(attributes, expected):
    assert readable_key(attributes, PREFIXED) == expected


def test_the_fetch_url_of_a_refused_element_is_told_in_full():
    assert fetch_url({"curl": "a", "furl": "b"}, PREFIXED) == SITE + "b"
    assert fetch_url({"curl": "a"}, PREFIXED) == SITE + "a"
    assert fetch_url({}, PREFIXED) == ""


names = st.sampled_from(
    ["curl", "burl", "furl", "mimetype", "subtype", "mtime", "len", "md5", "timeofday", "op"]
)
texts = st.one_of(
    st.text(max_size=30), st.sampled_from([SITE, SITE + "x", "text/html", "12", MD5, "0-8", "remove", ""])
)


@given(st.dictionaries(names, texts))
def test_any_element_is_read_or_refused_and_a_read_one_can_be_stored(attributes):
    try:
        entry = read_entry(attributes, RULES)
    except UrlRefused as error:
        refused = error
    else:
        refused = None
    if refused:
        assert 701 <= refused.code <= 708
        return
    for text in (entry.curl, entry.furl, entry.burl or "", entry.subtype):
        assert "\0" not in text.encode().decode()
        assert len(text) <= URL_MAX
    assert readable_key(attributes, RULES) == (entry.curl, entry.mimetype)


@pytest.mark.parametrize(
    ("first", "second", "strict", "same"),
    [
        (Declared(1, 2, "a"), Declared(9, 2, "a"), False, True),
        (Declared(1, 2, "a"), Declared(9, 2, "a"), True, False),
        (Declared(9, 2, "a"), Declared(9, 2, "a"), True, True),
        (Declared(None, 2, "a"), Declared(None, 2, "a"), True, False),
        (Declared(1, None, "a"), Declared(1, None, "a"), False, False),
        (Declared(1, 2, None), Declared(1, 2, None), False, False),
        (Declared(1, 2, "a"), Declared(1, 3, "a"), False, False),
        (Declared(1, 2, "a"), Declared(1, 2, "b"), False, False),
        (Declared(1, 2, "a"), Declared(1, None, None), False, False),
    ],
)
def test_the_same_content_is_only_what_is_surely_the_same(first, second, strict, same):
    assert first.same_content(second, strict_mtime=strict) is same


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("*/*", True),
        ("image/*", True),
        ("text/html", True),
        ("*/png", False),
        ("image", False),
        ("", False),
        ("a/b c", False),
    ],
)
def test_patterns_of_types_are_told_from_other_words(text, is_one):
    assert is_type_pattern(text) is is_one


def test_a_hash_stays_what_it_is_for_it_is_stored():
    assert namehash("http://www.example.org/folder/page-123456.html") == 7348470879873374207


def test_the_fetch_url_has_a_hash_of_its_own_where_it_is_another():
    assert namehashes("http://x/a", "http://x/a") == (namehash("http://x/a"), None)
    assert namehashes("http://x/a", "http://x/b") == (namehash("http://x/a"), namehash("http://x/b"))


def test_the_key_of_a_fetch_url_belongs_to_one_provider():
    keys = {furlkey(1, "http://x/a"), furlkey(1, "http://x/b"), furlkey(2, "http://x/a")}
    assert [len(key) for key in keys] == [16, 16, 16]


@pytest.mark.parametrize(
    ("said", "mimetype"),
    [
        ("text/html", "text/html"),
        ("nonsense", NO_TYPE),
        ("", NO_TYPE),
        ("text/" + "x" * (MIMETYPE_MAX - 6), "text/" + "x" * (MIMETYPE_MAX - 6)),
        ("text/" + "x" * (MIMETYPE_MAX - 5), NO_TYPE),
    ],
)
def test_what_a_site_says_that_it_serves_is_a_type_or_none(said, mimetype):
    assert served_mimetype(said) == mimetype


def test_the_longest_key_of_a_refused_element_is_read():
    longest = {"curl": SITE + "x" * (URL_MAX - len(SITE)), "mimetype": "text/" + "x" * (MIMETYPE_MAX - 5)}
    assert readable_key(longest, RULES) == (longest["curl"], longest["mimetype"])
    assert readable_key({**longest, "curl": longest["curl"] + "x"}, RULES) is None
    assert readable_key({**longest, "mimetype": longest["mimetype"] + "x"}, RULES) is None


def test_urls_are_as_long_as_the_rules_permit_and_those_of_removals_as_can_be_stored():
    rules = EntryRules(("*/*",), RULES.roots, url_length=100)
    fits, longer = SITE + "x" * (100 - len(SITE)), SITE + "x" * (101 - len(SITE))
    short = SITE + "short"
    assert read_entry(element(curl=fits, furl=fits, burl=fits), rules).curl == fits
    assert refusal(element(curl=longer, furl=short, burl=short), rules) == 707
    assert refusal(element(curl=short, furl=longer, burl=short), rules) == 707
    assert refusal(element(curl=short, furl=short, burl=longer), rules) == 707
    assert read_entry(element(curl=longer, op="remove"), rules).operation is Operation.REMOVE
    assert refusal(element(curl=SITE + "x" * URL_MAX, op="remove"), rules) == 707


def test_a_missing_burl_is_the_curl_where_that_is_a_url():
    entry = read_entry(element(curl="HTTP://elsewhere.example/a", furl=SITE + "b"), RULES)
    assert (entry.furl, entry.burl) == (SITE + "b", "http://elsewhere.example/a")


def test_the_longest_subtype_is_kept():
    longest = "a: " + "x" * (SUBTYPE_MAX - 3)
    assert read_entry(element(subtype=longest), RULES).subtype == longest
    assert read_entry(element(subtype=longest + "x"), RULES).subtype == ""


def test_a_time_without_a_zone_is_utc_wherever_the_machine_is(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        entry = read_entry(element(mtime="2026-06-01T12:00:00"), RULES)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert entry.declared.mtime == int(datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp())


def test_an_element_without_hours_may_be_fetched_at_any_time():
    assert read_entry(element(), RULES).timeofday == ""
