"""What URLs were submitted with: kept in short, and given back as it was."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.domain.entries import Declared, Operation, UrlEntry
from lcc_scrapy.domain.sent import SENT_MAX, UNKNOWN_MAX, as_sent, form_of, form_of_run, values_of, with_form

PREFIX = "http://a.example/dir/"
ENTRY = UrlEntry(
    f"{PREFIX}x.html",
    "text/html",
    Operation.UPDATE,
    f"{PREFIX}x.html",
    None,
    "",
    Declared(1012521599, 7, "a" * 32),
)
names = st.sampled_from(
    ["c", "curl", "b", "burl", "f", "furl", "mimetype", "mtime", "len", "md5", "own", "timeofday"]
)
values = st.text(max_size=20) | st.sampled_from(
    ["x.html", f"{PREFIX}x.html", "text/html", "1012521599", "7", ""]
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(names, values), st.sampled_from(["", PREFIX, "http://a.example/"]))
def test_what_was_sent_comes_back_with_its_names_values_and_order(sent, prefix):
    stored = values_of(ENTRY)
    assert list(as_sent(form_of(sent, stored, prefix), stored).items()) == list(sent.items())


def test_what_stands_in_the_row_is_not_kept_twice():
    sent = {"c": "x.html", "mimetype": "text/html", "mtime": "20020131235959", "len": "7", "md5": "A" * 32}
    form = with_form(ENTRY, sent, PREFIX).sent
    assert form == f'[["c",{len(PREFIX)}],"mimetype",["mtime","20020131235959"],"len",["md5","{"A" * 32}"]]'
    assert as_sent(form, values_of(ENTRY)) == sent


def test_a_removal_has_no_form():
    removal = UrlEntry(f"{PREFIX}x.html", "text/html", Operation.REMOVE)
    assert with_form(removal, {"c": "x.html"}, PREFIX) is removal


def test_a_run_has_one_form():
    names = {"c": True, "mimetype": False, "op": False, "b": False}
    assert form_of_run(names, PREFIX) == f'[["c",{len(PREFIX)}],"mimetype",["op","update"],"b"]'
    assert form_of_run(names, "") == '["c","mimetype",["op","update"],"b"]'


@pytest.mark.parametrize(("name", "most"), [("own", UNKNOWN_MAX), ("mtime", SENT_MAX)])
def test_what_is_kept_of_one_url_is_bounded(name, most):
    room = most - len(name)
    assert as_sent(form_of({name: "x" * room}, {}, ""), {}) == {name: "x" * room}
    assert as_sent(form_of({name: "x" * (room + 1), "len": "7"}, {}, ""), {}) == {"len": "7"}
    strangers = {f"own{number}": "x" * 100 for number in range(100)}
    assert sum(map(len, as_sent(form_of(strangers, {}, ""), {}).values())) < UNKNOWN_MAX


def test_the_values_of_a_url_are_those_that_the_protocol_would_say():
    mask = "1" * 168
    whole = UrlEntry("c", "text/html", Operation.UPDATE, "f", "b", "x: y", Declared(5, 6, "d"), mask)
    assert values_of(whole) == {
        "curl": "c", "burl": "b", "furl": "f", "mimetype": "text/html", "subtype": "x: y",
        "mtime": "5", "len": "6", "md5": "d", "timeofday": mask,
    }  # fmt: skip
    bare = UrlEntry("c", "text/html", Operation.UPDATE, "f", None, "", Declared(), "")
    said = {name: value for name, value in values_of(bare).items() if value is not None}
    assert said == {"curl": "c", "burl": "", "furl": "f", "mimetype": "text/html"}
