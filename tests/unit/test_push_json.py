"""Sets in JSON: whatever the network cut, the messages are the same; what is wrong is said in one line."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.push_http.json_reader import JsonLines, JsonObject
from lcc_scrapy.apps.push_http.json_values import type_by_name
from lcc_scrapy.domain.uns_limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.uns.codec import Malformed
from lcc_scrapy.wire.messages import SetEnd, SetStart, Url

URLS = [
    "http://www.example.org/",
    {"c": "a, [b]{c}.html", "mimetype": "text/html", "mtime": 5},
    {"curl": 'quo"te\\.pdf', "op": "remove", "md5": None},
    {"c": "ä\U0001f600", "f": "x", "unknown": "y:z"},
]
FIELDS = {"set": "partial", "urlprefix": "http://www.example.org/", "id": "one", "ifabsent": True}
OBJECT = json.dumps({**FIELDS, "urls": URLS}, ensure_ascii=False, indent=1).encode()
LINES = "\n".join(json.dumps(one, ensure_ascii=False) for one in (FIELDS, *URLS)).encode()
EXPECTED = [
    SetStart(full=False, urlprefix="http://www.example.org/", set_id="one", ifabsent=True),
    Url({"curl": "http://www.example.org/", "mimetype": "text/html"}, {"c": "http://www.example.org/"}),
    Url({"curl": "a, [b]{c}.html", "mimetype": "text/html", "mtime": "5"}),
    Url({"curl": 'quo"te\\.pdf', "op": "remove", "mimetype": "application/pdf"}),
    Url({"curl": "ä\U0001f600", "furl": "x", "unknown": "y:z", "mimetype": "text/html"}),
    SetEnd(),
]


def read(reader, *pieces):
    found = [message for piece in pieces for message in reader.feed(piece)]
    return found + reader.finish()


def complaint(text, form=JsonObject, limits=DEFAULT_LIMITS):
    found = read(form(limits), text if isinstance(text, bytes) else text.encode())
    assert isinstance(found[-1], Malformed), found
    return found[-1].detail


@pytest.mark.parametrize(("form", "text"), [(JsonObject, OBJECT), (JsonLines, LINES)])
def test_both_forms_say_the_same_set_whole_and_byte_by_byte(form, text):
    assert read(form(Limits()), text) == EXPECTED
    assert read(form(Limits()), *(text[at : at + 1] for at in range(len(text)))) == EXPECTED


@given(
    st.lists(st.integers(0, len(OBJECT)), max_size=8),
    st.sampled_from([(JsonObject, OBJECT), (JsonLines, LINES)]),
)
def test_any_cutting_gives_the_same_messages(cuts, which):
    form, text = which
    places = [0, *sorted(cuts), len(text)]
    assert read(form(Limits()), *(text[a:b] for a, b in itertools.pairwise(places))) == EXPECTED


@pytest.mark.parametrize("end", range(1, len(OBJECT)))
def test_a_cut_object_has_no_end(end):
    assert not any(isinstance(one, SetEnd) for one in read(JsonObject(Limits()), OBJECT[:end]))


def test_an_object_may_have_no_urls_or_none_at_all():
    for text in ('{"set":"full"}', '{"set":"full","urls":[]}', ' \n{"set" : "full" , "urls" : [ ] } \n'):
        assert read(JsonObject(Limits()), text.encode()) == [SetStart(full=True), SetEnd()]


def test_an_empty_body_brings_no_set():
    assert read(JsonObject(Limits())) == read(JsonLines(Limits())) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "not an object"),
        ("{}", "a set says set="),
        ('{"urls":["a"],"set":"full"}', "a set says set="),
        ('{"set":"full","urls":["a"],"id":"x"}', "the last field"),
        ('{"set":"full","colour":"red"}', "unknown field 'colour'"),
        ('{"set":"full","set":"full"}', "a name of its own"),
        ('{"set":"full","urls":"a"}', "an array"),
        ('{"set":"full","urls":[[]]}', "text or an object"),
        ('{"set":"full","urls":["a",]}', "not JSON"),
        ('{"set":"full","urls":["a"}', "among the URLs"),
        ('{"set":"full","urls":[{"c":["a"]}]}', "'c' is neither text nor a number"),
        ('{"set":"full","urls":[{"<c>":"a"}]}', "no name of an attribute"),
        ('{"set":"full","urls":["a\\u0000"]}', "no XML can hold"),
        ('{"set":"full","urls":["\\ud800"]}', "no XML can hold"),
        (b'{"set":"full","urls":["\xff"]}', "not UTF-8"),
        ('{"set":"full","urls":[tru]}', "not JSON"),
        ('{"set":"full"}x', "goes on behind"),
        ('{"set":"full"},', "behind the object"),
        ('{"set":"full","urls":[' + "[" * 40_000 + "]" * 20_000, "ends too early"),
        ('{"set":"full","urls":[' + "[" * 30_000 + "]" * 30_000 + "]}", "too many nested"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text, says):
    assert says in complaint(text)


def test_the_number_of_a_wrong_url_is_said():
    assert complaint('{"set":"full","urls":["a","b",1.5,{}  ,[]]}').endswith("URL 5")


def test_lines_begin_with_the_set():
    assert "the first line is the set" in complaint('"a"\n"b"', JsonLines)
    assert "there is no set" in complaint("\n\n ", JsonLines)


@pytest.mark.parametrize("form", [JsonObject, JsonLines])
def test_bounds_hold(form):
    opening = '{"set":"full"}\n' if form is JsonLines else '{"set":"full","urls":['
    between = "\n" if form is JsonLines else ","
    long = opening + '"' + "x" * 70_000
    assert "more than 65536 bytes in one" in complaint(long, form)
    many = opening + between.join(['"a"'] * 5)
    assert "more than 3 URLs" in complaint(many, form, Limits(set_urls=3))
    assert "more than 20 bytes" in complaint(many, form, Limits(set_bytes=20))
    wide = opening + json.dumps({f"a{n}": "x" for n in range(17)}) + between
    assert "more than 16 attributes" in complaint(wide, form)


def test_nothing_before_the_set_is_endless():
    assert "before the set" in complaint(b" " * 70_000)
    assert "empty lines" in complaint(b"\n" * 70_000, JsonLines)


def test_nothing_is_read_behind_an_error():
    reader = JsonObject(Limits())
    assert len(reader.feed(b"x")) == 1
    assert reader.feed(OBJECT) == reader.finish() == []


@pytest.mark.parametrize(
    ("url", "mimetype"),
    [
        ("http://www.example.org/a.pdf?x=1.png", "application/pdf"),
        ("http://www.example.org/A.HTM#b.pdf", "text/html"),
        ("http://example.md", "text/html"),
        ("http://www.example.org/v1.2/", "text/html"),
        ("docs/logo.png", "image/png"),
        ("http://[", "text/html"),
    ],
)
def test_a_url_without_a_type_gets_that_of_its_name(url, mimetype):
    assert type_by_name(url) == mimetype
