"""Boolean rules: the grammar, its bounds and errors, and what holds for which text."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.boolean_rules import (
    DEPTH_MAX,
    NEAR_MAX,
    NEARS_MAX,
    PLACES_MAX,
    BadRule,
    parse_rule,
)
from lcc_scrapy.domain.urds import KEYWORD_MAX, KEYWORDS_MAX, RULE_MAX
from tests.naive_annotation import NaiveRule, NaiveText


class Words:
    """A text of words and phrases, each of which is looked for plainly."""

    def __init__(self, text: str) -> None:
        self._text = NaiveText("", [text])

    def has(self, term: str) -> bool:
        return bool(self._text.where(term))

    def places(self, term: str) -> list[int]:
        return self._text.where(term)


def holds(rule: str, text: str) -> bool:
    return parse_rule(rule).rule.holds(Words(text))


@pytest.mark.parametrize(
    ("rule", "text", "held"),
    [
        ("java", "Java is an island", True),
        ("java", "javascript", False),
        ('"Virtual Machine"', "a virtual machine", True),
        ('"virtual machine"', "virtual big machine", False),
        ("any(ibm, java)", "java", True),
        ("any(ibm, java)", "sun", False),
        ("all(ibm, java)", "java ibm", True),
        ("all(ibm, java)", "java", False),
        ("not(coffee)", "java", True),
        ("not(coffee)", "java coffee", False),
        ("ALL( java , NOT( any(coffee,island) ) )", "java ibm", True),
        ("all(java, not(any(coffee, island)))", "java island", False),
        ("near/2(java, ibm)", "ibm the java", True),
        ("near/2(java, ibm)", "ibm and the java", False),
        ("near/3(a, b, c)", "a x c b", True),
        ("near/2(a, b, c)", "a x c b", False),
        ("near/3(a, b, c)", "a b x x x c x b a", True),
        ('near/2("virtual machine", java)', "java virtual machine", True),
        ("near/5(java, java)", "one java", True),
        ("any", "any of them", True),
        ("not (x)", "y", True),
    ],
)
def test_rules(rule: str, text: str, held: bool) -> None:
    assert holds(rule, text) is held


@pytest.mark.parametrize(
    ("rule", "where", "why"),
    [
        ("", 1, "it ends, expected a word, a phrase in quotes, any(, all(, not( or near/n("),
        ("any(a, b", 9, "it ends, expected a comma or a closing bracket"),
        ("any(a b)", 7, "'b', expected a comma or a closing bracket"),
        ("any()", 5, "')', expected a word"),
        ("  any(a,,b)", 9, "',', expected a word"),
        ("java ibm", 6, "'ibm', expected its end"),
        ("not(a, b)", 1, "not( ) takes one part"),
        ("near/0(a, b)", 1, "expected near/1 to near/1000"),
        (f"near/{NEAR_MAX + 1}(a, b)", 1, "expected near/1 to near/1000"),
        ("near/5(a)", 1, "near takes two terms or more"),
        ("near/5(a, any(b, c))", 11, "near takes words and phrases"),
        ('"java', 1, "a quote that is not closed"),
        ("all(java, ++)", 11, "keyword '++' has 0 words, expected 1 to 32"),
        ("not(" * (DEPTH_MAX + 1) + "a" + ")" * (DEPTH_MAX + 1), 4 * DEPTH_MAX + 1, "more than 32 operators"),
        (f"all({'near/1(a,b),' * (NEARS_MAX + 1)}a)", 4 + 12 * NEARS_MAX + 1, "more than 20 times near"),
        (f"all({','.join(f'w{number}' for number in range(KEYWORDS_MAX + 1))})", 4895, "more than 1000 terms"),
        ("a" * (KEYWORD_MAX + 1), 1, "term of 201 characters, at most 200"),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused_with_its_place(rule: str, where: int, why: str) -> None:
    with pytest.raises(BadRule) as refused:
        parse_rule(rule)
    assert str(refused.value).startswith(f"rule, character {where}: {why}")
    assert "\n" not in str(refused.value)


def test_a_rule_has_a_length() -> None:
    parse_rule("a" + " " * (RULE_MAX - 1))
    with pytest.raises(BadRule, match="rule of 16385 characters, at most 16384"):
        parse_rule("a" + " " * RULE_MAX)


def test_the_deepest_rule_is_read() -> None:
    assert holds("not(" * DEPTH_MAX + "a" + ")" * DEPTH_MAX, "a")


def test_a_rule_tells_its_terms_once_and_whether_it_holds_without_them() -> None:
    rule = parse_rule('all(Java, near/3(java, "Virtual Machine"))')
    assert (rule.terms, rule.near, rule.holds_without) == (
        ("java", "virtual machine"),
        {"java", "virtual machine"},
        False,
    )
    assert parse_rule("any(java, not(coffee))").holds_without


def test_near_looks_at_the_first_places_only() -> None:
    assert holds("near/1(a, b)", "a x " * (PLACES_MAX - 1) + "a b")
    assert not holds("near/1(a, b)", "a x " * PLACES_MAX + "a b")


TERMS = st.sampled_from(["a", "b", "c", "a b", "b a c"]).map(lambda term: NaiveRule("term", term=term))
NEARS = st.builds(
    NaiveRule, st.just("near"), st.lists(TERMS, min_size=2, max_size=3).map(tuple), st.integers(1, 6)
)
RULES = st.recursive(
    st.one_of(TERMS, NEARS),
    lambda inner: st.one_of(
        st.builds(
            NaiveRule, st.sampled_from(["any", "all"]), st.lists(inner, min_size=1, max_size=3).map(tuple)
        ),
        st.builds(NaiveRule, st.just("not"), st.tuples(inner)),
    ),
    max_leaves=8,
)


@given(RULES, st.lists(st.sampled_from("abcx"), max_size=20).map(" ".join))
def test_rules_hold_as_the_plain_definition_says(rule: NaiveRule, text: str) -> None:
    assert holds(str(rule), text) is rule.holds(NaiveText("", [text]))


@given(st.text(st.sampled_from('anyllot/5near(), "x'), max_size=60))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    with suppress(BadRule):
        parse_rule(text)
