"""Rules are compiled for speed; what they say is what a plain comparison of each rule says."""

import string
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lcc_scrapy.domain import robots_rules
from lcc_scrapy.domain.robots_rules import LONGEST, PIECES, RuleSet

Lines = list[tuple[str, bool]]
UNRESERVED = set(string.ascii_letters + string.digits + "-._~")
KEPT = UNRESERVED | set("/%:=&?+!$,;@()*")


def compile_(*lines: tuple[str, bool]) -> RuleSet:
    return RuleSet.compile(lines)


# --- a plain reference ----------------------------------------------------------------------------


def spelled(text: str) -> str:
    """Return text with unreserved characters plain and others encoded, one character after the other."""
    out, at = "", 0
    while at < len(text):
        octet = text[at + 1 : at + 3]
        if text[at] == "%" and len(octet) == 2 and set(octet) <= set(string.hexdigits):
            character = chr(int(octet, 16))
            out += character if character in UNRESERVED else f"%{octet.upper()}"
            at += 3
        else:
            out += text[at] if text[at] in KEPT else f"%{ord(text[at]):02X}"
            at += 1
    return out


def with_encoded_query(text: str) -> str:
    path, mark, query = text.partition("?")
    return path + mark + "".join(f"%{ord(one):02X}" if one in ":/?@" else one for one in query)


def matches(pattern: str, text: str, *, whole: bool) -> bool:
    """Compare from the left, with a set of places that may have been reached."""
    reached = {0}
    for one in pattern:
        if one == "*":
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if text[at : at + 1] == one}
    return len(text) in reached if whole else bool(reached)


def plainly(lines: Lines, target: str) -> bool:
    """Look at every rule; the longest that matches counts, and of equal ones that which allows."""
    path = spelled(target).replace("*", "%2A").replace("$", "%24")
    query = with_encoded_query(path)
    best = (0, True)
    for written, allow in lines:
        whole = written.endswith("$")
        plain = spelled(written.removesuffix("$")).replace("$", "%24")
        coded = with_encoded_query(plain)
        if matches(plain, path, whole=whole) or matches(coded, query, whole=whole):
            best = max(best, (len(coded) + whole, allow))
    return best[1]


ALPHABET = "ab/*$?%:2fF61é "
PATTERNS = st.builds(lambda first, rest: first + rest, st.sampled_from("/*"), st.text(ALPHABET, max_size=7))
TARGETS = st.builds(lambda rest: "/" + rest, st.text("ab/*$?%:2fF61", max_size=12))


def ascii_of(text: str) -> str:
    return "".join(
        one if one.isascii() else "".join(f"%{octet:02X}" for octet in one.encode()) for one in text
    )


@given(st.lists(st.tuples(PATTERNS.map(ascii_of), st.booleans()), max_size=12), st.lists(TARGETS, max_size=8))
@example([("/a", False), ("/ab", True), ("/abc", False), ("/b", False)], ["/abd", "/abcd", "/ac", "/c"])
@example([("/a*", False), ("/a", True), ("/a*$", True)], ["/a", "/ab"])
@example([("/a$", True), ("/a", False), ("/a**", False)], ["/a", "/ab"])
@example([("/*?a/b", False)], ["/x?y?a/b", "/x?a%2Fb"])
@example([("/*:", False)], ["/a?b:c"])
def test_compiled_rules_say_what_each_of_them_compared_plainly_says(lines: Lines, targets: list[str]) -> None:
    rules = compile_(*lines)
    assert [rules.allows(target) for target in targets] == [plainly(lines, target) for target in targets]


NESTED = st.text("ab", max_size=6).map("/".__add__)


@given(st.lists(st.tuples(NESTED, st.booleans()), max_size=60), NESTED)
def test_of_nested_prefixes_the_longest_counts(lines: Lines, target: str) -> None:
    assert compile_(*lines).allows(target) is plainly(lines, target)


