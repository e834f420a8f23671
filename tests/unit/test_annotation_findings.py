"""To which URDs a page matters: scope, thresholds, rules, changes, and profiles that change meanwhile."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.annotation import annotating
from lcc_scrapy.annotation.annotating import Finding, Page, Profiles
from lcc_scrapy.annotation.findings import KEYWORDS_SHOWN, SENTENCE_SHOWN, SENTENCES_SHOWN
from lcc_scrapy.annotation.index import Index
from lcc_scrapy.domain.acis import SUMMARY_MAX, TITLE_MAX
from lcc_scrapy.domain.errors import MissingExtra
from lcc_scrapy.domain.relevance import OCCURRENCES_MAX
from lcc_scrapy.domain.urds import EVERYTHING, Keyword, Process, Urd

URL = "http://x/a/b.html"
NOW = 1_000


def urd(number: int, *keywords: str, **more: object) -> Urd:
    given = {"uri": EVERYTHING, "keywords": tuple(Keyword(key, 2) for key in keywords), **more}
    return Urd(number, f"owner{number}", **given)  # type: ignore[arg-type]


def change(number: int, *keywords: str, **more: object) -> Urd:
    return urd(number, *keywords, processtype=Process.CHANGE, **more)


def page(body: str, previous: str | None = None, url: str = URL) -> Page:
    return Page(url, body.encode(), "text/html", "", None if previous is None else previous.encode())


def found(urds: list[Urd], body: str, previous: str | None = None, **more: object) -> dict[int, Finding]:
    given = {"owners": (), "now": NOW, **more}
    findings = Profiles(urds).findings(page(body, previous), **given)  # type: ignore[arg-type]
    assert [one.urd.urdid for one in findings] == sorted(one.urd.urdid for one in findings)
    return {one.urd.urdid: one for one in findings}


# --- scope ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "is_in"),
    [
        (EVERYTHING, True), (URL, True), ("http://x/", True), ("http://x/a/", True), ("http://x/a", False),
        ("http://x/a/b.html/", False), ("http://y/", False), ("http://x/a/b", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("processtype", Process)
def test_a_page_is_in_scope_by_its_url(processtype: Process, uri: str, is_in: bool) -> None:
    keywords = () if processtype is Process.CHANGE else ("java",)
    one = urd(1, *keywords, uri=uri, processtype=processtype, rule="not(coffee)")
    assert bool(found([one], "java", "other")) is is_in


@pytest.mark.parametrize("processtype", Process)
def test_a_page_is_in_scope_of_its_owners(processtype: Process) -> None:
    one = urd(1, uri="http://y/", processtype=processtype, rule="not(coffee)", threshold=0)
    assert not found([one], "java", "other", owners={"owner2"})
    assert found([one], "java", "other", owners=["owner1", "owner2"])


def test_what_has_expired_finds_nothing() -> None:
    assert not found([urd(1, "java", expires=NOW)], "java")
    assert found([urd(1, "java", expires=NOW + 1)], "java")


def test_only_some_urds_may_be_asked() -> None:
    urds = [urd(1, "java"), urd(2, "java"), change(3)]
    assert set(found(urds, "java", "x", only={2, 3})) == {2, 3}
    assert set(found(urds, "java", "x")) == {1, 2, 3}


# --- relevance -----------------------------------------------------------------------------------


def test_relevance_is_the_sum_of_weights_and_occurrences_up_to_some() -> None:
    one = urd(1, keywords=(Keyword("java", 4), Keyword("Virtual machine", 5), Keyword("coffee", 9)))
    assert found([one], "Java, java: a virtual machine")[1].relevance == 13
    assert found([one], "java " * (OCCURRENCES_MAX + 5))[1].relevance == 4 * OCCURRENCES_MAX


def test_a_page_matters_from_the_threshold_on() -> None:
    assert set(found([urd(1, "java", threshold=4), urd(2, "java", threshold=5)], "java java")) == {1}


def test_with_threshold_0_every_page_in_scope_matters() -> None:
    assert (
        found([urd(1, "java", threshold=0), urd(2, "java", threshold=0, uri="http://y/")], "x")[1].relevance
        == 0
    )


def test_keywords_in_the_title_count_and_phrases_end_with_it() -> None:
    urds = [urd(1, "java"), urd(2, "java beans"), urd(3, "beans java")]
    assert set(found(urds, "<title>Java</title>beans")) == {1}


def test_two_keywords_with_one_pattern_count_each() -> None:
    assert found([urd(1, "java", "JAVA")], "java")[1].relevance == 4


def test_a_keyword_that_no_text_can_hold_is_not_found() -> None:
    assert found([urd(1, "++", "java")], "++ java")[1].relevance == 2


def test_the_text_of_links_counts_if_it_is_wanted() -> None:
    body = page("<a href=x>java</a>")
    assert Profiles([urd(1, "java")]).findings(body, (), NOW)
    assert not Profiles([urd(1, "java")], link_texts=False).findings(body, (), NOW)


def test_what_is_no_text_has_no_words() -> None:
    image = Page(URL, b"java", "image/png", "")
    assert not Profiles(
        [urd(1, "java", threshold=0), urd(2, processtype=Process.RULE, rule="not(x)")]
    ).findings(image, (), NOW)


# --- rules ---------------------------------------------------------------------------------------


def rule(number: int, text: str, *keywords: str, **more: object) -> Urd:
    return urd(number, *keywords, processtype=Process.RULE, rule=text, **more)


def test_a_rule_alone_decides_and_gives_the_threshold() -> None:
    urds = [
        rule(1, "all(java, not(coffee))"),
        rule(2, "all(java, not(coffee))", threshold=7),
        rule(3, "java"),
    ]
    assert {key: one.relevance for key, one in found(urds, "java").items()} == {1: 1, 2: 7, 3: 1}
    assert set(found(urds, "java coffee")) == {3}


def test_with_keywords_a_rule_has_to_hold_and_they_to_reach_the_threshold() -> None:
    urds = [rule(1, "not(coffee)", "java", threshold=4), rule(2, "any(java, ibm)", "java", threshold=0)]
    assert set(found(urds, "java java")) == {1, 2}
    assert set(found(urds, "java java coffee")) == {2}
    assert found(urds, "ibm")[2].relevance == 0
    assert set(found(urds, "java")) == {2}


def test_a_rule_holds_for_pages_with_none_of_its_words() -> None:
    assert found([rule(1, "not(coffee)"), rule(2, "not(not(coffee))")], "tea").keys() == {1}


def test_near_is_counted_in_words_of_the_page() -> None:
    near = rule(1, 'near/2(java, "virtual machine")')
    assert found([near], "<p>Java <b>(a)</b> virtual machine")
    assert not found([near], "<p>Java a big virtual machine")


def test_a_rule_that_nobody_understands_holds_for_nothing_and_harms_nobody() -> None:
    assert set(found([rule(1, "all("), urd(2, "java")], "java")) == {2}


# --- what is told --------------------------------------------------------------------------------


def test_title_summary_and_detail_of_words() -> None:
    one = urd(1, keywords=(Keyword("java", 1), Keyword("ibm", 3), Keyword("coffee", 9)))
    told = found([one], "<title> News &amp; more</title><p>The Java of IBM")[1]
    assert (told.title, told.summary) == ("News & more", "1) The Java of IBM")
    assert told.detail == {
        "keywords": [
            {"key": "ibm", "weight": 3, "occurrences": 1},
            {"key": "java", "weight": 1, "occurrences": 1},
        ],
        "extracts": [{"text": "The Java of IBM", "marks": [[4, 8], [12, 15]]}],
    }


def test_a_page_without_title_is_called_by_its_first_line_or_its_url() -> None:
    assert found([urd(1, "java")], f"<h1>Java {'x' * 300}</h1>")[1].title == f"Java {'x' * 300}"[:TITLE_MAX]
    assert found([urd(1, threshold=0)], "")[1].title == URL


def test_what_is_told_has_bounds() -> None:
    keys = [f"word{number}" for number in range(200)]
    text = " ".join(f"{key} {'x' * 300}" for key in keys)
    told = found([urd(1, *keys)], text)[1]
    assert len(told.summary) <= SUMMARY_MAX
    assert len(told.detail["keywords"]) == KEYWORDS_SHOWN
    assert len(told.detail["extracts"]) == 5


# --- changes -------------------------------------------------------------------------------------

OLD = "<title>Shop</title><h1>Chairs</h1><p>They cost 12 EUR. They are red.<p>Visit us."
NEW = "<title>Shop</title><h1>Chairs</h1><p>They cost 13 EUR. They are red.<p>Visit us. Sale!"


def test_what_changed_is_told_without_keywords() -> None:
    told = found([change(1), change(2, threshold=9)], NEW, OLD)
    assert {key: one.relevance for key, one in told.items()} == {1: 1, 2: 9}
    assert told[1].summary == "+ They cost 13 EUR.\n+ Sale!\n- They cost 12 EUR."
    assert told[1].detail["added"] == ["They cost 13 EUR.", "Sale!"]
    assert told[1].detail["removed"] == ["They cost 12 EUR."]
    assert "-They cost 12 EUR.\n+They cost 13 EUR.\n They are red." in told[1].detail["diff"]
    assert told[1].detail["cut"] is False


@pytest.mark.parametrize(
    "previous", [None, NEW, NEW.replace("<p>", "<div class=new>"), NEW.replace(". ", ".\n ")]
)
def test_without_another_text_nothing_changed(previous: str | None) -> None:
    assert not found([change(1)], NEW, previous)


def test_keywords_have_to_stand_in_changed_sentences() -> None:
    urds = [change(1, "eur"), change(2, "red"), change(3, "sale", threshold=3), change(4, "12 eur")]
    told = found(urds, NEW, OLD)
    assert {key: one.relevance for key, one in told.items()} == {1: 4, 4: 2}
    assert told[1].detail["keywords"] == [{"key": "eur", "weight": 2, "occurrences": 2}]
    assert not found([change(1, "red", threshold=0)], NEW, OLD)


def test_a_phrase_does_not_go_over_two_changed_sentences() -> None:
    assert not found([change(1, "one two")], "a. one. two.", "a.")


def test_keywords_of_changes_do_not_matter_for_the_whole_page() -> None:
    assert not found([change(1, "red", threshold=1)], OLD)


def test_the_title_is_part_of_the_text() -> None:
    assert found([change(1)], NEW.replace("Shop", "Shut"), NEW)[1].detail["added"] == ["Shut"]


def test_of_what_is_no_text_only_the_bytes_are_compared() -> None:
    image = Page(URL, b"abc", "image/png", "", b"ab")
    profiles = Profiles([change(1), change(2, "java")])
    (told,) = profiles.findings(image, (), NOW)
    assert (told.urd.urdid, told.summary) == (1, "other content: 2 bytes before, 3 now")
    assert not profiles.findings(replace(image, previous=b"abc"), (), NOW)


def test_large_changes_are_cut() -> None:
    text = "".join(f"<p>{number} {'x' * 1000}" for number in range(100))
    told = found([change(1)], text, "")[1]
    assert len(told.detail["added"]) == SENTENCES_SHOWN
    assert max(map(len, told.detail["added"])) == SENTENCE_SHOWN
    assert told.detail["cut"] is True
    assert len(told.summary) <= SUMMARY_MAX


# --- profiles that change ------------------------------------------------------------------------


def ids(profiles: Profiles) -> list[int]:
    return [one.urd.urdid for one in profiles.findings(page("java ibm"), (), NOW)]


def test_a_change_acts_on_the_next_page() -> None:
    profiles = Profiles([urd(1, "java"), urd(2, "java")])
    profiles.change([urd(3, "ibm"), urd(1, "coffee")], [2])
    assert (ids(profiles), len(profiles)) == ([3], 2)
    profiles.change([urd(1, "ibm"), urd(2, "ibm")])
    assert (ids(profiles), len(profiles)) == ([1, 2, 3], 3)
    profiles.change(removed=[1, 3, 9])
    assert (ids(profiles), len(profiles)) == ([2], 1)


STEPS = st.lists(
    st.one_of(st.just("merge"), st.tuples(st.integers(1, 6), st.sampled_from(["java", "coffee", None]))),
    max_size=12,
)


@given(st.lists(st.integers(1, 6), unique=True), STEPS, STEPS)
def test_whatever_changes_before_and_during_a_merge_counts(
    begin: list[int], before: list[object], during: list[object]
) -> None:
    expected = dict.fromkeys(begin, "java")
    profiles = Profiles([urd(number, "java") for number in begin])

    def run(steps: list[object]) -> None:
        for step in steps:
            if step == "merge":
                profiles.merge()
                continue
            number, key = step  # type: ignore[misc]
            profiles.change([urd(number, key)] if key else (), () if key else [number])
            expected.pop(number, None)
            expected.update({number: key} if key else {})

    run(before)
    with pytest.MonkeyPatch.context() as patch:

        def interrupted(urds: Iterable[Urd]) -> Index:
            patch.undo()
            run([step for step in during if step != "merge"])
            return Index(urds)

        patch.setattr(annotating, "Index", interrupted)
        profiles.merge()
    assert ids(profiles) == sorted(number for number, key in expected.items() if key == "java")
    assert len(profiles) == len(expected)
    profiles.merge()
    assert ids(profiles) == sorted(number for number, key in expected.items() if key == "java")


def test_pages_are_compared_while_another_thread_merges() -> None:
    profiles = Profiles([urd(number, "java", f"word{number}") for number in range(1, 2001)])
    profiles.change([urd(1, "java", threshold=99)], [2])
    thread = Thread(target=profiles.merge)
    thread.start()
    try:
        seen = {tuple(ids(profiles)) for _ in range(3)}
    finally:
        thread.join()
    assert seen == {tuple(ids(profiles))} == {tuple(range(3, 2001))}


def test_it_is_time_to_merge_after_many_changes() -> None:
    profiles = Profiles()
    profiles.change(urd(number, "java") for number in range(annotating.CHANGES_MAX))
    assert not profiles.wants_merging
    profiles.change([urd(annotating.CHANGES_MAX, "java")])
    assert profiles.wants_merging
    profiles.merge()
    assert not profiles.wants_merging


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    with pytest.raises(MissingExtra, match=r"ahocorasick_rs is missing: install lcc-scrapy\[annotation\]"):
        Profiles([urd(1, "java")])