def test_a_longer_rule_counts_that_reaches_less_far() -> None:
    rules = compile_(("/a***", False), ("/ab", True), ("/abcde", True))
    assert [rules.allows(path) for path in ("/ab", "/abc", "/abcde", "/b")] == [False, False, True, True]


# --- bounds --------------------------------------------------------------------------------------


def test_a_rule_longer_than_any_url_is_not_kept() -> None:
    assert compile_(("/" + "a" * (LONGEST - 1), False)).prefixes
    kept = compile_(
        ("/" + "a" * LONGEST, False), ("/*" + "a" * LONGEST, False), ("/" + "a" * LONGEST + "$", False)
    )
    assert (kept.prefixes, kept.wholes, kept.wildcards) == ((), {}, ())
    assert compile_(("/a" + "*" * LONGEST, False)).prefixes == ("/a",)


def wildcards(count: int) -> Lines:
    return [(f"/x/*{number}/*y", False) for number in range(count)]


def test_so_many_wildcards_are_compared_as_they_are_written() -> None:
    rules = compile_(*wildcards(PIECES // 3))
    assert rules.widened == 0
    assert not rules.allows("/x/a7/by")
    assert rules.allows("/x/a")


def test_a_disallow_with_one_wildcard_too_many_forbids_all_that_begins_like_it() -> None:
    rules = compile_(*wildcards(PIECES // 3), ("/z/*.pdf$", False), ("/z/public/everything", True))
    assert rules.widened == 1
    assert [rules.allows(path) for path in ("/z/a.pdf", "/z/a.html", "/a")] == [False, False, True]
    assert rules.allows("/z/public/everything/more")


def test_an_allow_with_one_wildcard_too_many_permits_nothing() -> None:
    rules = compile_(*wildcards(PIECES // 3), ("/z/*.html$", True), ("/z/", False))
    assert rules.widened == 1
    assert not rules.allows("/z/a.html")


@given(st.lists(st.tuples(PATTERNS.map(ascii_of), st.booleans()), max_size=12), TARGETS, st.integers(0, 6))
def test_nothing_is_permitted_that_all_rules_as_written_forbid(lines: Lines, target: str, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robots_rules, "PIECES", most)
        if compile_(*lines).allows(target):
            assert plainly(lines, target)


def test_no_check_looks_at_more_than_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = compile_(*((f"/*{number}*z", False) for number in range(30_000)), ("/", True))
    assert sum(len(rule.path.pieces) for rule in rules.wildcards) <= PIECES


def test_what_rules_take_is_about_what_is_counted() -> None:

    tracemalloc.start()
    try:
        rules = compile_(*((f"/folder/page-{number}", False) for number in range(5000)))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 3 < rules.footprint < 3 * taken


# --- spellings, by hand -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "target", "matches_"),
    [
        ("/~a", "/%7Ea", True),
        ("/%7ea", "/~a", True),
        ("/a%2fb", "/a%2Fb", True),
        ("/a%2fb", "/a%2fb", True),
        ("/a%2fb", "/a/b", False),
        ("/a%2fb", "/a2Fb", False),
        ("/a%2A", "/a*", True),
        ("/a%24", "/a$", True),
        ("/*%3A", "/a?b:c", True),
        ("/*%3A", "/a/b:c", False),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/é", "/%C3%A9", True),
        ("/é", "/%c3%a9x", True),
    ],
)
def test_a_rule_matches_every_spelling_of_what_it_means(rule: str, target: str, matches_: bool) -> None:
    assert compile_((rule, False)).allows(target) is not matches_


def test_the_memory_of_rules_is_that_of_each_together() -> None:
    plain, wild = [("/" + "a" * 500, False)], [("/*" + "b" * 500, True)]
    assert compile_(*plain, *wild).footprint == compile_(*plain).footprint + compile_(*wild).footprint
    assert compile_(*wild).footprint > 500


def test_the_last_wildcard_that_fits_is_kept_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots_rules, "PIECES", 6)
    assert compile_(*wildcards(2)).widened == 0
    assert compile_(*wildcards(3)).widened == 1
